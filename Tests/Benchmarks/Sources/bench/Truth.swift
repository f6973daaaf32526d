// What a worker must have written after some lives: computed by the domain alone, one notification after the other.

import Churn
import Contract
import Entitlements
import JSON
import KafkaTestKit
import Log
import Notices
import Platform
import Runtime
import SubscriptionHistory
import Zone

/// Many records as a few numbers. Other records have another sum; their order does not matter.
struct RecordSum: Equatable, Sendable, CustomStringConvertible {
    private(set) var records = 0
    private(set) var bytes = 0
    private var hash: UInt64 = 0

    mutating func add(partition: Int32, _ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) {
        records += 1
        bytes += key.count + value.count
        hash &+= Self.hash(value, Self.hash(key, UInt64(truncatingIfNeeded: partition)))
    }

    mutating func add(partition: Int32, _ key: [UInt8], _ value: [UInt8]) {
        key.withUnsafeBytes { key in value.withUnsafeBytes { add(partition: partition, key, $0) } }
    }

    private static func hash(_ bytes: UnsafeRawBufferPointer, _ seed: UInt64) -> UInt64 {
        var hash = seed ^ 0x9e37_79b9_7f4a_7c15 ^ UInt64(bytes.count)
        var place = 0
        while place + 8 <= bytes.count {
            hash = mixed(hash ^ bytes.loadUnaligned(fromByteOffset: place, as: UInt64.self))
            place += 8
        }
        var rest: UInt64 = 0
        for byte in bytes[place...] { rest = rest << 8 | UInt64(byte) }
        return mixed(hash ^ rest)
    }

    private static func mixed(_ value: UInt64) -> UInt64 {
        let product = value.multipliedFullWidth(by: 0xa076_1d64_78bd_642f)
        return product.high ^ product.low
    }

    var description: String { "\(records) records of \(bytes) bytes (\(String(hash, radix: 16)))" }
}

/// The sums of a worker's outputs. Of an output that is written once for each commit, only the last record of each key counts.
typealias OutputSums = [RecordSum]

extension MeasuredWorker {
    /// The output that is written once for each commit.
    var settledOutput: Int? { self == .churn ? 0 : nil }

    /// Without the notifications.
    func truth(of lives: Lives) -> any Truth {
        switch self {
        case .entitlements: EntitlementsTruth(lives)
        case .churn: ChurnTruth(lives)
        }
    }
}

/// What one notification has caused, in bytes.
struct StepOutputs: Sendable {
    var outputs: [(output: Int, bytes: Int)] = []
    /// 0: nothing was new.
    var state = 0
    var timers = 0
}

protocol Truth: AnyObject {
    /// Hears the n-th notification, which is at this place.
    func hear(_ records: LifeRecords, _ n: Int, offset: Int64) throws
    /// The last notification of each step.
    var told: [StepOutputs] { get }
    /// When all were heard.
    var sums: OutputSums { get }
}

/// States of all subscriptions, as a worker finds them in its changelog.
private struct KnownStates {
    private var states: [[UInt8]] = []
    private var due: [Int64?]

    init(_ worker: MeasuredWorker, _ lives: Lives) {
        due = Array(repeating: nil, count: lives.subscriptions)
        var changelog = Changelog(worker, end: lives.end)
        states.reserveCapacity(lives.subscriptions)
        for subscription in 0..<lives.subscriptions {
            changelog.make(subscription)
            states.append(changelog.state)
        }
    }

    subscript(_ subscription: Int) -> [UInt8] { states[subscription] }

    mutating func keep(_ state: UnsafeBufferPointer<UInt8>, due: Int64?, of subscription: Int) {
        states[subscription] = Array(state)
        self.due[subscription] = due
    }

    /// Timers would cause further outputs: the lives are made so that none is due.
    func requireNoTimer(of subscription: Int, by clock: Int64) throws {
        if let due = due[subscription], due <= clock { throw NotInTime("a life without timers", limit: .zero) }
    }
}

private func isWrong(_ what: String) -> NotInTime { NotInTime(what, limit: .zero) }

