// The copies of one environment, and whether answers may be given from them.

internal import Contract
internal import Follow
internal import JSON
internal import Log
internal import Platform
internal import Synchronization

/// The copies of one environment's partitions, with everything that shows how current they are.
final class Shelf: Sendable {
    let names: Names
    let copies: [PartitionCopy]
    let totals: CellTotals
    let readiness: Readiness
    let pace: WorkerPace
    /// nil: answers are given however far behind the workers are.
    private let maxBehind: Duration?
    /// Without a worker no answer about this environment could be right. A second environment may have no worker: its
    /// lag counts once its worker has begun.
    private let isWorked: Bool
    private let wasAnswering = Atomic(false)
    /// Indexed by `FollowedTopic`, each a JSON string.
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

    /// For `/readyz`; nil: the copies are complete, and at least one partition is current.
    ///
    /// One partition that is too far behind is too far behind at every replica. If they all became unready for it, a
    /// load balancer would have none left, and requests about the other partitions would get no answers either.
    func trouble(at elapsed: Duration, now: Int64) -> String? {
        if let trouble = readiness.trouble(at: elapsed) { return trouble }
        let worker = WorkerName.entitlements
        guard let behind = pace.farthestBehind(worker, at: now) else {
            return pace.fault ?? "the positions of the workers are not known yet"
        }
        guard tooFarBehind(at: now).count == copies.count else { return nil }
        let cause = pace.fault.map { "; its position cannot be read: \($0)" } ?? ""
        return "perennial \(worker.rawValue) is too far behind in all partitions, and up to \(behind / 1000) s behind "
            + "the notifications of \(names.environment.rawValue): is it running?\(cause)"
    }

    /// The positions of the workers are known, and the copies are complete.
    func isAnswering(at elapsed: Duration) -> Bool {
        guard readiness.trouble(at: elapsed) == nil, pace.farthestBehind(.entitlements, at: 0) != nil else {
            return false
        }
        wasAnswering.store(true, ordering: .relaxed)
        return true
    }

    /// true: it has answered since the process started.
    var hasAnswered: Bool { wasAnswering.load(ordering: .relaxed) }

    /// The partitions from which no answers are given because these would be too old. Those whose position is not known
    /// yet are not among them.
    func tooFarBehind(at now: Int64) -> [Int32] {
        let worker = WorkerName.entitlements
        return copies.map(\.number).filter { partition in
            pace.behind(worker, partition, at: now).map { isTooMuch($0, of: worker) } ?? false
        }
    }

    /// Whether answers from the partition would be too old.
    func isTooFarBehind(_ topic: FollowedTopic, _ partition: Int32, at now: Int64) -> Bool {
        behind(topic, partition, at: now).map { isTooMuch($0, of: topic.worker) } ?? true
    }

    /// A record of `accounts` is in the partition of its account, and the notification that caused it in that of its
    /// subscription, which may be any.
    private func behind(_ topic: FollowedTopic, _ partition: Int32, at now: Int64) -> Int64? {
        if topic == .accounts { return pace.farthestBehind(topic.worker, at: now) }
        return pace.behind(topic.worker, partition, at: now)
    }

    private func isTooMuch(_ behind: Int64, of worker: WorkerName) -> Bool {
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
            writer.member("behind", orNull: behind(topic, partition, at: now))
        }
    }
}

/// Collects the positions that an answer is based on.
struct Basis {
    /// The time of the answer.
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

    /// - Parameter decides: whether the answer is too old if this position is.
    mutating func add(
        _ shelf: Shelf, _ topic: FollowedTopic, _ partition: Int32, _ place: CopyNote.Place, decides: Bool = true
    ) {
        if decides, shelf.isTooFarBehind(topic, partition, at: now) { isTooOld = true }
        items.append(Item(shelf: shelf, topic: topic, partition: partition, place: place))
    }

    /// A JSON array.
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
    /// The position of a copy that cannot be read.
    static let unknown = CopyNote.Place(next: nil, currentAt: 0, clock: nil)
}
