// GET /v1/accounts/{appAccountToken}: who owns what, over all apps.

internal import Entitlements
internal import JSON

/// Takes the records of one account, one after the other, and tells what they amount to.
struct AccountAnswer: ~Copyable {
    /// Of one answer. An account has a handful of records, thousands where consumables are sold; a token that a defect gives to
    /// all customers has millions, and would stop everything else.
    static let limitRecords = 10_000
    static let limitBytes = 8 << 20

    private let now: Int64
    private let parser: Parsers.Parser
    private var subscriptions: [AccountSubscription] = []
    private var count = 0
    /// The records as they came, separated by commas.
    private var records: [UInt8] = []
    private(set) var isTruncated = false

    init(at now: Int64, _ parser: Parsers.Parser) {
        self.now = now
        self.parser = parser
    }

    /// false: no more are taken.
    mutating func take(_ record: Span<UInt8>) -> Bool {
        guard count < Self.limitRecords, records.count + record.count <= Self.limitBytes else {
            isTruncated = true
            return false
        }
        // What the follower has let in can be read.
        do throws(JSONFault) { try parser.json.read(record) } catch { return true }
        count += 1
        if let subscription = AccountSubscription(parser.json) { subscriptions.append(subscription) }
        if !records.isEmpty { records.append(UInt8(ascii: ",")) }
        record.withUnsafeBufferPointer { records.append(contentsOf: $0) }
        return true
    }

    /// - Parameter token: a UUID, which needs no escape.
    consuming func body(token: String, position: [UInt8]) -> [UInt8] {
        let account = Account(subscriptions, at: now)
        var writer = JSONWriter(capacity: records.count + 1024)
        writer.object { writer in
            writer.member("appAccountToken", token)
            writer.name("entitlements")
            writer.object { writer in
                for grant in account.grants { grant.write(to: &writer) }
            }
            writer.member("subscriptions", json: Array("[".utf8) + records + Array("]".utf8))
            if isTruncated { writer.member("subscriptionsTruncated", true) }
            writer.name("advice")
            writer.array { writer in
                for advice in account.advice {
                    writer.object { writer in
                        writer.member("kind", advice.kind.rawValue)
                        writer.member("originalTransactionId", utf8: advice.originalTransactionId.bytes)
                        writer.member("url", advice.kind.url)
                    }
                }
            }
            writer.member("position", json: position)
        }
        return writer.bytes
    }
}

extension Account.Grant {
    fileprivate func write(to writer: inout JSONWriter) {
        writer.name("\(name)")
        writer.object { writer in
            writer.member("access", access)
            writer.member("accessUntil", orNull: accessUntil)
            writer.member("originalTransactionId", utf8: originalTransactionId.bytes)
            writer.member("bundleId", utf8: bundleId?.bytes)
        }
    }
}
