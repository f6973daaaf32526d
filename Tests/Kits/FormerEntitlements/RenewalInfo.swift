// What signed payloads say about the next renewal.

public import Notices

/// One renewal info, with the status of its notification.
public struct RenewalInfo: Sendable, Hashable {
    public struct Commitment: Sendable, Hashable {
        public var autoRenewStatus: Int64?
        public var autoRenewProductId: Text?
        public var renewalBillingPlan: Text?
    }

    public var version: Version
    /// `data.status`; 0 if it was absent.
    public var status: Int64 = 0
    public var autoRenewStatus: Int64?
    public var autoRenewProductId: Text?
    public var expirationIntent: Int64?
    public var isInBillingRetryPeriod = false
    public var gracePeriodExpiresDate: Int64?
    public var priceIncreaseStatus: Int64?
    public var renewalDate: Int64?
    public var renewalPrice: Int64?
    /// In lower case.
    public var appAccountToken: Text?
    public var renewalBillingPlan: Text?
    public var commitment: Commitment?

    public init(version: Version) { self.version = version }

    /// Infos are sorted by this key. Two infos with one key have the same content.
    struct Key: Sendable, Hashable, Comparable {
        let version: Version
        let status: Int64

        static func < (left: Key, right: Key) -> Bool {
            left.version == right.version ? left.status < right.status : left.version < right.version
        }
    }

    var key: Key { Key(version: version, status: status) }

    /// The bytes of its texts plus an estimate for the rest. Used for the limit.
    var weight: Int {
        [
            autoRenewProductId, appAccountToken, renewalBillingPlan, commitment?.autoRenewProductId,
            commitment?.renewalBillingPlan,
        ].reduce(60) { $0 + ($1?.bytes.count ?? 0) }
    }

    /// The flag or Apple's status: the flag has been false during grace after the conversion of a trial.
    var showsRetry: Bool { isInBillingRetryPeriod || status == 3 || status == 4 }

    /// A customer who cancels during grace or retry is not billed any more.
    var isCancelled: Bool { autoRenewStatus == 0 || expirationIntent == 1 }

    /// True if it says more than that renewal is on: such an info still describes its period when newer infos describe
    /// others.
    var saysMore: Bool {
        showsRetry || gracePeriodExpiresDate != nil || expirationIntent != nil || autoRenewStatus == 0
    }
}
