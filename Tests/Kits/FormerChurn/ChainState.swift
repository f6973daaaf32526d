// The state that a worker keeps for a subscription.

internal import Contract
internal import Notices
internal import Zone

/// The facts, and what was last added to the cells for them. The contribution is stored and not computed again: another
/// version of the zone's data would give other days, and then the old values could never be subtracted.
///
/// Encoding: facts, then postings. Postings are grouped by cell: parts, day as the difference from the day before,
/// number of postings, then counter and value of each.
struct ChainState: Sendable {
    /// The version of the encoding; the worker's `stateFormat`.
    static let format: UInt8 = 1

    var facts = Facts()
    private(set) var contribution = Contribution()

    init() {}

    /// What to add to the cells, and when to compute it again.
    struct Settlement: Sendable {
        let changes: [(parts: CellParts, day: CivilDay, sums: Sums)]
        let nextChange: Int64?
    }

    /// Updates the contribution to what it must be at the clock.
    mutating func settle(
        at clock: Int64, originalTransactionId: TransactionId, _ zone: Zone
    ) -> Settlement {
        let timeline = Timeline(facts, at: clock)
        let now = Contribution(timeline, originalTransactionId: originalTransactionId, zone)
        let changes = now.changes(since: contribution).map { (facts.cellParts($0.parts), $0.day, $0.sums) }
        contribution = now
        // The old contribution is gone: no posting refers to the parts that compaction removes.
        if facts.isWasteful {
            var smaller = facts
            if let moved = now.moved(to: smaller.compact()) { (facts, contribution) = (smaller, moved) }
        }
        return Settlement(changes: changes, nextChange: timeline.nextChange)
    }

    var bytes: [UInt8] {
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

    /// nil if the bytes are not a valid state.
    ///
    /// - Parameter format: the format in which the bytes were written. A new format must still read the one before it.
    init?(_ bytes: [UInt8], format: UInt8 = Self.format) {
        guard format == Self.format else { return nil }
        var reader = ByteReader(bytes)
        guard let facts = Facts(&reader) else { return nil }
        var postings: [Contribution.Posting] = []
        // A posting takes at least two bytes, and usually three.
        postings.reserveCapacity(reader.rest / 3)
        var last: Int64 = 0
        while !reader.isAtEnd {
            guard let parts = reader.unsigned(), parts < UInt64(facts.parts.count), let day = reader.signed(from: last),
                (CivilDay.first.number...CivilDay.last.number).contains(day), let count = reader.count()
            else { return nil }
            for _ in 0..<count {
                guard let counter = reader.byte().flatMap(ChurnCounter.init(rawValue:)), let value = reader.signed(),
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
