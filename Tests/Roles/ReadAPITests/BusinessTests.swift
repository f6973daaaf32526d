import Churn
import Contract
import JSON
import Platform
import Telemetry
import Testing

@testable import ReadAPI

@Suite struct `Gauges of the business` {
    private static let apps = [
        App(
            bundleId: "com.example.app", appAppleId: 1,
            entitlements: [
                App.Entitlement(name: "pro", productIds: ["pro", "both"]),
                App.Entitlement(name: "news", productIds: ["both"]),
            ], periods: [])
    ]

    private func board(_ rig: Rig) -> BusinessBoard {
        BusinessBoard(rig.metrics, .production, ProductGroups(Self.apps))
    }

    private func show(_ board: inout BusinessBoard, _ rig: Rig, now: Int64 = 1_771_000_000_000) {
        board.show(rig.shelf, at: rig.time.asItIs.elapsed(), now: now, dayOf: dayInUTC)
    }

    private func value(_ rig: Rig, _ name: String, _ labels: String = "") -> Double? {
        rig.metric("perennial_business_\(name)\(labels.isEmpty ? "" : "{\(labels)}")")
    }

    private func group(_ name: String, _ more: String) -> String { #"app="com.example.app",group="\#(name)",\#(more)"# }

    @Test func `show what the cells say, by app and entitlement`() throws {
        let rig = try Rig()
        try rig.write(
            .cell(Cell(day: "2026-02-10", product: "pro")),
            .cell(Cell(partition: 1, day: "2026-02-13", product: "pro")),
            .cell(Cell(day: "2026-02-12", product: "both", counts: #""activeDelta":7,"failed":3"#)),
            .cell(Cell(day: "2026-02-13", product: "else", currency: "EUR")),
            .cell(Cell(day: "2026-01-10", product: "pro", counts: #""failed":8,"recoveredWithin16":6"#, money: "")))
        rig.settle()
        var board = board(rig)
        show(&board, rig)
        #expect(value(rig, "subscriptions", group("pro", #"state="active""#)) == 2)
        #expect(value(rig, "subscriptions", group("news", #"state="active""#)) == 7)
        #expect(value(rig, "subscriptions", group("else", #"state="active""#)) == 1)
        #expect(value(rig, "monthly_revenue", group("pro", #"currency="USD""#)) == 19.98)
        #expect(value(rig, "monthly_revenue", group("else", #"currency="EUR""#)) == 9.99)
        #expect(value(rig, "day", group("pro", #"counter="started",day="today""#)) == 1)
        #expect(value(rig, "day", group("pro", #"counter="started",day="yesterday""#)) == 0)
        #expect(value(rig, "day", group("news", #"counter="failed",day="yesterday""#)) == 3)
        #expect(value(rig, "failures", group("pro", #"outcome="any""#)) == 8)
        #expect(value(rig, "failures", group("pro", #"outcome="recovered""#)) == 6)
    }

    @Test func `fall to zero when there is nothing more to show, and stay when the copy cannot be read`() throws {
        let rig = try Rig()
        try rig.write(.cell(Cell(currency: "EUR")))
        rig.settle()
        var board = board(rig)
        show(&board, rig)
        #expect(value(rig, "monthly_revenue", group("pro", #"currency="EUR""#)) == 9.99)
        try rig.write(.init(topic: .cells, key: Cell(currency: "EUR").key, value: nil, partition: 0), .cell(Cell()))
        rig.settle(steps: 2)
        show(&board, rig)
        #expect(value(rig, "monthly_revenue", group("pro", #"currency="EUR""#)) == 0)
        #expect(value(rig, "monthly_revenue", group("pro", #"currency="USD""#)) == 9.99)
        rig.following.close()
        show(&board, rig)
        #expect(value(rig, "monthly_revenue", group("pro", #"currency="USD""#)) == 9.99)
    }

    @Test func `have names for fifty groups, and one for all others`() throws {
        let rig = try Rig()
        for number in 10..<70 { try rig.write(.cell(Cell(product: "p\(number)"))) }
        rig.settle()
        var board = board(rig)
        show(&board, rig)
        #expect(value(rig, "subscriptions", group("p59", #"state="active""#)) == 1)
        #expect(value(rig, "subscriptions", group("p60", #"state="active""#)) == nil)
        #expect(value(rig, "subscriptions", #"app="other",group="other",state="active""#) == 10)
        // A group that sorts first comes too late for a name of its own.
        try rig.write(.cell(Cell(product: "a")))
        rig.settle(steps: 2)
        show(&board, rig)
        #expect(value(rig, "subscriptions", group("a", #"state="active""#)) == nil)
        #expect(value(rig, "subscriptions", group("p59", #"state="active""#)) == 1)
        #expect(value(rig, "subscriptions", #"app="other",group="other",state="active""#) == 11)
    }

    @Test func `show nothing of a copy that is still being built`() throws {
        let rig = try Rig()
        var board = board(rig)
        try rig.write((10..<28).map { .cell(Cell(day: "2026-01-\($0)", product: "pro")) })
        // More than the follower reads in one step.
        try rig.write((0..<5_000).map { .subscription(Record(id: "\($0)")) })
        var wasCounted = false
        for _ in 0..<30 where !rig.shelf.isAnswering(at: rig.time.asItIs.elapsed()) {
            wasCounted = wasCounted || rig.totals.reading != nil
            show(&board, rig)
            #expect(value(rig, "subscriptions", group("pro", #"state="active""#)) == nil)
            rig.settle(steps: 1)
        }
        #expect(wasCounted, "no step counted a part: nothing was tried")
        show(&board, rig)
        #expect(value(rig, "subscriptions", group("pro", #"state="active""#)) == 18)
    }

    private func refund(_ id: String, _ kind: String, deadline: Int64) -> Rig.Write {
        .init(
            topic: .consumption, key: "1",
            value: #"{"v":1,"id":"\#(id)","originalTransactionId":"1","transactionId":"t","kind":"\#(kind)","#
                + #""at":1771000000000,"deadline":\#(deadline),"requestReason":"OTHER","policy":null,"#
                + #""httpStatus":null,"errorCode":null,"attempt":null,"retryAt":null,"detail":null}"#)
    }

    @Test func `count refund requests that nothing has ended before their deadline`() throws {
        let rig = try Rig()
        let now: Int64 = 1_771_000_000_000
        var board = board(rig)
        #expect(value(rig, "refund_requests_open")?.isNaN == true)
        rig.settle()
        show(&board, rig, now: now)
        #expect(value(rig, "refund_requests_open") == 0 && value(rig, "refund_margin_seconds")?.isNaN == true)
        try rig.write(
            refund("late", "requested", deadline: now), refund("soon", "requested", deadline: now + 60_000),
            refund("sent", "requested", deadline: now + 1_000), refund("sent", "sent", deadline: now + 1_000),
            refund("no", "requested", deadline: now + 2_000), refund("no", "withheld", deadline: now + 2_000),
            refund("later", "withheld", deadline: now + 43_200_000),
            refund("later", "decided", deadline: now + 43_200_000))
        rig.settle(steps: 3)
        show(&board, rig, now: now)
        #expect(value(rig, "refund_requests_open") == 2 && value(rig, "refund_margin_seconds") == 60)
        show(&board, rig, now: now + 60_000)
        #expect(value(rig, "refund_requests_open") == 1)
    }
}
