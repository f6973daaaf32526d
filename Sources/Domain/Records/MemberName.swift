// The names of members: those of Apple's payloads, and those of the records that contain them.

public import JSON

/// Each name is here once: for the check of a payload, for the writer of its record, and for the readers of that record. The names
/// of what workers put out are beside their writers. A name that more than one object has is in the first of their lists.
@frozen public struct MemberName: Sendable {
    public let text: StaticString

    @inlinable init(_ text: StaticString) { self.text = text }
}

extension MemberName {
    // Of a record of `notifications`.
    @inlinable public static var v: MemberName { MemberName("v") }
    @inlinable public static var notificationUUID: MemberName { MemberName("notificationUUID") }
    @inlinable public static var notificationType: MemberName { MemberName("notificationType") }
    @inlinable public static var subtype: MemberName { MemberName("subtype") }
    @inlinable public static var signedDate: MemberName { MemberName("signedDate") }
    @inlinable public static var receivedDate: MemberName { MemberName("receivedDate") }
    @inlinable public static var source: MemberName { MemberName("source") }
    @inlinable public static var environment: MemberName { MemberName("environment") }
    @inlinable public static var bundleId: MemberName { MemberName("bundleId") }
    @inlinable public static var appAppleId: MemberName { MemberName("appAppleId") }
    @inlinable public static var bundleVersion: MemberName { MemberName("bundleVersion") }
    @inlinable public static var status: MemberName { MemberName("status") }
    @inlinable public static var consumptionRequestReason: MemberName { MemberName("consumptionRequestReason") }
    @inlinable public static var transaction: MemberName { MemberName("transaction") }
    @inlinable public static var renewalInfo: MemberName { MemberName("renewalInfo") }
    @inlinable public static var summary: MemberName { MemberName("summary") }
    @inlinable public static var externalPurchaseToken: MemberName { MemberName("externalPurchaseToken") }
    @inlinable public static var appData: MemberName { MemberName("appData") }
    @inlinable public static var evidence: MemberName { MemberName("evidence") }
    /// Of a part that is encrypted.
    @inlinable public static var sealed: MemberName { MemberName("sealed") }

    // Of Apple's notifications. Records have many of them too.
    @inlinable public static var signedPayload: MemberName { MemberName("signedPayload") }
    @inlinable public static var version: MemberName { MemberName("version") }
    @inlinable public static var data: MemberName { MemberName("data") }
    @inlinable public static var signedTransactionInfo: MemberName { MemberName("signedTransactionInfo") }
    @inlinable public static var signedRenewalInfo: MemberName { MemberName("signedRenewalInfo") }

    // Of `summary`, `externalPurchaseToken` and `appData`.
    @inlinable public static var requestIdentifier: MemberName { MemberName("requestIdentifier") }
    @inlinable public static var storefrontCountryCodes: MemberName { MemberName("storefrontCountryCodes") }
    @inlinable public static var succeededCount: MemberName { MemberName("succeededCount") }
    @inlinable public static var failedCount: MemberName { MemberName("failedCount") }
    @inlinable public static var externalPurchaseId: MemberName { MemberName("externalPurchaseId") }
    @inlinable public static var tokenCreationDate: MemberName { MemberName("tokenCreationDate") }
    @inlinable public static var tokenExpirationDate: MemberName { MemberName("tokenExpirationDate") }
    @inlinable public static var tokenType: MemberName { MemberName("tokenType") }
    @inlinable public static var signedAppTransactionInfo: MemberName { MemberName("signedAppTransactionInfo") }

    // Of transactions.
    @inlinable public static var transactionId: MemberName { MemberName("transactionId") }
    @inlinable public static var originalTransactionId: MemberName { MemberName("originalTransactionId") }
    @inlinable public static var previousOriginalTransactionId: MemberName {
        MemberName("previousOriginalTransactionId")
    }
    @inlinable public static var webOrderLineItemId: MemberName { MemberName("webOrderLineItemId") }
    @inlinable public static var appTransactionId: MemberName { MemberName("appTransactionId") }
    @inlinable public static var productId: MemberName { MemberName("productId") }
    @inlinable public static var subscriptionGroupIdentifier: MemberName { MemberName("subscriptionGroupIdentifier") }
    @inlinable public static var type: MemberName { MemberName("type") }
    @inlinable public static var purchaseDate: MemberName { MemberName("purchaseDate") }
    @inlinable public static var originalPurchaseDate: MemberName { MemberName("originalPurchaseDate") }
    @inlinable public static var expiresDate: MemberName { MemberName("expiresDate") }
    @inlinable public static var quantity: MemberName { MemberName("quantity") }
    @inlinable public static var appAccountToken: MemberName { MemberName("appAccountToken") }
    @inlinable public static var inAppOwnershipType: MemberName { MemberName("inAppOwnershipType") }
    @inlinable public static var revocationDate: MemberName { MemberName("revocationDate") }
    @inlinable public static var revocationReason: MemberName { MemberName("revocationReason") }
    @inlinable public static var revocationType: MemberName { MemberName("revocationType") }
    @inlinable public static var revocationPercentage: MemberName { MemberName("revocationPercentage") }
    @inlinable public static var isUpgraded: MemberName { MemberName("isUpgraded") }
    @inlinable public static var offerType: MemberName { MemberName("offerType") }
    @inlinable public static var offerIdentifier: MemberName { MemberName("offerIdentifier") }
    @inlinable public static var offerDiscountType: MemberName { MemberName("offerDiscountType") }
    @inlinable public static var offerPeriod: MemberName { MemberName("offerPeriod") }
    @inlinable public static var transactionReason: MemberName { MemberName("transactionReason") }
    @inlinable public static var storefront: MemberName { MemberName("storefront") }
    @inlinable public static var storefrontId: MemberName { MemberName("storefrontId") }
    @inlinable public static var price: MemberName { MemberName("price") }
    @inlinable public static var currency: MemberName { MemberName("currency") }
    @inlinable public static var billingPlanType: MemberName { MemberName("billingPlanType") }
    @inlinable public static var commitmentInfo: MemberName { MemberName("commitmentInfo") }
    @inlinable public static var advancedCommerceInfo: MemberName { MemberName("advancedCommerceInfo") }
    @inlinable public static var billingPeriodNumber: MemberName { MemberName("billingPeriodNumber") }
    @inlinable public static var totalBillingPeriods: MemberName { MemberName("totalBillingPeriods") }
    @inlinable public static var commitmentExpiresDate: MemberName { MemberName("commitmentExpiresDate") }
    @inlinable public static var commitmentPrice: MemberName { MemberName("commitmentPrice") }

