// What another policy would have changed, as text for people.

import Consumption
import Contract
import Notices

struct WhatIfReport {
    /// One or two screens; json has all.
    static let limitShown = 50
    /// Apple sells in about fifty currencies.
    static let limitCurrencies = 200

    struct Change: Hashable {
        let before: WhatIf.Answer
        let after: WhatIf.Answer
    }

    struct Count {
        var requests = 0
        /// By currency, in milliunits. Each transaction counts once, also with several requests.
        var amounts: [Text: Int64] = [:]
        private var transactions: Set<Text> = []

        mutating func add(_ finding: WhatIf.Finding) {
            requests += 1
            guard let stake = finding.atStake, transactions.insert(finding.transactionId ?? finding.id).inserted else {
                return
            }
            let currency = stake.currency ?? ""
            guard amounts[currency] != nil || amounts.count < WhatIfReport.limitCurrencies else { return }
            amounts[currency] = adding(amounts[currency] ?? 0, stake.value)
        }

        var sortedAmounts: [(currency: Text, value: Int64)] {
            amounts.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
        }
    }

    let query: WhatIfQuery
    private(set) var same = 0
    private(set) var changed = Count()
    private var counts: [Change: Count] = [:]
    private var newest: [WhatIf.Finding] = []
    /// Records of another version.
    var unreadable = 0

    init(_ query: WhatIfQuery) { self.query = query }

    mutating func add(_ finding: WhatIf.Finding) {
        guard finding.isChanged else { return same += 1 }
        changed.add(finding)
        counts[Change(before: finding.before, after: finding.after), default: Count()].add(finding)
        guard !query.isJSON else { return }
        newest.append(finding)
        // Sorted only when four times as many are held as are shown.
        if newest.count >= 4 * Self.limitShown { newest = shown }
    }

    /// The most frequent first.
    var sortedCounts: [(change: Change, count: Count)] {
        counts.sorted { left, right in
            if left.value.requests != right.value.requests { return left.value.requests > right.value.requests }
            return (left.key.before, left.key.after) < (right.key.before, right.key.after)
        }.map { ($0.key, $0.value) }
    }

    /// Newest first.
    private var shown: [WhatIf.Finding] {
        Array(newest.sorted { ($0.requestedAt, $0.id) > ($1.requestedAt, $1.id) }.prefix(Self.limitShown))
    }

    // MARK: For people

    var lines: [String] {
        var card = CardLines()
        card.text("policy", "\(shownText(query.policy.version)), \(shownText(query.path))")
        let period = query.period.words
        card.text(
            "requests",
            "\(grouped(Int64(same + changed.requests))) that a policy decided" + (period.isEmpty ? "" : ", \(period)"))
        card.text("same answer", grouped(Int64(same)))
        card.text("other answer", grouped(Int64(changed.requests)))
        if !changed.amounts.isEmpty { card.text("at stake", Self.money(changed)) }
        if unreadable > 0 {
            card.text("not asked", "\(grouped(Int64(unreadable))) records that this version cannot read")
        }
        for (change, count) in sortedCounts {
            card.blank()
            let requests = "\(grouped(Int64(count.requests))) request\(count.requests == 1 ? "" : "s")"
            card.text(requests, "\(change.before) -> \(change.after)", hanging: 4)
            if !count.amounts.isEmpty { card.text("", "at stake: \(Self.money(count))", hanging: 4) }
        }
        addNewest(&card)
        return card.lines
    }

    private func addNewest(_ card: inout CardLines) {
        let shown = shown
        guard !shown.isEmpty else { return }
        card.blank()
        var label = "changed"
        for finding in shown {
            let product = [
                finding.productId.map { shownText("\($0)") },
                finding.atStake.map { shownMoney($0.value, $0.currency.map { "\($0)" }) },
            ].compactMap { $0 }.joined(separator: ", ")
            card.text(
                label,
                "\(shownTime(finding.requestedAt))  \(shownText("\(finding.originalTransactionId)"))  \(product)",
                hanging: 4)
            card.text(
                "",
                "    \(finding.before)\(Self.rule(finding.ruleBefore)) -> \(finding.after)\(Self.rule(finding.ruleAfter))",
                hanging: 8)
            label = ""
        }
        let more = changed.requests - shown.count
        if more > 0 { card.text("", "and \(grouped(Int64(more))) before: --format json has all") }
    }

    private static func rule(_ name: Text?) -> String { name.map { " (\(shownText("\($0)")))" } ?? "" }

    private static func money(_ count: Count) -> String {
        count.sortedAmounts.map { shownMoney($0.value, "\($0.currency)") }.joined(separator: ", ")
    }
}
