// What one subscription adds to the cells: C(facts, clock).

internal import Contract
internal import SubscriptionHistory
internal import Zone

/// A value at its place: parts, day and counter packed into one number, so that sorting is fast.
struct Posting {
    var place: UInt64
    var value: Int64

    init(parts: Int32, day: Int64, counter: UInt8, value: Int64) {
        place = UInt64(parts) << 40 | UInt64(day - Self.firstDay) << 8 | UInt64(counter)
        self.value = value
    }

    init(place: UInt64, value: Int64) {
        self.place = place
        self.value = value
    }

    /// The number of `CivilDay.first`; a constant, because it is needed for every posting.
    private static let firstDay: Int64 = -719_162

    var parts: Int32 { Int32(truncatingIfNeeded: place >> 40) }
    var day: Int64 { Self.day(of: cell) }
    var counter: ChurnCounter? { ChurnCounter(rawValue: UInt8(truncatingIfNeeded: place)) }
    /// Equal for all postings of one cell: parts and day.
    var cell: UInt64 { place >> 8 }

    static func day(of cell: UInt64) -> Int64 { Int64(cell & 0xffff_ffff) + firstDay }
}

/// Collects values under a row's parts and the day of an instant.
struct Ledger: ~Copyable {
    private(set) var postings = Scratch<Posting>(capacity: 256)
    private var spare = Scratch<Posting>(capacity: 256)
    private var days: DayFinder

    init(_ days: DayFinder) { self.days = days }

    mutating func removeAll() { postings.removeAll() }

    mutating func day(of instant: Int64) -> Int64 { Int64(days.number(of: instant)) }

    mutating func post(_ counter: ChurnCounter, _ value: Int64, at instant: Int64, parts: Int32) {
        guard value != 0 else { return }
        postings.append(
            Posting(parts: parts, day: day(of: instant), counter: counter.rawValue, value: value))
    }

    /// Makes of the postings a contribution: sorted by place, each place once, without zeros.
    mutating func addUp() {
        sort()
        var end = 0
        for place in postings.indices {
            let posting = postings[place]
            if end > 0, postings[end - 1].place == posting.place {
                postings[end - 1].value &+= posting.value
            } else {
                if end > 0, postings[end - 1].value == 0 { end -= 1 }
                postings[end] = posting
                end += 1
            }
        }
        if end > 0, postings[end - 1].value == 0 { end -= 1 }
        postings.keepFirst(end)
    }

    /// Exchanges the postings for others.
    mutating func exchange(_ others: inout Scratch<Posting>) { swap(&postings, &others) }

    /// Gives the parts new places. Each has one.
    mutating func move(to places: borrowing Scratch<Int32>) {
        for place in postings.indices {
            let posting = postings[place]
            postings[place] = Posting(
                parts: places[Int(posting.parts)], day: posting.day,
                counter: UInt8(truncatingIfNeeded: posting.place), value: posting.value)
        }
        addUp()
    }

    /// Rows are posted in the order of time, so there are a few long runs that are sorted already: they are merged, two
    /// at a time.
    private mutating func sort() {
        var isOneRun = false
        while !isOneRun {
            spare.removeAll()
            var place = 0
            while place < postings.count {
                let middle = endOfRun(from: place)
                let end = middle < postings.count ? endOfRun(from: middle) : middle
                if place == 0, end == postings.count { isOneRun = true }
                if end == middle, isOneRun { return }
                merge(place..<middle, middle..<end)
                place = end
            }
            if postings.isEmpty { return }
            swap(&postings, &spare)
        }
    }

    private func endOfRun(from start: Int) -> Int {
        var end = start + 1
        while end < postings.count, postings[end - 1].place <= postings[end].place { end += 1 }
        return end
    }

    private mutating func merge(_ left: Range<Int>, _ right: Range<Int>) {
        var (one, other) = (left.lowerBound, right.lowerBound)
        while one < left.upperBound || other < right.upperBound {
            if other == right.upperBound
                || one < left.upperBound && postings[one].place <= postings[other].place
            {
                spare.append(postings[one])
                one += 1
            } else {
                spare.append(postings[other])
                other += 1
            }
        }
    }
}

extension Timeline {
    /// Sets the contribution of what was reckoned.
    /// - Parameter originalTransactionId: the subscription's own id.
    mutating func contribute(_ originalTransactionId: PurchaseId) {
        ledger.removeAll()
        enterRows(originalTransactionId)
        postRows()
        postRefunds()
        postRequests()
        postFailures()
        postStates()
        postTrials()
        postCommitments()
        ledger.addUp()
    }

    mutating func post(_ counter: ChurnCounter, _ value: Int64 = 1, at instant: Int64, under row: Row) {
        ledger.post(counter, value, at: instant, parts: row.transaction.parts)
    }

    mutating func post(_ counter: ChurnCounter, _ value: Int64 = 1, at instant: Int64, under place: Int) {
        ledger.post(counter, value, at: instant, parts: rows[place].transaction.parts)
    }
}
