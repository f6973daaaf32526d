// How long partitions stood still, by cause.

/// In each step the longest pause of every partition counts once.
struct ManyReport {
    /// Shorter pauses come from the watch's own sampling.
    private static let least = Duration.milliseconds(1_000)

    let longest: Duration
    private let byCause: [ManyCause: [ManyPause]]
    private let byPartition: [ManyPartition: ManyPause]

    init(_ pauses: [ManyPause]) {
        let seen = pauses.filter { $0.duration >= Self.least }
        byCause = Dictionary(grouping: seen, by: \.cause)
        byPartition = Dictionary(grouping: seen, by: \.partition).compactMapValues { pauses in
            pauses.max { $0.duration < $1.duration }
        }
        longest = seen.map(\.duration).max() ?? .zero
    }

    /// A line for each cause, and one for each partition.
    func lines(steps: [ManyCause: Int]) -> [String] {
        var lines: [String] = []
        for cause in ManyCause.allCases {
            guard [.start, .nothing].contains(cause) || steps[cause] != nil else { continue }
            let times = steps[cause].map { ", \($0) times" } ?? ""
            let pauses = (byCause[cause] ?? []).map(\.duration).sorted()
            guard let longest = pauses.last else {
                lines.append("  \(cause.rawValue)\(times): no partition stood still")
                continue
            }
            lines.append(
                "  \(cause.rawValue)\(times): \(pauses.count) pauses, half of them up to "
                    + "\(pauses[(pauses.count - 1) / 2].inSeconds), the longest \(longest.inSeconds)")
        }
        for (partition, pause) in byPartition.sorted(by: { $0.key < $1.key }) {
            lines.append("  \(partition): the longest pause \(pause.duration.inSeconds), \(pause.cause.rawValue)")
        }
        return lines
    }

    /// Median and longest by cause, in one line.
    var figures: String {
        ManyCause.allCases.compactMap { cause in
            guard let pauses = byCause[cause]?.map(\.duration).sorted(), let longest = pauses.last else { return nil }
            return "\(cause.rawValue) \(pauses[(pauses.count - 1) / 2].inSeconds)/\(longest.inSeconds)"
        }.joined(separator: ", ")
    }
}
