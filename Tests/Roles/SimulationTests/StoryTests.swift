import JSON
import Simulation
import Testing

/// Apple's documented orders of notifications, with the status of each.
private struct Course: Sendable, CustomTestStringConvertible {
    let story: Story
    let kinds: [String]
    let place: Place

    enum Place {
        /// Nothing comes between them or after them.
        case end
        /// Nothing comes between them, but the story continues.
        case middle
        /// Refunds for the rest of a plan and renewals of others may come between.
        case scattered
    }

    var testDescription: String { "\(story)" }

    init(_ story: Story, _ place: Place, _ kinds: String...) {
        (self.story, self.place, self.kinds) = (story, place, kinds)
    }

    func holds(in told: [String]) -> Bool {
        switch place {
        case .end: told.suffix(kinds.count) == kinds[...]
        case .middle: told.contains(kinds)
        case .scattered: told.holds(inOrder: kinds)
        }
    }
}

private let courses = [
    Course(.trialToPaid, .middle, "SUBSCRIBED/INITIAL_BUY 1", "DID_RENEW 1"),
    Course(
        .trialCancelled, .end, "SUBSCRIBED/INITIAL_BUY 1", "DID_CHANGE_RENEWAL_STATUS/AUTO_RENEW_DISABLED 1",
        "EXPIRED/VOLUNTARY 2"),
    Course(.graceRecovered, .middle, "DID_FAIL_TO_RENEW/GRACE_PERIOD 4", "DID_RENEW/BILLING_RECOVERY 1"),
    Course(
        .graceRecoveredLate, .middle, "DID_FAIL_TO_RENEW/GRACE_PERIOD 4", "GRACE_PERIOD_EXPIRED 3",
        "DID_RENEW/BILLING_RECOVERY 1"),
    Course(.retryLost, .end, "DID_FAIL_TO_RENEW 3", "EXPIRED/BILLING_RETRY 2"),
    Course(.graceLost, .end, "DID_FAIL_TO_RENEW/GRACE_PERIOD 4", "GRACE_PERIOD_EXPIRED 3", "EXPIRED/BILLING_RETRY 2"),
    Course(.retryRecovered, .middle, "DID_FAIL_TO_RENEW 3", "DID_RENEW/BILLING_RECOVERY 1"),
    Course(
        .graceCancelled, .end, "DID_FAIL_TO_RENEW/GRACE_PERIOD 4", "DID_CHANGE_RENEWAL_STATUS/AUTO_RENEW_DISABLED 2",
        "EXPIRED/VOLUNTARY 2"),
    Course(.commitmentRecovered, .middle, "DID_FAIL_TO_RENEW 3", "DID_RENEW/BILLING_RECOVERY 1"),
    Course(.commitmentLost, .end, "DID_FAIL_TO_RENEW 3", "EXPIRED/BILLING_RETRY 2"),
    Course(
        .commitmentCancelled, .end, "SUBSCRIBED/INITIAL_BUY 1", "DID_RENEW 1", "DID_RENEW 1", "DID_RENEW 1",
        "DID_CHANGE_RENEWAL_STATUS/AUTO_RENEW_DISABLED 1", "DID_RENEW 1", "DID_RENEW 1", "DID_RENEW 1", "DID_RENEW 1",
        "DID_RENEW 1", "DID_RENEW 1", "DID_RENEW 1", "DID_RENEW 1", "EXPIRED/VOLUNTARY 2"),
    Course(.upgraded, .scattered, "SUBSCRIBED/INITIAL_BUY 1", "DID_CHANGE_RENEWAL_PREF/UPGRADE 1", "DID_RENEW 1"),
    Course(.downgraded, .middle, "DID_CHANGE_RENEWAL_PREF/DOWNGRADE 1", "DID_RENEW 1"),
    Course(.changeDropped, .middle, "DID_CHANGE_RENEWAL_PREF/DOWNGRADE 1", "DID_CHANGE_RENEWAL_PREF 1", "DID_RENEW 1"),
    Course(.refunded, .end, "CONSUMPTION_REQUEST 1", "REFUND 5", "DID_CHANGE_RENEWAL_STATUS/AUTO_RENEW_DISABLED 5"),
    Course(
        .refundReversed, .end, "CONSUMPTION_REQUEST 1", "REFUND 5",
        "DID_CHANGE_RENEWAL_STATUS/AUTO_RENEW_DISABLED 5", "REFUND_REVERSED 1", "EXPIRED/VOLUNTARY 2"),
    Course(.refundDeclined, .middle, "CONSUMPTION_REQUEST 1", "REFUND_DECLINED 1", "DID_RENEW 1"),
    Course(.refundOfEarlierPeriod, .middle, "DID_RENEW 1", "CONSUMPTION_REQUEST 1", "REFUND 1", "DID_RENEW 1"),
    Course(.priceIgnored, .end, "PRICE_INCREASE/PENDING 1", "EXPIRED/PRICE_INCREASE 2"),
    Course(.priceAccepted, .middle, "PRICE_INCREASE/PENDING 1", "PRICE_INCREASE/ACCEPTED 1", "DID_RENEW 1"),
    Course(.priceWithoutConsent, .middle, "PRICE_INCREASE/ACCEPTED 1", "DID_RENEW 1"),
    Course(.priceCancelled, .end, "PRICE_INCREASE/PENDING 1", "DID_CHANGE_RENEWAL_STATUS 1", "EXPIRED/VOLUNTARY 2"),
    Course(.productNotForSale, .end, "EXPIRED/PRODUCT_NOT_FOR_SALE 2"),
    Course(.endedForAnotherReason, .end, "EXPIRED 2"),
    Course(
        .cancelledAndSaved, .middle, "DID_CHANGE_RENEWAL_STATUS/AUTO_RENEW_DISABLED 1",
        "DID_CHANGE_RENEWAL_STATUS/AUTO_RENEW_ENABLED 1", "DID_RENEW 1"),
    Course(.resubscribed, .middle, "EXPIRED/VOLUNTARY 2", "SUBSCRIBED/RESUBSCRIBE 1", "DID_RENEW 1"),
    Course(.winBack, .middle, "EXPIRED/VOLUNTARY 2", "SUBSCRIBED/RESUBSCRIBE 1", "DID_RENEW 1"),
    Course(.promotionalOffer, .middle, "OFFER_REDEEMED 1", "DID_RENEW 1"),
    Course(.offerUpgrade, .scattered, "OFFER_REDEEMED/UPGRADE 1", "DID_RENEW 1"),
    Course(.offerDowngrade, .middle, "OFFER_REDEEMED/DOWNGRADE 1", "DID_RENEW 1"),
    Course(
        .familyMemberLeft, .scattered, "SUBSCRIBED/INITIAL_BUY 1", "SUBSCRIBED/INITIAL_BUY 1", "REVOKE 5", "DID_RENEW 1"
    ),
    Course(.familyPurchaserRefunded, .end, "CONSUMPTION_REQUEST 1", "REFUND 5", "REVOKE 5", "REVOKE 5"),
    Course(.extended, .middle, "RENEWAL_EXTENDED 1", "DID_RENEW 1"),
    Course(.massExtension, .middle, "RENEWAL_EXTENDED 1", "RENEWAL_EXTENSION/SUMMARY", "DID_RENEW 1"),
    Course(.extensionFailed, .middle, "RENEWAL_EXTENSION/FAILURE 1", "DID_RENEW 1"),
    Course(.consumableRefunded, .end, "ONE_TIME_CHARGE", "CONSUMPTION_REQUEST", "REFUND"),
    Course(.nonConsumableShared, .end, "ONE_TIME_CHARGE", "ONE_TIME_CHARGE", "REVOKE"),
    Course(.nonRenewing, .end, "ONE_TIME_CHARGE"),
    Course(
        .externalPurchase, .end, "EXTERNAL_PURCHASE_TOKEN/CREATED", "EXTERNAL_PURCHASE_TOKEN/ACTIVE_TOKEN_REMINDER",
        "EXTERNAL_PURCHASE_TOKEN/UNREPORTED"),
    Course(.consentRescinded, .end, "RESCIND_CONSENT"),
    Course(.metadataUpdated, .middle, "METADATA_UPDATE 1"),
    Course(.migrated, .middle, "MIGRATION 1"),
    Course(.priceChanged, .middle, "PRICE_CHANGE 1"),
    Course(.test, .end, "TEST"),
]

