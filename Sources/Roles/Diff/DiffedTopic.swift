// Which topics of a worker are compared, and how.

import Comparison
import Contract
import Log

/// What `diff` knows of one output topic.
struct DiffedTopic: Sendable {
    let id: TopicID
    let rules: ComparisonRules
    /// Whose headers its records have.
    let kind: RecordKind

    /// The way there is no part of a value: which record came last, how many there were, where they lay.
    private static let wayThere: [StaticString] = ["sequence", "asOf", "cause", "offset"]

    private init(_ id: TopicID, _ type: RecordType, sums: [String] = []) {
        self.id = id
        rules = ComparisonRules(leavingOut: Self.wayThere, sums: sums)
        kind = RecordKind(type.rawValue, version: type.version)
    }

    /// Topics of states. Event topics tell of changes, not of what is so now: a replay that was begun anew tells them at other places.
    static func all(of worker: Worker) -> [DiffedTopic] {
        switch worker {
        case .entitlements: [DiffedTopic(.entitlements, .entitlement), DiffedTopic(.accounts, .account)]
        case .churn: [DiffedTopic(.churnCells, .churnCell, sums: ["counts", "money"])]
        case .consumption: [DiffedTopic(.consumption, .consumption)]
        }
    }
}

/// How many keys came to which verdict.
struct DiffCounts: Equatable {
    var same = 0
    var different = 0
    /// In the shadow.
    var onlyHere = 0
    /// In the live topic.
    var onlyThere = 0
    var newer = 0
    /// Requests so old that Kafka has deleted records of theirs from the live topic, which keeps them for some time only.
    var leftOut = 0

    var differ: Bool { different + onlyHere + onlyThere > 0 }

    static func + (left: DiffCounts, right: DiffCounts) -> DiffCounts {
        DiffCounts(
            same: left.same + right.same, different: left.different + right.different,
            onlyHere: left.onlyHere + right.onlyHere, onlyThere: left.onlyThere + right.onlyThere,
            newer: left.newer + right.newer, leftOut: left.leftOut + right.leftOut)
    }
}
