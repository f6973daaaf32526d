// The answers that are to be sent, according to one partition of the topic `consumption`.

internal import Consumption
internal import Contract
internal import Follow
internal import JSON
internal import Log
internal import Notices
internal import Records
internal import Telemetry

/// In memory: open answers are at most half a day old, and are read again when the partition moves.
final class AnswerBook: PartitionSink {
    private static let kind = RecordKind(
        RecordType.consumption.rawValue, version: RecordType.consumption.version)

    let partition: Int32
    private let desk: SendDesk
    private let logger: Logger
    private var json = JSONDocument()
    private(set) var answers: [Text: OpenAnswer] = [:]
    /// The greatest timestamp that has been read.
    private var clock: Int64 = .min
    /// After the deadline, by the log's clock: after this time nothing is decided or sent.
    private static let keptBehindDeadline: Int64 = 3_600_000

    init(_ partition: Int32, _ desk: SendDesk, logger: Logger) {
        self.partition = partition
        self.desk = desk
        self.logger = logger
    }

    // MARK: PartitionSink

    func open() throws(SinkFault) -> SinkContents {
        forget()
        return .nothing
    }

    func close() throws(SinkFault) { forget() }
    func wipe() throws(SinkFault) { forget() }

    /// Nothing is stored elsewhere. Withheld answers have no last step; they are removed after a time.
    func write(_ places: [KeptPlace], isLasting: Bool) throws(SinkFault) {
        for answer in answers.values where answer.deadline < clock - Self.keptBehindDeadline {
            answers[answer.name.id] = nil
            desk.drop(answer.name)
        }
    }

    private func forget() {
        for answer in answers.values { desk.drop(answer.name) }
        answers = [:]
        clock = .min
    }

    func take(_ record: borrowing RecordView) -> String? {
        clock = max(clock, record.timestamp)
        switch Self.kind.meaning(of: record, upgrade: "perennial consumption") {
        case .newer(let words): return words
        case .unknownType: return nil
        case .strange:
            note("the headers are not those of this topic", record.offset)
            return nil
        case .known: break
        }
        guard let value = record.value else { return nil }
        do throws(JSONFault) {
            try json.read(value)
        } catch {
            note("\(error)", record.offset)
            return nil
        }
        guard let step = ConsumptionRecord(json) else {
            note("the value is not a step of a refund request", record.offset)
            return nil
        }
        apply(step, record.offset)
        return nil
    }

    /// Only our worker writes to this topic. A record that cannot be read is logged, and its answer is not sent.
    private func note(_ words: String, _ offset: Int64) {
        logger.error(
            "a record of consumption was skipped",
            ["partition": .integer(partition), "offset": .integer(offset), "reason": .string(words)])
    }

    // MARK: Steps

    private func apply(_ step: ConsumptionRecord, _ offset: Int64) {
        switch step.kind {
        case .decided: decide(step, offset)
        case .withheld:
            guard answers[step.id] != nil else { return }
            answers[step.id]?.isWanted = false
            desk.drop(AnswerName(partition: partition, id: step.id))
        case .retrying:
            guard var answer = answers[step.id] else { return }
            answer.attempts = max(answer.attempts, step.attempt ?? 0)
            // The time of the newest attempt counts; this process knows its own attempt before the record exists.
            answer.dueAt = max(answer.dueAt, step.retryAt ?? answer.dueAt)
            keep(answer)
        case .sent, .failed, .expired:
            answers[step.id] = nil
            desk.drop(AnswerName(partition: partition, id: step.id))
        case .requested, .outcome, .shadow: break
        }
    }

    private func decide(_ step: ConsumptionRecord, _ offset: Int64) {
        if var known = answers[step.id] {
            // The same bytes twice, or nothing: whatever is wrong with the log, Apple never gets two different answers
            // from here.
            guard known.body == step.body else {
                known.isWanted = false
                answers[step.id] = known
                desk.drop(known.name)
                return note("the request \(step.id) was decided with another body before: it is not sent", offset)
            }
            known.isWanted = true
            return keep(known)
        }
        let (bundleId, isV1) = Self.addressee(step.facts)
        // Due at once, whatever the log's clock says: one record from a host whose clock is ahead would hold up the
        // partition.
        let answer = OpenAnswer(step, partition: partition, isV1: isV1, bundleId: bundleId, dueAt: .min)
        guard let answer else { return note("the decision has no body, transaction, app or deadline", offset) }
        keep(answer)
    }

    private static func addressee(_ facts: [UInt8]?) -> (bundleId: Text?, isV1: Bool) {
        var json = JSONDocument()
        guard let facts else { return (nil, false) }
        // It was read a moment ago as a part of the record.
        do throws(JSONFault) { try json.read(facts.span) } catch { return (nil, false) }
        return (json.text("bundleId", of: json.root), json.bool("advancedCommerce", of: json.root) ?? false)
    }

    private func keep(_ answer: OpenAnswer) {
        answers[answer.name.id] = answer
        if answer.isWanted { desk.schedule(answer) }
    }

    /// Notes the result of an attempt before the worker has written it to the log.
    func attempted(_ id: Text, number: Int64, dueAt: Int64) {
        guard var answer = answers[id] else { return }
        answer.attempts = max(answer.attempts, number)
        answer.dueAt = dueAt
        keep(answer)
    }
}
