// What signed payloads say of the next renewal.

/// One renewal info, with the status of its notification.
public struct RenewalInfo: Sendable, Hashable, Comparable {
    public struct Commitment: Sendable, Hashable {
        public var autoRenewStatus: Int64?
        public var autoRenewProductId: Text?
        public var renewalBillingPlan: Text?
    }

    public var version: Version
    /// `data.status`; 0 when it was absent.
    public var status: Int64 = 0
    public var autoRenewStatus: Int64?
    public var autoRenewProductId: Text?
    public var expirationIntent: Int64?
    public var isInBillingRetryPeriod = false
    public var gracePeriodExpiresDate: Int64?
    public var priceIncreaseStatus: Int64?
    public var renewalDate: Int64?
    public var renewalPrice: Int64?
    /// Lower case.
    public var appAccountToken: Text?
    public var renewalBillingPlan: Text?
    public var commitment: Commitment?

    public init(version: Version) { self.version = version }

    public static func < (left: RenewalInfo, right: RenewalInfo) -> Bool {
        (left.version, left.status) < (right.version, right.status)
    }

    func isSame(as other: RenewalInfo) -> Bool { version == other.version && status == other.status }

    /// The flag, or Apple's status: the flag was seen false in grace after the conversion of a trial.
    var showsRetry: Bool { isInBillingRetryPeriod || status == 3 || status == 4 }

    /// Who cancels in grace or retry is not billed any more.
    var isCancelled: Bool { autoRenewStatus == 0 || expirationIntent == 1 }

    /// More than that renewal is on: such an info goes on to tell of its period when newer ones speak of others.
    var saysMore: Bool {
        showsRetry || gracePeriodExpiresDate != nil || expirationIntent != nil || autoRenewStatus == 0
    }
}
