// Which records a copy accepts, and what it reads of them.

internal import Contract
internal import Entitlements
internal import JSON

enum PublishedRecord {
    /// The limit of the topic. A larger record cannot be in it.
    static var limits: JSONLimits {
        var limits = JSONLimits()
        limits.bytes = TopicPlan.limitBatchBytes
        return limits
    }

    /// Whether answers can be given from the record: the members that decide access are present and have the right
    /// types.
    static func isOne(_ record: JSONDocument.Value, in json: borrowing JSONDocument) -> Bool {
        guard let id = json.member("originalTransactionId", of: record), json.kind(of: id.value) == .string,
            let access = json.member("access", of: record), json.kind(of: access.value) == .bool
        else { return false }
        return json.member("accessUntil", of: record).map { json.isIntegerOrNull($0.value) } ?? true
    }

    /// Whether it names any entitlement. A value that is not a name counts as one: it is safer to show the record than
    /// to leave it out.
    static func isGranting(_ record: JSONDocument.Value, in json: borrowing JSONDocument) -> Bool {
        guard let names = json.member("entitlements", of: record)?.value, json.kind(of: names) == .array else {
            return false
        }
        return json.firstElement(of: names) != nil
    }

    /// For a record that passed `isOne`: whether it gives access at a time that may be later than the record.
    static func hasAccess(_ record: JSONDocument.Value, in json: borrowing JSONDocument, at now: Int64) -> Bool {
        guard json.member("access", of: record).flatMap({ json.bool($0.value) }) == true else { return false }
        return json.integer("accessUntil", of: record).map { now < $0 } ?? true
    }

    /// The paid periods. One that cannot be read is left out: otherwise it would seem to have no end.
    static func runs(of record: JSONDocument.Value, in json: borrowing JSONDocument) -> [Run] {
        guard let list = json.member("runs", of: record)?.value else { return [] }
        var runs: [Run] = []
        var place = json.firstElement(of: list)
        while let run = place {
            let end = json.member("end", of: run)?.value
            if let start = json.integer("start", of: run), end.map({ json.isIntegerOrNull($0) }) ?? true {
                runs.append(Run(start: start, end: end.flatMap { json.integer($0) }))
            }
            place = json.element(after: run)
        }
        return runs
    }
}

extension JSONDocument {
    fileprivate func integer(_ name: StaticString, of object: Value) -> Int64? {
        member(name, of: object).flatMap { integer($0.value) }
    }

    fileprivate func isIntegerOrNull(_ value: Value) -> Bool { kind(of: value) == .null || integer(value) != nil }
}
