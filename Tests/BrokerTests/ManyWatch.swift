// Measures how long partitions stand still.

import Kafka
import KafkaTestKit
import Log
import Platform
import Synchronization

/// One input partition of one worker.
struct ManyPartition: Hashable, Comparable, Sendable, CustomStringConvertible {
    let kind: ManyKind
    let number: Int32

    var description: String { "\(kind.rawValue)[\(number)]" }

    static func < (left: Self, right: Self) -> Bool {
        (left.kind.rawValue, left.number) < (right.kind.rawValue, right.number)
    }
}

/// A pause that has ended or still lasts.
struct ManyPause: Sendable {
    let partition: ManyPartition
    let cause: ManyCause
    /// Number of the disturbance: a cause can occur again.
    let step: Int
    let duration: Duration
}

/// Reads the committed offsets and the end offsets all the time. A partition stands still while it has records after its
/// committed offset and that offset does not move.
final class ManyWatch: Sendable {
    private static let interval: Duration = .milliseconds(200)
    /// Brokers die: the broker that is asked may not answer.
    private static let answerLimit: Duration = .seconds(1)
    /// Between two samples a partition may have moved at any moment. A pause counts up to the second sample, but at most this
    /// long of the time between them: a late sample, because a broker did not answer, is not a pause.
    private static let tolerance: Duration = .seconds(1)

    private struct Standing {
        var position: NextOffset?
        /// When the partition last moved, or had nothing to do.
        var since: ContinuousClock.Instant
    }

    private struct Notes {
        var cause = ManyCause.start
        var step = 0
        var standings: [ManyPartition: Standing] = [:]
        var looked: ContinuousClock.Instant?
        var longest: [Int: [ManyPartition: ManyPause]] = [:]
        var blindest: Duration = .zero
        var fault = ""
    }

    private struct Look {
        let at: ContinuousClock.Instant
        let committed: [ManyPartition: NextOffset]
        let ends: [Int32: NextOffset]
    }

    private let installation: Installation
    private let kinds: [ManyKind]
    private let servers: ClientProperties
    private let notes = Mutex(Notes())
    private let end = Latch()
    private let thread = Mutex<WorkerThread?>(nil)

    init(_ installation: Installation, _ kinds: [ManyKind]) {
        self.kinds = kinds
        self.installation = installation
        servers = installation.broker.properties
    }

    // MARK: For the run

    func start() {
        thread.withLock { $0 = WorkerThread.start("many-watch") { self.watch() } }
    }

    func stop() async throws {
        end.open()
        try await thread.withLock { $0 }?.join()
    }

    /// From now on pauses count for this disturbance.
    func now(_ cause: ManyCause) {
        notes.withLock { notes in
            notes.cause = cause
            notes.step += 1
        }
    }

    /// The longest pause of each partition in each step.
    var pauses: [ManyPause] { notes.withLock { notes in notes.longest.values.flatMap(\.values) } }

    /// How long no broker could be asked.
    var blindest: Duration { notes.withLock(\.blindest) }

    func position(_ partition: ManyPartition) -> NextOffset? { notes.withLock { $0.standings[partition]?.position } }

    /// Partitions that stand still for longer than `limit` or have never moved; all of them if there was no sample for that long.
    func standing(longerThan limit: Duration) -> [String] {
        let all = kinds.flatMap { kind in
            (0..<Int32(installation.partitions)).map { ManyPartition(kind: kind, number: $0) }
        }
        return notes.withLock { notes in
            let now = ContinuousClock.now
            guard let looked = notes.looked, looked.duration(to: now) < limit else {
                return ["the watch cannot read offsets: \(notes.fault)"]
            }
            return all.compactMap { partition in
                guard let standing = notes.standings[partition], let position = standing.position else {
                    return "\(partition) has no committed offset"
                }
                let time = standing.since.duration(to: now)
                return time > limit ? "\(partition) at \(position) for \(time.inSeconds)" : nil
            }
        }
    }

    // MARK: Looking

    private func watch() {
        var clients: Clients?
        while !end.isOpen {
            do {
                let asked = try clients ?? Clients(servers)
                clients = asked
                note(try asked.look(installation, kinds, within: Self.answerLimit))
            } catch {
                notes.withLock { $0.fault = "\(error)" }
                // The client may know brokers that are gone, or wait for them.
                clients?.close()
                clients = nil
            }
            pause(for: Self.interval)
        }
        clients?.close()
    }

    private func note(_ look: Look) {
        notes.withLock { notes in
            let before = notes.looked ?? look.at
            let gap = before.duration(to: look.at)
            notes.blindest = max(notes.blindest, gap)
            notes.looked = look.at
            for kind in kinds {
                for (number, end) in look.ends {
                    let partition = ManyPartition(kind: kind, number: number)
                    Self.note(partition, look, end, seen: before.advanced(by: min(gap, Self.tolerance)), in: &notes)
                }
            }
        }
    }

    private static func note(
        _ partition: ManyPartition, _ look: Look, _ end: NextOffset, seen: ContinuousClock.Instant,
        in notes: inout Notes
    ) {
        let position = look.committed[partition]
        var standing = notes.standings[partition] ?? Standing(position: position, since: look.at)
        let isMoving = position != standing.position
        let until = isMoving ? seen : look.at
        let pause = ManyPause(
            partition: partition, cause: notes.cause, step: notes.step, duration: standing.since.duration(to: until))
        if pause.duration > notes.longest[notes.step]?[partition]?.duration ?? .zero {
            notes.longest[notes.step, default: [:]][partition] = pause
        }
        if isMoving || position == end || end == NextOffset(0) { standing.since = look.at }
        standing.position = position
        notes.standings[partition] = standing
    }

    /// Made again after each fault.
    private final class Clients {
        private let admin: Admin
        private let reader: Consumer

        init(_ servers: ClientProperties) throws {
            admin = try Admin(clientID: "watch", properties: servers)
            reader = try Consumer(.init(clientID: "watch", groupID: "watch", properties: servers))
        }

        func look(_ installation: Installation, _ kinds: [ManyKind], within limit: Duration) throws -> Look {
            let topic = installation.topic("notifications")
            var committed: [ManyPartition: NextOffset] = [:]
            let at = ContinuousClock.now
            for kind in kinds {
                let group = installation.topic(kind.rawValue)
                do throws(KafkaFault) {
                    for (partition, next) in try admin.currentOffsets(ofGroup: group, by: Deadline(after: limit))
                    where partition.topic == topic {
                        committed[ManyPartition(kind: kind, number: partition.partition)] = next
                    }
                } catch {
                    // The group has had no member yet.
                    if error.code != .groupNotFound { throw error }
                }
            }
            let all = (0..<Int32(installation.partitions)).map { TopicPartition(topic, $0) }
            var ends: [Int32: NextOffset] = [:]
            for (partition, end) in try reader.ends(of: all, by: Deadline(after: limit)) {
                ends[partition.partition] = end
            }
            return Look(at: at, committed: committed, ends: ends)
        }

        func close() {
            admin.close(by: Deadline(after: .milliseconds(500)))
            reader.close(by: Deadline(after: .milliseconds(500)))
        }
    }
}

extension Duration {
    var inSeconds: String {
        let tenths = (components.seconds * 10 + components.attoseconds / 100_000_000_000_000_000)
        return "\(tenths / 10).\(tenths % 10) s"
    }
}