@Suite struct `The stories` {
    @Test(arguments: courses, [false, true])
    private func `go the way that Apple documents`(_ course: Course, sandbox: Bool) throws {
        let simulation = try simulation(of: course.story, sandbox: sandbox)
        for subscriber in 0..<5 {
            let told = simulation.life(of: subscriber).notifications.map { notification in
                notification.kind + (notification.status.map { " \($0)" } ?? "")
            }
            #expect(course.holds(in: told), "\(told)")
        }
    }

    @Test(arguments: Story.allCases) func `are told in order and to an end`(_ story: Story) throws {
        for sandbox in [false, true] {
            let (notifications, truth) = try simulation(of: story, sandbox: sandbox).life(of: 0)
            #expect(!notifications.isEmpty)
            #expect(notifications.map(\.index) == Array(notifications.indices))
            for (earlier, later) in zip(notifications, notifications.dropFirst()) {
                #expect(earlier.innerSignedDate < later.innerSignedDate, "the newest signature has to win")
                #expect(earlier.at < later.at)
            }
            #expect(truth.deeds.allSatisfy { $0.story == story })
            #expect(zip(truth.deeds, truth.deeds.dropFirst()).allSatisfy { $0.at <= $1.at })
        }
    }

    @Test func `all occur among three thousand subscribers`() throws {
        var configuration = configuration(subscribers: 3000)
        configuration.refundsPerMille = 100
        let simulation = try Simulation(configuration)
        #expect(Set((0..<3000).map(simulation.story)) == Set(Story.allCases))
    }

