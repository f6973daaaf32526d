// Checks whether the values and events of a subscription follow from one another.

public import JSON

/// Knows the contract of the two topics, and nothing about subscriptions.
public enum ChainCheck {
    /// What is wrong; empty if nothing is.
    /// - Parameters:
    ///   - values: every value of `entitlements` of each key, in order.
    ///   - events: every value of `entitlement-events` of each key, in order.
    public static func wrong(values: [String: [JSONValue]], events: [String: [JSONValue]]) -> [String] {
        var wrong: [String] = []
        var ids: Set<String> = []
        for key in Set(values.keys).union(events.keys).sorted() {
            let values = values[key] ?? []
            let sequences = values.compactMap { $0["sequence"]?.integer }
            if sequences != Array(1..<Int64(values.count + 1)) { wrong.append("\(key): sequences are \(sequences)") }
            var last: Int64 = 0
            for event in events[key] ?? [] {
                let sequence = event["sequence"]?.integer ?? 0
                let name = "\(key): event \(sequence) \(event["kind"]?.string ?? "")"
                guard let id = event["id"]?.string, ids.insert(id).inserted else {
                    wrong.append("\(name) has the id of another")
                    continue
                }
                if sequence < last { wrong.append("\(name) comes after one of \(last)") }
                last = sequence
                guard (1...Int64(values.count)).contains(sequence) else {
                    wrong.append("\(name) belongs to no value")
                    continue
                }
                let value = values[Int(sequence) - 1]
                if event["cause"] != value["cause"] {
                    // A purchase has begun that gives the same answer: no value reports that.
                    let isAside = event["before"] == standing(value) && event["after"] == standing(value)
                    if !isAside { wrong.append("\(name) has another cause than its value") }
                    continue
                }
                let before = sequence > 1 ? standing(values[Int(sequence) - 2]) : .null
                if event["after"] != standing(value) { wrong.append("\(name) tells another state than its value") }
                if event["before"] != before { wrong.append("\(name) does not begin where the value before ended") }
            }
        }
        return wrong
    }

    private static func standing(_ value: JSONValue) -> JSONValue {
        .object(
            JSONObject(
                ["state", "access"].map { JSONObject.Member(name: $0, value: value[$0] ?? .null) }))
    }
}
