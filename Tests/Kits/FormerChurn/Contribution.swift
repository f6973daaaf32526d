// What one subscription adds to the cells: C(facts, clock).

internal import Contract
internal import Notices
internal import Zone

/// Values by cell. When one contribution replaces another, their difference has to be added to the cells.
struct Contribution: Sendable, Equatable {
    /// A value at its place: parts, day and counter packed into one number, so that sorting is fast.
    struct Posting: Equatable {
        var place: UInt64
        var value: Int64

        init(parts: Int, day: Int64, counter: ChurnCounter, value: Int64) {
            place =
                UInt64(parts) << 40 | UInt64(day - CivilDay.first.number) << 8 | UInt64(counter.rawValue)
            self.value = value
        }

        var parts: Int { Int(place >> 40) }
        var day: Int64 { Int64(place >> 8 & 0xffff_ffff) + CivilDay.first.number }
        var counter: ChurnCounter? { ChurnCounter(rawValue: UInt8(truncatingIfNeeded: place)) }
        /// Equal for all postings of one cell.
        var cell: UInt64 { place >> 8 }
    }

    /// Sorted by place, each place once, without zeros.
    private(set) var postings: [Posting] = []

    init() {}

    /// nil if the postings are not in order.
    init?(postings: [Posting]) {
        for place in postings.indices.dropFirst() where postings[place - 1].place >= postings[place].place {
            return nil
        }
        self.postings = postings
    }

    /// The same contribution with the parts at new places; nil if a part has no new place.
    func moved(to places: [Int: Int]) -> Contribution? {
        var moved: [Posting] = []
        for posting in postings {
            guard let parts = places[posting.parts], let counter = posting.counter else { return nil }
            moved.append(Posting(parts: parts, day: posting.day, counter: counter, value: posting.value))
        }
        return Contribution(summing: moved)
    }

    init(summing loose: [Posting]) {
        postings.reserveCapacity(loose.count)
        for posting in loose.sorted(by: { $0.place < $1.place }) {
            if let last = postings.last, last.place == posting.place {
                postings[postings.count - 1].value &+= posting.value
            } else {
                if postings.last?.value == 0 { postings.removeLast() }
                postings.append(posting)
            }
        }
        if postings.last?.value == 0 { postings.removeLast() }
    }

    /// What to add to one cell.
    struct Change {
        /// Their place in the facts.
        let parts: Int
        let day: CivilDay
        let sums: Sums
    }

    /// The changes by cell that turn the earlier contribution into this one.
    func changes(since before: Contribution) -> [Change] {
        var loose: [Posting] = []
        loose.reserveCapacity(16)
        var (left, right) = (0, 0)
        while left < before.postings.count || right < postings.count {
            let old = left < before.postings.count ? before.postings[left].place : .max
            let new = right < postings.count ? postings[right].place : .max
            if old == new {
                if before.postings[left].value != postings[right].value {
                    loose.append(postings[right])
                    loose[loose.count - 1].value &-= before.postings[left].value
                }
                (left, right) = (left + 1, right + 1)
            } else if old < new {
                loose.append(before.postings[left])
                loose[loose.count - 1].value = 0 &- before.postings[left].value
                left += 1
            } else {
                loose.append(postings[right])
                right += 1
            }
        }
        var changes: [Change] = []
        var place = 0
        while place < loose.count {
            let first = loose[place]
            var end = place
            while end < loose.count, loose[end].cell == first.cell { end += 1 }
            var sums = Sums(capacity: end - place)
            while place < end {
                if let counter = loose[place].counter { sums.add(loose[place].value, to: counter) }
                place += 1
            }
            changes.append(Change(parts: first.parts, day: CivilDay(number: first.day), sums: sums))
        }
        return changes
    }
}

/// Collects values under a row's parts and the day of an instant.
struct Ledger {
    let rows: [Row]
    let zone: Zone
    private(set) var loose: [Contribution.Posting] = []

    init(_ rows: [Row], _ zone: Zone) {
        self.rows = rows
        self.zone = zone
        loose.reserveCapacity(rows.count * 12)
    }

    mutating func post(_ counter: ChurnCounter, _ value: Int64 = 1, at instant: Int64, under row: Row) {
        post(counter, value, at: instant, parts: row.transaction.parts)
    }

    mutating func post(_ counter: ChurnCounter, _ value: Int64 = 1, at instant: Int64, under place: Int) {
        post(counter, value, at: instant, parts: rows[place].transaction.parts)
    }

    private mutating func post(_ counter: ChurnCounter, _ value: Int64, at instant: Int64, parts: Int) {
        guard value != 0 else { return }
        loose.append(
            Contribution.Posting(
                parts: parts, day: Int64(zone.dayNumber(of: instant)), counter: counter, value: value))
    }
}

extension Contribution {
    /// - Parameter originalTransactionId: the subscription's own id.
    init(_ timeline: Timeline, originalTransactionId: TransactionId, _ zone: Zone) {
        var ledger = Ledger(timeline.rows, zone)
        let entries = timeline.entries(originalTransactionId)
        timeline.postRows(entries, to: &ledger)
        timeline.postRefunds(to: &ledger)
        timeline.postRequests(to: &ledger)
        timeline.postFailures(to: &ledger)
        timeline.postStates(entries, to: &ledger)
        timeline.postTrials(to: &ledger)
        timeline.postCommitments(to: &ledger)
        self.init(summing: ledger.loose)
    }
}
