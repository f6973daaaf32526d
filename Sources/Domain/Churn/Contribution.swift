// What one subscription has added to the cells.

internal import Contract
internal import Notices
internal import SubscriptionHistory

/// Postings sorted by place, each place once, without zeros. Those of one cell are a group: groups that do not change are
/// not made into values, but copied as bytes.
///
/// Encoding: the groups, each with its parts, its day as the difference from the day before, the number of postings, then
/// counter and value of each.
struct Contribution: ~Copyable {
    /// A group where it lies in the kept bytes.
    struct Group {
        /// That of its postings.
        var cell: UInt64
        var from: Int32
        /// All from here on says the same behind any other group.
        var body: Int32
        var to: Int32
        /// Its postings are values now.
        var isOpen = false
    }

    private var groups = Scratch<Group>(capacity: 64)
    private var reader = KeptReader(UnsafeBufferPointer(start: nil, count: 0))
    /// Where the first group begins.
    private var start: Int32 = 0
    /// The postings of all cells that have no group, or an open one.
    private var values = Scratch<Posting>(capacity: 256)
    private var opened = Scratch<Posting>()
    private var sums = Scratch<Posting>(capacity: 256)

    mutating func removeAll() {
        groups.removeAll()
        values.removeAll()
        reader = KeptReader(UnsafeBufferPointer(start: nil, count: 0))
        start = 0
    }

    // MARK: Reading

    /// Reads up to the end. The bytes must stay where they are as long as this is used.
    /// - Parameter parts: how many there are.
    /// - Returns: false: the bytes are invalid.
    mutating func read(_ kept: inout KeptReader, parts partCount: Int) -> Bool {
        removeAll()
        // A reader of its own, so that its place stays in a register.
        var reader = kept
        start = Int32(truncatingIfNeeded: reader.place)
        let days = CivilDay.first.number...CivilDay.last.number
        var last: Int64 = 0
        while !reader.isAtEnd {
            let from = Int32(truncatingIfNeeded: reader.place)
            let parts = reader.unsigned()
            let day = reader.signed(from: last)
            let body = Int32(truncatingIfNeeded: reader.place)
            let count = reader.count()
            guard count > 0, parts < UInt64(partCount), days.contains(day) else { return false }
            let cell = Posting(parts: Int32(truncatingIfNeeded: parts), day: day, counter: 0, value: 0).cell
            // A cell has one group.
            if let before = groups.last, before.cell >= cell { return false }
            var before = -1
            for _ in 0..<count {
                let counter = reader.byte()
                guard before < Int(counter), reader.unsigned() != 0, ChurnCounter(rawValue: counter) != nil else {
                    return false
                }
                before = Int(counter)
            }
            groups.append(
                Group(cell: cell, from: from, body: body, to: Int32(truncatingIfNeeded: reader.place)))
            last = day
        }
        kept = reader
        self.reader = reader
        return reader.isValid
    }

    /// Appends its postings.
    private static func read(_ group: Group, of kept: KeptReader, to postings: inout Scratch<Posting>) {
        var reader = kept.again(from: group.body)
        for _ in 0..<reader.count() {
            let counter = reader.byte()
            postings.append(Posting(place: group.cell << 8 | UInt64(counter), value: reader.signed()))
        }
    }

    /// Copies the postings of all cells from this day on, sorted.
    func copy(since day: Int64 = .min, to postings: inout Scratch<Posting>) {
        postings.removeAll()
        var place = 0
        for number in groups.indices where !groups[number].isOpen && Posting.day(of: groups[number].cell) >= day {
            let group = groups[number]
            while place < values.count, values[place].cell < group.cell {
                if values[place].day >= day { postings.append(values[place]) }
                place += 1
            }
            Self.read(group, of: reader, to: &postings)
        }
        while place < values.count {
            if values[place].day >= day { postings.append(values[place]) }
            place += 1
        }
    }

    // MARK: Changing

    /// - Parameter differences: sorted by place, each place once.
    mutating func add(_ differences: borrowing Scratch<Posting>) {
        open(differences)
        Self.add(values, differences, to: &sums)
        swap(&values, &sums)
    }

