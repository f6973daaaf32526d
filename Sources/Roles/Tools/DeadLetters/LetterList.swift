// `dead-letters list`: the newest letters; the newest is last.

import Cluster
import CommandLine
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
            // With a filter, any letter may be left out, so everything is read.
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
        if letters.isEmpty { output.message("perennial dead-letters: no letters found") }
        if hasOlder || newest.hasLeftOut {
            // How many older letters there are is not known: not every offset is a letter.
            output.message("perennial dead-letters: only the newest are shown; --limit shows more")
        }
        return .done
    }
}

/// Keeps the newest of the letters that it gets.
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
        // Sorted only when twice as many are held as are kept: the cost of a letter does not grow with their number.
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
    /// The line with the names of the columns. It goes to standard error, so that programs read only letters.
    static func head(_ isWorkers: Bool) -> String {
        "environment  partition:offset  time  reason  bytes  key" + (isWorkers ? "  source  detail" : "")
    }

    /// Columns that a shell can cut. Foreign text is cleaned of everything that would move a terminal's cursor. A worker's letter
    /// has two more columns: its source and its detail.
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

/// Makes text that anybody may have sent safe for a terminal: no line breaks, escape sequences or invisible characters.
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
