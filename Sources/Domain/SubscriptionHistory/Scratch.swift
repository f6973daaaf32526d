// Memory that is used again for every notification.

/// A list of plain values. It keeps its memory when it is emptied: in a steady state nothing is allocated.
///
/// All of it is inlined: other modules read it for every row.
public struct Scratch<Element: BitwiseCopyable>: ~Copyable {
    @usableFromInline var memory: UnsafeMutablePointer<Element>
    @usableFromInline var capacity: Int
    @usableFromInline var held = 0

    @inlinable public var count: Int { held }

    public init(capacity: Int = 16) {
        self.capacity = max(capacity, 1)
        memory = .allocate(capacity: self.capacity)
    }

    deinit { memory.deallocate() }

    @inlinable public var isEmpty: Bool { count == 0 }
    @inlinable public var indices: Range<Int> { 0..<count }
    @inlinable public var last: Element? { count == 0 ? nil : memory[count - 1] }
    /// Valid until the list grows.
    @inlinable public var values: UnsafeMutableBufferPointer<Element> {
        UnsafeMutableBufferPointer(start: memory, count: count)
    }

    @inlinable public subscript(place: Int) -> Element {
        @inline(__always) get {
            precondition(UInt(bitPattern: place) < UInt(bitPattern: count), "a place in the list")
            return memory[place]
        }
        @inline(__always) _modify {
            precondition(UInt(bitPattern: place) < UInt(bitPattern: count), "a place in the list")
            yield &memory[place]
        }
    }

    /// Where a value lies, until the list grows.
    @inlinable public func place(of number: Int) -> UnsafeMutablePointer<Element> {
        precondition(UInt(bitPattern: number) < UInt(bitPattern: count), "a place in the list")
        return memory + number
    }

    @inlinable public mutating func append(_ value: Element) {
        if count == capacity { grow(to: count + 1) }
        memory[count] = value
        held += 1
    }

    /// Appends a value that the caller then writes, member by member. Large values are not copied that way.
    @inlinable public mutating func appendUnwritten() -> UnsafeMutablePointer<Element> {
        if count == capacity { grow(to: count + 1) }
        held += 1
        return memory + (count - 1)
    }

    /// Empties it, and then appends the same value as often as told.
    @inlinable public mutating func fill(_ value: Element, count: Int) {
        held = 0
        if count > capacity { grow(to: count) }
        memory.update(repeating: value, count: count)
        held = count
    }

    @inlinable public mutating func insert(_ value: Element, at place: Int) {
        precondition((0...count).contains(place), "a place in the list or its end")
        append(value)
        if place < count - 1 {
            (memory + place + 1).update(from: memory + place, count: count - 1 - place)
            memory[place] = value
        }
    }

    @inlinable public mutating func removeFirst(_ removed: Int) {
        precondition((0...count).contains(removed), "no more than there are")
        memory.update(from: memory + removed, count: count - removed)
        held -= removed
    }

    /// Removes what is behind the first ones.
    @inlinable public mutating func keepFirst(_ kept: Int) {
        precondition((0...count).contains(kept), "no more than there are")
        held = kept
    }

    @inlinable public mutating func removeLast() {
        precondition(count > 0, "one of the list")
        held -= 1
    }

    @inlinable public mutating func removeAll() { held = 0 }

    @usableFromInline mutating func grow(to needed: Int) {
        let larger = UnsafeMutablePointer<Element>.allocate(capacity: max(capacity * 2, needed))
        larger.update(from: memory, count: count)
        memory.deallocate()
        memory = larger
        capacity = max(capacity * 2, needed)
    }
}

extension UnsafeMutableBufferPointer {
    /// For a list that `isBehind` splits in two. The search begins at the end, because new elements usually belong
    /// there.
    @inlinable public func firstPlace(where isBehind: (Element) -> Bool) -> Int {
        var low = 0
        var high = count
        if high > 0, !isBehind(self[high - 1]) { return high }
        while low < high {
            let middle = (low + high) / 2
            if isBehind(self[middle]) { high = middle } else { low = middle + 1 }
        }
        return low
    }
}
