// How far both sides have dealt with their input. Pure.

import Log

/// Where the groups of the replay and of the live worker stood before anything was read.
struct InputPositions: Sendable, Equatable {
    var shadow: [TopicPartition: NextOffset]
    var live: [TopicPartition: NextOffset]
}

/// Tells whether a record was made from input that the other side has not dealt with. One thread.
///
/// Outputs and positions are committed together: what a topic holds at its end rests on all input before a position that was read
/// earlier, and perhaps on more. So a value that rests on input at or behind the other side's position cannot be compared yet, and
/// every other value can.
struct NewerRule {
    private let positions: [TopicPartition: NextOffset]
    /// Of a partition in which the other side has no position.
    private let isNewerWithoutPosition: Bool
    /// The last answer: nearly all records of a partition come from one partition.
    private var prefix: [UInt8] = []
    private var position: NextOffset?

    /// Of records of the live topic: newer when the replay has not come that far. Where it has no position, it has read nothing.
    static func live(_ positions: InputPositions) -> NewerRule {
        NewerRule(positions: positions.shadow, isNewerWithoutPosition: true)
    }

    /// Of records of the shadow: newer when the replay is ahead, such as while the live worker is stopped. Kafka forgets the
    /// positions of a group that was away for a week: without one the live worker is taken to be up to date.
    static func shadow(_ positions: InputPositions) -> NewerRule {
        NewerRule(positions: positions.live, isNewerWithoutPosition: false)
    }

    private init(positions: [TopicPartition: NextOffset], isNewerWithoutPosition: Bool) {
        self.positions = positions
        self.isNewerWithoutPosition = isNewerWithoutPosition
    }

    /// - Parameter source: the header, `topic:partition:offset`. Without one, or one that says nothing, a record is not newer.
    mutating func isNewer(_ source: Span<UInt8>?) -> Bool {
        guard let source, let (place, offset) = Self.split(source) else { return false }
        if !equal(source.extracting(0..<place), prefix) {
            prefix = source.extracting(0..<place).withUnsafeBytes { Array($0) }
            guard let partition = Self.partition(prefix) else {
                prefix = []
                return false
            }
            position = positions[partition]
        }
        return position.map { offset >= $0.value } ?? isNewerWithoutPosition
    }

    /// Where the offset's colon is, and the offset.
    private static func split(_ source: Span<UInt8>) -> (colon: Int, offset: Int64)? {
        var place = source.count - 1
        while place >= 0, source[place] != UInt8(ascii: ":") { place -= 1 }
        guard place > 0, source.count - place > 1, source.count - place <= 19 else { return nil }
        var offset: Int64 = 0
        for index in place + 1..<source.count {
            guard (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(source[index]) else { return nil }
            offset = offset * 10 + Int64(source[index] - UInt8(ascii: "0"))
        }
        return (place, offset)
    }

    private static func partition(_ prefix: [UInt8]) -> TopicPartition? {
        guard let colon = prefix.lastIndex(of: UInt8(ascii: ":")), colon > 0,
            let number = Int32(String(decoding: prefix[(colon + 1)...], as: UTF8.self)), number >= 0
        else { return nil }
        return TopicPartition(String(decoding: prefix[..<colon], as: UTF8.self), number)
    }
}

/// What of one input topic a replay has still to read.
struct InputLag: Equatable {
    let topic: String
    var waiting: Int64 = 0
    /// All that is there.
    var records: Int64 = 0

    mutating func add(beginning: NextOffset, end: NextOffset, position: NextOffset?) {
        records += max(0, end.value - beginning.value)
        waiting += max(0, end.value - max(position ?? beginning, beginning).value)
    }

    /// Rounded up: one record that waits is more than nothing.
    var percent: Int64 {
        guard records > 0, waiting > 0 else { return 0 }
        return Int64((Double(waiting) / Double(records) * 100).rounded(.up))
    }
}
