// Assigns partitions to the members of a group.

internal import Log

/// The members of one group, and the offsets that they have committed. Used only under the log's lock.
///
/// A rebalance: all members are asked to give up their partitions. When the last one has done so, or was removed, all
/// partitions are assigned anew and the generation increases. As with Kafka's eager assignors, members also give up
/// partitions that they keep.
final class MemoryGroup {
    let name: String
    /// Sorted by identity, because the assignment uses this order.
    private(set) var members: [Seat] = []
    private(set) var generation = 0
    private(set) var isInRound = false
    private(set) var roundBegan: Int64 = 0
    /// By how many places the order of members is rotated: this moves partitions without a change of members.
    private var rotation = 0
    var committed: [TopicPartition: NextOffset] = [:]

    init(_ name: String) {
        self.name = name
    }

    func join(_ seat: Seat, now: Int64) {
        let index = members.firstIndex { $0.identity >= seat.identity } ?? members.count
        members.insert(seat, at: index)
        seat.standing = .waiting
        seat.assigned = []
        beginRound(now: now)
    }

    /// `new` takes over from `old`, which has the same identity: without a rebalance, unless one is in progress.
    func replace(_ old: Seat, by new: Seat, now: Int64) {
        guard let index = members.firstIndex(where: { $0 === old }) else { return join(new, now: now) }
        members[index] = new
        if isInRound || old.options.inputs != new.options.inputs {
            new.standing = .waiting
            beginRound(now: now)
        } else {
            new.standing = .granted
            new.assigned = old.assigned
        }
        old.standing = .outside
    }

    /// Others get its partitions. The member learns of that when it polls again, if it does.
    func expel(_ seat: Seat, now: Int64) {
        guard let index = members.firstIndex(where: { $0 === seat }) else { return }
        members.remove(at: index)
        // A member that has been notified of the loss needs no second notice, and one without partitions has lost
        // nothing.
        seat.standing = seat.holdsPartitions ? .expelled : .outside
        beginRound(now: now)
    }

    /// The member itself says that it has no partitions any more.
    func leave(_ seat: Seat, now: Int64) {
        expel(seat, now: now)
        seat.standing = .outside
    }

    /// Asks all members to give up their partitions; they then get other ones than before.
    func rotate(now: Int64) {
        rotation += 1
        beginRound(now: now)
    }

    func beginRound(now: Int64) {
        if !isInRound { roundBegan = now }
        isInRound = true
        for member in members where member.standing == .granted {
            member.standing = .waiting
            member.assigned = []
        }
        settle()
    }

    /// Ends the rebalance when no member has partitions to give up.
    func settle() {
        guard isInRound else { return }
        for member in members where member.standing == .owning && member.assigned.isEmpty { member.standing = .waiting }
        guard !members.contains(where: \.holdsPartitions) else { return }
        isInRound = false
        generation += 1
        assign()
    }

    /// Kafka's range assignor: of each topic, members in order get adjacent partitions, and the first members get one
    /// more. Topics with equal numbers of partitions are divided in the same way, so partition p of all of them has one
    /// owner.
    private func assign() {
        for member in members {
            member.standing = .granted
            member.assigned = []
        }
        var topics: [String: Topic] = [:]
        for topic in members.flatMap(\.inputs) { topics[topic.name] = topic }
        for (name, topic) in topics.sorted(by: { $0.key < $1.key }) {
            var subscribers = members.filter { $0.options.inputs.contains(name) }
            let turn = rotation % subscribers.count
            subscribers = Array(subscribers[turn...] + subscribers[..<turn])
            let count = topic.partitions.count
            var next = 0
            for (index, member) in subscribers.enumerated() {
                let share = count / subscribers.count + (index < count % subscribers.count ? 1 : 0)
                for partition in next..<next + share {
                    member.assigned.append(TopicPartition(name, Int32(partition)))
                }
                next += share
            }
        }
    }
}