private final class EntitlementsTruth: Truth {
    private let lives: Lives
    private var known: KnownStates
    private var json = JSONDocument()
    private var teller = SubscriptionTeller(benchRules, .production)
    private(set) var told: [StepOutputs]
    private(set) var sums: OutputSums

    init(_ lives: Lives) {
        self.lives = lives
        known = KnownStates(.entitlements, lives)
        told = Array(repeating: StepOutputs(), count: lives.steps.count)
        sums = Array(repeating: RecordSum(), count: 3)
    }

    func hear(_ records: LifeRecords, _ n: Int, offset: Int64) throws {
        let (subscription, step) = (records.subscription, lives.step(n))
        try known.requireNoTimer(of: subscription, by: records.timestamp)
        let value = records.value
        try json.read(value.span)
        teller.read(json)
        let before = known[subscription]
        told[step] = try before.withUnsafeBufferPointer { before in
            guard teller.load(before, format: SubscriptionTeller.format) else { throw isWrong("a state") }
            guard teller.mergeNews() else { return StepOutputs() }
            let origin = SubscriptionTeller.Origin(partition: records.partition, offset: offset)
            guard records.key.withUnsafeBufferPointer({ teller.tell($0, at: records.timestamp, origin) }) else {
                throw isWrong("an answer")
            }
            var told = try publish(records, offset)
            told.state = teller.stateBytes.count
            told.timers = teller.nextStep == nil ? 0 : 1
            return told
        }
        if told[step].state > 0 { known.keep(teller.stateBytes, due: teller.nextStep, of: subscription) }
    }

    private func publish(_ records: LifeRecords, _ offset: Int64) throws -> StepOutputs {
        var told = StepOutputs()
        let partition = records.partition
        func put(_ output: Int, _ partition: Int32, _ key: [UInt8], _ value: [UInt8]) {
            told.outputs.append((output, value.count))
            sums[output].add(partition: partition, key, value)
        }
        if teller.hasNewValue { put(0, partition, records.key, teller.value) }
        for number in teller.events.indices {
            let id = Array("\(partition)-\(offset)-\(told.outputs.count)".utf8)
            let value = id.withUnsafeBufferPointer { id in
                records.key.withUnsafeBufferPointer { teller.eventValue(number, id: id, $0) }
            }
            put(1, partition, records.key, value)
        }
        guard teller.accountLeft == nil else { throw isWrong("a life in one account") }
        if let account = teller.accountBound {
            let token = Array(account.bytes)
            put(
                2, Partitioner.partition(of: token, count: workerPartitions),
                token + [UInt8(ascii: "|")] + records.key, teller.accountValue)
        }
        return told
    }
}

private final class ChurnTruth: Truth {
    private let lives: Lives
    private var known: KnownStates
    private var json = JSONDocument()
    private let reader = NoticeReader()
    private var chain = ChainState(.utc)
    private var cells: [[UInt8]: CellState] = [:]
    private var bytes = ByteWriter(capacity: 4_096)
    private var value = JSONWriter(capacity: 1_024)
    private(set) var told: [StepOutputs]
    private var events = RecordSum()

    init(_ lives: Lives) {
        self.lives = lives
        known = KnownStates(.churn, lives)
        told = Array(repeating: StepOutputs(), count: lives.steps.count)
    }

    func hear(_ records: LifeRecords, _ n: Int, offset: Int64) throws {
        let (subscription, step) = (records.subscription, lives.step(n))
        try known.requireNoTimer(of: subscription, by: records.timestamp)
        let text = records.value
        try json.read(text.span)
        let notice = reader.read(json)
        guard let news = ChurnNews(notice, of: json) else { throw isWrong("a date") }
        let before = known[subscription]
        told[step] = before.withUnsafeBufferPointer { before in
            precondition(chain.read(before), "a state")
            guard chain.merge(news) else { return StepOutputs() }
            var told = records.key.withUnsafeBufferPointer { key in
                chain.settle(
                    at: records.timestamp,
                    originalTransactionId: PurchaseId(TextPlace(start: key.baseAddress!, count: key.count)))
                let cause = ChurnEvent.Cause(notice, partition: records.partition, offset: offset)
                return publish(
                    ChurnEvent(originalTransactionId: key, clock: records.timestamp, cause: cause), records, offset)
            }
            bytes.removeAll()
            chain.write(to: &bytes)
            told.state = bytes.written.count
            told.timers = chain.nextChange == nil ? 0 : 1
            return told
        }
        if told[step].state > 0 { known.keep(bytes.written, due: chain.nextChange, of: subscription) }
    }

