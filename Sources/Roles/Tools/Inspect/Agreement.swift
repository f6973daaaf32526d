// Whether the published value agrees with the notifications.

import Contract
import Entitlements
import JSON
import Log

/// The last record of one key in `entitlements`.
struct PublishedValue: Sendable, Equatable {
    let offset: Int64
    let bytes: [UInt8]
    let json: JSONValue
    /// Hash of the settings that it was made with.
    let rules: String?

    var sequence: Int64? { json["sequence"]?.integer }
    var asOf: Int64? { json["asOf"]?.integer }
    /// The start of the first period that it contains.
    var firstPeriod: Int64? { json["runs"]?.array?.first?["start"]?.integer }

    /// nil: the record is a tombstone, or its value is not JSON.
    init?(_ record: borrowing RecordView) {
        guard let bytes = record.copyOfValue() else { return nil }
        do throws(JSONFault) { json = try JSONValue.read(bytes) } catch { return nil }
        self.bytes = bytes
        offset = record.offset
        var rules: String?
        if let header = record.rules {
            rules = header.withUnsafeBytes { String(decoding: $0, as: UTF8.self) }
        }
        self.rules = rules
    }
}

enum Agreement: Sendable, Equatable {
    case same
    /// There is no value, but there should be one.
    case absent
    /// The value was right when it was written, but newer notifications exist, or a change has become due since.
    case behind(notifications: Int)
    /// The value was made with other settings; the names of members that differ.
    case otherRules([String])
    case different([String])
    /// Nothing was published, and nothing should be.
    case nothing
    /// There is a value, but no notification that could have caused it.
    case unfounded

    /// Members that depend on how a value was reached; they may differ between equal values.
    private static let way: Set = ["sequence", "asOf", "cause"]

    /// Names of members that differ, in the order of the first value.
    static func differences(_ left: JSONValue, _ right: JSONValue) -> [String] {
        let names = [left, right].flatMap { ($0.object?.members ?? []).map(\.name) }
        var seen: Set<String> = []
        return names.filter { name in
            // A missing member equals null.
            seen.insert(name).inserted && !way.contains(name) && (left[name] ?? .null) != (right[name] ?? .null)
        }
    }

    init(
        _ published: PublishedValue?, _ fold: SubscriptionFold, _ rules: EntitlementRules, id: String,
        _ environment: Contract.Environment
    ) {
        func json(_ timeline: Timeline, at instant: Int64) -> JSONValue {
            // This program has just written these bytes.
            (try? JSONValue.read(timeline.record(of: id, environment, at: instant))) ?? .null
        }
        guard let clock = fold.clock, let timeline = Timeline(fold.facts(), rules) else {
            self = published == nil ? .nothing : .unfounded
            return
        }
        guard let published else {
            self = .absent
            return
        }
        let differences = Self.differences(published.json, json(timeline, at: clock))
        if differences.isEmpty {
            self = .same
            return
        }
        let known = fold.told.filter(published.restsOn)
        if let asOf = published.asOf, let then = Timeline(fold.facts(where: published.restsOn), rules),
            Self.differences(published.json, json(then, at: asOf)).isEmpty
        {
            self = .behind(notifications: fold.told.count - known.count)
        } else if let made = published.rules, made != rules.fingerprint {
            self = .otherRules(differences)
        } else {
            self = .different(differences)
        }
    }
}

extension PublishedValue {
    /// Whether the worker had processed the notification when it wrote the value.
    func restsOn(_ told: ToldNotification) -> Bool {
        if let offset = json["cause"]?["offset"]?.integer { return told.offset <= offset }
        // A timer fires before the record that advances the clock to its time.
        return asOf.map { told.clock < $0 } ?? false
    }
}
