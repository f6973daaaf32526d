// What a dashboard of the business shows: how each group of products stands now, and what its days have brought.

public import Contract
public import Notices

/// The groups are chosen by the caller, usually by what the products give. All numbers of a group are sums over its products.
public struct BusinessFigures: Sendable {
    public struct Group: Sendable {
        /// The running sums of the deltas, by the end of today.
        public internal(set) var stocks = Sums()
        /// Monthly recurring revenue in milliunits by currency.
        public internal(set) var monthlyRevenue: [Text: Int64] = [:]
        public internal(set) var today = Sums()
        public internal(set) var yesterday = Sums()
        /// Payments that failed in the window, and how many of them were made within 16 days.
        public internal(set) var failed: Int64 = 0
        public internal(set) var recovered: Int64 = 0
    }

    /// The window of failures: the 30 days that ended 16 days ago. So every failure has had its 16 days, and a recovery counts on the
    /// day of its failure.
    public static let windowDays: Int64 = 30
    public static let recoveryDays: Int64 = 16

    /// - Parameter groupOf: the group of a product; the same values for the same product.
    public static func groups<Name: Hashable>(
        _ table: CellTable, today: CivilDay, groupOf: (_ bundleId: Text, _ productId: Text) -> Name
    ) -> [Name: Group] {
        let today = today.number
        let window = today - windowDays - recoveryDays..<today - recoveryDays
        var groups: [Name: Group] = [:]
        for cells in CellGroup.all(of: table, by: [.product]) {
            let name = groupOf(cells.name.bundleId, cells.name.productId)
            var group = groups[name] ?? Group()
            let all = cells.before(today + 1)
            for counter in ChurnCounter.allCases where counter.isStock {
                group.stocks.add(all.counts[counter], to: counter)
            }
            for (currency, money) in zip(cells.currencies, all.money) {
                let amount = Stock.mrr(money)
                if amount != 0 { group.monthlyRevenue[currency.orOther, default: 0] &+= amount }
            }
            cells.walk(today - 1..<today + 1) { day, tally in
                if day == today { group.today.add(tally.counts.sums) } else { group.yesterday.add(tally.counts.sums) }
            }
            cells.walk(window) { _, tally in
                group.failed &+= tally.counts[.failed]
                group.recovered &+= tally.counts[.recoveredWithin16]
            }
            groups[name] = group
        }
        return groups
    }
}

extension Text {
    /// Texts that are not codes as in ISO 4217 count together.
    fileprivate var orOther: Text {
        Text(bytes.withUnsafeBufferPointer { CurrencyCode(orOther: $0) }.description)
    }
}
