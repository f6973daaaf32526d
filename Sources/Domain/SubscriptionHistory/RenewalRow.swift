// What signed payloads say about the next renewal: a row of the history.

public import Notices

/// One renewal info, with the status of its notification.
public struct RenewalRow: BitwiseCopyable {
    public struct Commitment: BitwiseCopyable, Equatable {
        public var autoRenewStatus: Int64?
        public var autoRenewProductId = TextNumber.none
        public var renewalBillingPlan = TextNumber.none
    }

    /// Infos are sorted by this key. Two infos with one key have the same content.
    public struct Key: BitwiseCopyable, Equatable {
        var version: Version
        var status: Int64

        static func < (left: Key, right: Key) -> Bool {
            left.version == right.version ? left.status < right.status : left.version < right.version
        }
    }

    public var version: Version
    /// `data.status`; 0 if it was absent.
    public var status: Int64 = 0
    public var autoRenewStatus: Int64?
    public var autoRenewProductId = TextNumber.none
    public var expirationIntent: Int64?
    public var isInBillingRetryPeriod = false
    public var gracePeriodExpiresDate: Int64?
    public var priceIncreaseStatus: Int64?
    public var renewalDate: Int64?
    public var renewalPrice: Int64?
    /// In lower case.
    public var appAccountToken = TextNumber.none
    public var renewalBillingPlan = TextNumber.none
    public var commitment: Commitment?

    init(version: Version) { self.version = version }

    public var key: Key { Key(version: version, status: status) }

    /// The bytes of its texts plus an estimate for the rest. Used for the limit.
    @inline(__always) func weight(_ texts: borrowing KnownTexts) -> Int {
        var weight = 60 + texts.byteCount(autoRenewProductId) + texts.byteCount(appAccountToken)
        weight += texts.byteCount(renewalBillingPlan)
        if let commitment {
            weight += texts.byteCount(commitment.autoRenewProductId) + texts.byteCount(commitment.renewalBillingPlan)
        }
        return weight
    }

    /// The flag or Apple's status: the flag has been false during grace after the conversion of a trial.
    @inlinable public var showsRetry: Bool { isInBillingRetryPeriod || status == 3 || status == 4 }

    /// A customer who cancels during grace or retry is not billed any more.
    @inlinable public var isCancelled: Bool { autoRenewStatus == 0 || expirationIntent == 1 }

    /// True if it says more than that renewal is on: such an info still describes its period when newer infos describe
    /// others.
    @inlinable public var saysMore: Bool {
        showsRetry || gracePeriodExpiresDate != nil || expirationIntent != nil || autoRenewStatus == 0
    }
}
