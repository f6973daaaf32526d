// What all redriving has in common: letters are read, judged, and published where they belong.

import Configuration
import Kafka

extension LetterQuery {
    /// Judges each letter that is asked for and publishes what comes of it, if it is to be applied; returns when all of it is
    /// written.
    /// - Parameters:
    ///   - topics: all that is ever published to.
    ///   - judge: what is to be published of a letter.
    func redrive(
        _ scans: [LetterScan], to topics: [String], _ configuration: Configuration,
        judge: (Letter, borrowing ConsumedRecord) -> [ToolRecord]
    ) throws(ToolFault) {
        let publisher = applies ? try ToolPublisher(configuration, as: .deadLetters, topics: topics) : nil
        defer { publisher?.close() }
        var count = 0
        var progress = ProgressBar.standardError()
        // Also when it ends early: what is said then begins on an empty line.
        defer { progress.end() }
        for scan in scans {
            try scan.run(from: start, progress: { progress.update($0) { scan.topic } }) {
                record throws(ToolFault) in
                let letter = Letter(record, in: scan.environment)
                guard matches(letter) else { return true }
                if let limit, count == limit { return false }
                count += 1
                for redriven in judge(letter, record) { publisher?.publish(redriven) }
                if let fault = publisher?.fault { throw fault }
                return true
            }
        }
        try publisher?.finish()
    }
}
