// The App Store's data about one subscription, and the truth about it.

internal import Contract

/// One `originalTransactionId` of one customer.
final class Subscription {
    let customer: Customer
    let accountToken: UUIDText?
    var current: Transaction
    /// The previous period, for refunds that come late.
    var previous: Transaction?
    var renewal: RenewalInfo
    /// Sandbox allows only a limited number.
    var renewals = 0
    /// The current price in thousandths of the original one, after increases.
    var pricePerMille: Int64 = 1000
    /// Remaining periods under the current offer.
    var offerPeriodsLeft = 0
    private var anchor: Int64
    private var periodsSinceAnchor = 0
    private var cycle: PlanLength

    private(set) var intervals: [AccessInterval] = []
    var words: Words

    /// The values that a reader of the public records expects.
    struct Words {
        var state: String?
        var reason: String?
        var productId: String
        var autoRenew: Bool?
        var plan: Plan?
        var commitmentPeriod: Int?
        var offer: Offer?
        var price: Int64 = 0
        /// The last reported renewal info, and the end of the period at that time.
        var renewal: RenewalInfo?
        var due: Int64 = 0
    }

    /// A first purchase at `now`.
    init(
        _ product: Product, id: Int64, plan: Plan, offer: Offer?, customer: Customer, accountToken: UUIDText?,
        now: Int64
    ) {
        self.customer = customer
        self.accountToken = accountToken
        anchor = now
        cycle = product.length
        current = Transaction(
            id: id, original: id, product: product, purchaseDate: now, originalPurchaseDate: now,
            accountToken: accountToken, price: 0)
        renewal = RenewalInfo(
            original: id, product: product, nextProduct: product, renewalDate: now, renewalPrice: 0, recentStart: now,
            accountToken: accountToken, plan: plan)
        words = Words(productId: product.id)
        offerPeriodsLeft = (offer?.periods ?? 1) - 1
        begin(product, plan: plan, offer: offer, at: now, from: now, startsCycle: true)
    }

    /// A non-renewing purchase at `now`.
    init(
        oneTime product: Product, id: Int64, quantity: Int, offer: Offer?, customer: Customer, accountToken: UUIDText?,
        now: Int64
    ) {
        self.customer = customer
        self.accountToken = accountToken
        anchor = now
        cycle = product.length
        current = Transaction(
            id: id, original: id, product: product, purchaseDate: now, originalPurchaseDate: now, quantity: quantity,
            accountToken: accountToken, price: 0, offer: offer)
        // Never reported: one-time purchases have no renewal info.
        renewal = RenewalInfo(
            original: id, product: product, nextProduct: product, renewalDate: now, renewalPrice: 0, recentStart: now)
        words = Words(productId: product.id)
        current.price = price(of: product, plan: .upfront, offer: offer) * Int64(quantity)
        sayPrice()
    }

    // MARK: Periods

    /// The end of the current period.
    var due: Int64 { current.expiresDate ?? current.purchaseDate }

    var isCommitment: Bool { current.plan == .monthly }

    /// Replaces the current period.
    /// - Parameters:
    ///   - start: when the customer is charged: `purchaseDate`.
    ///   - scheduled: when the previous period ended; the billing cycle continues from there.
    func begin(
        _ product: Product, plan: Plan, offer: Offer?, at start: Int64, from scheduled: Int64, startsCycle: Bool = false
    ) {
        let length = Self.length(of: product, plan: plan, offer: offer)
        if startsCycle || length != cycle {
            anchor = scheduled
            periodsSinceAnchor = 0
            cycle = length
        }
        periodsSinceAnchor += 1
        let lastEnd = due
        current.product = product
        current.plan = plan
        current.offer = offer
        current.purchaseDate = start
        current.expiresDate = customer.pace.end(of: length, count: periodsSinceAnchor, from: anchor)
        current.price = price(of: product, plan: plan, offer: offer)
        current.revocation = nil
        current.isUpgraded = false
        current.commitment = nil
        if start - lastEnd >= customer.pace.longGap { renewal.recentStart = start }
        renew(after: offer)
    }

    /// The next period in a series of purchases: a new transaction.
    func next(id: Int64, isRenewal: Bool) {
        previous = current
        current.id = id
        current.isRenewal = isRenewal
    }

    /// Makes the current period part of a commitment; the end of the commitment is counted from this period.
    func commit(to period: Int) {
        let left = Commitment.periods - period + 1
        let monthly = price(of: current.product, plan: .monthly, offer: nil)
        let ends = customer.pace.end(of: .month, count: left, from: current.purchaseDate)
        commit(Commitment(period: period, ends: ends, price: monthly * Int64(Commitment.periods)))
    }

    func commit(_ commitment: Commitment) {
        current.commitment = commitment
        let isOn = renewal.commitment?.isOn ?? true
        let product = renewal.commitment?.product ?? current.product
        let plan = renewal.commitment?.plan ?? .monthly
        // The price of one period under the next plan: Apple does not say whether it is this price or the total.
        renewal.commitment = RenewalInfo.CommitmentRenewal(
            isOn: isOn, product: product, plan: plan, date: commitment.ends,
            price: price(of: product, plan: plan, offer: nil))
        // After the last period, the next billing period belongs to the next commitment.
        renewal.isOn = isOn || commitment.period < Commitment.periods
    }

