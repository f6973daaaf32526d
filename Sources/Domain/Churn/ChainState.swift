// The state that a worker keeps for a subscription.

internal import Contract
public import Notices
public import SubscriptionHistory
public import Zone

/// The facts, and what was last added to the cells for them. The contribution is stored and not computed again: another
/// version of the zone's data would give other days, and then the old values could never be subtracted.
///
/// Use one for all subscriptions, one after the other: `read`, `merge`, `settle`, look at the changes, `write`. In a
/// steady state it allocates no memory. The kept bytes and the notification must stay where they are meanwhile.
///
/// Encoding: facts, then postings. Postings are grouped by cell: parts, day as the difference from the day before,
/// number of postings, then counter and value of each.
public struct ChainState: ~Copyable {
    /// The version of the encoding; the worker's `stateFormat`.
    public static let format: UInt8 = 1

    /// What to add to one cell.
    public struct Change: BitwiseCopyable {
        /// Their place in the facts.
        let parts: Int32
        public let day: Int64
        fileprivate let from: Int32
        fileprivate let to: Int32
    }

    var timeline: Timeline
    /// What was last added. Sorted by place, each place once, without zeros.
    private(set) var contribution = Scratch<Posting>(capacity: 256)
    /// What the tail of the life gives without what is new.
    private var earlier = Scratch<Posting>()
    private var differences = Scratch<Posting>()
    private var added = Scratch<Posting>(capacity: 256)
    private var sums = Scratch<Sums.Sum>()
    private var movedParts = Scratch<Int32>(capacity: 1)
    /// The contribution is that of the facts.
    private var isSettled = false
    /// Only the tail was counted.
    private(set) var hasCountedTail = false
    /// What to add to the cells since the state was read.
    public private(set) var changes = Scratch<Change>()
    /// When to settle it again without a new notification. nil: never.
    public var nextChange: Int64? { timeline.nextChange }

    public init(_ zone: Zone) { timeline = Timeline(DayFinder(zone)) }

    // MARK: Reading

    /// Nothing is known.
    public mutating func removeAll() {
        isSettled = false
        timeline.facts.removeAll()
        contribution.removeAll()
        changes.removeAll()
        sums.removeAll()
    }

    /// Reads what `write` wrote.
    /// - Parameter format: the format in which the bytes were written. A new format must still read the one before it.
    /// - Returns: false: the bytes are not a valid state. Then nothing is known.
    public mutating func read(_ bytes: UnsafeBufferPointer<UInt8>, format: UInt8 = Self.format) -> Bool {
        removeAll()
        var reader = KeptReader(bytes)
        if format == Self.format, timeline.facts.read(&reader), readPostings(&reader) { return true }
        removeAll()
        return false
    }

    private mutating func readPostings(_ reader: inout KeptReader) -> Bool {
        var last: Int64 = 0
        while !reader.isAtEnd {
            let parts = reader.unsigned()
            let day = reader.signed(from: last)
            let count = reader.count()
            guard reader.isValid, count > 0, parts < UInt64(timeline.facts.parts.count),
                (CivilDay.first.number...CivilDay.last.number).contains(day)
            else { return false }
            let group = contribution.count
            for _ in 0..<count {
                let posting = Posting(
                    parts: Int32(truncatingIfNeeded: parts), day: day, counter: reader.byte(), value: reader.signed())
                guard reader.isValid, posting.value != 0, posting.counter != nil,
                    contribution.last.map({ $0.place < posting.place }) ?? true
                else { return false }
                contribution.append(posting)
            }
            // A cell has one group.
            if group > 0, contribution[group - 1].cell == contribution[group].cell { return false }
            last = day
        }
        return reader.isValid
    }

    // MARK: Settling

    /// - Returns: whether it was new.
    public mutating func merge(_ news: ChurnNews) -> Bool {
        isSettled = false
        return timeline.facts.merge(news)
    }

    /// Updates the contribution to what it must be at the clock, and sets the changes.
    /// - Parameter isInStep: the kept contribution is right up to this clock but for the news; without news, up to just
    ///   before it. Whoever sets a timer at `nextChange` knows it: the timer has not been lost. If it is false, the whole
    ///   life is counted, which makes good whatever a lost timer has left out.
    public mutating func settle(at clock: Int64, originalTransactionId: PurchaseId, isInStep: Bool = false) {
        hasCountedTail = isInStep && countTail(at: clock, originalTransactionId)
        if !hasCountedTail { countAll(at: clock, originalTransactionId) }
        setChanges()
        timeline.facts.setNewsCounted()
        isSettled = true
    }

    private mutating func countAll(at clock: Int64, _ originalTransactionId: PurchaseId) {
        timeline.reckon(at: clock)
        timeline.contribute(originalTransactionId)
        // The old contribution takes the place of the new one.
        timeline.ledger.exchange(&contribution)
        setDifferences(from: timeline.ledger.postings.values, to: contribution.values)
    }

