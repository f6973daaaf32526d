// Reads what ingest publishes and what the workers commit, all the time.

import Kafka
import KafkaTestKit
import Log
import Platform
import Synchronization

/// Every commit of a partition writes a note with its position into the changelog. A reader of committed records sees the note
/// when it sees the outputs of the same transaction, so the note stands for them.
final class FleetWatch: Sendable {
    /// Something is published all the time: for so long the watch itself may have read nothing.
    private static let blindness: Int64 = 2_500
    private static let keyOfNotes: [UInt8] = [0]

    private struct Notes {
        var waits: FleetWaits
        var looked: Int64 = 0
        var blindest: Int64 = 0
        var fault = ""
        /// Notifications, without ticks, by the second in which they were published.
        var published: [Int64: Int] = [:]
    }

    private let installation: Installation
    private let kinds: [ManyKind]
    private let topics: [String: ManyKind]
    private let notes: Mutex<Notes>
    private let end = Latch()
    private let thread = Mutex<WorkerThread?>(nil)

    init(_ installation: Installation, _ kinds: [ManyKind]) {
        self.installation = installation
        self.kinds = kinds
        topics = Dictionary(uniqueKeysWithValues: kinds.map { (installation.topic("\($0.rawValue).changelog"), $0) })
        notes = Mutex(Notes(waits: FleetWaits(kinds: kinds, partitions: installation.partitions)))
    }

    // MARK: For the run

    func start() { thread.withLock { $0 = WorkerThread.start("fleet-watch") { self.watch() } } }

    /// Ends the measurement.
    func stop() async throws {
        end.open()
        try await thread.withLock { $0 }?.join()
        notes.withLock { $0.waits.end(at: WallClock.milliseconds()) }
    }

    func now(_ cause: ManyCause) { notes.withLock { $0.waits.begin(cause) } }

    var waits: FleetWaits { notes.withLock(\.waits) }
    var lastStep: FleetWaits.Step { notes.withLock { $0.waits.steps[$0.waits.steps.count - 1] } }
    /// How long the watch has read nothing, in milliseconds.
    var blindest: Int64 { notes.withLock(\.blindest) }

    /// Notifications for each second of this time.
    func pace(from: Int64, until: Int64) -> Double {
        let count = notes.withLock { $0.published }.reduce(0) { sum, second in
            (from / 1_000..<until / 1_000).contains(second.key) ? sum + second.value : sum
        }
        return Double(count) / max(1, Double(until / 1_000 - from / 1_000))
    }

    /// Empty: all partitions move, or have nothing to do.
    func standing(longerThan limit: Int64) -> [String] {
        notes.withLock { notes in
            let now = WallClock.milliseconds()
            guard now - notes.looked < Self.blindness else {
                return ["the watch has read nothing for \(now - notes.looked) ms: \(notes.fault)"]
            }
            return notes.waits.standing(longerThan: limit, at: now)
        }
    }

    // MARK: Reading

    private func watch() {
        let input = installation.topic("notifications")
        var next: [TopicPartition: NextOffset] = [:]
        for topic in [input] + topics.keys {
            for number in 0..<Int32(installation.partitions) { next[TopicPartition(topic, number)] = NextOffset(0) }
        }
        while !end.isOpen {
            do {
                var reading = Consumer.Configuration(
                    clientID: "watch", groupID: "watch", properties: installation.broker.properties)
                // The watch reads when something was published, and need not know it at once.
                (reading.fetchWait, reading.fetchBytes) = (.milliseconds(100), 1 << 20)
                let consumer = try Consumer(reading)
                defer { consumer.close(by: Deadline(after: .milliseconds(500))) }
                try consumer.assign(next)
                while !end.isOpen {
                    guard let record = try consumer.poll(.milliseconds(100)) else { continue }
                    next[record.topicPartition] = NextOffset(record.offset + 1)
                    take(record, input)
                }
            } catch {
                notes.withLock { $0.fault = "\(error)" }
                pause(for: .milliseconds(200))
            }
        }
    }

    private func take(_ record: borrowing ConsumedRecord, _ input: String) {
        let (topic, now, partition) = (record.topic, WallClock.milliseconds(), record.partition)
        if topic == input {
            let (offset, time) = (record.offset, record.timestamp ?? now)
            let schema = record.headers.first { $0.name == "schema" }?.value
            let isTick = namesTick(schema.map { String(decoding: $0, as: UTF8.self) })
            notes.withLock { notes in
                notes.waits.published(partition, offset: offset, at: time)
                if !isTick { notes.published[time / 1_000, default: 0] += 1 }
                Self.look(&notes, now)
            }
        } else if let kind = topics[topic], record.copyOfKey() == Self.keyOfNotes,
            let position = Self.position(in: record.copyOfValue() ?? [], of: input)
        {
            notes.withLock { notes in
                notes.waits.committed(ManyPartition(kind: kind, number: partition), position: position, at: now)
                Self.look(&notes, now)
            }
        }
    }

    private static func look(_ notes: inout Notes, _ now: Int64) {
        if notes.looked > 0 { notes.blindest = max(notes.blindest, now - notes.looked) }
        notes.looked = now
    }

    /// The position of the topic in a note: version, format, epoch, clock, emitted, changelog, time of writing, number of
    /// positions, then each topic and its position.
    static func position(in note: [UInt8], of topic: String) -> Int64? {
        var place = 2 + 4 + 8 + 4 + 8 + 8
        func number(_ bytes: Int) -> Int64? {
            guard place + bytes <= note.count else { return nil }
            defer { place += bytes }
            return note[place..<place + bytes].reversed().reduce(0) { $0 << 8 | Int64($1) }
        }
        guard let count = number(2) else { return nil }
        for _ in 0..<count {
            guard let length = number(2).map(Int.init), place + length <= note.count else { return nil }
            let name = note[place..<place + length]
            place += length
            guard let position = number(8) else { return nil }
            if name.elementsEqual(topic.utf8) { return position }
        }
        return nil
    }
}
