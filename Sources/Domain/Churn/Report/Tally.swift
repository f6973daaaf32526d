// Fast sums over many cells.

internal import Notices

/// Has a place for every counter, so that adding needs no search.
struct Tally: Sendable {
    private var values = [Int64](repeating: 0, count: Int(UInt8.max) + 1)

    subscript(_ counter: ChurnCounter) -> Int64 { values[Int(counter.rawValue)] }

    mutating func add(_ value: Int64, to counter: ChurnCounter) { values[Int(counter.rawValue)] &+= value }

    mutating func add(_ other: Tally) {
        for index in values.indices { values[index] &+= other.values[index] }
    }

    mutating func reset() {
        for index in values.indices { values[index] = 0 }
    }

    var isEmpty: Bool { values.allSatisfy { $0 == 0 } }

    func sum(_ counters: [ChurnCounter]) -> Int64 { counters.reduce(0) { $0 &+ self[$1] } }

    var sums: Sums {
        var sums = Sums()
        for counter in ChurnCounter.allCases { sums.add(self[counter], to: counter) }
        return sums
    }
}

/// The sums of a group: counts over all currencies, and money by currency.
struct GroupTally: Sendable {
    var counts = Tally()
    /// In the order of the group's currencies.
    var money: [Tally]

    init(currencies: Int) { money = [Tally](repeating: Tally(), count: currencies) }

    mutating func add(_ cell: PackedSums, currency: Int) {
        cell.each { counter, value in
            if counter.isMoney { money[currency].add(value, to: counter) } else { counts.add(value, to: counter) }
        }
    }

    mutating func add(_ other: GroupTally) {
        counts.add(other.counts)
        for index in money.indices { money[index].add(other.money[index]) }
    }

    mutating func reset() {
        counts.reset()
        for index in money.indices { money[index].reset() }
    }
}

/// The kinds of rows that the request adds up, visited day by day.
struct CellGroup {
    let name: CellParts
    /// Sorted.
    let currencies: [Text]
    private let columns: [(column: CellTable.Column, currency: Int)]

    static func all(of table: CellTable, _ request: MetricsRequest) -> [CellGroup] {
        all(of: table, by: request.by)
    }

    static func all(of table: CellTable, by dimensions: [Dimension]) -> [CellGroup] {
        Dictionary(grouping: table.columns.filter { !$0.days.isEmpty }) { $0.parts.only(dimensions) }
            .map { CellGroup(name: $0.key, $0.value) }
            .sorted { $0.name.precedes($1.name) }
    }

    private init(name: CellParts, _ columns: [CellTable.Column]) {
        self.name = name
        let currencies = Set(columns.map(\.parts.currency)).sorted()
        self.currencies = currencies
        self.columns = columns.map { ($0, currencies.firstIndex(of: $0.parts.currency) ?? 0) }
    }

    func before(_ day: Int64) -> GroupTally {
        var before = GroupTally(currencies: currencies.count)
        for (column, currency) in columns {
            for row in 0..<column.row(of: Int32(clamping: day)) { before.add(column.sums[row], currency: currency) }
        }
        return before
    }

    func walk(_ days: Range<Int64>, _ body: (Int64, GroupTally) -> Void) {
        var rows = columns.map { column, _ in column.row(of: Int32(clamping: days.lowerBound)) }
        var today = GroupTally(currencies: currencies.count)
        for day in days {
            today.reset()
            for index in columns.indices {
                let (column, currency) = columns[index]
                guard rows[index] < column.days.count, column.days[rows[index]] == day else { continue }
                today.add(column.sums[rows[index]], currency: currency)
                rows[index] += 1
            }
            body(day, today)
        }
    }
}

extension CellParts {
    func precedes(_ other: CellParts) -> Bool {
        let (left, right) = (
            (bundleId, productId, billingPlan, storefront),
            (other.bundleId, other.productId, other.billingPlan, other.storefront)
        )
        return left == right ? currency < other.currency : left < right
    }
}