    private func publish(_ event: ChurnEvent, _ records: LifeRecords, _ offset: Int64) -> StepOutputs {
        var told = StepOutputs()
        let mark = CellState.Mark(asOf: records.timestamp, offset: offset)
        for number in chain.changes.indices {
            let change = chain.changes[number]
            bytes.removeAll()
            chain.writeKey(of: change, partition: records.partition, to: &bytes)
            let key = Array(bytes.written)
            cells[key, default: CellState(at: mark)].add(chain.sums(of: change), at: mark)
            value.removeAll()
            let id = Array("\(records.partition)-\(offset)-\(number)".utf8)
            id.withUnsafeBufferPointer { id in
                event.write(id: id, cell: bytes.written, change: chain.sums(of: change), to: &value)
            }
            told.outputs.append((1, value.bytes.count))
            events.add(partition: records.partition, records.key, value.bytes)
        }
        return told
    }

    /// A cell that has returned to zero is deleted.
    var sums: OutputSums {
        var all = RecordSum()
        for (bytes, cell) in cells where !cell.sums.isEmpty {
            guard let key = CellKey(bytes) else { preconditionFailure("the key of a cell") }
            all.add(partition: key.partition, bytes, CellRecord(key: key, sums: cell.sums, mark: cell.mark).value)
        }
        return [all, events]
    }
}

// MARK: What was written

/// Reads everything that is committed in the outputs of a worker.
func readOutputs(_ worker: MeasuredWorker, _ definition: WorkerDefinition, _ log: any RecordLog) throws
    -> (sums: OutputSums, settled: Int)
{
    let topics = definition.outputs.map(\.topic)
    var options = ReaderOptions(name: "bench", group: "bench", topics: topics)
    options.readsAhead = true
    let reader = try log.openReader(options)
    defer { reader.close(by: Deadline(after: .seconds(10))) }
    let partitions = topics.flatMap { topic in (0..<workerPartitions).map { TopicPartition(topic, $0) } }
    let deadline = Deadline(after: .seconds(120))
    let ends = try reader.ends(.committed, of: partitions, by: deadline)
    try reader.read(from: try reader.beginnings(of: partitions, by: deadline))
    var sums = Array(repeating: RecordSum(), count: topics.count)
    /// Of the output that is written once for each commit.
    var last: [[UInt8]: (partition: Int32, value: [UInt8]?)] = [:]
    var settled = 0
    let batch = RecordBatch()
    while !partitions.allSatisfy({ (reader.position(of: $0) ?? NextOffset(0)) >= (ends[$0] ?? NextOffset(.max)) }) {
        guard !deadline.hasPassed else { throw NotInTime("the end of the outputs", limit: .seconds(120)) }
        try reader.poll(into: batch, limit: 2_000, wait: .milliseconds(100))
        for index in 0..<batch.count {
            let record = batch[index]
            if record.topic == worker.settledOutput {
                settled += 1
                last[record.copyOfKey() ?? []] = (record.partition, record.copyOfValue())
            } else {
                let nothing = UnsafeRawBufferPointer(start: nil, count: 0)
                let topic = record.topic
                let partition = record.partition
                record.key?.withUnsafeBytes { key in
                    if let value = record.value {
                        value.withUnsafeBytes { sums[topic].add(partition: partition, key, $0) }
                    } else {
                        sums[topic].add(partition: partition, key, nothing)
                    }
                }
            }
        }
    }
    if let output = worker.settledOutput {
        for (key, record) in last {
            if let value = record.value { sums[output].add(partition: record.partition, key, value) }
        }
    }
    return (sums, settled)
}
