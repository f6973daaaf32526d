// `dead-letters list`: the newest letters, newest last.

import Contract
import JSON
import Platform
import Settings
import Telemetry

struct LetterList {
    let query: LetterQuery
    let output: Output

    func run(_ scans: [LetterScan]) throws(ToolFault) -> ExitCode {
        let limit = query.limit ?? LetterQuery.defaultListLimit
        var newest = NewestLetters(limit: limit)
        var progress = ProgressBar.standardError()
        var hasOlder = false
        for scan in scans {
            // What a filter leaves out may be anything, so then everything is looked at.
            let start: LetterScan.Start =
                query.since.map { .time($0) } ?? (query.reasons.isEmpty ? .newest(limit) : .beginning)
            let begins = try scan.run(from: start, progress: { progress.update($0) { scan.topic } }) {
                record throws(ToolFault) in
                let letter = Letter(record, in: scan.environment)
                if query.matches(letter) { newest.add(letter) }
                return true
            }
            if case .newest = start, begins == .later { hasOlder = true }
        }
        progress.end()
        let letters = newest.sorted
        let isWorkers = query.topic != .rejected
        if !letters.isEmpty, !query.isJSON { output.message(Letter.head(isWorkers)) }
        for letter in letters {
            output.data(query.isJSON ? letter.jsonLine(isWorkers) : letter.textLine(isWorkers))
        }
        if letters.isEmpty { output.message("perennial dead-letters: there are none") }
        if hasOlder || newest.hasLeftOut {
            // How many is not known: of older ones only the places are, and not every place holds a letter.
            output.message("perennial dead-letters: only the newest are shown; --limit shows more")
        }
        return .done
    }
}

/// Keeps the newest of what it is given.
struct NewestLetters {
    private let limit: Int
    private var letters: [Letter] = []
    private var count = 0

    init(limit: Int) {
        self.limit = limit
    }

    mutating func add(_ letter: Letter) {
        count += 1
        letters.append(letter)
        // Sorted once for as many as are kept: the cost of a letter does not grow with their number.
        if letters.count >= 2 * limit { letters = Array(sorted) }
    }

    var hasLeftOut: Bool { count > limit }

    /// Oldest first.
    var sorted: ArraySlice<Letter> {
        letters.sorted {
            ($0.firstTime, $0.environment.rawValue, $0.partition, $0.offset)
                < ($1.firstTime, $1.environment.rawValue, $1.partition, $1.offset)
        }.suffix(limit)
    }
}

extension Letter {
    /// What the columns are. For people: who reads letters by program finds nothing else among them.
    static func head(_ isWorkers: Bool) -> String {
        "environment  partition:offset  time  reason  bytes  key" + (isWorkers ? "  source  detail" : "")
    }

    /// Columns that a shell can cut: what others wrote is cleaned of what would move a terminal's cursor. A worker's letter has two
    /// more, where it came from and what more there is to say.
    func textLine(_ isWorkers: Bool) -> String {
        var columns = [
            environment.rawValue, position, rfc3339(milliseconds: firstTime), printable(reason), "\(bytes)",
            key.isEmpty ? "-" : printable(key),
        ]
        if isWorkers {
            columns.append(marks.source.map(printable) ?? "-")
            columns.append(marks.timer.map { "timer \(printable($0))" } ?? marks.detail.map(printable) ?? "-")
        }
        return columns.joined(separator: "  ")
    }

    func jsonLine(_ isWorkers: Bool) -> String {
        var writer = JSONWriter()
        writer.object { line in
            line.member("environment", environment.rawValue)
            line.member("partition", partition)
            line.member("offset", offset)
            line.member("time", firstTime)
            line.member("reason", reason)
            line.member("bytes", bytes)
            line.member("key", key)
            if isWorkers {
                line.member("source", marks.source)
                line.member("detail", marks.detail)
                line.member("timer", marks.timer)
                line.member("gap", marks.gap)
            }
        }
        return String(decoding: writer.bytes, as: UTF8.self)
    }
}

/// Text that anybody may have sent, for a terminal: nothing in it starts a line or an escape sequence, or hides.
func printable(_ text: String) -> String {
    var shown = ""
    for scalar in text.unicodeScalars {
        switch scalar.properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator:
            shown += "\\u{\(String(scalar.value, radix: 16))}"
        default: shown.unicodeScalars.append(scalar)
        }
    }
    return shown
}
