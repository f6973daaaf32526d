// Runs one story for one subscriber.

/// Why a story stops before its end.
enum Ending: Error {
    /// The simulation is over: later events never happen.
    case horizon
    /// The purpose of the run is fulfilled.
    case told
    /// Apple's decision on a refund is not known before that time.
    case undecided(until: Int64)
}

/// The purpose of a run. A story is run again for each of its notifications: that takes microseconds, and nobody has to
/// store the future of every subscriber.
enum Aim {
    case notification(Int)
    case everything
}

/// The time, random numbers and memory of one story. Acts of the App Store advance `now`. Each act changes the truth
/// only after its notification was sent, because nobody can know about it earlier.
final class Telling {
    /// The number of purchases and persons in one story, far more than any story needs. The ids of subscribers are this
    /// far apart.
    static let limitIds = 512
    static let firstId: Int64 = 2_000_000_000_000_000
    static let firstAppTransactionId: Int64 = 704_000_000_000_000_000

    let subscriber: Int
    let story: Story
    let customer: Customer
    let accountToken: UUIDText
    /// Whether the app sets its token at purchases.
    let setsToken: Bool
    let seed: UInt64
    private let end: Int64
    /// In milliseconds; nil: the simulated Apple takes its usual time.
    let decidesWithin: Int64?
    let desk: (any RefundDesk)?
    private let aim: Aim
    var random: Randomness
    private(set) var now: Int64
    private var lastTold: Int64?
    private var ids = 0
    private(set) var count = 0
    /// The rest of the story is not known before this time.
    private(set) var undecidedUntil: Int64?
    /// All notifications so far; if the aim is one of them, only that one.
    private(set) var notifications: [SimulatedNotification] = []
    private(set) var deeds: [Deed] = []
    var subscriptions: [Subscription] = []

    init(_ simulation: Simulation, subscriber: Int, aim: Aim) {
        let configuration = simulation.configuration
        self.subscriber = subscriber
        self.aim = aim
        seed = configuration.seed
        end = configuration.end
        decidesWithin = configuration.decidesWithin
        desk = configuration.desk
        var random = Randomness(seed, 1, UInt64(subscriber))
        now = simulation.start(of: subscriber)
        let chosen = Story.allCases[random.index(weighted: simulation.weights)]
        let story = Self.refundStory(seed, subscriber, perMille: configuration.refundsPerMille) ?? chosen
        self.story = story
        let pace = random.chance(perMille: configuration.sandboxPerMille) ? Pace.sandbox : .production
        let storefronts = Storefront.all.filter { !story.isCommitment || $0.sellsCommitments }
        customer = Customer(
            app: random.choice(of: configuration.apps), pace: pace, storefront: random.choice(of: storefronts),
            appTransactionId: Self.firstAppTransactionId + Self.number(seed, subscriber, 0), isFamilyMember: false,
            namesApp: pace == .production || random.chance(perMille: 500))
        accountToken = random.uuid()
        setsToken = random.chance(perMille: 800)
        self.random = random
    }

    /// Runs the story as far as the aim requires.
    func run() {
        do {
            try tellStory()
        } catch {
            // Every ending leaves the wanted result.
            if case .undecided(let until) = error { undecidedUntil = until }
        }
    }

    /// Drawn separately: whatever their number is, all other subscribers live the same lives as without them.
    private static func refundStory(_ seed: UInt64, _ subscriber: Int, perMille: Int) -> Story? {
        var random = Randomness(seed, 7, UInt64(subscriber))
        guard random.chance(perMille: perMille) else { return nil }
        return Story.allCases[random.index(weighted: Story.allCases.map(\.refundWeight))]
    }

    // MARK: Time

    var pace: Pace { customer.pace }

    func advance(to time: Int64) throws(Ending) {
        now = max(now, time)
        guard now < end else { throw .horizon }
    }

    /// Waits some seconds: what a customer needs for the next step, or Apple for a notification.
    func pause() throws(Ending) { try advance(to: now + random.number(in: pace.delay)) }

    /// Advances to a time within the current period of a subscription.
    func pass(_ subscription: Subscription, perMille: ClosedRange<Int64>) throws(Ending) {
        let row = subscription.current
        let length = (row.expiresDate ?? row.purchaseDate) - row.purchaseDate
        try advance(to: max(row.purchaseDate + length / 1000 * random.number(in: perMille), now + second))
    }

    // MARK: Facts

    /// A nine-digit number that no other purchase of the simulation has. Like Apple's, it does not show the order of
    /// purchases.
    func nextId() -> Int64 {
        ids += 1
        precondition(ids < Self.limitIds, "a story with more purchases than there are numbers for")
        return Self.firstId + Self.number(seed, subscriber, ids)
    }

    private static let numbers: Int64 = 1_000_000_000

    /// The factor shares no divisor with 10^9, so different numbers stay different.
    private static func number(_ seed: UInt64, _ subscriber: Int, _ index: Int) -> Int64 {
        (Int64(subscriber * limitIds + index) * 736_338_717 + offset(seed)) % numbers
    }

    private static func offset(_ seed: UInt64) -> Int64 { Int64(seed % UInt64(numbers)) * 387_420_489 % numbers }

    /// The reverse of `number`: the subscriber and the index.
    static func owner(of number: Int64, _ seed: UInt64) -> (subscriber: Int, index: Int) {
        // The product of the factor and this number is 1 modulo 10^9.
        let inverse: Int64 = 736_544_053
        let place = Int((number - offset(seed) + numbers) % numbers * inverse % numbers)
        return (place / limitIds, place % limitIds)
    }

    func did(_ event: String, _ subscription: Subscription? = nil) {
        guard case .everything = aim else { return }
        deeds.append(
            Deed(
                at: now, subscriber: subscriber, story: story,
                originalTransactionId: subscription.map { String($0.current.original) }, event: event))
    }

    /// Sends one notification now. Returns when its inner parts were signed.
    @discardableResult
    func notify(
        _ type: String, _ subtype: String? = nil, of customer: Customer, _ content: SimulatedNotification.Content
    ) throws(Ending) -> Int64 {
        // The pause is longer than the age of inner parts, so these stay in order too: the newest signature counts.
        precondition(lastTold.map { now - $0 >= second } ?? true, "acts pause before they tell")
        lastTold = now
        defer { count += 1 }
        var random = Randomness(seed, 2, UInt64(subscriber), UInt64(count))
        let innerAge = random.number(in: 0...(second - 100))
        if case .notification(let wanted) = aim, wanted != count { return now - innerAge }
        notifications.append(
            SimulatedNotification(
                at: now, subscriber: subscriber, index: count, notificationType: type, subtype: subtype,
                customer: customer, content: content, uuid: random.uuid(), innerAge: innerAge))
        if case .notification = aim { throw .told }
        return now - innerAge
    }

    /// After some seconds, with the newest transaction and renewal info of a subscription.
    @discardableResult
    func tell(
        _ type: String, _ subtype: String? = nil, of subscription: Subscription, status: Int,
        transaction: Transaction? = nil, requestReason: String? = nil
    ) throws(Ending) -> Int64 {
        try pause()
        let signed = try notify(
            type, subtype, of: subscription.customer,
            .data(
                transaction ?? subscription.current, subscription.renewal, status: status, requestReason: requestReason)
        )
        subscription.sayRenewal()
        return signed
    }

    /// The truth so far.
    var truth: SubscriberTruth {
        SubscriberTruth(deeds: deeds, subscriptions: subscriptions.map { $0.truth(at: end) }, end: end)
    }
}
