// Who owns which partitions.

internal import Log

/// Members of one name, and the positions they have committed. Used under the log's lock only.
///
/// A round: everybody is asked to give back, and when the last one has, or was thrown out, everything is assigned anew and the
/// generation grows. As with Kafka's eager assignors, all partitions are given back, also those that stay.
final class MemoryGroup {
    let name: String
    /// By identity, because the assignment goes by this order.
    private(set) var members: [Seat] = []
    private(set) var generation = 0
    private(set) var isInRound = false
    private(set) var roundBegan: Int64 = 0
    /// By how many places the order of members is turned: moves partitions although nobody came or left.
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

    /// `new` takes over what `old`, of the same identity, had: without a round, as long as none is under way.
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

    /// Its partitions go to others. It hears of that when it polls again, if it does.
    func expel(_ seat: Seat, now: Int64) {
        guard let index = members.firstIndex(where: { $0 === seat }) else { return }
        members.remove(at: index)
        // One that was told of the loss once knows; one that has nothing has lost nothing.
        seat.standing = seat.holdsPartitions ? .expelled : .outside
        beginRound(now: now)
    }

    /// It says itself that it has nothing any more.
    func leave(_ seat: Seat, now: Int64) {
        expel(seat, now: now)
        seat.standing = .outside
    }

    /// Asks everybody to give back; partitions go to other members than before.
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

    /// Ends the round when nobody has anything to give back.
    func settle() {
        guard isInRound else { return }
        for member in members where member.standing == .owning && member.assigned.isEmpty { member.standing = .waiting }
        guard !members.contains(where: \.holdsPartitions) else { return }
        isInRound = false
        generation += 1
        assign()
    }

    /// Kafka's range assignor: of each topic, members in order get neighbouring partitions, the first ones get one more. Topics
    /// with equal counts are dealt out alike, so partition p of all of them has one owner.
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
