// The common part of all redrives: read letters, judge them, and publish them to their topics.

import Cluster
import CommandLine
import Configuration
import Kafka

extension LetterQuery {
    /// Judges each letter of the query and, with `--apply`, publishes the result. Returns when all records are written.
    /// - Parameters:
    ///   - topics: all topics that records may be published to.
    ///   - judge: the record to publish for a letter, if any.
    func redrive(
        _ scans: [LetterScan], to topics: [String], _ configuration: Configuration,
        judge: (Letter, borrowing ConsumedRecord) -> [ToolRecord]
    ) throws(ToolFault) {
        let publisher = applies ? try ToolPublisher(configuration, as: .deadLetters, topics: topics) : nil
        defer { publisher?.close() }
        var count = 0
        var progress = ProgressBar.standardError()
        // Also after an error, so that its message begins on an empty line.
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