    /// Counts only the tail, and adds the difference: see `Timeline+Tail.swift`.
    /// - Returns: false: the whole life must be counted.
    private mutating func countTail(at clock: Int64, _ originalTransactionId: PurchaseId) -> Bool {
        var new: Int?
        if case .one(let place) = timeline.facts.news { new = place }
        let before = new == nil && clock > .min ? clock - 1 : clock
        guard let tail = timeline.facts.startOfTail(before: before), let head = timeline.facts.head(before: tail) else {
            return false
        }
        timeline.reckon(at: before, from: tail, without: new)
        guard let day = timeline.dayOfTail(head) else { return false }
        let first = (timeline.rows[0].transaction.id, timeline.rows[1].transaction.id)
        timeline.contribute(originalTransactionId)
        timeline.ledger.exchange(&earlier)
        guard isEarlierKept(since: day) else { return false }
        timeline.reckon(at: clock, from: tail)
        guard timeline.dayOfTail(head) != nil, timeline.rows[0].transaction.id == first.0,
            timeline.rows[1].transaction.id == first.1
        else { return false }
        timeline.contribute(originalTransactionId)
        setDifferences(from: earlier.values, to: timeline.ledger.postings.values)
        addDifferences()
        return true
    }

    /// From this day on, the kept contribution is that of the tail. Otherwise something else is wrong with it: its days
    /// are those of another version of the zone's data, for instance.
    private func isEarlierKept(since day: Int64) -> Bool {
        var place = 0
        for number in contribution.indices where contribution[number].day >= day {
            while place < earlier.count, earlier[place].day < day { place += 1 }
            guard place < earlier.count, earlier[place].place == contribution[number].place,
                earlier[place].value == contribution[number].value
            else { return false }
            place += 1
        }
        while place < earlier.count, earlier[place].day < day { place += 1 }
        return place == earlier.count
    }

    /// What turns the first of two contributions into the other one.
    private mutating func setDifferences(
        from before: UnsafeMutableBufferPointer<Posting>, to now: UnsafeMutableBufferPointer<Posting>
    ) {
        differences.removeAll()
        var (left, right) = (0, 0)
        while left < before.count || right < now.count {
            let old = left < before.count ? before[left].place : .max
            let new = right < now.count ? now[right].place : .max
            if old == new {
                if before[left].value != now[right].value {
                    var difference = now[right]
                    difference.value &-= before[left].value
                    differences.append(difference)
                }
                (left, right) = (left + 1, right + 1)
            } else if old < new {
                var difference = before[left]
                difference.value = 0 &- difference.value
                differences.append(difference)
                left += 1
            } else {
                differences.append(now[right])
                right += 1
            }
        }
    }

    /// Adds the differences to the contribution.
    private mutating func addDifferences() {
        added.removeAll()
        var place = 0
        for number in differences.indices {
            let difference = differences[number]
            while place < contribution.count, contribution[place].place < difference.place {
                added.append(contribution[place])
                place += 1
            }
            var sum = difference
            if place < contribution.count, contribution[place].place == difference.place {
                sum.value &+= contribution[place].value
                place += 1
            }
            if sum.value != 0 { added.append(sum) }
        }
        while place < contribution.count {
            added.append(contribution[place])
            place += 1
        }
        swap(&contribution, &added)
    }

    /// Groups the differences by cell.
    private mutating func setChanges() {
        changes.removeAll()
        sums.removeAll()
        var place = 0
        while place < differences.count {
            let first = differences[place]
            let from = sums.count
            while place < differences.count, differences[place].cell == first.cell {
                if let counter = differences[place].counter {
                    sums.append(Sums.Sum(counter: counter, value: differences[place].value))
                }
                place += 1
            }
            changes.append(Change(parts: first.parts, day: first.day, from: Int32(from), to: Int32(sums.count)))
        }
    }

    // MARK: Changes

    /// Valid until the next `settle`.
    public func sums(of change: Change) -> UnsafeBufferPointer<Sums.Sum> {
        UnsafeBufferPointer(rebasing: sums.values[Int(change.from)..<Int(change.to)])
    }

    /// Empty if there is none.
    public func currency(of change: Change) -> UnsafeBufferPointer<UInt8> {
        text(timeline.facts.parts[Int(change.parts)].currency)
    }

    /// Writes the key of the cell.
    public func writeKey(of change: Change, partition: Int32, to writer: inout ByteWriter) {
        let parts = timeline.facts.parts[Int(change.parts)]
        writer.cell(partition: partition, CivilDay(number: change.day))
        for number in [parts.bundle, parts.product, parts.plan, parts.storefront, parts.currency] {
            writer.part(text(number))
        }
    }

    private func text(_ number: TextNumber) -> UnsafeBufferPointer<UInt8> {
        timeline.facts.texts.bytes(number) ?? UnsafeBufferPointer(start: nil, count: 0)
    }

    // MARK: Writing

    /// After this the changes are gone: the tables that they refer to may be other ones.
    /// - Parameter copiesKept: false: all is written from its values, for tests. The bytes are the same.
    public mutating func write(to writer: inout ByteWriter, copiesKept: Bool = true) {
        changes.removeAll()
        if isSettled, timeline.facts.isWasteful { compact() }
        timeline.facts.write(to: &writer, copiesKept: copiesKept)
        var place = 0
        var last: Int64 = 0
        let postings = contribution.values
        while place < postings.count {
            let first = postings[place]
            var end = place
            while end < postings.count, postings[end].cell == first.cell { end += 1 }
            writer.unsigned(UInt64(first.parts))
            writer.signed(first.day, from: last)
            writer.unsigned(UInt64(end - place))
            while place < end {
                writer.byte(UInt8(truncatingIfNeeded: postings[place].place))
                writer.signed(postings[place].value)
                place += 1
            }
            last = first.day
        }
    }

    /// Removes what no notice uses. All postings of these facts are about rows, which have notices.
    private mutating func compact() {
        timeline.facts.compact(&movedParts)
        timeline.ledger.exchange(&contribution)
        timeline.ledger.move(to: movedParts)
        timeline.ledger.exchange(&contribution)
    }
}
