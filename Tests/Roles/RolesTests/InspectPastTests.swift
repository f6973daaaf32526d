import Platform
import Testing

/// Two months of a subscription. Its renewal info came in the second.
@Suite struct `A past instant of a subscription` {
    private let first = bought("1", "2026-09-10T09:30", to: "2026-10-10T09:30")
    private let second = bought("2", "2026-10-10T09:30:05", to: "2026-11-10T09:30")
    private let off = renewal(0, at: "2026-11-10T09:30")

    private func desk(_ second: Payload, _ info: Payload?, on day: String = "2026-10-20") throws -> InspectDesk {
        let desk = try InspectDesk()
        try desk.tell(
            Story.id,
            told("SUBSCRIBED", "INITIAL_BUY", on: "2026-09-10T09:30", first, renewal(1, at: "2026-10-10T09:30")),
            told("DID_RENEW", on: "2026-10-10T09:30:05", second),
            told("PRICE_CHANGE", on: day, second, info))
        try desk.wait(until: "2026-10-22")
        return desk
    }

    private func card(_ desk: InspectDesk, at time: String) throws -> String {
        let answer = try desk.inspect(["subscription", Story.id, "--at", time])
        #expect(answer.code == .done)
        return answer.lines
    }

    /// Where lines are wrapped does not matter.
    private func oneLine(_ card: String) -> String {
        card.split(whereSeparator: { $0 == " " || $0 == "\n" }).joined(separator: " ")
    }

    @Test(arguments: [
        renewal(0, at: "2026-11-10T09:30"), renewal(1, at: "2026-11-10T09:30"),
        renewal(1, at: "2026-11-10T09:30").with(("isInBillingRetryPeriod", "true")),
        renewal(1, at: "2026-11-10T09:30").with(("priceIncreaseStatus", "0"), ("autoRenewProductId", "'pro.yearly'")),
    ])
    func `is not explained with what was told of a later period`(info: Payload) throws {
        let desk = try desk(second, info)
        let paid = try card(desk, at: "2026-09-20")
        let why =
            "why paid until 2026-10-10 09:30, and renewed after that. Source: SUBSCRIBED INITIAL_BUY of 2026-09-10 09:30, "
            + "then DID_RENEW of 2026-10-10 09:30:05 next"
        #expect(oneLine(paid).contains(why), "\(paid)")
        #expect(!paid.contains("\nrenews") && !paid.contains("\npending"), "\(paid)")
        let between = try card(desk, at: "2026-10-10T09:30:01Z")
        #expect(
            oneLine(between).contains("the period ended 2026-10-10 09:30, and it was renewed after that"), "\(between)")
    }

    @Test func `says what followed as such, and what is still to come as to come`() throws {
        let lines = try card(try desk(second, off), at: "2026-09-20").split(separator: "\n")
        let next = try #require(lines.firstIndex { $0.hasPrefix("next") })
        #expect(
            Array(lines[next...].prefix(3)) == [
                "next          2026-10-10 09:30  EXPIRED (voluntary), may not use it",
                "              2026-10-10 09:30:05  ACTIVE, may use it, with the next purchase",
                "              2026-11-10 09:30  if nothing else arrives: EXPIRED (voluntary),",
            ])
        #expect(
            oneLine(lines.joined(separator: "\n")).contains(
                "as of 2026-09-20 00:00, as asked, with all that is known now, also later notifications state"))
    }

    @Test func `is not said to be past when the clock has not come so far`() throws {
        let desk = try desk(second, off)
        let now = try card(desk, at: "2026-10-22")
        #expect(
            !now.contains("as of  ") && oneLine(now).contains("paid until 2026-11-10 09:30, and renewal is turned off"))
    }

    @Test func `names a purchase that came later or is of another product, for no renewal`() throws {
        let late = bought("2", "2026-10-19", to: "2026-11-19")
        #expect(
            oneLine(try card(try desk(late, off), at: "2026-09-20")).contains(
                "paid until 2026-10-10 09:30, and the next purchase is of 2026-10-19 00:00."))
        let yearly = second.with(("productId", "'pro.yearly'"))
        #expect(
            oneLine(try card(try desk(yearly, off), at: "2026-09-20")).contains(
                "paid until 2026-10-10 09:30, and the next purchase is of 2026-10-10 09:30:05."))
    }

    @Test func `of a purchase that was upgraded names the one that took its place`() throws {
        let desk = try desk(second, nil)
        try desk.tell(Story.id, told("UPGRADE", on: "2026-10-23", first.with(("isUpgraded", "true"))))
        #expect(
            oneLine(try card(desk, at: "2026-09-20")).contains(
                "moved to another product 2026-10-23 00:00, and the next purchase is of 2026-10-10 09:30:05."))
    }

    @Test func `in a grace that was told of this period is still explained with it`() throws {
        let desk = try InspectDesk()
        let failing = renewal(1, at: "2026-10-10T09:30").with(
            ("isInBillingRetryPeriod", "true"), ("gracePeriodExpiresDate", "\(at("2026-10-26T09:30"))"))
        try desk.tell(
            Story.id, told("DID_FAIL_TO_RENEW", "GRACE_PERIOD", on: "2026-10-10T09:31", first, failing),
            told("DID_RENEW", on: "2026-10-20", bought("2", "2026-10-20", to: "2026-11-20")))
        try desk.wait(until: "2026-10-22")
        let card = oneLine(try card(desk, at: "2026-10-15"))
        #expect(
            card.contains("grants grace meanwhile. Source: DID_FAIL_TO_RENEW GRACE_PERIOD of 2026-10-10 09:31 next"))
        #expect(card.contains("renews yes, once it can be billed"))
    }
}
