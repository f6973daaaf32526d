// What is kept of one environment, and whether it may be answered from.

internal import Contract
internal import Follow
internal import JSON
internal import Log
internal import Platform
internal import Synchronization

/// The copies of one environment's partitions, with all that tells how good they are.
final class Shelf: Sendable {
    let names: Names
    let copies: [PartitionCopy]
    let totals: CellTotals
    let readiness: Readiness
    let pace: WorkerPace
    /// nil: however far behind the workers are, answers are given.
    private let maxBehind: Duration?
    /// Without a worker nothing of this environment could be answered rightly. A second environment may have none: it counts from the
    /// moment when its worker has begun.
    private let isWorked: Bool
    private let wasAnswering = Atomic(false)
    /// By the number of a `FollowedTopic`, each a JSON text.
    private let topicNames: [[UInt8]]

    init(_ names: Names, partitions: Int, maxBehind: Duration?, isWorked: Bool) {
        self.names = names
        self.maxBehind = maxBehind
        self.isWorked = isWorked
        let totals = CellTotals(partitions: partitions)
        self.totals = totals
        copies = (0..<Int32(partitions)).map { PartitionCopy($0, totals) }
        readiness = Readiness()
        pace = WorkerPace(partitions: partitions)
        topicNames = FollowedTopic.allCases.map { topic in
            var writer = JSONWriter()
            writer.string(names.topic(topic.id))
            return writer.bytes
        }
    }

    func copy(for key: [UInt8]) -> PartitionCopy {
        copies[Int(Partitioner.partition(of: key, count: Int32(copies.count)))]
    }

    // MARK: Whether it may be answered from

    /// For `/readyz`; nil: all is well.
    func trouble(at elapsed: Duration, now: Int64) -> String? {
        if let trouble = readiness.trouble(at: elapsed) { return trouble }
        let worker = Worker.entitlements
        guard let behind = pace.farthestBehind(worker, at: now) else {
            return pace.fault ?? "how far the workers are is not known yet"
        }
        guard isTooMuch(behind, of: worker) else { return nil }
        let cause = pace.fault.map { "; they cannot be looked at: \($0)" } ?? ""
        return "perennial \(worker.rawValue) is \(behind / 1000) s behind the notifications of "
            + "\(names.environment.rawValue): is it running?\(cause)"
    }

    /// What the workers have dealt with is known, and the copies are complete.
    func isAnswering(at elapsed: Duration) -> Bool {
        guard readiness.trouble(at: elapsed) == nil, pace.farthestBehind(.entitlements, at: 0) != nil else {
            return false
        }
        wasAnswering.store(true, ordering: .relaxed)
        return true
    }

    /// Since the process has started.
    var hasAnswered: Bool { wasAnswering.load(ordering: .relaxed) }

    /// Whether answers from the partition would be too old.
    func isTooFarBehind(_ topic: FollowedTopic, _ partition: Int32, at now: Int64) -> Bool {
        pace.behind(topic.worker, partition, at: now).map { isTooMuch($0, of: topic.worker) } ?? true
    }

    private func isTooMuch(_ behind: Int64, of worker: Worker) -> Bool {
        guard let maxBehind, behind > maxBehind.wholeMilliseconds else { return false }
        return pace.hasBegun(worker) || worker == .entitlements && isWorked
    }

    // MARK: What an answer rests on

    func writePosition(
        _ topic: FollowedTopic, _ partition: Int32, _ place: CopyNote.Place, at now: Int64, to writer: inout JSONWriter
    ) {
        writer.object { writer in
            writer.member("topic", json: topicNames[topic.rawValue])
            writer.member("partition", partition)
            writer.member("offset", place.next?.value ?? 0)
            writer.member("asOf", orNull: place.clock)
            writer.member("behind", orNull: pace.behind(topic.worker, partition, at: now))
        }
    }
}

/// What an answer rests on, as it is gathered.
struct Basis {
    /// The moment of the answer.
    let now: Int64
    private(set) var isTooOld = false

    init(at now: Int64) { self.now = now }

    private struct Item {
        let shelf: Shelf
        let topic: FollowedTopic
        let partition: Int32
        let place: CopyNote.Place
    }
    private var items: [Item] = []

    /// - Parameter decides: whether the answer is too old when this place is.
    mutating func add(
        _ shelf: Shelf, _ topic: FollowedTopic, _ partition: Int32, _ place: CopyNote.Place, decides: Bool = true
    ) {
        if decides, shelf.isTooFarBehind(topic, partition, at: now) { isTooOld = true }
        items.append(Item(shelf: shelf, topic: topic, partition: partition, place: place))
    }

    /// An array.
    var json: [UInt8] {
        var writer = JSONWriter(capacity: 192 * items.count + 2)
        writer.array { writer in
            for item in items {
                item.shelf.writePosition(item.topic, item.partition, item.place, at: now, to: &writer)
            }
        }
        return writer.bytes
    }
}

extension CopyNote.Place {
    /// Of a copy that cannot be asked.
    static let unknown = CopyNote.Place(next: nil, currentAt: 0, clock: nil)
}
