// Whether a value can be compared, judged by the input that it was made from. Pure.

import Log

/// The positions of both groups, of the replay and the live worker, before anything was read.
struct InputPositions: Sendable, Equatable {
    var shadow: [TopicPartition: NextOffset]
    var live: [TopicPartition: NextOffset]
}

/// Judges the header `source` of one side's records. One thread.
///
/// Outputs and positions are committed together, so the values of a topic include all input before a position that was read
/// earlier, and perhaps more. So a value that was made from input at or after the other side's position cannot be compared yet.
/// Every other value can.
struct SourceRule {
    private let positions: [TopicPartition: NextOffset]
    /// The answer for a partition in which the other side has no position.
    private let isNewerWithoutPosition: Bool
    /// The partition of the last source: nearly all records of a partition come from one partition.
    private var prefix: [UInt8] = []
    private var position: NextOffset?

    /// For records of the live topic: newer if the replay has not read their input. Without a position, it has read nothing.
    static func live(_ positions: InputPositions) -> SourceRule {
        SourceRule(positions: positions.shadow, isNewerWithoutPosition: true)
    }

    /// For records of the shadow: newer if the replay is ahead, for example while the live worker is stopped. Kafka deletes the
    /// positions of a group that was stopped for a week; without a position the live worker counts as up to date.
    static func shadow(_ positions: InputPositions) -> SourceRule {
        SourceRule(positions: positions.live, isNewerWithoutPosition: false)
    }

    private init(positions: [TopicPartition: NextOffset], isNewerWithoutPosition: Bool) {
        self.positions = positions
        self.isNewerWithoutPosition = isNewerWithoutPosition
    }

    /// Whether the value was made from input that the other side has not processed.
    ///
    /// - Parameter source: `topic:partition:offset`. A record without a valid source is not newer.
    mutating func isNewer(_ source: Span<UInt8>?) -> Bool {
        guard let source, let (colon, offset) = Self.split(source) else { return false }
        let place = source.extracting(0..<colon)
        if !equal(place, prefix) {
            let bytes = place.withUnsafeBytes { Array($0) }
            guard let partition = Self.partition(bytes) else { return false }
            prefix = bytes
            position = positions[partition]
        }
        return position.map { offset >= $0.value } ?? isNewerWithoutPosition
    }

    /// The position of the last colon, and the offset after it.
    private static func split(_ source: Span<UInt8>) -> (colon: Int, offset: Int64)? {
        var place = source.count - 1
        while place >= 0, source[place] != UInt8(ascii: ":") { place -= 1 }
        // Eighteen digits at most, so that every number fits.
        guard place > 0, source.count - place > 1, source.count - place <= 19 else { return nil }
        var offset: Int64 = 0
        for index in place + 1..<source.count {
            guard (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(source[index]) else { return nil }
            offset = offset * 10 + Int64(source[index] - UInt8(ascii: "0"))
        }
        return (place, offset)
    }

    private static func partition(_ place: [UInt8]) -> TopicPartition? {
        guard let colon = place.lastIndex(of: UInt8(ascii: ":")), colon > 0,
            let number = Int32(String(decoding: place[(colon + 1)...], as: UTF8.self)), number >= 0
        else { return nil }
        return TopicPartition(String(decoding: place[..<colon], as: UTF8.self), number)
    }
}
