// What can happen to a customer, one story each: the notifications, and when the card is made.

struct Story: Sendable, CustomStringConvertible {
    /// The name of its card in the folder Cards.
    let name: String
    let tells: @Sendable (InspectDesk) throws -> Void
    var asks = ["subscription", "2000000000000001"]
    var asked = "2026-11-22T12:00"

    var description: String { name }

    init(
        _ name: String, asks: [String] = ["subscription", "2000000000000001"],
        _ tells: @escaping @Sendable (InspectDesk) throws -> Void
    ) {
        self.name = name
        self.tells = tells
        self.asks = asks
    }

    static let id = "2000000000000001"
    private static let family = ("inAppOwnershipType", "'FAMILY_SHARED'")

    private static func month(_ number: Int) -> String { "2026-\(number < 10 ? "0" : "")\(number)-10T09:30" }

    private static func renewals(_ months: ClosedRange<Int>, _ desk: InspectDesk) throws {
        for number in months {
            let type = number == months.lowerBound ? ("SUBSCRIBED", "INITIAL_BUY") : ("DID_RENEW", nil)
            try desk.tell(
                id,
                told(
                    type.0, type.1, on: month(number),
                    bought("20000000000001\(number < 10 ? "0" : "")\(number)", month(number), to: month(number + 1)),
                    renewal(1, at: month(number + 1))))
        }
    }

