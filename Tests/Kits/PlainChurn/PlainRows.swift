// From facts to the rows of a timeline: the part that needs no state.

/// "A run of versions with `revocationDate`, from that date until the `signedDate` of the first later version without it."
struct PlainRefund {
    let date: Int64
    let reversal: Int64?
    let amount: Int64

    func holds(at t: Int64) -> Bool { date <= t && (reversal.map { t < $0 } ?? true) }
}

/// "One transaction": all that is known about it and about the notifications that carry it.
struct PlainRow {
    let versions: [PlainTransaction]
    /// In the order of (signedDate, UUID).
    let carriers: [PlainFact]
    var isRenewal = false
    var start: Int64 = 0

    init(carriers: [PlainFact]) {
        self.carriers = carriers
        var versions: [PlainTransaction] = []
        for version in carriers.compactMap(\.transaction).sorted(by: { $0.version < $1.version })
        where versions.last?.version != version.version {
            versions.append(version)
        }
        self.versions = versions
    }

    /// "Newest version."
    var newest: PlainTransaction { versions[versions.count - 1] }
    var id: String { newest.id }
    /// "Due = `expiresDate`." Renewing rows have one.
    var due: Int64 { newest.expires ?? 0 }
    /// "*Plan*: `billingPlanType`, absent = upfront."
    var plan: String { newest.plan ?? "BILLED_UPFRONT" }
    var isMonthly: Bool { plan == "MONTHLY" }
    /// "*Free*: `FREE_TRIAL` or price 0; else *paid* (no price: amount 0)."
    var isFree: Bool { newest.discount == "FREE_TRIAL" || newest.price == 0 }
    var price: Int64 { newest.price ?? 0 }
    /// "Window = due + 60 days, MONTHLY 90."
    var windowEnd: Int64 { due.plus((isMonthly ? 90 : 60) * 86_400_000) }
    /// "Last period of MONTHLY": "billingPeriodNumber >= totalBillingPeriods (absent: 12)."
    var isLastPeriod: Bool { newest.period.map { $0 >= newest.periods ?? 12 } ?? false }

    func isCarried(by condition: (PlainFact) -> Bool) -> Bool { carriers.contains(where: condition) }

    /// "*Flagged*: by `BILLING_RECOVERY`."
    var isFlagged: Bool { isCarried { $0.says("DID_RENEW", "BILLING_RECOVERY") } }
    var isByUpgrade: Bool { isCarried(by: \.isUpgrade) }

    /// The runs that exist at the clock: "A run whose date > clock does not exist; a reversal > clock does not exist yet."
    func refunds(at clock: Int64) -> [PlainRefund] {
        var refunds: [PlainRefund] = []
        for (place, version) in versions.enumerated() {
            let next = place + 1 < versions.count ? versions[place + 1] : nil
            // The newest of its run: the next version has no revocation, or there is no next version.
            guard let date = version.revocation, next?.revocation == nil, date <= clock else { continue }
            let reversal = next.map(\.version.signed).flatMap { $0 <= clock ? $0 : nil }
            let amount = dividedHalfToEven(Int128(price) * Int128(version.share), 100_000)
            refunds.append(PlainRefund(date: date, reversal: reversal, amount: amount))
        }
        return refunds
    }

    /// "`purchaseDate`; upgraded before not upgraded; `expiresDate`; `transactionId` by bytes."
    static func isEarlier(_ one: PlainRow, _ other: PlainRow) -> Bool {
        let (a, b) = (one.newest, other.newest)
        if a.purchase != b.purchase { return a.purchase < b.purchase }
        if a.isUpgraded != b.isUpgraded { return a.isUpgraded }
        if a.expires != b.expires { return a.expires ?? 0 < b.expires ?? 0 }
        return isLess(Array(a.id.utf8), Array(b.id.utf8))
    }

    /// All purchased rows that the facts name, renewing or not, begun or not.
    static func all(of facts: [PlainFact]) -> [PlainRow] {
        let counted = countedPurchases(facts)
        let usable = facts.filter { $0.transaction.map { counted.contains(Purchase($0)) } ?? false }
        let carriers = Dictionary(grouping: usable) { $0.transaction?.id ?? "" }
        return carriers.values.map(PlainRow.init(carriers:)).filter(\.newest.isPurchased).sorted(by: isEarlier)
    }

    private struct Purchase: Hashable {
        let date: Int64
        let id: String

        init(_ transaction: PlainTransaction) {
            date = transaction.purchase
            id = transaction.id
        }
    }

    /// "Only the versions with the 1,000 greatest distinct (`purchaseDate`, `transactionId`) count."
    private static func countedPurchases(_ facts: [PlainFact]) -> Set<Purchase> {
        let all = Set(facts.compactMap(\.transaction).map(Purchase.init))
        let ordered = all.sorted {
            $0.date != $1.date ? $0.date < $1.date : isLess(Array($0.id.utf8), Array($1.id.utf8))
        }
        return Set(ordered.suffix(1_000))
    }

    /// The renewing rows that have begun at the clock, each with its kind and start: "Rows whose start > clock do not exist
    /// (and none after them, starts never go back)."
    static func timeline(_ rows: [PlainRow], clock: Int64) -> [PlainRow] {
        var timeline: [PlainRow] = []
        for var row in rows where row.newest.isRenewing {
            row.isRenewal = row.isRenewal(after: timeline.last)
            row.start = row.start(after: timeline.last)
            if row.start > clock { break }
            timeline.append(row)
        }
        return timeline
    }

    /// "RENEWAL if a `DID_RENEW` carries the row; PURCHASE if `SUBSCRIBED` or an `UPGRADE` does; else `transactionReason`;
    /// else RENEWAL if product and plan stay or it starts at or after the end of the row before (never the first)."
    private func isRenewal(after before: PlainRow?) -> Bool {
        if isCarried(by: { $0.type == "DID_RENEW" }) { return true }
        if isCarried(by: { $0.type == "SUBSCRIBED" }) || isByUpgrade { return false }
        if newest.reason == "RENEWAL" { return true }
        if newest.reason == "PURCHASE" { return false }
        guard let before else { return false }
        return !isOtherOffer(than: before) || max(newest.purchase, before.start) >= before.due
    }

    /// "With another product or plan."
    func isOtherOffer(than before: PlainRow) -> Bool { newest.product != before.newest.product || plan != before.plan }

    /// "`purchaseDate`; of a RENEWAL after a failure with `purchaseDate` <= due (cycle kept): `signedDate` of its first
    /// `DID_RENEW`. Not before the start of the row before."
    private func start(after before: PlainRow?) -> Int64 {
        guard let before else { return newest.purchase }
        var start = newest.purchase
        if isRenewal, newest.purchase <= before.due, before.hasFailure(next: self),
            let renewed = carriers.first(where: { $0.type == "DID_RENEW" })
        {
            start = renewed.signed
        }
        return max(start, before.start)
    }
}
