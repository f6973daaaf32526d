// One notification of the simulated App Store; its texts are made on demand.

public import Contract
internal import JSON

/// A notification. The facts are made at once, the JSON on demand, and the signatures (three, about 20 microseconds
/// each) only for posting.
public struct SimulatedNotification: Sendable {
    enum Content: Sendable {
        case data(Transaction?, RenewalInfo?, status: Int?, requestReason: String?)
        case extensionSummary(request: UUIDText, productId: String, succeeded: Int, failed: Int)
        case externalPurchaseToken(id: UUIDText, created: Int64)
        case appConsent(originalPurchaseDate: Int64)
    }

    /// `signedDate`, in milliseconds of simulated time. Two notifications of one subscription never have the same one.
    public let at: Int64
    /// Subscribers are numbered from 0 in the order of their arrival.
    public let subscriber: Int
    /// The index among the notifications of its subscriber, from 0.
    public let index: Int
    public let notificationType: String
    public let subtype: String?
    let customer: Customer
    let content: Content
    let uuid: UUIDText
    /// How long the inner parts were signed before the outer one.
    let innerAge: Int64

    public var notificationUUID: String { uuid.description }

    public var environment: Contract.Environment {
        switch customer.pace {
        case .production: .production
        case .sandbox: .sandbox
        }
    }

    public var bundleId: String { customer.app.bundleId }

    /// nil if it is not about a purchase.
    public var originalTransactionId: String? {
        if case .data(let transaction?, _, _, _) = content { String(transaction.original) } else { nil }
    }

    /// The key of its record in Kafka.
    public var key: String {
        switch content {
        case .data(let transaction, _, _, _): transaction.map { String($0.original) } ?? notificationUUID
        case .extensionSummary: notificationUUID
        case .externalPurchaseToken(let id, _): externalPurchaseId(id)
        case .appConsent: String(customer.appTransactionId)
        }
    }

    public var status: Int? { if case .data(_, _, let status, _) = content { status } else { nil } }

    public var consumptionRequestReason: String? {
        if case .data(_, _, _, let reason) = content { reason } else { nil }
    }

    /// `signedDate` of the inner parts.
    public var innerSignedDate: Int64 { at - innerAge }

    /// Decoded `signedTransactionInfo`.
    public var transaction: [UInt8]? {
        guard case .data(let transaction?, _, _, _) = content else { return nil }
        return transaction.json(of: customer, signedDate: innerSignedDate)
    }

    /// Decoded `signedRenewalInfo`.
    public var renewalInfo: [UInt8]? {
        guard case .data(_, let renewal?, _, _) = content else { return nil }
        return renewal.json(of: customer, signedDate: innerSignedDate)
    }

    /// Decoded `signedAppTransactionInfo`.
    public var appTransaction: [UInt8]? {
        guard case .appConsent(let originalPurchaseDate) = content else { return nil }
        var json = JSONWriter()
        json.object { json in
            json.member("receiptType", customer.environment)
            if customer.namesApp { json.member("appAppleId", customer.app.appAppleId) }
            json.member("bundleId", bundleId)
            json.member("applicationVersion", bundleVersion)
            json.member("versionExternalIdentifier", 870_000_001)
            json.member("receiptCreationDate", innerSignedDate)
            json.member("originalPurchaseDate", originalPurchaseDate)
            json.member("originalApplicationVersion", "390")
            json.member("appTransactionId", String(customer.appTransactionId))
            json.member("originalPlatform", "iOS")
        }
        return json.bytes
    }

    /// The outer payload to sign; its inner parts are signed by `authority`.
    public func payload(signedBy authority: SimulatedAuthority) -> [UInt8] {
        payload(
            transaction: transaction.map(authority.sign), renewalInfo: renewalInfo.map(authority.sign),
            appTransaction: appTransaction.map(authority.sign))
    }

    /// What Apple posts as `signedPayload`. The bytes are always the same: a retry repeats the payload of the first
    /// attempt.
    public func signedPayload(by authority: SimulatedAuthority) -> [UInt8] {
        authority.sign(payload(signedBy: authority))
    }

    /// For forgers: what a payload contains instead of the truth.
    struct Changes {
        var at: Int64?
        var bundleId: String?
        var appAppleId: Int64?
        var environment: String?
        /// Writes additional members at the end of the payload.
        var extraMembers: ((inout JSONWriter) -> Void)?
    }

    func payload(
        transaction: [UInt8]?, renewalInfo: [UInt8]?, appTransaction: [UInt8]?, changes: Changes = Changes()
    ) -> [UInt8] {
        var json = JSONWriter()
        json.object { json in
            json.member("notificationType", notificationType)
            if let subtype { json.member("subtype", subtype) }
            json.member("notificationUUID", notificationUUID)
            switch content {
            case .data(_, _, let status, let reason):
                json.name("data")
                json.object { json in
                    writeApp(to: &json, changes)
                    // A TEST notification contains no build number.
                    if transaction != nil { json.member("bundleVersion", bundleVersion) }
                    json.member("environment", changes.environment ?? customer.environment)
                    if let transaction {
                        json.member("signedTransactionInfo", String(decoding: transaction, as: UTF8.self))
                    }
                    if let renewalInfo {
                        json.member("signedRenewalInfo", String(decoding: renewalInfo, as: UTF8.self))
                    }
                    if let status { json.member("status", status) }
                    if let reason { json.member("consumptionRequestReason", reason) }
                }
            case .extensionSummary(let request, let productId, let succeeded, let failed):
                json.name("summary")
                json.object { json in
                    json.member("requestIdentifier", request.description)
                    json.member("environment", changes.environment ?? customer.environment)
                    writeApp(to: &json, changes)
                    json.member("productId", productId)
                    json.name("storefrontCountryCodes")
                    json.array { $0.string(customer.storefront.country) }
                    json.member("succeededCount", succeeded)
                    json.member("failedCount", failed)
                }
            case .externalPurchaseToken(let id, let created):
                json.name("externalPurchaseToken")
                json.object { json in
                    json.member("externalPurchaseId", externalPurchaseId(id))
                    json.member("tokenCreationDate", created)
                    json.member("appAppleId", changes.appAppleId ?? customer.app.appAppleId)
                    json.member("bundleId", changes.bundleId ?? bundleId)
                }
            case .appConsent:
                json.name("appData")
                json.object { json in
                    writeApp(to: &json, changes)
                    json.member("environment", changes.environment ?? customer.environment)
                    if let appTransaction {
                        json.member("signedAppTransactionInfo", String(decoding: appTransaction, as: UTF8.self))
                    }
                }
            }
            json.member("version", "2.0")
            json.member("signedDate", changes.at ?? at)
            changes.extraMembers?(&json)
        }
        return json.bytes
    }

    private func writeApp(to json: inout JSONWriter, _ changes: Changes) {
        if customer.namesApp { json.member("appAppleId", changes.appAppleId ?? customer.app.appAppleId) }
        json.member("bundleId", changes.bundleId ?? bundleId)
    }

    /// The current build in the store.
    private var bundleVersion: String { "412" }

    private func externalPurchaseId(_ id: UUIDText) -> String {
        switch customer.pace {
        case .production: id.description
        case .sandbox: "SANDBOX-\(id)"
        }
    }
}
