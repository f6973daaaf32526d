// The words in Apple's payloads that decide something. All others are passed through.

public enum AppleWord {
    // Types of notifications.
    @inlinable public static var subscribed: StaticString { "SUBSCRIBED" }
    @inlinable public static var didRenew: StaticString { "DID_RENEW" }
    @inlinable public static var didFailToRenew: StaticString { "DID_FAIL_TO_RENEW" }
    @inlinable public static var gracePeriodExpired: StaticString { "GRACE_PERIOD_EXPIRED" }
    @inlinable public static var expired: StaticString { "EXPIRED" }
    @inlinable public static var didChangeRenewalPref: StaticString { "DID_CHANGE_RENEWAL_PREF" }
    @inlinable public static var didChangeRenewalStatus: StaticString { "DID_CHANGE_RENEWAL_STATUS" }
    @inlinable public static var offerRedeemed: StaticString { "OFFER_REDEEMED" }
    @inlinable public static var refund: StaticString { "REFUND" }
    @inlinable public static var refundDeclined: StaticString { "REFUND_DECLINED" }
    @inlinable public static var refundReversed: StaticString { "REFUND_REVERSED" }
    @inlinable public static var consumptionRequest: StaticString { "CONSUMPTION_REQUEST" }
    @inlinable public static var revoke: StaticString { "REVOKE" }

    // Their subtypes.
    @inlinable public static var initialBuy: StaticString { "INITIAL_BUY" }
    @inlinable public static var upgrade: StaticString { "UPGRADE" }
    @inlinable public static var downgrade: StaticString { "DOWNGRADE" }
    @inlinable public static var billingRecovery: StaticString { "BILLING_RECOVERY" }
    @inlinable public static var billingRetry: StaticString { "BILLING_RETRY" }
    @inlinable public static var voluntary: StaticString { "VOLUNTARY" }
    @inlinable public static var priceIncrease: StaticString { "PRICE_INCREASE" }
    @inlinable public static var productNotForSale: StaticString { "PRODUCT_NOT_FOR_SALE" }
    @inlinable public static var autoRenewEnabled: StaticString { "AUTO_RENEW_ENABLED" }
    @inlinable public static var autoRenewDisabled: StaticString { "AUTO_RENEW_DISABLED" }

    // Types of products.
    @inlinable public static var autoRenewable: StaticString { "Auto-Renewable Subscription" }
    @inlinable public static var nonRenewing: StaticString { "Non-Renewing Subscription" }
    @inlinable public static var consumable: StaticString { "Consumable" }
    @inlinable public static var nonConsumable: StaticString { "Non-Consumable" }

    // What a transaction is.
    @inlinable public static var purchase: StaticString { "PURCHASE" }
    @inlinable public static var renewal: StaticString { "RENEWAL" }
    @inlinable public static var purchased: StaticString { "PURCHASED" }
    @inlinable public static var familyShared: StaticString { "FAMILY_SHARED" }
    /// Seats that an organisation gives out. They end like a family's.
    @inlinable public static var assigned: StaticString { "ASSIGNED" }
    @inlinable public static var familyRevoke: StaticString { "FAMILY_REVOKE" }
    @inlinable public static var assignmentRevoke: StaticString { "ASSIGNMENT_REVOKE" }
    @inlinable public static var freeTrial: StaticString { "FREE_TRIAL" }
    @inlinable public static var billedUpfront: StaticString { "BILLED_UPFRONT" }
    /// A commitment: billed monthly, for a year.
    @inlinable public static var monthly: StaticString { "MONTHLY" }
}
