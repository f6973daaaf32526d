// One partition as the follower has it.

internal import Log
internal import Store

/// What is read and not written yet, how far reading has come, and how far it has to come. The follower's thread only.
final class CopyState {
    /// An end that was seen, to be reached.
    struct Goal {
        var end: NextOffset
        /// When it was the end.
        var wall: Int64
        var elapsed: Duration
    }

    let copy: PartitionCopy
    /// With what `changes` holds.
    var note: CopyNote
    let changes = StoreChanges()
    var changed = 0
    /// Of `changes` the cells, by their records' keys; nil inside: they are gone.
    var cells: [[UInt8]: KeptCell?] = [:]
    /// By the number of the topic.
    var goals: [Goal?]
    /// When the copy was complete, last; nil: not yet. By the number of the topic.
    var completeAt: [Duration?]
    /// Why reading has stopped before a record. By the number of the topic.
    var pauses: [String?]
    /// It was begun from nothing and is not complete yet: what is lost with the process is read again.
    var isWhole = false
    /// Why it has to be built anew, once the reader is gone.
    var uselessness: String?
    var noteWrittenAt: Duration = .zero

    init(_ copy: PartitionCopy, _ note: CopyNote) {
        self.copy = copy
        self.note = note
        let none: [Duration?] = FollowedTopic.allCases.map { _ in nil }
        goals = none.map { _ in nil }
        completeAt = none
        pauses = none.map { _ in nil }
    }

    var isComplete: Bool { completeAt.allSatisfy { $0 != nil } }

    /// As it is when nothing was read.
    func reset(to note: CopyNote) {
        self.note = note
        changes.removeAll()
        changed = 0
        cells.removeAll()
        for index in goals.indices {
            goals[index] = nil
            completeAt[index] = nil
            pauses[index] = nil
        }
        isWhole = note.places.allSatisfy { $0.next == nil }
        uselessness = nil
    }

    /// The topic's copy had everything then.
    private func complete(_ topic: FollowedTopic, wall: Int64, elapsed: Duration) {
        note[topic].currentAt = wall
        completeAt[topic.rawValue] = elapsed
        goals[topic.rawValue] = nil
    }

    /// Reading has come to `next`.
    func advance(_ topic: FollowedTopic, to next: NextOffset) {
        note[topic].next = max(next, note[topic].next ?? next)
        guard let goal = goals[topic.rawValue], next >= goal.end else { return }
        complete(topic, wall: goal.wall, elapsed: goal.elapsed)
    }

    /// The end was seen there. One that is not reached yet stays the goal: under a steady stream there is always a later one.
    func see(_ topic: FollowedTopic, _ seen: Goal) {
        if let next = note[topic].next, next >= seen.end {
            complete(topic, wall: seen.wall, elapsed: seen.elapsed)
        } else if goals[topic.rawValue] == nil {
            goals[topic.rawValue] = seen
        }
    }
}
