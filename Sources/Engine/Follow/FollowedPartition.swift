// One partition in the follower.

internal import Log

/// The records that are read and not written yet, the read positions, and the ends to reach. Used only on the
/// follower's thread.
final class FollowedPartition {
    /// An end that must be reached.
    struct Goal {
        var end: NextOffset
        /// When it was requested.
        var wall: Int64
        var elapsed: Duration
    }

    /// The progress in one topic.
    struct Course {
        var goal: Goal?
        /// The latest end that arrived before `goal` was reached.
        var laterGoal: Goal?
        /// When the copy was last complete; nil: it never was.
        var completeAt: Duration?
        /// Why reading has stopped before a record.
        var pause: String?
    }

    let number: Int32
    let sink: any PartitionSink
    var isOpen = false
    /// The copy was complete and written at least once since it was opened.
    var isConfirmed = false
    /// By the number of the topic, including what the sink has taken.
    private(set) var places: [KeptPlace]
    /// By the number of the topic.
    var courses: [Course]
    /// Records that the sink has taken and not written.
    var held = 0
    /// The copy was started empty and is not complete yet: what a crash loses is read again.
    var isFirstFilling = false
    /// Why it must be built anew as soon as the reader is closed.
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

    /// When the copy was last complete; nil: it was not since it was opened.
    var completeAt: Duration? {
        guard isConfirmed, isComplete else { return nil }
        return courses.compactMap(\.completeAt).min()
    }

    /// Resets to the state before reading.
    func reset(to places: [KeptPlace]) {
        self.places = places
        courses = Array(repeating: Course(), count: courses.count)
        held = 0
        isConfirmed = false
        isFirstFilling = places.allSatisfy { $0.next == nil }
        uselessness = nil
    }

    func start(_ topic: Int, at next: NextOffset) { places[topic].next = next }

    /// The copy of the topic was complete at that time.
    private func complete(_ topic: Int, _ goal: Goal) {
        places[topic].currentAt = goal.wall
        courses[topic].completeAt = goal.elapsed
    }

    func see(_ topic: Int, timestamp: Int64) {
        places[topic].clock = max(timestamp, places[topic].clock ?? timestamp)
    }

    /// Reading has reached `next`.
    func advance(_ topic: Int, to next: NextOffset) {
        places[topic].next = max(next, places[topic].next ?? next)
        while let goal = courses[topic].goal, next >= goal.end {
            complete(topic, goal)
            courses[topic].goal = courses[topic].laterGoal.take()
        }
    }

    /// The end of the topic was `seen`. An earlier end that is not reached yet stays the goal: in a steady stream there
    /// is always a later one.
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