    static let all = [
        Story("active-monthly") { try renewals(1...11, $0) },
        Story("trial") { desk in
            let trial = bought("t1", "2026-11-20T08:00", to: "2026-11-27T08:00").with(
                ("offerType", "1"), ("offerDiscountType", "'FREE_TRIAL'"), ("price", "0"))
            try desk.tell(
                id, told("SUBSCRIBED", "INITIAL_BUY", on: "2026-11-20T08:00", trial, renewal(1, at: "2026-11-27T08:00"))
            )
        },
        Story("grace") { desk in
            try renewals(6...10, desk)
            let failing = renewal(1, at: month(11)).with(
                ("isInBillingRetryPeriod", "true"), ("gracePeriodExpiresDate", "\(at("2026-11-26T09:30"))"))
            try desk.tell(
                id,
                told(
                    "DID_FAIL_TO_RENEW", "GRACE_PERIOD", on: "2026-11-10T09:31",
                    bought("2000000000000110", month(10), to: month(11)), failing))
        },
        Story("billing-retry") { desk in
            try renewals(8...10, desk)
            try desk.tell(
                id,
                told(
                    "DID_FAIL_TO_RENEW", on: "2026-11-10T09:31", bought("2000000000000110", month(10), to: month(11)),
                    renewal(1, at: month(11)).with(("isInBillingRetryPeriod", "true"))))
        },
        Story("retry-over", asks: ["subscription", id, "--at", "2027-02-01"]) { desk in
            try renewals(8...10, desk)
            try desk.tell(
                id,
                told(
                    "DID_FAIL_TO_RENEW", on: "2026-11-10T09:31", bought("2000000000000110", month(10), to: month(11)),
                    renewal(1, at: month(11)).with(("isInBillingRetryPeriod", "true"))))
        },
        Story("not-renewed") { desk in try renewals(8...9, desk) },
        Story("before-a-purchase", asks: ["subscription", id, "--at", "2026-01-01"]) { try renewals(9...11, $0) },
        Story("past", asks: ["subscription", id, "--at", "2026-06-20"]) { desk in
            let trial = bought("p1", month(6), to: month(7)).with(
                ("offerType", "1"), ("offerDiscountType", "'FREE_TRIAL'"))
            let last = bought("p3", "2026-08-10T09:30:05", to: month(9))
            try desk.tell(
                id, told("SUBSCRIBED", "INITIAL_BUY", on: month(6), trial, renewal(1, at: month(7))),
                told("DID_RENEW", on: month(7), bought("p2", month(7), to: month(8)), renewal(1, at: month(8))),
                told("DID_RENEW", on: "2026-08-10T09:30:05", last, renewal(1, at: month(9))),
                told(
                    "DID_CHANGE_RENEWAL_STATUS", "AUTO_RENEW_DISABLED", on: "2026-09-01", last,
                    renewal(0, at: month(9))))
        },
        Story("refunded-before-it-began", asks: ["subscription", id, "--at", "2026-01-01"]) { desk in
            let refunded = bought("1", month(10), to: month(11)).with(
                ("revocationDate", "\(at("2025-12-31T10:00"))"), ("revocationReason", "0"))
            try desk.tell(id, told("REFUND", on: "2026-11-14T10:00", refunded, renewal(1, at: month(11))))
        },
        Story("expired-after-lapses") { desk in
            try renewals(1...2, desk)
            try desk.tell(
                id,
                told(
                    "SUBSCRIBED", "RESUBSCRIBE", on: "2026-05-02", bought("r1", "2026-05-02", to: "2026-06-02"),
                    renewal(1, at: "2026-06-02")),
                told(
                    "SUBSCRIBED", "RESUBSCRIBE", on: "2026-08-15", bought("r2", "2026-08-15", to: "2026-09-15"),
                    renewal(1, at: "2026-09-15")),
                told(
                    "DID_CHANGE_RENEWAL_STATUS", "AUTO_RENEW_DISABLED", on: "2026-09-01T11:11:11",
                    bought("r2", "2026-08-15", to: "2026-09-15"), renewal(0, at: "2026-09-15")),
                told(
                    "EXPIRED", "VOLUNTARY", on: "2026-09-15", bought("r2", "2026-08-15", to: "2026-09-15"),
                    renewal(0, at: "2026-09-15").with(("expirationIntent", "1"))))
        },
        Story("refunded") { desk in
            try renewals(10...11, desk)
            let refunded = bought("2000000000000111", month(11), to: month(12)).with(
                ("revocationDate", "\(at("2026-11-14T10:00"))"), ("revocationReason", "1"))
            try desk.tell(id, told("REFUND", on: "2026-11-14T10:00", refunded, renewal(1, at: month(12))))
        },
        Story("upgraded") { desk in
            try renewals(9...11, desk)
            let upgraded = bought("2000000000000111", month(11), to: month(12)).with(("isUpgraded", "true"))
            let yearly = bought("y1", "2026-11-15T18:00", to: "2027-11-15T18:00").with(
                ("productId", "'pro.yearly'"), ("price", "99990"))
            let renews = renewal(1, at: "2027-11-15T18:00").with(
                ("autoRenewProductId", "'pro.yearly'"), ("renewalPrice", "99990"))
            try desk.tell(
                id, told("DID_CHANGE_RENEWAL_PREF", "UPGRADE", on: "2026-11-15T18:00", upgraded),
                told("DID_CHANGE_RENEWAL_PREF", "UPGRADE", on: "2026-11-15T18:00:01", yearly, renews))
        },
        Story("superseded") { desk in
            try renewals(9...11, desk)
            let upgraded = bought("2000000000000111", month(11), to: month(12)).with(("isUpgraded", "true"))
            try desk.tell(id, told("DID_CHANGE_RENEWAL_PREF", "UPGRADE", on: "2026-11-15T18:00", upgraded))
        },
        Story("commitment") { desk in
            for period in 1...4 {
                let (from, to) = (
                    "2026-\(period + 7 < 10 ? "0" : "")\(period + 7)-05",
                    period == 4 ? "2026-12-05" : "2026-\(period + 8 < 10 ? "0" : "")\(period + 8)-05"
                )
                let plan = bought("c\(period)", from, to: to).with(
                    ("billingPlanType", "'MONTHLY'"),
                    (
                        "commitmentInfo",
                        "{'billingPeriodNumber':\(period),'totalBillingPeriods':12,'commitmentExpiresDate':\(at("2027-08-05")),'commitmentPrice':119880}"
                    ))
                let info = renewal(1, at: to).with(
                    ("renewalBillingPlanType", "'MONTHLY'"),
                    ("commitmentInfo", "{'commitmentAutoRenewStatus':0}"))
                try desk.tell(
                    id,
                    told(
                        period == 1 ? "SUBSCRIBED" : "DID_RENEW", period == 1 ? "INITIAL_BUY" : nil, on: from, plan,
                        info))
            }
        },
        Story("commitment-last-period") { desk in
            let plan = bought("c12", "2026-11-05", to: "2026-12-05").with(
                ("billingPlanType", "'MONTHLY'"),
                (
                    "commitmentInfo",
                    "{'billingPeriodNumber':12,'totalBillingPeriods':12,'commitmentExpiresDate':\(at("2026-12-05"))}"
                ))
            let info = renewal(1, at: "2026-12-05").with(("commitmentInfo", "{'commitmentAutoRenewStatus':0}"))
            try desk.tell(id, told("DID_RENEW", on: "2026-11-05", plan, info))
        },
        Story("lifetime") { desk in
            let lifetime = bought(id, "2026-03-03T03:03", to: nil).with(
                ("productId", "'pro.lifetime'"), ("type", "'Non-Consumable'"), ("price", "149000"),
                ("currency", "'EUR'"))
            try desk.tell(id, told("ONE_TIME_CHARGE", on: "2026-03-03T03:03", lifetime))
        },
        Story("pass") { desk in
            let pass = bought(id, "2026-11-01T12:00", to: nil).with(
                ("productId", "'pass.30'"), ("type", "'Non-Renewing Subscription'"), ("price", "600000"),
                ("currency", "'JPY'"))
            try desk.tell(id, told("ONE_TIME_CHARGE", on: "2026-11-01T12:00", pass))
        },
        Story("family-shared") { desk in
            try desk.tell(
                id,
                told(
                    "SUBSCRIBED", "INITIAL_BUY", on: month(10), bought("f1", month(10), to: month(11)).with(family),
                    renewal(1, at: month(11))),
                told(
                    "DID_RENEW", on: month(11), bought("f2", month(11), to: month(12)).with(family),
                    renewal(1, at: month(12))))
        },
        Story("pending-changes") { desk in
            try renewals(10...11, desk)
            try desk.tell(
                id,
                told(
                    "PRICE_INCREASE", "PENDING", on: "2026-11-16", bought("2000000000000111", month(11), to: month(12)),
                    renewal(1, at: month(12)).with(
                        ("priceIncreaseStatus", "0"), ("renewalPrice", "12990"), ("autoRenewProductId", "'pro.yearly'"))
                ))
        },
        Story(
            "content",
            asks: [
                "subscription", id, "--content", "2026-02-01,2026-03-01,2026-04-01,2026-05-01,2026-06-01,2026-07-01",
            ]
        ) { desk in
            for (number, span) in [
                ("2026-02-20", "2026-03-20"), ("2026-03-20", "2026-04-20"), ("2026-06-17", "2026-07-17"),
            ].enumerated() {
                try desk.tell(
                    id,
                    told(number == 1 ? "DID_RENEW" : "SUBSCRIBED", on: span.0, bought("m\(number)", span.0, to: span.1))
                )
            }
        },
        Story("account", asks: ["account", InspectDesk.token.uppercased()]) { desk in
            try renewals(9...11, desk)
            func commitment(_ period: Int) -> Payload {
                bought("c\(period)", "2026-11-05", to: "2026-12-05").with(
                    ("bundleId", "'com.example.tv'"), ("productId", "'tv.monthly'"), ("billingPlanType", "'MONTHLY'"),
                    ("commitmentInfo", "{'billingPeriodNumber':\(period),'totalBillingPeriods':12}"))
            }
            for (id, period) in [("2000000000000004", 3), ("2000000000000005", 12)] {
                try desk.tell(
                    id,
                    told(
                        "DID_RENEW", on: "2026-11-05", commitment(period),
                        renewal(1, at: "2026-12-05").with(("commitmentInfo", "{'commitmentAutoRenewStatus':0}"))))
            }
            try desk.tell(
                "2000000000000006",
                told(
                    "DID_FAIL_TO_RENEW", on: "2026-11-10T09:31", bought("g1", month(10), to: month(11)),
                    renewal(1, at: month(11)).with(("isInBillingRetryPeriod", "true"))),
                told(
                    "REFUND", on: "2026-11-20",
                    bought("g1", month(10), to: month(11)).with(("revocationDate", "\(at("2026-11-20"))")),
                    renewal(1, at: month(11))))
            let tv = bought("tv1", "2026-11-01", to: "2026-12-01").with(
                ("bundleId", "'com.example.tv'"), ("productId", "'tv.monthly'"))
            try desk.tell(
                "2000000000000002",
                told(
                    "SUBSCRIBED", "INITIAL_BUY", on: "2026-11-01", tv,
                    renewal(1, at: "2026-12-01").with(("autoRenewProductId", "'tv.monthly'"))))
            let yearly = bought("y1", "2025-11-01", to: "2026-11-01").with(("productId", "'pro.yearly'"))
            try desk.tell(
                "2000000000000003",
                told(
                    "EXPIRED", "VOLUNTARY", on: "2026-11-01", yearly,
                    renewal(0, at: "2026-11-01").with(("expirationIntent", "1"))))
        },
    ]
}
