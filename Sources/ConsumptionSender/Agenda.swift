// Which answer is next.

internal import Notices

/// Answers in the order in which they are to be sent: those that may go now by their deadlines, the others by when they may.
struct Agenda {
    private struct Place: Comparable {
        let time: Int64
        let name: AnswerName

        static func < (left: Place, right: Place) -> Bool {
            left.time == right.time ? left.name.id < right.name.id : left.time < right.time
        }
    }

    private struct Entry {
        let bundleId: Text
        let deadline: Int64
        var dueAt: Int64
        /// On the elapsed clock, since when it is ready; nil: it waits.
        var readySince: Duration?
    }

    /// A host's clock that goes back by more was set; by less it was corrected.
    private static let clockJump: Int64 = 1_000

    private var wall: Int64 = .min
    private var entries: [AnswerName: Entry] = [:]
    private var waiting = SortedList<Place>()
    private var ready: [Text: [Int32: SortedList<Place>]] = [:]

    var count: Int { entries.count }
    /// Apps with answers that may go now, in the order of their names.
    var apps: [Text] { ready.keys.sorted() }

    /// Puts an answer on the agenda, or moves it.
    mutating func schedule(_ answer: OpenAnswer) {
        remove(answer.name)
        entries[answer.name] = Entry(bundleId: answer.bundleId, deadline: answer.deadline, dueAt: answer.dueAt)
        waiting.insert(Place(time: answer.dueAt, name: answer.name))
    }

    mutating func remove(_ name: AnswerName) {
        guard let entry = entries.removeValue(forKey: name) else { return }
        if entry.readySince == nil {
            waiting.remove(Place(time: entry.dueAt, name: name))
        } else {
            let (app, partition) = (entry.bundleId, name.partition)
            ready[app]?[partition]?.remove(Place(time: entry.deadline, name: name))
            if ready[app]?[partition]?.isEmpty == true { ready[app]?[partition] = nil }
            if ready[app]?.isEmpty == true { ready[app] = nil }
        }
    }

    /// - Parameters:
    ///   - wall: of the host's clock.
    ///   - elapsed: from which on they are ready.
    mutating func advance(to wall: Int64, _ elapsed: Duration) {
        if self.wall > .min, wall < self.wall - Self.clockJump { bringForward(by: self.wall - wall) }
        self.wall = wall
        while let first = waiting.first, first.time <= wall {
            waiting.removeFirst()
            guard var entry = entries[first.name] else { continue }
            entry.readySince = elapsed
            entries[first.name] = entry
            ready[entry.bundleId, default: [:]][first.name.partition, default: SortedList()]
                .insert(Place(time: entry.deadline, name: first.name))
        }
    }

    /// The clock was set back: waiting goes on for as long as it would have.
    private mutating func bringForward(by jump: Int64) {
        waiting = SortedList()
        for (name, entry) in entries where entry.readySince == nil {
            // What is due at once, or never, stays so.
            let dueAt = entry.dueAt > 0 && entry.dueAt < .max ? entry.dueAt - jump : entry.dueAt
            entries[name]?.dueAt = dueAt
            waiting.insert(Place(time: dueAt, name: name))
        }
    }

    func readySince(_ name: AnswerName) -> Duration? { entries[name]?.readySince }

    /// The earliest deadlines of one app, among what may go now: so many of each partition, as one that has to wait must not hold up
    /// the others.
    func next(_ count: Int, of bundleId: Text) -> [AnswerName] {
        ready[bundleId]?.values.flatMap { $0.prefix(count) }.sorted().map(\.name) ?? []
    }
}

/// Few thousand elements at most times: an array that is kept in order is as fast as a heap then, and elements can leave it
/// anywhere.
struct SortedList<Element: Comparable> {
    private var elements: [Element] = []
    /// What is before it has left.
    private var start = 0

    var isEmpty: Bool { start == elements.count }
    var first: Element? { isEmpty ? nil : elements[start] }

    mutating func insert(_ element: Element) { elements.insert(element, at: place(of: element)) }

    mutating func remove(_ element: Element) {
        let place = place(of: element)
        guard place < elements.count, elements[place] == element else { return }
        if place == start { removeFirst() } else { elements.remove(at: place) }
    }

    mutating func removeFirst() {
        start += 1
        // Half of it used up: each element is moved once on average.
        guard start * 2 > elements.count else { return }
        elements.removeFirst(start)
        start = 0
    }

    func prefix(_ count: Int) -> ArraySlice<Element> { elements[start...].prefix(count) }

    private func place(of element: Element) -> Int {
        var low = start
        var high = elements.count
        while low < high {
            let middle = (low + high) / 2
            if elements[middle] < element { low = middle + 1 } else { high = middle }
        }
        return low
    }
}
