// What the app's own backend knows about a purchase: the records that it sends to `POST /usage`.

public import Contract
internal import JSON

/// One record, and when the backend sends it.
public struct SimulatedUsage: Sendable, Equatable {
    /// In milliseconds of simulated time.
    public let at: Int64
    public let subscriber: Int
    public let environment: Contract.Environment
    public let originalTransactionId: String
    /// nil: it is about all transactions of the purchase.
    public let transactionId: String?
    public var consented: Bool?
    public var deliveryStatus: String?
    public var sampleContentProvided: Bool?
    /// 100000 is 100 percent.
    public var consumptionPercentage: Int?
    public var refundPreference: String?
    public var accountCreatedAt: Int64?
    public var playTimeSeconds: Int64?
    public var userStatus: Int?
    public var platform: Int?

    /// In the format of `POST /usage`; unknown values are left out.
    public var json: [UInt8] {
        var json = JSONWriter()
        json.object { json in
            json.member("v", 1)
            json.member("environment", environment == .production ? "Production" : "Sandbox")
            json.member("originalTransactionId", originalTransactionId)
            if let transactionId { json.member("transactionId", transactionId) }
            if let consented {
                json.member("consented", consented)
                json.member("consentedAt", at)
            }
            if let deliveryStatus { json.member("deliveryStatus", deliveryStatus) }
            if let sampleContentProvided { json.member("sampleContentProvided", sampleContentProvided) }
            if let consumptionPercentage { json.member("consumptionPercentage", consumptionPercentage) }
            if let refundPreference { json.member("refundPreference", refundPreference) }
            if let accountCreatedAt { json.member("accountCreatedAt", accountCreatedAt) }
            if let playTimeSeconds { json.member("playTimeSeconds", playTimeSeconds) }
            if let userStatus { json.member("userStatus", userStatus) }
            if let platform { json.member("platform", platform) }
        }
        return json.bytes
    }
}

extension Simulation {
    /// What the backend sends within a day because of this notification, in the order of time. Each purchase has its
    /// own random numbers, so nothing depends on earlier notifications.
    public func usage(after notification: SimulatedNotification) -> [SimulatedUsage] {
        guard case .data(let transaction?, _, _, let reason) = notification.content else { return [] }
        let backend = Backend(self, notification, transaction)
        let records: [SimulatedUsage] =
            switch notification.notificationType {
            case "SUBSCRIBED", "ONE_TIME_CHARGE": backend.afterPurchase
            case "DID_RENEW", "OFFER_REDEEMED": [backend.delivery]
            case "CONSUMPTION_REQUEST" where reason != nil: backend.afterRequest
            default: []
            }
        return records.filter { $0.at < configuration.end }.sorted { $0.at < $1.at }
    }

    /// For all notifications of one subscriber.
    public func usage(of subscriber: Int) -> [SimulatedUsage] {
        life(of: subscriber).notifications.flatMap(usage(after:)).sorted { $0.at < $1.at }
    }
}

/// The app's side of one notification.
private struct Backend {
    /// The customer's attitude to sharing consumption data.
    enum Consent: Int, CaseIterable {
        case given, onRequest, withdrawn, refused, tooLate, silent

        var weight: Int {
            switch self {
            case .given: 60
            case .onRequest: 15
            case .withdrawn: 8
            case .refused: 9
            case .tooLate: 3
            case .silent: 5
            }
        }
    }

    private static let undelivered = [
        "UNDELIVERED_QUALITY_ISSUE", "UNDELIVERED_WRONG_ITEM", "UNDELIVERED_SERVER_OUTAGE", "UNDELIVERED_OTHER",
    ]

    let notification: SimulatedNotification
    let transaction: Transaction
    let consent: Consent
    let deliveryStatus: String
    /// Units of a consumable, or thousandths of anything else, that are used over time.
    let share: Int64
    let accountCreatedAt: Int64
    private let seed: UInt64

    init(_ simulation: Simulation, _ notification: SimulatedNotification, _ transaction: Transaction) {
        self.notification = notification
        self.transaction = transaction
        seed = simulation.configuration.seed
        let subscriber = UInt64(notification.subscriber)
        var person = Randomness(seed, 9, subscriber)
        consent = Consent.allCases[person.index(weighted: Consent.allCases.map(\.weight))]
        accountCreatedAt = simulation.start(of: notification.subscriber) - person.number(in: 0...500 * day)
        var purchase = Randomness(seed, 10, UInt64(transaction.id))
        let isDelivered = purchase.chance(perMille: 930)
        let fault = purchase.choice(of: Self.undelivered)
        deliveryStatus = isDelivered ? "DELIVERED" : fault
        let isConsumable = transaction.product.kind == .consumable
        share = purchase.number(in: 0...(isConsumable ? Int64(transaction.quantity) : 1000))
    }

    /// 100000 is 100 percent; nil where Apple does not accept one.
    private var percentage: Int? {
        guard transaction.product.kind != .autoRenewable else { return nil }
        guard deliveryStatus == "DELIVERED" else { return 0 }
        let whole: Int64 = transaction.product.kind == .consumable ? Int64(transaction.quantity) : 1000
        return Int(share * 100_000 / whole)
    }

    private func record(after delay: Int64, ofAll: Bool = false) -> SimulatedUsage {
        SimulatedUsage(
            at: notification.at + delay, subscriber: notification.subscriber, environment: notification.environment,
            originalTransactionId: String(transaction.original),
            transactionId: ofAll ? nil : String(transaction.id))
    }

    /// Minutes in production, seconds in sandbox.
    private func some(_ minutes: Int64) -> Int64 {
        notification.customer.pace == .production ? minutes * minute : minutes * second
    }

    var delivery: SimulatedUsage {
        var record = record(after: some(1))
        record.deliveryStatus = deliveryStatus
        record.sampleContentProvided = transaction.offer?.discount == .freeTrial
        return record
    }

    /// The account and its consent, the delivery, and later the usage.
    var afterPurchase: [SimulatedUsage] {
        var account = record(after: some(1) / 2, ofAll: true)
        account.accountCreatedAt = accountCreatedAt
        account.userStatus = 1
        account.platform = 1
        switch consent {
        case .given, .withdrawn: account.consented = true
        case .refused: account.consented = false
        case .onRequest, .tooLate, .silent: break
        }
        var used = record(after: some(4))
        used.consumptionPercentage = percentage
        return [account, delivery] + (used.consumptionPercentage == nil ? [] : [used])
    }

    /// What the backend looks up when it receives the notification, and the customer's later consent.
    var afterRequest: [SimulatedUsage] {
        var random = Randomness(seed, 11, UInt64(notification.subscriber), UInt64(notification.index))
        var state = record(after: some(1) / 2)
        state.consumptionPercentage = percentage
        state.playTimeSeconds = random.number(in: 0...40_000)
        if random.chance(perMille: 150) {
            state.refundPreference = random.choice(of: ["DECLINE", "GRANT_FULL", "GRANT_PRORATED"])
        }
        let wait = some(random.number(in: 2...150))
        switch consent {
        case .given, .refused, .silent: return [state]
        case .onRequest:
            var word = record(after: wait)
            word.consented = true
            return [state, word]
        case .withdrawn:
            var word = record(after: wait, ofAll: true)
            word.consented = false
            return [state, word]
        case .tooLate:
            var word = record(after: RefundTruth.timeToAnswer + wait)
            word.consented = true
            return [state, word]
        }
    }
}
