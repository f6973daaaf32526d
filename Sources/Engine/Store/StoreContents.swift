// The contents of a store in memory.

struct StoreContents: Sendable {
    /// One change, with its own copy of the bytes.
    enum Step: Sendable {
        case set(key: [UInt8], value: [UInt8]?)
        case timer(TimerEntry, isThere: Bool)
    }

    /// The previous contents before one write's changes, in the order in which they are restored.
    struct Undo: Sendable {
        var steps: [Step] = []
        var note: [UInt8]?
    }

    private(set) var note: [UInt8]?
    private(set) var values: [[UInt8]: [UInt8]] = [:]
    private(set) var timers = SortedTimers()
    /// Bytes of all keys and values.
    private(set) var byteCount = 0

    static func steps(_ changes: StoreChanges) -> [Step] {
        let bytes = changes.bytes
        return changes.changes.map { change in
            switch change {
            case .put(let key, let value): .set(key: Array(bytes[key]), value: Array(bytes[value]))
            case .delete(let key): .set(key: Array(bytes[key]), value: nil)
            case .addTimer(let due, let key, let kind):
                .timer(TimerEntry(due: due, key: Array(bytes[key]), kind: kind), isThere: true)
            case .removeTimer(let due, let key, let kind):
                .timer(TimerEntry(due: due, key: Array(bytes[key]), kind: kind), isThere: false)
            }
        }
    }

    mutating func apply(_ steps: [Step], note: [UInt8]?, wantsUndo: Bool) -> Undo? {
        var undo = Undo(note: self.note)
        for step in steps {
            let before = apply(step)
            if wantsUndo { undo.steps.append(before) }
        }
        self.note = note
        undo.steps.reverse()
        return wantsUndo ? undo : nil
    }

    mutating func takeBack(_ undo: Undo) {
        _ = apply(undo.steps, note: undo.note, wantsUndo: false)
    }

    /// Returns the step that restores the previous contents.
    private mutating func apply(_ step: Step) -> Step {
        switch step {
        case .set(let key, let value):
            let before = value.map { values.updateValue($0, forKey: key) } ?? values.removeValue(forKey: key)
            byteCount += (value.map { key.count + $0.count } ?? 0) - (before.map { key.count + $0.count } ?? 0)
            return .set(key: key, value: before)
        case .timer(let entry, let isThere):
            let hasChanged = isThere ? timers.insert(entry) : timers.remove(entry)
            return .timer(entry, isThere: hasChanged ? !isThere : isThere)
        }
    }
}

/// Timers in order, in pieces of limited size, so that one insertion among a million moves only a few hundred.
struct SortedTimers: Sendable {
    private static let pieceLimit = 512

    /// No piece is empty.
    private var pieces: [[TimerEntry]] = []

    /// false: it exists already.
    mutating func insert(_ entry: TimerEntry) -> Bool {
        guard !pieces.isEmpty else {
            pieces = [[entry]]
            return true
        }
        let piece = piece(of: entry)
        let place = Self.firstIndex(in: pieces[piece]) { $0 >= entry }
        if place < pieces[piece].count, pieces[piece][place] == entry { return false }
        pieces[piece].insert(entry, at: place)
        if pieces[piece].count > Self.pieceLimit {
            let half = Array(pieces[piece][(Self.pieceLimit / 2)...])
            pieces[piece].removeLast(half.count)
            pieces.insert(half, at: piece + 1)
        }
        return true
    }

    /// false: it does not exist.
    mutating func remove(_ entry: TimerEntry) -> Bool {
        guard !pieces.isEmpty else { return false }
        let piece = piece(of: entry)
        let place = Self.firstIndex(in: pieces[piece]) { $0 >= entry }
        guard place < pieces[piece].count, pieces[piece][place] == entry else { return false }
        pieces[piece].remove(at: place)
        if pieces[piece].isEmpty { pieces.remove(at: piece) }
        return true
    }

    func entries(after last: TimerEntry?, dueBy moment: Int64, limit: Int) -> [TimerEntry] {
        guard limit > 0, !pieces.isEmpty else { return [] }
        var piece = last.map { self.piece(of: $0) } ?? 0
        var place = last.map { last in Self.firstIndex(in: pieces[piece]) { $0 > last } } ?? 0
        var found: [TimerEntry] = []
        while piece < pieces.count {
            while place < pieces[piece].count {
                let entry = pieces[piece][place]
                if entry.due > moment { return found }
                found.append(entry)
                if found.count == limit { return found }
                place += 1
            }
            (piece, place) = (piece + 1, 0)
        }
        return found
    }

    /// The last piece that begins at or before the entry; the first piece if none does.
    private func piece(of entry: TimerEntry) -> Int {
        max(0, Self.firstIndex(in: pieces) { $0[0] > entry } - 1)
    }

    /// The first element for which `holds`, which is false up to some element and true from there; the count if there
    /// is none.
    private static func firstIndex<Element>(in elements: [Element], _ holds: (Element) -> Bool) -> Int {
        var (low, high) = (0, elements.count)
        while low < high {
            let middle = (low + high) / 2
            if holds(elements[middle]) { high = middle } else { low = middle + 1 }
        }
        return low
    }
}