    @Test func `keep the cycle when grace recovers, and begin a new one after`() throws {
        func dates(_ story: Story) throws -> (due: Int64, recovered: Int64, next: Int64) {
            let notifications = try simulation(of: story, seed: 4).life(of: 1).notifications
            let place = try #require(notifications.firstIndex { $0.subtype == "BILLING_RECOVERY" })
            let failed = try #require(notifications[..<place].last { $0.notificationType == "DID_FAIL_TO_RENEW" })
            let row = try #require(notifications[place].transactionJSON)
            return (
                try #require(failed.transactionJSON?["expiresDate"]?.integer),
                try #require(row["purchaseDate"]?.integer), try #require(row["expiresDate"]?.integer)
            )
        }
        // A period of a week or a month has one of these lengths.
        let lengths: Set<Int64> = [7, 28, 29, 30, 31]
        let kept = try dates(.graceRecovered)
        #expect(kept.recovered > kept.due && lengths.contains((kept.next - kept.due) / day))
        #expect((kept.next - kept.due) % day == 0)
        let restarted = try dates(.graceRecoveredLate)
        #expect(lengths.contains((restarted.next - restarted.recovered) / day))
        #expect((restarted.next - restarted.recovered) % day == 0)
    }

    @Test func `count a commitment to twelve and move its end after a recovery`() throws {
        let renewed = try simulation(of: .commitmentRenewed).life(of: 0).notifications.compactMap(\.transactionJSON)
        let periods = renewed.compactMap { $0["commitmentInfo"]?["billingPeriodNumber"]?.integer }
        #expect(periods.starts(with: Array(1...12) + [1, 2]))
        let recovered = try simulation(of: .commitmentRecovered).life(of: 0).notifications
        let place = try #require(recovered.firstIndex { $0.subtype == "BILLING_RECOVERY" })
        let before = try #require(recovered[place - 1].transactionJSON?["commitmentInfo"])
        let after = try #require(recovered[place].transactionJSON?["commitmentInfo"])
        let end = try #require(before["commitmentExpiresDate"]?.integer)
        #expect(try #require(after["commitmentExpiresDate"]?.integer) > end)
        #expect(after["billingPeriodNumber"]?.integer == before["billingPeriodNumber"]?.integer.map { $0 + 1 })
    }

    @Test func `keep a downgrade of a commitment until its end`() throws {
        let notifications = try simulation(of: .commitmentDowngraded).life(of: 0).notifications
        let place = try #require(notifications.firstIndex { $0.subtype == "DOWNGRADE" })
        let change = try #require(notifications.dropFirst(place).first { $0.transactionJSON?["commitmentInfo"] == nil })
        let last = try #require(notifications[change.index - 1].transactionJSON)
        #expect(last["commitmentInfo"]?["billingPeriodNumber"]?.integer == 12)
        for notification in notifications[place..<change.index] {
            let renewal = try #require(notification.renewalJSON?["commitmentInfo"])
            #expect(renewal["commitmentAutoRenewProductId"] == change.transactionJSON?["productId"])
            #expect(renewal["commitmentRenewalBillingPlanType"]?.string == "BILLED_UPFRONT")
            #expect(renewal["commitmentRenewalPrice"] == change.transactionJSON?["price"])
            #expect(renewal["commitmentRenewalDate"] == last["expiresDate"])
        }
    }

    @Test func `pay the higher price from the next period on`() throws {
        for story in [Story.priceAccepted, .priceWithoutConsent] {
            let notifications = try simulation(of: story).life(of: 0).notifications
            let announced = try #require(notifications.firstIndex { $0.notificationType == "PRICE_INCREASE" })
            let paid = try #require(notifications.dropFirst(announced).first { $0.kind == "DID_RENEW" })
            let old = try #require(notifications[announced].transactionJSON?["price"]?.integer)
            #expect(try #require(paid.transactionJSON?["price"]?.integer) > old)
            #expect(paid.transactionJSON?["price"] == notifications[announced].renewalJSON?["renewalPrice"])
            #expect(paid.renewalJSON?["priceIncreaseStatus"] == nil)
        }
    }

    @Test func `make sandbox quick and end it after twelve renewals`() throws {
        let notifications = try simulation(of: .steady, sandbox: true).life(of: 0).notifications
        #expect(notifications.count { $0.notificationType == "DID_RENEW" } == 12)
        #expect(notifications.last?.kind == "EXPIRED/VOLUNTARY")
        let lengths = notifications.compactMap(\.transactionJSON).map { row in
            ((row["expiresDate"]?.integer ?? 0) - (row["purchaseDate"]?.integer ?? 0) + minute / 2) / minute
        }
        #expect(Set(lengths).isSubset(of: [3, 5, 60]), "\(lengths)")
    }
}
