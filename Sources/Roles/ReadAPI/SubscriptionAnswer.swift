// GET /v1/subscriptions/{originalTransactionId}: one subscription, and whether it gives access now.

internal import Contract
internal import HTTP
internal import JSON

struct SubscriptionAnswer {
    private let record: [UInt8]
    private let access: Bool
    private let accessUntil: Int64?
    private let now: Int64
    /// Changes when the record or its access changes; nil: the record has no `sequence`. Weak, because the position in
    /// the answer changes without it.
    let tag: String?

    /// nil: the record cannot be read; the follower accepts no such record.
    init?(_ record: [UInt8], of environment: Environment, at now: Int64, _ parser: Parsers.Parser) {
        do throws(JSONFault) { try parser.json.read(record.span) } catch { return nil }
        let root = parser.json.root
        self.record = record
        self.now = now
        access = PublishedRecord.hasAccess(root, in: parser.json, at: now)
        accessUntil = parser.json.member("accessUntil", of: root).flatMap { parser.json.integer($0.value) }
        let ending = access ? "" : "-ended"
        let world = environment == .production ? "" : "-\(environment.rawValue)"
        tag = parser.json.member("sequence", of: root).flatMap { parser.json.integer($0.value) }
            .map { "W/\"\($0)\(world)\(ending)\"" }
    }

    func body(position: [UInt8]) -> [UInt8] {
        var writer = JSONWriter(capacity: record.count + position.count + 128)
        writer.object { writer in
            writer.member("access", access)
            writer.member("accessUntil", orNull: accessUntil)
            writer.member("asOf", now)
            // Unchanged, including unknown members.
            writer.member("subscription", json: record)
            writer.member("position", json: position)
        }
        return writer.bytes
    }
}

extension HTTPHeaders {
    /// Whether the client has this version already (If-None-Match).
    func match(_ tag: String) -> Bool {
        // Weak tags match strong ones here: the client wants to know whether the record is the same.
        func opaque(_ tag: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
            tag.starts(with: "W/".utf8) ? tag.dropFirst(2) : tag
        }
        let wanted = opaque(Array(tag.utf8)[...])
        return all("If-None-Match").contains { list in
            Array(list.utf8).split(separator: UInt8(ascii: ",")).map(withoutBlanks).contains { given in
                given.elementsEqual("*".utf8) || opaque(given) == wanted
            }
        }
    }
}
