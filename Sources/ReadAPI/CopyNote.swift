// How far a store is, written with every change of it.

internal import Churn
internal import Follow
internal import Log
internal import Store

/// Positions of one partition of the followed topics.
struct CopyNote: Equatable, Sendable {
    typealias Place = KeptPlace

    /// Of the topics: with another count keys are in other partitions.
    var partitions: Int32
    /// By the number of a `FollowedTopic`.
    var places: [Place]
    /// By which days the last cell that was read was counted: its header `rules`, of which nobody needs more than the beginning.
    /// Empty: it had none.
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

    // Version, number of the counters of cells, partitions, then position (-1: none), time and clock (the smallest number: none) of
    // each topic, all little-endian; how many bytes of rules, and these.

    private static let version: UInt8 = 7
    /// A copy leaves out what its build does not know: one that knows more builds it anew.
    private static let counters = UInt8(Counter.allCases.count)

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

    /// nil: written by a build that this one does not know, or by nobody.
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
