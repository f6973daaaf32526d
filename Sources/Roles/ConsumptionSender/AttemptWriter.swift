// Writes rows of `consumption-attempts`: Apple's response is recorded before anything else happens.

internal import Consumption
internal import JSON
internal import Log
internal import Platform
internal import Records
internal import Telemetry

struct AttemptRow {
    let name: AnswerName
    let originalTransactionId: [UInt8]
    let attempt: Attempt
}

/// Appends rows, and keeps them until the log has them. Used on the sender's thread.
final class AttemptWriter {
    private static let appendLimit: Duration = .seconds(5)
    /// Pause before a failed write is retried.
    private static let faultPause: Duration = .seconds(1)

    private let topic: String
    private let app: String
    private let log: any RecordLog
    private let logger: Logger
    private var writer: (any LogWriter)?
    private var nextTry: Duration = .zero
    private(set) var unwritten: [AttemptRow] = []
    /// Why rows cannot be written; nil while they can.
    private(set) var trouble: String?

    init(topic: String, app: String, log: any RecordLog, logger: Logger) {
        self.topic = topic
        self.app = app
        self.log = log
        self.logger = logger
    }

    func add(_ row: AttemptRow) { unwritten.append(row) }

    /// - Returns: the rows that the log has now.
    func write(at now: Duration) -> [AttemptRow] {
        guard !unwritten.isEmpty, now >= nextTry else { return [] }
        do throws(LogFault) {
            _ = try openWriter().append(batch, by: Deadline(after: Self.appendLimit))
            if trouble != nil { logger.info("attempt rows are written again") }
            trouble = nil
            defer { unwritten = [] }
            return unwritten
        } catch {
            // Some of the rows may have been written already. The worker ignores a row whose attempt number it has
            // seen.
            if trouble == nil {
                logger.error("attempt rows cannot be written", ["reason": .string(error.words)])
            }
            trouble = "Apple's responses cannot be written to \(topic):  \(error.words)"
            if error.remedy != .retrySameCall { close(by: Deadline(after: Self.appendLimit)) }
            nextTry = now + Self.faultPause
            return []
        }
    }

    private func openWriter() throws(LogFault) -> any LogWriter {
        if let writer { return writer }
        let made = try log.openWriter(WriterOptions(name: "perennial-consumption-attempts", topics: [topic]))
        writer = made
        return made
    }

    private var batch: OutputBatch {
        let batch = OutputBatch()
        let type = RecordType.consumptionAttempt
        // Version 0.1 finds the type only in the header `type`, and may read these rows during an upgrade: the next owner of
        // the partition can be a worker that is not upgraded yet. Version 0.3 can leave the header out.
        let older = [RecordHeader(HeaderName.type, type.rawValue)]
        for row in unwritten {
            batch.append(
                topic: 0, partition: row.name.partition, timestamp: row.attempt.at, key: row.originalTransactionId,
                value: row.attempt.value,
                headers: RecordHeader.all(
                    id: "\(row.name.id)-\(row.attempt.number)-\(row.attempt.at)", schema: type.schema, app: app)
                    + older)
        }
        return batch
    }

    func close(by deadline: Deadline) {
        writer?.close(by: deadline)
        writer = nil
    }
}
