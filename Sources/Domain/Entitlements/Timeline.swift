// The meaning of facts at any instant, as values: for people who ask.

public import Contract
internal import JSON
internal import Notices
internal import Records
import SubscriptionHistory

/// The purchases of one subscription with their ends. Built once, queried for many instants.
public final class Timeline {
    /// The history refers to it.
    private let bytes: UnsafeMutableBufferPointer<UInt8>
    let course: Course

    /// nil if no transaction is known: then there is no answer.
    public init?(_ facts: Facts, _ rules: EntitlementRules) {
        bytes = .allocate(capacity: facts.bytes.count)
        _ = bytes.initialize(fromContentsOf: facts.bytes)
        var course = Course(rules)
        var reader = KeptReader(UnsafeBufferPointer(bytes))
        let isRead = course.history.read(&reader)
        precondition(isRead, "facts are the bytes of a history")
        let hasRows = course.setRows()
        self.course = course
        guard hasRows else { return nil }
    }

    deinit { bytes.deallocate() }

    /// The answer at an instant. A change at an instant is already in effect at that instant.
    public func entitlement(at instant: Int64) -> Entitlement { Entitlement(course.answer(at: instant), of: course) }

    /// The first later instant at which time alone changes the answer; nil: it never changes.
    public func nextChange(after instant: Int64) -> Int64? { course.nextChange(after: instant) }

    /// Like a record of `entitlements`, without the members that depend on how the value was reached.
    public func record(
        of originalTransactionId: String, _ environment: Contract.Environment, at instant: Int64
    ) -> [UInt8] {
        var json = JSONWriter(capacity: 1_024)
        Array(originalTransactionId.utf8).withUnsafeBufferPointer { id in
            json.object { json in
                course.write(course.answer(at: instant), originalTransactionId: id, environment, to: &json)
                json.member("sequence", 0)
                json.member("asOf", instant)
            }
        }
        return json.bytes
    }
}

extension Entitlement {
    init(_ answer: Answer, of course: borrowing Course) {
        func text(_ number: TextNumber, _ course: borrowing Course) -> Text? { course.history.texts[number]?.text }
        self.init(
            bundleId: text(answer.bundleId, course), productId: text(answer.productId, course),
            type: text(answer.type, course), subscriptionGroup: text(answer.subscriptionGroup, course),
            appAccountToken: text(answer.appAccountToken, course), ownership: text(answer.ownership, course),
            entitlements: course.rules.entitlements(of: answer.product), state: answer.state, reason: answer.reason,
            access: answer.access, accessUntil: answer.accessUntil, since: answer.since, autoRenew: answer.autoRenew,
            pendingProductId: text(answer.pendingProductId, course),
            pendingBillingPlan: text(answer.pendingBillingPlan, course), priceConsent: answer.priceConsent,
            billingPlan: answer.billingPlan?.text, commitment: answer.commitment, graceUntil: answer.graceUntil,
            retry: answer.retry, offer: Offer(answer.offer, of: course), introOfferUsed: answer.introOfferUsed,
            price: answer.price, currency: text(answer.currency, course), renewsAt: answer.renewsAt,
            renewalPrice: answer.renewalPrice, runs: Array(course.runs.values.suffix(Course.limitRuns)),
            runsTruncated: course.runsTruncated)
    }
}

extension Entitlement.Offer {
    init?(_ offer: Particulars.Offer?, of course: borrowing Course) {
        guard let offer else { return nil }
        self.init(
            type: Text(OfferType.word(of: offer.type)), identifier: course.history.texts[offer.identifier]?.text,
            discount: course.history.texts[offer.discount]?.text)
    }
}
