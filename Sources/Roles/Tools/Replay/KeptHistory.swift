// Whether the log still has everything from the beginning, which a replay needs.

import Log

/// A partition whose first records were deleted.
struct LostBeginning: Equatable {
    var partition: TopicPartition
    /// The first record that is left.
    var offset: NextOffset
    /// Milliseconds since 1970; nil: it is not known.
    var timestamp: Int64?

    var words: String {
        let time = timestamp.map { ", of \(shownTime($0)) UTC" } ?? ""
        return "\(partition) begins at offset \(offset)\(time)"
    }
}

enum KeptHistory {
    /// Why `notifications` will not keep records for a replay; nil: it will keep them.
    static func loss(bySettings settings: [String: String]) -> String? {
        var causes: [String] = []
        if let policy = settings["cleanup.policy"], policy != "delete" { causes.append("cleanup.policy=\(policy)") }
        for name in ["retention.ms", "retention.bytes"] {
            if let value = settings[name], value != "-1" { causes.append("\(name)=\(value)") }
        }
        if causes.isEmpty { return nil }
        return
            "\(causes.joined(separator: ", ")): Kafka deletes old notifications, and then a full replay is impossible; "
            + "perennial topics apply corrects the setting, but deleted records stay lost"
    }

    /// - Parameter positions: positions of a replay that has started. It has already read the records before them.
    static func lostBeginnings(
        _ beginnings: [TopicPartition: NextOffset], positions: [TopicPartition: NextOffset] = [:]
    ) -> [LostBeginning] {
        beginnings.filter { $0.value > positions[$0.key] ?? NextOffset(0) }.sorted { $0.key < $1.key }
            .map { LostBeginning(partition: $0.key, offset: $0.value) }
    }

    /// What was lost, and since when the results of a replay would be complete.
    static func words(_ lost: [LostBeginning]) -> [String] {
        let shown = lost.prefix(8).map(\.words) + (lost.count > 8 ? ["and \(lost.count - 8) more"] : [])
        let since = lost.compactMap(\.timestamp).max()
        return [
            "the first notifications were deleted: \(shown.joined(separator: "; "))",
            "a replay of the rest knows only what arrived since"
                + (since.map { " \(shownTime($0)) UTC" } ?? " the first remaining one"),
        ]
    }
}
