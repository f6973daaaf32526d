import JSON
import Simulation
import Testing

/// One interval in readable form.
private struct Expected: Equatable, CustomStringConvertible {
    let rule: AccessInterval.Rule
    let from: Int64
    let until: Int64?
    var description: String { "\(rule) \(from)..<\(until.map(String.init) ?? "")" }

    init(_ rule: AccessInterval.Rule, _ from: Int64, _ until: Int64?) {
        self.rule = rule
        self.from = from
        self.until = until
    }

    init(_ interval: AccessInterval) { self.init(interval.rule, interval.from, interval.until) }
}

/// A life, and dates in it.
private struct Life {
    let notifications: [SimulatedNotification]
    let truth: SubscriptionTruth

    init(_ story: Story, seed: UInt64 = 1, subscriber: Int = 0) throws {
        let life = try simulation(of: story, seed: seed).life(of: subscriber)
        notifications = life.notifications
        truth = life.truth.subscriptions[0]
    }

    /// The first one of a kind, from a place on.
    func first(_ kind: String) throws -> SimulatedNotification {
        try #require(notifications.first { $0.kind == kind }, "\(kind) does not occur")
    }

    func date(_ name: String, of kind: String) throws -> Int64 {
        try #require(try first(kind).transactionJSON?[name]?.integer)
    }

    /// The intervals that end after `time`, or begin then.
    func intervals(from time: Int64) -> [Expected] {
        truth.intervals.filter { $0.until ?? .max > time }.map(Expected.init)
    }
}

@Suite struct `The truth` {
    @Test func `of a cancelled trial is the trial`() throws {
        let life = try Life(.trialCancelled)
        let start = try life.date("purchaseDate", of: "SUBSCRIBED/INITIAL_BUY")
        #expect(life.intervals(from: 0) == [Expected(.trial, start, start + 7 * day)])
        #expect(life.truth.state == "expired" && life.truth.reason == "voluntary" && life.truth.autoRenew == false)
    }

