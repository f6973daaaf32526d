// The members of Apple's payloads: names and JSON types from Apple's documentation, up to version 2.21 of the
// notifications, and members that later documentation adds.

import Records

extension PayloadKind {
    var members: MemberTable {
        switch self {
        case .notification: .notification
        case .transaction: .transaction
        case .renewal: .renewal
        case .appTransaction: .appTransaction
        }
    }
}

extension MemberTable {
    static let notification = MemberTable(
        required: [(.notificationType, .string), (.notificationUUID, .string), (.signedDate, .integer)],
        [
            (.subtype, .string), (.version, .string), (.data, .object(data)), (.summary, .object(summary)),
            (.externalPurchaseToken, .object(externalPurchaseToken)), (.appData, .object(appData)),
        ])

    private static let data = MemberTable([
        (.appAppleId, .integer), (.bundleId, .string), (.bundleVersion, .string), (.environment, .string),
        (.signedTransactionInfo, .string), (.signedRenewalInfo, .string), (.status, .integer),
        (.consumptionRequestReason, .string),
    ])

    private static let summary = MemberTable([
        (.requestIdentifier, .string), (.environment, .string), (.bundleId, .string), (.productId, .string),
        (.appAppleId, .integer), (.storefrontCountryCodes, .strings), (.succeededCount, .integer),
        (.failedCount, .integer),
    ])

    private static let externalPurchaseToken = MemberTable([
        (.externalPurchaseId, .string), (.tokenCreationDate, .integer), (.appAppleId, .integer),
        (.bundleId, .string), (.tokenExpirationDate, .integer), (.tokenType, .string),
    ])

    private static let appData = MemberTable([
        (.appAppleId, .integer), (.bundleId, .string), (.environment, .string),
        (.signedAppTransactionInfo, .string),
    ])

    static let appTransaction = MemberTable([
        (.receiptType, .string), (.appAppleId, .integer), (.bundleId, .string), (.applicationVersion, .string),
        (.versionExternalIdentifier, .integer), (.receiptCreationDate, .integer), (.originalPurchaseDate, .integer),
        (.originalApplicationVersion, .string), (.deviceVerification, .string), (.deviceVerificationNonce, .string),
        (.preorderDate, .integer), (.appTransactionId, .string), (.originalPlatform, .string),
        (.storeType, .string),
    ])

    static let transaction = MemberTable(
        required: [
            (.transactionId, .string), (.originalTransactionId, .string), (.bundleId, .string),
            (.productId, .string), (.environment, .string),
        ],
        [
            (.webOrderLineItemId, .string), (.subscriptionGroupIdentifier, .string), (.purchaseDate, .integer),
            (.originalPurchaseDate, .integer), (.expiresDate, .integer), (.quantity, .integer), (.type, .string),
            (.appAccountToken, .string), (.inAppOwnershipType, .string), (.signedDate, .integer),
            (.revocationDate, .integer), (.revocationReason, .integer), (.revocationType, .string),
            (.revocationPercentage, .integer), (.isUpgraded, .bool), (.offerType, .integer),
            (.offerIdentifier, .string), (.offerDiscountType, .string), (.offerPeriod, .string),
            (.transactionReason, .string), (.storefront, .string), (.storefrontId, .string), (.price, .integer),
            (.currency, .string), (.appTransactionId, .string), (.billingPlanType, .string),
            (.commitmentInfo, .object(transactionCommitment)), (.advancedCommerceInfo, .anything),
            (.previousOriginalTransactionId, .string),
        ])

    private static let transactionCommitment = MemberTable([
        (.billingPeriodNumber, .integer), (.totalBillingPeriods, .integer), (.commitmentExpiresDate, .integer),
        (.commitmentPrice, .integer),
    ])

    static let renewal = MemberTable(
        required: [(.originalTransactionId, .string), (.environment, .string), (.autoRenewStatus, .integer)],
        [
            (.productId, .string), (.autoRenewProductId, .string), (.expirationIntent, .integer),
            (.isInBillingRetryPeriod, .bool), (.gracePeriodExpiresDate, .integer), (.priceIncreaseStatus, .integer),
            (.renewalDate, .integer), (.renewalPrice, .integer), (.currency, .string), (.offerType, .integer),
            (.offerIdentifier, .string), (.offerDiscountType, .string), (.offerPeriod, .string),
            (.eligibleWinBackOfferIds, .strings), (.recentSubscriptionStartDate, .integer),
            (.appAccountToken, .string), (.appTransactionId, .string), (.signedDate, .integer),
            (.renewalBillingPlanType, .string), (.commitmentInfo, .object(renewalCommitment)),
            (.advancedCommerceInfo, .anything),
        ])

    private static let renewalCommitment = MemberTable([
        (.commitmentAutoRenewStatus, .integer), (.commitmentAutoRenewProductId, .string),
        (.commitmentRenewalBillingPlanType, .string), (.commitmentRenewalDate, .integer),
        (.commitmentRenewalPrice, .integer),
    ])
}
