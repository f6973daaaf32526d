// What signed payloads say of the next renewal.

public import Notices

/// One renewal info, with the status of its notification.
public struct RenewalInfo: Sendable, Hashable {
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

    /// What infos are ordered by. Two with one key say the same.
    struct Key: Sendable, Hashable, Comparable {
        let version: Version
        let status: Int64

        static func < (left: Key, right: Key) -> Bool {
            left.version == right.version ? left.status < right.status : left.version < right.version
        }
    }

    var key: Key { Key(version: version, status: status) }

    /// Bytes of its texts, and of all else about. For the limit.
    var weight: Int {
        [
            autoRenewProductId, appAccountToken, renewalBillingPlan, commitment?.autoRenewProductId,
            commitment?.renewalBillingPlan,
        ].reduce(60) { $0 + ($1?.bytes.count ?? 0) }
    }

    /// The flag, or Apple's status: the flag was seen false in grace after the conversion of a trial.
    var showsRetry: Bool { isInBillingRetryPeriod || status == 3 || status == 4 }

    /// Who cancels in grace or retry is not billed any more.
    var isCancelled: Bool { autoRenewStatus == 0 || expirationIntent == 1 }

    /// More than that renewal is on: such an info goes on to tell of its period when newer ones speak of others.
    var saysMore: Bool {
        showsRetry || gracePeriodExpiresDate != nil || expirationIntent != nil || autoRenewStatus == 0
    }
}