    @Test func `of grace that recovers is unbroken, in the old cycle`() throws {
        let life = try Life(.graceRecovered)
        let due = try life.date("expiresDate", of: "DID_FAIL_TO_RENEW/GRACE_PERIOD")
        let recovered = try life.date("purchaseDate", of: "DID_RENEW/BILLING_RECOVERY")
        let next = try life.date("expiresDate", of: "DID_RENEW/BILLING_RECOVERY")
        #expect(
            life.intervals(from: due).prefix(2) == [Expected(.grace, due, recovered), Expected(.paid, recovered, next)])
    }

    @Test func `of grace that recovers late has a gap after grace`() throws {
        let life = try Life(.graceRecoveredLate)
        let due = try life.date("expiresDate", of: "DID_FAIL_TO_RENEW/GRACE_PERIOD")
        let grace = try #require(
            try life.first("DID_FAIL_TO_RENEW/GRACE_PERIOD").renewalJSON?["gracePeriodExpiresDate"]?.integer)
        let recovered = try life.date("purchaseDate", of: "DID_RENEW/BILLING_RECOVERY")
        let next = try life.date("expiresDate", of: "DID_RENEW/BILLING_RECOVERY")
        #expect(recovered > grace)
        #expect(
            life.intervals(from: due).prefix(2) == [Expected(.grace, due, grace), Expected(.paid, recovered, next)])
        #expect(!life.truth.hasAccess(at: grace) && life.truth.hasAccess(at: grace - 1))
    }

    @Test func `of a customer who cancels in grace ends there`() throws {
        let life = try Life(.graceCancelled)
        let due = try life.date("expiresDate", of: "DID_FAIL_TO_RENEW/GRACE_PERIOD")
        let told = try life.first("DID_CHANGE_RENEWAL_STATUS/AUTO_RENEW_DISABLED").innerSignedDate
        #expect(life.intervals(from: due) == [Expected(.grace, due, told)])
        #expect(life.truth.state == "expired" && life.truth.reason == "voluntary")
    }

    @Test func `of a lost retry ends with the period, for billing`() throws {
        let life = try Life(.retryLost)
        let due = try life.date("expiresDate", of: "DID_FAIL_TO_RENEW")
        #expect(life.truth.intervals.last?.until == due)
        #expect(life.truth.state == "expired" && life.truth.reason == "billing")
        let told = try life.first("EXPIRED/BILLING_RETRY").at
        #expect((57 * day...60 * day).contains(told - due))
    }

    @Test func `of a commitment that fails stops at once and goes on from the recovery`() throws {
        let life = try Life(.commitmentRecovered)
        let told = try life.first("DID_FAIL_TO_RENEW").innerSignedDate
        let due = try life.date("expiresDate", of: "DID_FAIL_TO_RENEW")
        let recovered = try life.date("purchaseDate", of: "DID_RENEW/BILLING_RECOVERY")
        let stop = min(told, due)
        #expect(life.truth.intervals.contains { $0.until == stop })
        #expect(!life.truth.hasAccess(at: stop) && !life.truth.hasAccess(at: recovered - 1))
        #expect(life.truth.hasAccess(at: recovered))
    }

    @Test func `of a commitment that is cancelled lasts twelve months`() throws {
        let life = try Life(.commitmentCancelled)
        let cancelled = try life.first("DID_CHANGE_RENEWAL_STATUS/AUTO_RENEW_DISABLED")
        let info = try #require(cancelled.renewalJSON)
        #expect(
            info["autoRenewStatus"]?.integer == 1 && info["commitmentInfo"]?["commitmentAutoRenewStatus"]?.integer == 0)
        let start = try life.date("purchaseDate", of: "SUBSCRIBED/INITIAL_BUY")
        let end = try life.date("commitmentExpiresDate", inCommitmentOf: "SUBSCRIBED/INITIAL_BUY")
        #expect((365 * day...366 * day).contains(end - start))
        #expect(life.truth.intervals.count { $0.rule == .paid } == 12)
        #expect(life.truth.intervals.last?.until == end)
        #expect(life.truth.state == "expired" && life.truth.reason == "voluntary" && life.truth.commitmentPeriod == 12)
    }

    @Test func `of a refund ends at the refund`() throws {
        for story in [Story.refunded, .refundedProrated, .commitmentRefunded] {
            let life = try Life(story)
            let revoked = try life.date("revocationDate", of: "REFUND")
            let last = try #require(life.truth.intervals.last)
            #expect(last.until == revoked && last.revokedAt == revoked)
            #expect(life.truth.state == "revoked" && life.truth.reason == "refund")
        }
    }

    @Test func `of a reversed refund has a gap and then the rest`() throws {
        let life = try Life(.refundReversed)
        let revoked = try life.date("revocationDate", of: "REFUND")
        let end = try life.date("expiresDate", of: "REFUND_REVERSED")
        let back = try life.first("REFUND_REVERSED").at
        #expect(try life.first("REFUND_REVERSED").transactionJSON?["revocationDate"] == nil)
        #expect(life.intervals(from: revoked) == [Expected(.reinstated, back, end)])
        #expect(!life.truth.hasAccess(at: revoked) && life.truth.hasAccess(at: back))
    }

    @Test func `of a refunded earlier period leaves the customer in peace`() throws {
        let life = try Life(.refundOfEarlierPeriod)
        let refund = try life.first("REFUND")
        let id = try #require(refund.transactionJSON?["transactionId"]?.string)
        let row = try #require(life.truth.intervals.first { $0.transactionId == id })
        #expect(row.revokedAt == refund.transactionJSON?["revocationDate"]?.integer && row.until! < row.revokedAt!)
        #expect(life.truth.hasAccess(at: refund.at))
    }

    @Test func `of an upgrade moves to the new product at once`() throws {
        let life = try Life(.upgraded)
        let kind = "DID_CHANGE_RENEWAL_PREF/UPGRADE"
        let moved = try life.date("purchaseDate", of: kind)
        let before = try #require(life.truth.intervals.last { $0.from < moved })
        let after = try #require(life.truth.intervals.first { $0.from == moved })
        #expect(before.until == moved && before.productId.hasSuffix("plus.month"))
        #expect(after.productId.hasSuffix("premium.month") && after.revokedAt == nil)
    }

    @Test func `of a family has one subscription for each member`() throws {
        let truth = try simulation(of: .familyPurchaserRefunded).life(of: 0).truth
        #expect(truth.subscriptions.map(\.isFamilyShared) == [false, true, true])
        #expect(truth.subscriptions.map(\.reason) == ["refund", "family", "family"])
        #expect(truth.subscriptions[1].intervals.allSatisfy { $0.rule == .family || $0.rule == .leeway })
        #expect(truth.subscriptions[1].appAccountToken == nil)
        let left = try simulation(of: .familyMemberLeft).life(of: 0).truth
        #expect(left.subscriptions[1].state == "revoked" && left.subscriptions[0].reason == "voluntary")
    }

    @Test func `of one-time purchases knows an end only of a pass`() throws {
        let pass = try Life(.nonRenewing)
        let start = try pass.date("purchaseDate", of: "ONE_TIME_CHARGE")
        #expect(pass.intervals(from: 0) == [Expected(.pass, start, start + 30 * day)])
        #expect(pass.truth.state == "expired" && pass.truth.autoRenew == nil)
        let owned = try Life(.nonConsumable)
        #expect(owned.truth.intervals.map(\.until) == [nil] && owned.truth.state == "owned")
    }

    @Test func `of a price nobody consented to ends for the price`() throws {
        let life = try Life(.priceIgnored)
        #expect(life.truth.reason == "price")
        #expect(life.truth.intervals.last?.until == (try life.date("expiresDate", of: "EXPIRED/PRICE_INCREASE")))
    }

    @Test func `is well formed whenever the simulation ends`() throws {
        for months in [1, 3, 14, 36] as [Int64] {
            var configuration = configuration(seed: 5, subscribers: 300)
            configuration.end = start + months * 30 * day
            configuration.sandboxPerMille = 200
            let simulation = try Simulation(configuration)
            for subscriber in 0..<300 {
                let (notifications, truth) = simulation.life(of: subscriber)
                let told = Set(notifications.compactMap { $0.transactionJSON?["transactionId"]?.string })
                for subscription in truth.subscriptions {
                    let intervals = subscription.intervals
                    #expect(intervals.allSatisfy { $0.from < $0.until ?? .max && told.contains($0.transactionId) })
                    #expect(zip(intervals, intervals.dropFirst()).allSatisfy { $0.until ?? .max <= $1.from })
                    let hasAccess = subscription.hasAccess(at: configuration.end)
                    switch subscription.state {
                    // It renews seconds late: no notification has come yet.
                    case "active": #expect(hasAccess || intervals.last!.until! > configuration.end - minute)
                    case "grace", "owned": #expect(hasAccess)
                    default: #expect(!hasAccess, "\(truth.deeds)")
                    }
                }
            }
        }
    }

    @Test func `has lines that say all of it`() throws {
        let (_, truth) = try simulation(of: .familyMemberLeft).life(of: 0)
        let lines = try truth.lines.map { try JSONValue.read($0) }
        #expect(lines.count { $0["kind"]?.string == "did" } == truth.deeds.count)
        #expect(lines.count { $0["kind"]?.string == "access" } == truth.subscriptions.flatMap(\.intervals).count)
        let finals = lines.filter { $0["kind"]?.string == "final" }
        #expect(finals.map { $0["state"]?.string } == truth.subscriptions.map(\.state))
        #expect(finals.map { $0["access"]?.bool } == [false, false, false])
    }
}

extension Life {
    fileprivate func date(_ name: String, inCommitmentOf kind: String) throws -> Int64 {
        try #require(try first(kind).transactionJSON?["commitmentInfo"]?[name]?.integer)
    }
}
