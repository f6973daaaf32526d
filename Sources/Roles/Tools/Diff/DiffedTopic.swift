// Which topics of a worker are compared, and how.

import Comparison
import Contract
import Log
import Records

/// What `diff` knows about one output topic.
struct DiffedTopic: Sendable {
    let id: TopicID
    let rules: ComparisonRules
    /// The kind of its records, which decides their headers.
    let kind: RecordKind

    /// Members that depend on how a value was reached: which record was last, how many there were, and at which offsets.
    private static let wayThere: [StaticString] = ["sequence", "asOf", "cause", "offset"]

    private init(_ id: TopicID, _ type: RecordType, sums: [String] = []) {
        self.id = id
        rules = ComparisonRules(leavingOut: Self.wayThere, sums: sums)
        kind = RecordKind(type.rawValue, version: type.version)
    }

    /// Only topics of states. Event topics contain changes, and a new replay writes these at other offsets.
    static func all(of worker: WorkerName) -> [DiffedTopic] {
        switch worker {
        case .entitlements: [DiffedTopic(.entitlements, .entitlement), DiffedTopic(.accounts, .account)]
        case .churn: [DiffedTopic(.churnCells, .churnCell, sums: ["counts", "money"])]
        case .consumption: [DiffedTopic(.consumption, .consumption)]
        }
    }
}

/// The number of keys for each verdict.
struct DiffCounts: Equatable {
    var same = 0
    var different = 0
    /// Keys that only the shadow has.
    var onlyHere = 0
    /// Keys that only the live topic has.
    var onlyThere = 0
    var newer = 0
    /// Requests so old that Kafka has deleted some of their records from the live topic, which has a limited retention.
    var leftOut = 0

    var differ: Bool { different + onlyHere + onlyThere > 0 }

    static func + (left: DiffCounts, right: DiffCounts) -> DiffCounts {
        DiffCounts(
            same: left.same + right.same, different: left.different + right.different,
            onlyHere: left.onlyHere + right.onlyHere, onlyThere: left.onlyThere + right.onlyThere,
            newer: left.newer + right.newer, leftOut: left.leftOut + right.leftOut)
    }
}