    /// The renewal info at the beginning of a period.
    private func renew(after offer: Offer?) {
        renewal.product = current.product
        renewal.nextProduct = current.product
        renewal.plan = current.plan ?? .upfront
        renewal.isOn = true
        renewal.intent = nil
        renewal.isRetrying = nil
        renewal.graceUntil = nil
        renewal.winBackOffers = []
        // The higher price is paid from now on, and no increase is pending.
        renewal.priceIncreaseStatus = nil
        renewal.renewalDate = due
        renewal.offer = offerPeriodsLeft > 0 ? offer : nil
        if renewal.plan == .upfront { renewal.commitment = nil }
        priceRenewal()
    }

    func priceRenewal() {
        renewal.renewalPrice = price(of: renewal.nextProduct, plan: renewal.plan, offer: renewal.offer)
    }

    /// Shared periods end when the purchaser's periods end, whenever sharing began.
    func align(with purchaser: Subscription) {
        anchor = purchaser.anchor
        periodsSinceAnchor = purchaser.periodsSinceAnchor
        cycle = purchaser.cycle
        current.expiresDate = purchaser.due
        renewal.renewalDate = purchaser.due
    }

    /// The developer moved the end of the period.
    func extend(to end: Int64) {
        give(from: due, until: end, .extension)
        current.expiresDate = end
        renewal.renewalDate = end
        anchor = end
        periodsSinceAnchor = 0
    }

    private static func length(of product: Product, plan: Plan, offer: Offer?) -> PlanLength {
        switch offer?.discount {
        case .freeTrial, .payUpFront: offer?.length ?? product.length
        default: plan == .monthly ? .month : product.length
        }
    }

    private func price(of product: Product, plan: Plan, offer: Offer?) -> Int64 {
        let full = (plan == .monthly ? product.monthlyCommitmentPrice : nil) ?? product.price
        let euros =
            switch offer?.discount {
            case .freeTrial: Int64(0)
            case .some: full / 2
            case nil: full * pricePerMille / 1000
            }
        return customer.storefront.price(euros)
    }

    // MARK: Truth

    /// Gives access for the current period, and sets the expected values.
    func giveCurrent() {
        let rule: AccessInterval.Rule =
            if customer.isFamilyMember { .family } else if current.offer?.discount == .freeTrial { .trial } else {
                .paid
            }
        give(from: current.purchaseDate, until: due, rule)
    }

    func give(from: Int64, until: Int64?, _ rule: AccessInterval.Rule) {
        intervals.append(
            AccessInterval(
                from: from, until: until, productId: current.product.id, transactionId: String(current.id), rule: rule,
                revokedAt: nil))
    }

    func sayCurrent() {
        say("active")
        words.productId = current.product.id
        words.plan = current.plan
        words.commitmentPeriod = current.commitment?.period
        sayPrice()
    }

    private func sayPrice() {
        words.offer = current.offer
        words.price = current.price
    }

    /// Takes over what its last renewal info reported.
    func sayRenewal() {
        words.autoRenew = renewal.isOn
        words.renewal = renewal
        words.due = due
    }

    func say(_ state: String?, _ reason: String? = nil) {
        words.state = state
        words.reason = reason
    }

    /// The customer must not lose access because Apple is late. A customer without access, after a refund, waits for
    /// the renewal.
    func bridge(from end: Int64, until start: Int64) {
        guard let last = intervals.last, last.until == end else { return }
        intervals.append(
            AccessInterval(
                from: end, until: start, productId: last.productId, transactionId: last.transactionId, rule: .leeway,
                revokedAt: nil))
    }

    /// Ends access at `time`, whatever was given.
    func cut(at time: Int64) {
        intervals.removeAll { $0.from >= time }
        for index in intervals.indices where intervals[index].until ?? .max > time { intervals[index].until = time }
    }

    /// A purchase was refunded.
    func revoke(_ transaction: Transaction, at time: Int64) {
        for index in intervals.indices where intervals[index].transactionId == String(transaction.id) {
            intervals[index].until = min(intervals[index].until ?? .max, max(time, intervals[index].from))
            intervals[index].revokedAt = time
        }
    }

    /// The refund was reversed at `time`.
    func reinstate(_ transaction: Transaction, at time: Int64) {
        for index in intervals.indices where intervals[index].transactionId == String(transaction.id) {
            intervals[index].revokedAt = nil
        }
        if transaction.expiresDate ?? .max > time { give(from: time, until: transaction.expiresDate, .reinstated) }
    }

    func truth(at end: Int64) -> SubscriptionTruth {
        let (app, renewal, pace) = (customer.app, words.renewal, customer.pace)
        let isRetrying = renewal?.isRetrying == true && renewal?.isOn == true
        let isUnpaid = isRetrying && ["active", "grace", "billing_retry"].contains(words.state)
        return SubscriptionTruth(
            originalTransactionId: String(current.original),
            environment: customer.pace == .production ? .production : .sandbox, bundleId: customer.app.bundleId,
            isFamilyShared: customer.isFamilyMember, appAccountToken: accountToken?.description, intervals: intervals,
            state: words.state, reason: words.reason, productId: words.productId, autoRenew: words.autoRenew,
            billingPlan: words.plan?.rawValue, commitmentPeriod: words.commitmentPeriod,
            entitlements: app.names(of: words.productId), offer: words.offer, price: words.price,
            renewsAt: renewal?.isOn == true ? renewal?.renewalDate : nil,
            renewalPrice: renewal?.isOn == true ? renewal?.renewalPrice : nil,
            graceUntil: isRetrying ? renewal?.graceUntil.flatMap { $0 > end ? $0 : nil } : nil,
            retry: isUnpaid && pace == .production
                ? words.due...words.due + pace.retryWindow(isCommitment: words.plan == .monthly) : nil)
    }
}
