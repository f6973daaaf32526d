// Determines which answer is sent next.

internal import Notices

/// Answers in the order in which they are sent: answers that may be sent now by their deadlines, the others by the time
/// when they may be sent.
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
        /// When it became ready, on the elapsed clock; nil: it is waiting.
        var readySince: Duration?
    }

    /// If the host's clock goes back by more than this, it was set; by less, it was corrected.
    private static let clockJump: Int64 = 1_000

    private var wall: Int64 = .min
    private var entries: [AnswerName: Entry] = [:]
    private var waiting = SortedList<Place>()
    private var ready: [Text: [Int32: SortedList<Place>]] = [:]

    var count: Int { entries.count }
    /// Apps with answers that may be sent now, in the order of their names.
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
    ///   - wall: the host's clock.
    ///   - elapsed: the time from which due answers count as ready.
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

    /// The clock was set back: answers wait no longer than they would have.
    private mutating func bringForward(by jump: Int64) {
        waiting = SortedList()
        for (name, entry) in entries where entry.readySince == nil {
            // Answers that are due at once, or never, stay so.
            let dueAt = entry.dueAt > 0 && entry.dueAt < .max ? entry.dueAt - jump : entry.dueAt
            entries[name]?.dueAt = dueAt
            waiting.insert(Place(time: dueAt, name: name))
        }
    }

    func readySince(_ name: AnswerName) -> Duration? { entries[name]?.readySince }

    /// The answers of one app with the earliest deadlines, among those that may be sent now: `count` of each partition,
    /// because a partition that has to wait must not hold up the others.
    func next(_ count: Int, of bundleId: Text) -> [AnswerName] {
        ready[bundleId]?.values.flatMap { $0.prefix(count) }.sorted().map(\.name) ?? []
    }
}

/// Usually there are a few thousand elements. For so many a sorted array is as fast as a heap, and elements can be
/// removed anywhere.
struct SortedList<Element: Comparable> {
    private var elements: [Element] = []
    /// The elements before it have been removed.
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
        // Only when half of it is unused: then each element is moved once on average.
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
