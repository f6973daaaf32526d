import Foundation
import Testing

@testable import Entitlements

/// Rules.md, which lists the tests of each rule.
@Suite struct `The table of rules` {
    private struct Row {
        let name: String
        let heldBy: Substring
    }

    private static let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent()

    /// By section, in the order of the file.
    private func rows() throws -> [String: [Row]] {
        let text = try String(contentsOf: Self.folder.appendingPathComponent("Rules.md"), encoding: .utf8)
        var rows: [String: [Row]] = [:]
        var section = ""
        for line in text.split(separator: "\n") {
            if let title = line.wholeMatch(of: #/## ([A-Z]\.\d+): .*/#) { section = String(title.1) }
            let cells = line.split(separator: " | ", omittingEmptySubsequences: false)
            guard cells.count == 3, line.hasPrefix("| "), cells[0] != "| Row" else { continue }
            rows[section, default: []].append(Row(name: String(cells[0].dropFirst(2)), heldBy: cells[2].dropLast(2)))
        }
        return rows
    }

    private static let numbered = [
        "E.2": 4, "E.3": 7, "E.6": 17, "L.0": 25, "L.1": 27, "L.2": 21, "L.3": 14, "L.4": 30,
    ]

    private static let named = [
        "D.1": """
        SUBSCRIBED/INITIAL_BUY SUBSCRIBED/RESUBSCRIBE DID_RENEW DID_RENEW/BILLING_RECOVERY
        DID_CHANGE_RENEWAL_STATUS/AUTO_RENEW_DISABLED DID_CHANGE_RENEWAL_STATUS/AUTO_RENEW_ENABLED
        DID_CHANGE_RENEWAL_STATUS DID_CHANGE_RENEWAL_PREF/UPGRADE DID_CHANGE_RENEWAL_PREF/DOWNGRADE
        DID_CHANGE_RENEWAL_PREF OFFER_REDEEMED OFFER_REDEEMED/UPGRADE OFFER_REDEEMED/DOWNGRADE
        DID_FAIL_TO_RENEW/GRACE_PERIOD DID_FAIL_TO_RENEW GRACE_PERIOD_EXPIRED EXPIRED/VOLUNTARY EXPIRED/BILLING_RETRY
        EXPIRED/PRICE_INCREASE EXPIRED/PRODUCT_NOT_FOR_SALE EXPIRED PRICE_INCREASE/PENDING PRICE_INCREASE/ACCEPTED
        RENEWAL_EXTENDED
        """,
        "D.2": "REFUND REFUND_DECLINED REFUND_REVERSED REVOKE CONSUMPTION_REQUEST",
        "D.3": """
        ONE_TIME_CHARGE RENEWAL_EXTENSION/SUMMARY RENEWAL_EXTENSION/FAILURE EXTERNAL_PURCHASE_TOKEN/CREATED
        EXTERNAL_PURCHASE_TOKEN/ACTIVE_TOKEN_REMINDER EXTERNAL_PURCHASE_TOKEN/UNREPORTED RESCIND_CONSENT
        METADATA_UPDATE,MIGRATION,PRICE_CHANGE TEST unknown
        """,
        "D.4": """
        trial_to_paid trial_cancelled grace,recovered grace,recovered_late not_recovered,no_grace not_recovered,grace
        commitment,failed_payment,recovered commitment,failed_payment,lost commitment_cancelled_in_period_4 upgrade
        downgrade refund_of_current_period required_price_increase_ignored
        """,
        "E.4": """
        none:SUBSCRIBED active:DID_RENEW active:expiresDate,renewal_off active:DID_FAIL_TO_RENEW/GRACE_PERIOD
        active:DID_FAIL_TO_RENEW grace:BILLING_RECOVERY grace:its_end grace_or_retry:cancelled retry:BILLING_RECOVERY
        retry:day_60 active_or_grace:upgrade any:REFUND_of_the_newest any:REFUND_of_an_older_one
        revoked,refund:REFUND_REVERSED revoked,family:new_share expired_or_revoked:RESUBSCRIBE active:RENEWAL_EXTENDED
        """,
        "E.5": """
        which_period prior,upfront prior,commitment current,upfront current,commitment current,then_DID_RENEW prorated
        reversed money
        """,
        "E.8": "1 2 3 4 5 6 7 Table_6-1 Table_6-2",
        "E.16": """
        1 2 3 4 5 6 7 8 9 10 11 end_of_a_row state_1 state_2 state_3 state_4 state_5 state_6 state_7 state_8 state_9
        state_10 ended access_goes_on reason since runs appAccountToken entitlements autoRenew,renewsAt,renewalPrice
        pendingProductId,pendingBillingPlan commitment graceUntil retry billingPlan offer,price,currency introOfferUsed
        """,
    ]

    @Test func `has every row, once and in order`() throws {
        let rows = try rows()
        let numbered = Self.numbered.mapValues { (1...$0).map { "\($0)" } }
        // Blanks are removed from the names here.
        let named = Self.named.mapValues { $0.split { $0 == " " || $0 == "\n" }.map(String.init) }
        let expected = numbered.merging(named) { first, _ in first }
        #expect(Set(rows.keys) == Set(expected.keys))
        for (section, names) in expected {
            let found = rows[section]?.map {
                $0.name.replacing(", ", with: ",").replacing(": ", with: ":").replacing(" ", with: "_")
            }
            #expect(found == names, "section \(section)")
        }
    }

    @Test func `names tests and stories that exist, or says what a line is about instead`() throws {
        let files = try FileManager.default.contentsOfDirectory(atPath: Self.folder.path).filter {
            $0.hasSuffix(".swift")
        }
        let sources = try files.map {
            try String(contentsOf: Self.folder.appendingPathComponent($0), encoding: .utf8)
        }.joined()
        let tests = Set(sources.matches(of: #/func `([^`]+)`\(/#).map(\.1))
        let stories = Set(Fixture.names)
        var told: Set<String> = []
        for (section, rows) in try rows() {
            for row in rows {
                let named = row.heldBy.matches(of: #/(?:^|, )`([^`]+)`/#).map(\.1)
                let linked = row.heldBy.matches(of: #/\[([^\]]+)\]\(Fixtures/([^)]+)\.json\)/#)
                let isElsewhere = section.hasPrefix("L.") && row.heldBy.hasPrefix("– ")
                #expect(isElsewhere != (named.count + linked.count > 0), "no test is listed for \(section) \(row.name)")
                for test in named where !isElsewhere {
                    #expect(tests.contains(test), "\(section) \(row.name): no test `\(test)`")
                }
                for link in linked {
                    #expect(
                        link.1 == link.2 && stories.contains(String(link.1)),
                        "\(section) \(row.name): no story \(link.1)")
                    told.insert(String(link.1))
                }
            }
        }
        #expect(told == stories, "no row names these stories")
    }
}
