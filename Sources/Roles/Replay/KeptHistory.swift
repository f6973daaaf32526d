// Whether the log still has what a replay folds: everything from the beginning.

import Log

/// A partition whose first records are gone.
struct LostBeginning: Equatable {
    var partition: TopicPartition
    /// The first record that is left.
    var offset: NextOffset
    /// Milliseconds since 1970; nil: not known.
    var timestamp: Int64?

    var words: String {
        let time = timestamp.map { ", of \(shownTime($0)) UTC" } ?? ""
        return "\(partition) begins at offset \(offset)\(time)"
    }
}

enum KeptHistory {
    /// Why what is written to `notifications` will not be there for a replay; nil: it will.
    static func loss(bySettings settings: [String: String]) -> String? {
        var causes: [String] = []
        if let policy = settings["cleanup.policy"], policy != "delete" { causes.append("cleanup.policy=\(policy)") }
        for name in ["retention.ms", "retention.bytes"] {
            if let value = settings[name], value != "-1" { causes.append("\(name)=\(value)") }
        }
        if causes.isEmpty { return nil }
        return
            "\(causes.joined(separator: ", ")): old notifications go, and a full replay is impossible from then on; "
            + "perennial topics apply sets it right, and what is gone stays gone"
    }

    /// - Parameter positions: of a replay that has begun; what lies before them it has read.
    static func lostBeginnings(
        _ beginnings: [TopicPartition: NextOffset], positions: [TopicPartition: NextOffset] = [:]
    ) -> [LostBeginning] {
        beginnings.filter { $0.value > positions[$0.key] ?? NextOffset(0) }.sorted { $0.key < $1.key }
            .map { LostBeginning(partition: $0.key, offset: $0.value) }
    }

    /// From when on a fold of what is left is right, as far as it is known: it knows nothing of what was told before.
    static func words(_ lost: [LostBeginning]) -> [String] {
        let shown = lost.prefix(8).map(\.words) + (lost.count > 8 ? ["and \(lost.count - 8) more"] : [])
        let since = lost.compactMap(\.timestamp).max()
        return [
            "the first notifications are gone, and with them what they told: \(shown.joined(separator: "; "))",
            "a replay of what is left knows only what was told since"
                + (since.map { " \(shownTime($0)) UTC" } ?? " the first of them"),
        ]
    }
}
