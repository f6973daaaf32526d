// One partition as the follower has it.

internal import Log

/// What is read and not written yet, how far reading has come, and how far it has to come. The follower's thread only.
final class FollowedPartition {
    /// An end that was seen, to be reached.
    struct Goal {
        var end: NextOffset
        /// When it was asked for.
        var wall: Int64
        var elapsed: Duration
    }

    /// Of one topic.
    struct Course {
        var goal: Goal?
        /// The newest end that was seen while `goal` was not reached.
        var laterGoal: Goal?
        /// When the copy was complete, last; nil: not yet.
        var completeAt: Duration?
        /// Why reading has stopped before a record.
        var pause: String?
    }

    let number: Int32
    let sink: any PartitionSink
    var isOpen = false
    /// It had everything, and it was written, since it was opened.
    var isConfirmed = false
    /// By the number of the topic, with what the sink has taken.
    private(set) var places: [KeptPlace]
    /// By the number of the topic.
    var courses: [Course]
    /// Records that the sink has taken and not written.
    var held = 0
    /// It was begun from nothing and is not complete yet: what is lost with the process is read again.
    var isWhole = false
    /// Why it has to be built anew, once the reader is gone.
    var uselessness: String?
    var writtenAt: Duration = .zero

    init(_ number: Int32, _ sink: any PartitionSink, topics: Int, at wall: Int64) {
        self.number = number
        self.sink = sink
        places = Self.begun(topics: topics, at: wall)
        courses = Array(repeating: Course(), count: topics)
    }

    static func begun(topics: Int, at wall: Int64) -> [KeptPlace] {
        Array(repeating: KeptPlace(next: nil, currentAt: wall, clock: nil), count: topics)
    }

    var isComplete: Bool { courses.allSatisfy { $0.completeAt != nil } }
    var pauses: [String] { courses.compactMap(\.pause) }
    var topics: Range<Int> { courses.indices }
    func isRead(_ topic: Int) -> Bool { courses[topic].pause == nil }

    /// When it had everything, last; nil: not since it was opened.
    var completeAt: Duration? {
        guard isConfirmed, isComplete else { return nil }
        return courses.compactMap(\.completeAt).min()
    }

    /// As it is when nothing was read.
    func reset(to places: [KeptPlace]) {
        self.places = places
        courses = Array(repeating: Course(), count: courses.count)
        held = 0
        isConfirmed = false
        isWhole = places.allSatisfy { $0.next == nil }
        uselessness = nil
    }

    func start(_ topic: Int, at next: NextOffset) { places[topic].next = next }

    /// The topic's copy had everything then.
    private func complete(_ topic: Int, _ goal: Goal) {
        places[topic].currentAt = goal.wall
        courses[topic].completeAt = goal.elapsed
    }

    func see(_ topic: Int, timestamp: Int64) {
        places[topic].clock = max(timestamp, places[topic].clock ?? timestamp)
    }

    /// Reading has come to `next`.
    func advance(_ topic: Int, to next: NextOffset) {
        places[topic].next = max(next, places[topic].next ?? next)
        while let goal = courses[topic].goal, next >= goal.end {
            complete(topic, goal)
            courses[topic].goal = courses[topic].laterGoal.take()
        }
    }

    /// The end was seen there. One that is not reached yet stays the goal: under a steady stream there is always a later one.
    func see(_ topic: Int, _ seen: Goal) {
        if let next = places[topic].next, next >= seen.end {
            complete(topic, seen)
            courses[topic].goal = nil
            courses[topic].laterGoal = nil
        } else if courses[topic].goal == nil {
            courses[topic].goal = seen
        } else {
            courses[topic].laterGoal = seen
        }
    }
}
