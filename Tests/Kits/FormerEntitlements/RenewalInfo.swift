// What signed payloads say about the next renewal.

internal import Notices

/// One renewal info, with the status of its notification.
struct RenewalInfo: Sendable, Hashable {
    struct Commitment: Sendable, Hashable {
        var autoRenewStatus: Int64?
        var autoRenewProductId: Text?
        var renewalBillingPlan: Text?
    }

    var version: Version
    /// `data.status`; 0 if it was absent.
    var status: Int64 = 0
    var autoRenewStatus: Int64?
    var autoRenewProductId: Text?
    var expirationIntent: Int64?
    var isInBillingRetryPeriod = false
    var gracePeriodExpiresDate: Int64?
    var priceIncreaseStatus: Int64?
    var renewalDate: Int64?
    var renewalPrice: Int64?
    /// In lower case.
    var appAccountToken: Text?
    var renewalBillingPlan: Text?
    var commitment: Commitment?

    init(version: Version) { self.version = version }

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
