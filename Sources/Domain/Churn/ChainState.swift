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
/// Encoding: facts, then the contribution.
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
    /// What was last added.
    private(set) var contribution = Contribution()
    /// As it was before it was settled: all of it, or that of the last days.
    private var before = Scratch<Posting>(capacity: 256)
    /// What the tail of the life gives without what is new.
    private var earlier = Scratch<Posting>()
    private var differences = Scratch<Posting>()
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
        if format == Self.format, timeline.facts.read(&reader), readContribution(&reader) { return true }
        removeAll()
        return false
    }

    private mutating func readContribution(_ reader: inout KeptReader) -> Bool {
        contribution.read(&reader, parts: timeline.facts.parts.count)
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
        contribution.add(differences)
        setChanges()
        timeline.facts.setNewsCounted()
        isSettled = true
    }

    private mutating func countAll(at clock: Int64, _ originalTransactionId: PurchaseId) {
        timeline.facts.readUnread()
        timeline.reckon(at: clock)
        timeline.contribute(originalTransactionId)
        contribution.copy(to: &before)
        setDifferences(from: before.values, to: timeline.ledger.postings.values)
    }

    /// Counts only the tail: see `Timeline+Tail.swift`.
    /// - Returns: false: the whole life must be counted.
    private mutating func countTail(at clock: Int64, _ originalTransactionId: PurchaseId) -> Bool {
        let instant = timeline.facts.news == .none && clock > .min ? clock - 1 : clock
        guard let tail = timeline.facts.startOfTail(before: instant), let head = timeline.facts.head(before: tail)
        else { return false }
        var new: Int?
        if case .one(let place) = timeline.facts.news { new = place }
        timeline.reckon(at: instant, from: tail, without: new)
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
        return true
    }

    /// From this day on, the kept contribution is that of the tail. Otherwise something else is wrong with it: its days
    /// are those of another version of the zone's data, for instance.
    private mutating func isEarlierKept(since day: Int64) -> Bool {
        contribution.copy(since: day, to: &before)
        var place = 0
        for number in earlier.indices where earlier[number].day >= day {
            guard place < before.count, before[place].place == earlier[number].place,
                before[place].value == earlier[number].value
            else { return false }
            place += 1
        }
        return place == before.count
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
        writer.part(text(parts.bundle))
        writer.part(text(parts.product))
        writer.part(text(parts.plan))
        writer.part(text(parts.storefront))
        writer.part(text(parts.currency))
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
        contribution.write(to: &writer, copiesKept: copiesKept)
    }

    /// Removes what no notice uses. All postings of these facts are about rows, which have notices.
    private mutating func compact() {
        timeline.facts.compact(&movedParts)
        contribution.copy(to: &before)
        timeline.ledger.exchange(&before)
        timeline.ledger.move(to: movedParts)
        timeline.ledger.exchange(&before)
        contribution.replace(with: &before)
    }
}
