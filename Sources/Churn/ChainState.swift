// What a worker keeps of a subscription.

public import Contract
public import Notices
public import Zone

/// The facts, and what was last added to the cells for them. That is kept, not computed again: another version of the zone's data
/// would find other days, and what was added could never be taken out.
///
/// As bytes: facts, postings. These are told cell by cell: parts, day from the one before, how many, then counter and value.
public struct ChainState: Sendable {
    /// Of the bytes; a worker's `stateFormat`.
    public static let format: UInt8 = 1

    public var facts = Facts()
    public private(set) var contribution = Contribution()

    public init() {}

    /// What has to be added to the cells, and when to ask again.
    public struct Settlement: Sendable {
        public let changes: [(parts: CellParts, day: CivilDay, sums: Sums)]
        public let nextChange: Int64?
    }

    /// Makes the contribution what it has to be at the clock.
    public mutating func settle(
        at clock: Int64, originalTransactionId: TransactionId, _ zone: Zone
    ) -> Settlement {
        let timeline = Timeline(facts, at: clock)
        let now = Contribution(timeline, originalTransactionId: originalTransactionId, zone)
        let changes = now.changes(since: contribution).map { (facts.cellParts($0.parts), $0.day, $0.sums) }
        contribution = now
        // Now nothing is left to be taken out again under parts that are gone.
        if facts.isWasteful {
            var smaller = facts
            if let moved = now.moved(to: smaller.compact()) { (facts, contribution) = (smaller, moved) }
        }
        return Settlement(changes: changes, nextChange: timeline.nextChange)
    }

    public var bytes: [UInt8] {
        var writer = ByteWriter(capacity: 256 + facts.count * 64 + contribution.postings.count * 4)
        facts.write(to: &writer)
        let postings = contribution.postings
        var place = 0
        var last: Int64 = 0
        while place < postings.count {
            let first = postings[place]
            var end = place
            while end < postings.count, postings[end].cell == first.cell { end += 1 }
            writer.unsigned(UInt64(first.parts))
            writer.signed(first.day, from: last)
            writer.unsigned(UInt64(end - place))
            for posting in postings[place..<end] {
                writer.byte(UInt8(truncatingIfNeeded: posting.place))
                writer.signed(posting.value)
            }
            last = first.day
            place = end
        }
        return writer.bytes
    }

    /// nil for bytes that no state has.
    ///
    /// - Parameter format: in which they were written. A new format goes on reading the one before.
    public init?(_ bytes: [UInt8], format: UInt8 = Self.format) {
        guard format == Self.format else { return nil }
        var reader = ByteReader(bytes)
        guard let facts = Facts(&reader) else { return nil }
        var postings: [Contribution.Posting] = []
        // A posting takes two bytes at least, and mostly three.
        postings.reserveCapacity(reader.rest / 3)
        var last: Int64 = 0
        while !reader.isAtEnd {
            guard let parts = reader.unsigned(), parts < UInt64(facts.parts.count), let day = reader.signed(from: last),
                (CivilDay.first.number...CivilDay.last.number).contains(day), let count = reader.count()
            else { return nil }
            for _ in 0..<count {
                guard let counter = reader.byte().flatMap(Counter.init(rawValue:)), let value = reader.signed(),
                    value != 0
                else { return nil }
                postings.append(.init(parts: Int(parts), day: day, counter: counter, value: value))
            }
            last = day
        }
        guard let contribution = Contribution(postings: postings) else { return nil }
        self.facts = facts
        self.contribution = contribution
    }
}
