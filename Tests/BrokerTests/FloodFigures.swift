// What is measured during a flood, and the limits.

struct FloodLimits: Sendable {
    /// Latencies of genuine notifications, from the start of the post to its answer, in milliseconds.
    var longest = 2_000.0
    var median = 1_000.0
    var peakBytes = 200 << 20
    var laterBytes = 100 << 20
    /// CPU time of ingest.
    var microsecondsEach = 300.0
    /// Ingest logs the line that sums up refusals every ten seconds.
    var logLines = 20

    /// The limits do not hold for programs built without optimisation, which are several times as slow.
    static let ofDebugBuild = FloodLimits(microsecondsEach: 3_000)
}

struct FloodFigures: Sendable {
    var kind: FloodKind
    var sent: Int
    /// One line for people to read.
    var answers: String
    /// The number of flood requests that ended in the usual way.
    var usual: Int
    var rate: Double
    var genuine: Int
    var genuineAccepted: Int
    var median: Double
    var longest: Double
    /// Latencies of `/livez`; nil if it was not asked.
    var livez: (sent: Int, accepted: Int, longest: Double)?
    var peakBytes: Int
    var laterBytes: Int
    var later: Duration
    var rejectedBytes: Int
    var microsecondsEach: Double
    /// Records in `notifications` beyond one per genuine post.
    var surplusRecords: Int
    var logLines: Int

    /// The figures that exceed a limit, as text.
    func faults(_ limits: FloodLimits) -> [String] {
        var faults: [String] = []
        func require(_ isMet: Bool, _ words: String) {
            if !isMet { faults.append(words) }
        }
        require(
            sent > 0 && Double(usual) >= 0.8 * Double(sent), "the flood got other answers than expected: \(answers)")
        require(genuine > 0 && genuineAccepted == genuine, "\(genuine - genuineAccepted) of \(genuine) have no 200")
        require(longest <= limits.longest, "a genuine notification waited \(Int(longest)) ms")
        require(median <= limits.median, "genuine notifications waited \(Int(median)) ms at the median")
        require(peakBytes < limits.peakBytes, "\(peakBytes >> 20) MiB resident")
        require(laterBytes < limits.laterBytes, "\(laterBytes >> 20) MiB resident after \(later.inSeconds)")
        require(rejectedBytes <= kind.rejectedLimitBytes, "\(rejectedBytes) bytes in rejected")
        require(
            microsecondsEach <= limits.microsecondsEach, "\(Int(microsecondsEach)) us of CPU for each request")
        require(surplusRecords == 0, "\(surplusRecords) records too many in notifications")
        require(logLines <= limits.logLines, "\(logLines) lines in the log")
        if let livez {
            require(
                livez.sent > 0 && livez.accepted == livez.sent && livez.longest <= limits.longest,
                "/livez: \(livez.accepted) of \(livez.sent) have a 200, the longest after \(Int(livez.longest)) ms")
        }
        return faults
    }

    static func head(_ limits: FloodLimits) -> [String] {
        let columns = [
            "Flood", "a second", "answers", "genuine answered 200", "median, at most \(Int(limits.median)) ms",
            "longest, at most \(Int(limits.longest)) ms", "resident, below \(limits.peakBytes >> 20) MiB",
            "afterwards, below \(limits.laterBytes >> 20) MiB", "`rejected`, its setting",
            "CPU for each, at most \(Int(limits.microsecondsEach)) us",
        ]
        return ["| " + columns.joined(separator: " | ") + " |", String(repeating: "|---", count: columns.count) + "|"]
    }

    var row: String {
        func kilobytes(_ bytes: Int) -> String { "\((bytes + 1023) >> 10) KiB" }
        let cells = [
            kind.rawValue + (livez.map { "; `/livez`: \($0.accepted) of \($0.sent), \(Int($0.longest)) ms" } ?? ""),
            "\(Int(rate.rounded()))", answers, "\(genuineAccepted) of \(genuine)", "\(Int(median)) ms",
            "\(Int(longest)) ms", "\(peakBytes >> 20) MiB", "\(laterBytes >> 20) MiB after \(later.inSeconds)",
            "\(kilobytes(rejectedBytes)) of \(kilobytes(kind.rejectedLimitBytes))", "\(Int(microsecondsEach)) us",
        ]
        return "| " + cells.joined(separator: " | ") + " |"
    }
}
