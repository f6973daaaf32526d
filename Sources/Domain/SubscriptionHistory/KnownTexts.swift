// The texts of one subscription, each once.

/// Stands for a text of `KnownTexts`: equal numbers are equal texts.
public struct TextNumber: BitwiseCopyable, Equatable {
    /// 0: no text. Otherwise counted from 1, in the order in which the texts were added.
    public let value: UInt32

    @inlinable public init(value: UInt32) { self.value = value }

    @inlinable public static var none: TextNumber { TextNumber(value: 0) }
    @inlinable public var isNone: Bool { value == 0 }
}

/// Texts that repeat from row to row. Rows have numbers instead of texts, so that comparing texts is comparing numbers.
public struct KnownTexts: ~Copyable {
    @usableFromInline var places = Scratch<TextPlace>(capacity: 32)
    private var hashes = Scratch<UInt32>(capacity: 32)
    /// A table of numbers by hash, with open addresses; its size is a power of two and at least twice the number of texts.
    private var slots = Scratch<UInt32>(capacity: 64)
    /// Random, so that texts cannot be chosen beforehand to meet in one slot.
    private let seed = UInt64.random(in: .min ... .max)

    public init() { slots.fill(0, count: 64) }

    @inlinable public var count: Int { places.count }

    /// nil: there are not that many texts.
    @inlinable public func number(_ value: UInt64) -> TextNumber? {
        value <= UInt64(count) ? TextNumber(value: UInt32(value)) : nil
    }

    public mutating func removeAll() {
        // Each text has used one slot, and most slots are empty.
        if places.count * 4 > slots.count {
            slots.fill(0, count: slots.count)
        } else {
            for place in hashes.indices { empty(hashes[place]) }
        }
        places.removeAll()
        hashes.removeAll()
    }

    private mutating func empty(_ hash: UInt32) {
        let mask = slots.count - 1
        var slot = Int(hash) & mask
        while slots[slot] != 0 {
            slots[slot] = 0
            slot = (slot + 1) & mask
        }
    }

    /// All of them, until one is added.
    @inlinable public var all: UnsafeBufferPointer<TextPlace> { UnsafeBufferPointer(places.values) }

    @inlinable public subscript(number: TextNumber) -> TextPlace? {
        number.isNone ? nil : places[Int(number.value) - 1]
    }

    public func bytes(_ number: TextNumber) -> UnsafeBufferPointer<UInt8>? { self[number]?.bytes }

    public func byteCount(_ number: TextNumber) -> Int { number.isNone ? 0 : places[Int(number.value) - 1].count }

    public mutating func number(_ text: TextPlace?) -> TextNumber {
        guard let text else { return .none }
        let hash = hash(text)
        let mask = slots.count - 1
        var slot = Int(hash) & mask
        while true {
            let number = slots[slot]
            if number == 0 { break }
            if hashes[Int(number) - 1] == hash, places[Int(number) - 1] == text { return TextNumber(value: number) }
            slot = (slot + 1) & mask
        }
        places.append(text)
        hashes.append(hash)
        let number = TextNumber(value: UInt32(places.count))
        if places.count * 2 > slots.count { rehash() } else { slots[slot] = number.value }
        return number
    }

    private mutating func rehash() {
        slots.fill(0, count: slots.count * 2)
        let mask = slots.count - 1
        for place in hashes.indices {
            var slot = Int(hashes[place]) & mask
            while slots[slot] != 0 { slot = (slot + 1) & mask }
            slots[slot] = UInt32(place + 1)
        }
    }

    private func hash(_ text: TextPlace) -> UInt32 {
        let bytes = UnsafeRawPointer(text.start)
        var hash = seed ^ UInt64(text.count)
        var place = 0
        func mix(_ word: UInt64) {
            let product = (hash ^ word).multipliedFullWidth(by: 0x9e37_79b9_7f4a_7c15)
            hash = product.high ^ product.low
        }
        var rest: UInt64 = 0
        if text.count >= 8 {
            while place + 8 < text.count {
                mix(bytes.loadUnaligned(fromByteOffset: place, as: UInt64.self))
                place += 8
            }
            // The last eight bytes overlap with those before.
            rest = bytes.loadUnaligned(fromByteOffset: text.count - 8, as: UInt64.self)
        } else {
            while place < text.count {
                rest = rest << 8 | UInt64(text.start[place])
                place += 1
            }
        }
        mix(rest)
        return UInt32(truncatingIfNeeded: hash ^ hash >> 32)
    }
}
