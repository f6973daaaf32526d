import Testing

@Suite struct `The next payment` {
    @Test(
        arguments: [
            ("2026-10-20", renewal(1, at: "2026-11-10T09:30"), "and renews then.", "yes, 2026-11-10 09:30"),
            ("2026-11-10T10:00", renewal(1, at: "2026-11-10T09:30"), "may be late", "yes, due since 2026-11-10 09:30"),
            (
                "2026-10-20", renewal(0, at: "2026-11-10T09:30"), "and renewal is turned off.",
                "no: renewal is turned off"
            ),
            (
                "2026-10-20", renewal(1, at: "2026-11-10T09:30").with(("priceIncreaseStatus", "0")),
                "and ends then, unless the customer agrees", "only if the customer agrees"
            ),
            (
                "2026-10-20", renewal(1, at: "2026-11-10T09:30").with(("expirationIntent", "4")),
                "and Apple has announced that it ends then.", "no: Apple has announced that it ends"
            ),
            (
                "2026-10-20", renewal(1, at: "2026-11-10T09:30").with(("isInBillingRetryPeriod", "true")),
                "attempts to bill the renewal fail.", "yes, once it can be billed"
            ),
            ("2026-11-20", renewal(1, at: "2026-11-10T09:30"), "no news of a renewal has arrived.", nil),
            (
                "2026-11-20", renewal(1, at: "2026-11-10T09:30").with(("expirationIntent", "3")),
                "did not agree to the higher price.", nil
            ),
        ] as [(String, Payload, String, String?)])
    func `is told in the words of the rule that expects it`(time: String, info: Payload, why: String, renews: String?)
        throws
    {
        let desk = try InspectDesk()
        try desk.tell(
            Story.id,
            told("PRICE_CHANGE", on: "2026-10-11", bought("1", "2026-10-10T09:30", to: "2026-11-10T09:30"), info))
        let answer = try desk.inspect(["subscription", Story.id, "--at", time])
        // On one line, because it does not matter where lines are wrapped.
        let words = answer.lines.split(whereSeparator: { $0 == " " || $0 == "\n" }).joined(separator: " ")
        #expect(words.contains(why), "\(answer.lines)")
        let line = answer.lines.split(separator: "\n").first { $0.hasPrefix("renews") }
        #expect((line != nil) == (renews != nil), "\(answer.lines)")
        if let renews { #expect(line?.contains(renews) == true, "\(answer.lines)") }
    }
}