    // Of renewal infos.
    @inlinable public static var autoRenewProductId: MemberName { MemberName("autoRenewProductId") }
    @inlinable public static var autoRenewStatus: MemberName { MemberName("autoRenewStatus") }
    @inlinable public static var expirationIntent: MemberName { MemberName("expirationIntent") }
    @inlinable public static var isInBillingRetryPeriod: MemberName { MemberName("isInBillingRetryPeriod") }
    @inlinable public static var gracePeriodExpiresDate: MemberName { MemberName("gracePeriodExpiresDate") }
    @inlinable public static var priceIncreaseStatus: MemberName { MemberName("priceIncreaseStatus") }
    @inlinable public static var renewalDate: MemberName { MemberName("renewalDate") }
    @inlinable public static var renewalPrice: MemberName { MemberName("renewalPrice") }
    @inlinable public static var eligibleWinBackOfferIds: MemberName { MemberName("eligibleWinBackOfferIds") }
    @inlinable public static var recentSubscriptionStartDate: MemberName { MemberName("recentSubscriptionStartDate") }
    @inlinable public static var renewalBillingPlanType: MemberName { MemberName("renewalBillingPlanType") }
    @inlinable public static var commitmentAutoRenewStatus: MemberName { MemberName("commitmentAutoRenewStatus") }
    @inlinable public static var commitmentAutoRenewProductId: MemberName { MemberName("commitmentAutoRenewProductId") }
    @inlinable public static var commitmentRenewalBillingPlanType: MemberName {
        MemberName("commitmentRenewalBillingPlanType")
    }
    @inlinable public static var commitmentRenewalDate: MemberName { MemberName("commitmentRenewalDate") }
    @inlinable public static var commitmentRenewalPrice: MemberName { MemberName("commitmentRenewalPrice") }

    // Of records of `usage`; the record `consumption` repeats what is known of a purchase under the same names.
    @inlinable public static var consented: MemberName { MemberName("consented") }
    @inlinable public static var consentedAt: MemberName { MemberName("consentedAt") }
    @inlinable public static var deliveryStatus: MemberName { MemberName("deliveryStatus") }
    @inlinable public static var sampleContentProvided: MemberName { MemberName("sampleContentProvided") }
    @inlinable public static var consumptionPercentage: MemberName { MemberName("consumptionPercentage") }
    @inlinable public static var refundPreference: MemberName { MemberName("refundPreference") }
    @inlinable public static var accountCreatedAt: MemberName { MemberName("accountCreatedAt") }
    @inlinable public static var playTimeSeconds: MemberName { MemberName("playTimeSeconds") }
    @inlinable public static var userStatus: MemberName { MemberName("userStatus") }
    @inlinable public static var platform: MemberName { MemberName("platform") }

    // Of app transactions. Before StoreKit 2 they were members of this one.
    @inlinable public static var appTransaction: MemberName { MemberName("appTransaction") }
    @inlinable public static var receiptType: MemberName { MemberName("receiptType") }
    @inlinable public static var applicationVersion: MemberName { MemberName("applicationVersion") }
    @inlinable public static var versionExternalIdentifier: MemberName { MemberName("versionExternalIdentifier") }
    @inlinable public static var receiptCreationDate: MemberName { MemberName("receiptCreationDate") }
    @inlinable public static var originalApplicationVersion: MemberName { MemberName("originalApplicationVersion") }
    @inlinable public static var deviceVerification: MemberName { MemberName("deviceVerification") }
    @inlinable public static var deviceVerificationNonce: MemberName { MemberName("deviceVerificationNonce") }
    @inlinable public static var preorderDate: MemberName { MemberName("preorderDate") }
    @inlinable public static var originalPlatform: MemberName { MemberName("originalPlatform") }
    @inlinable public static var storeType: MemberName { MemberName("storeType") }
}

extension JSONValue {
    /// nil if it is no object, or has no such member.
    public subscript(_ name: MemberName) -> JSONValue? {
        name.text.withUTF8Buffer { text in object?.members.last { $0.name.utf8.elementsEqual(text) }?.value }
    }
}