    /// Makes values of the groups of these cells.
    private mutating func open(_ differences: borrowing Scratch<Posting>) {
        opened.removeAll()
        guard !differences.isEmpty else { return }
        let first = differences[0].cell
        var place = 0
        for number in groups.values.firstPlace(where: { !($0.cell < first) })..<groups.count {
            while place < differences.count, differences[place].cell < groups[number].cell { place += 1 }
            if place == differences.count { break }
            if differences[place].cell == groups[number].cell, !groups[number].isOpen {
                Self.read(groups[number], of: reader, to: &opened)
                groups[number].isOpen = true
            }
        }
        if opened.isEmpty { return }
        Self.add(values, opened, to: &sums)
        swap(&values, &sums)
    }

    /// The sums of two lists that are sorted by place, with each place once.
    private static func add(
        _ left: borrowing Scratch<Posting>, _ right: borrowing Scratch<Posting>, to sums: inout Scratch<Posting>
    ) {
        sums.removeAll()
        var place = 0
        for number in right.indices {
            var sum = right[number]
            while place < left.count, left[place].place < sum.place {
                sums.append(left[place])
                place += 1
            }
            if place < left.count, left[place].place == sum.place {
                sum.value &+= left[place].value
                place += 1
            }
            if sum.value != 0 { sums.append(sum) }
        }
        while place < left.count {
            sums.append(left[place])
            place += 1
        }
    }

    /// Sets other postings, sorted by place, each place once, without zeros.
    mutating func replace(with postings: inout Scratch<Posting>) {
        removeAll()
        swap(&values, &postings)
    }

    // MARK: Writing

    /// - Parameter copiesKept: false: all is written from its values, for tests. The bytes are the same.
    mutating func write(to writer: inout ByteWriter, copiesKept: Bool) {
        if !copiesKept {
            var all = Scratch<Posting>()
            copy(to: &all)
            replace(with: &all)
        }
        var (number, place) = (0, 0)
        var last: Int64 = 0
        // Where the group that was written last ends in the kept bytes; -1: it does not lie there.
        var endBefore = start
        while number < groups.count {
            let first = groups[number]
            if first.isOpen {
                number += 1
                continue
            }
            if place < values.count, values[place].cell < first.cell {
                writeValues(before: first.cell, &place, after: &last, to: &writer)
                endBefore = -1
            }
            // Neighbours that were neighbours before are copied together.
            number = endOfNeighbours(from: number, before: place < values.count ? values[place].cell : .max)
            let end = groups[number - 1]
            if first.from == endBefore {
                writer.append(reader.bytes(from: first.from, to: end.to))
            } else {
                writeHead(first.cell, after: last, to: &writer)
                writer.append(reader.bytes(from: first.body, to: end.to))
            }
            endBefore = end.to
            last = Posting.day(of: end.cell)
        }
        writeValues(before: .max, &place, after: &last, to: &writer)
    }

    /// Behind the last group that follows without an open one, or this cell, between.
    private func endOfNeighbours(from first: Int, before cell: UInt64) -> Int {
        var end = first + 1
        while end < groups.count, !groups[end].isOpen, groups[end].cell < cell { end += 1 }
        return end
    }

    private func writeHead(_ cell: UInt64, after day: Int64, to writer: inout ByteWriter) {
        writer.unsigned(cell >> 32)
        writer.signed(Posting.day(of: cell), from: day)
    }

    private func writeValues(
        before cell: UInt64, _ place: inout Int, after day: inout Int64, to writer: inout ByteWriter
    ) {
        while place < values.count, values[place].cell < cell {
            let first = values[place]
            var end = place
            while end < values.count, values[end].cell == first.cell { end += 1 }
            writeHead(first.cell, after: day, to: &writer)
            writer.unsigned(UInt64(end - place))
            while place < end {
                writer.byte(UInt8(truncatingIfNeeded: values[place].place))
                writer.signed(values[place].value)
                place += 1
            }
            day = first.day
        }
    }
}
