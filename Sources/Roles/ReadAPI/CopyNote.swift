// The positions of a store, written with every change of it.

internal import Churn
internal import Follow
internal import Log
internal import Store

/// Positions of one partition in the followed topics.
struct CopyNote: Equatable, Sendable {
    typealias Place = KeptPlace

    /// Number of partitions of the topics: with another number, keys are in other partitions.
    var partitions: Int32
    /// Indexed by `FollowedTopic`.
    var places: [Place]
    /// The rules by which days were counted in the last cell that was read: the start of its rules, which is all that
    /// is needed. Empty: the cell did not name its rules.
    private(set) var rules: [UInt8] = []
    private static let limitRules = 64

    init(partitions: Int32, begunAt: Int64) {
        self.partitions = partitions
        places = FollowedTopic.allCases.map { _ in Place(next: nil, currentAt: begunAt, clock: nil) }
    }

    subscript(topic: FollowedTopic) -> Place {
        get { places[topic.rawValue] }
        set { places[topic.rawValue] = newValue }
    }

    mutating func keep(rules header: Span<UInt8>?) {
        guard let header else { return rules = [] }
        header.withUnsafeBufferPointer { bytes in
            let bytes = bytes.prefix(Self.limitRules)
            if !bytes.elementsEqual(rules) { rules = Array(bytes) }
        }
    }

    // Version, number of the counters of cells, partitions; then position (-1: none), time and clock (the smallest
    // number: none) of each topic; all little-endian. Then the number of bytes of `rules`, and these bytes.

    private static let version: UInt8 = 7
    /// A copy leaves out what its build does not know, so a build that knows more rebuilds the copy.
    private static let counters = UInt8(ChurnCounter.allCases.count)

    var encoded: [UInt8] {
        var bytes = [Self.version, Self.counters]
        bytes.append(littleEndian: partitions)
        for place in places {
            bytes.append(littleEndian: place.next?.value ?? -1)
            bytes.append(littleEndian: place.currentAt)
            bytes.append(littleEndian: place.clock ?? .min)
        }
        bytes.append(UInt8(rules.count))
        return bytes + rules
    }

    /// nil: written by a build that this one does not know, or not a note.
    init?(decoding bytes: [UInt8]) {
        var note = NoteReader(bytes)
        guard note.take(UInt8.self) == Self.version, note.take(UInt8.self) == Self.counters,
            let partitions = note.take(Int32.self)
        else { return nil }
        self.init(partitions: partitions, begunAt: 0)
        for index in places.indices {
            guard let next = note.take(Int64.self), let currentAt = note.take(Int64.self),
                let clock = note.take(Int64.self)
            else { return nil }
            places[index] = Place(
                next: next < 0 ? nil : NextOffset(next), currentAt: currentAt, clock: clock == .min ? nil : clock)
        }
        guard let count = note.take(UInt8.self), let rules = note.take(count: Int(count)), note.isAtEnd else {
            return nil
        }
        self.rules = Array(rules)
    }
}
