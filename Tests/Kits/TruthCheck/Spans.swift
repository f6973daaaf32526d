// `since` and `runs`, compared with what the truth granted.

import JSON

extension TruthCheck {
    /// What is wrong with `since` and `runs`.
    func spanFaults(of record: JSONValue, _ subscription: Subscription) -> [String] {
        // Nothing is known about what was moved elsewhere; the failed last days of a commitment were paid but gave no access.
        let story = subscription.deeds.first?.story ?? ""
        if subscription.final["state"] == .null || ["commitmentRecovered", "commitmentLost"].contains(story) {
            return []
        }
        let intervals = subscription.intervals.filter { $0.rule != "leeway" }
        var since: Int64?
        var reached: Int64? = .min
        var transactionId: String?
        var runs: [(Int64, Int64?)] = []
        for interval in intervals {
            // Access that came back with a reversed refund counts as never interrupted.
            let isBack = interval.rule == "reinstated" && interval.transactionId == transactionId
            transactionId = interval.transactionId
            if interval.from <= end, !isBack, reached.map({ interval.from > $0 }) ?? false { since = interval.from }
            reached = later(reached, interval.until)
            if interval.isRevoked || interval.until.map({ $0 <= interval.from }) ?? false { continue }
            if let last = runs.last, isBack || last.1.map({ interval.from <= $0 }) ?? true {
                runs[runs.count - 1].1 = later(last.1, interval.until)
            } else {
                runs.append((interval.from, interval.until))
            }
        }
        let expected: [[JSONValue]] = runs.map { [.integer($0), $1.map(JSONValue.integer) ?? .null] }
        let found = record["runs"]?.array?.map { [$0["start"] ?? .null, $0["end"] ?? .null] }
        var wrong: [String] = []
        if found != expected { wrong.append("runs are \(found ?? []) and not \(expected)") }
        if record["since"]?.integer != since {
            wrong.append("since is \(record["since"] ?? .null) and not \(since ?? -1)")
        }
        return wrong
    }

    /// nil counts as later than any other.
    private func later(_ left: Int64?, _ right: Int64?) -> Int64? {
        guard let left, let right else { return nil }
        return max(left, right)
    }
}
