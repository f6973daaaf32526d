// What was said about the next renewal, where it lies.

internal import Notices
import SubscriptionHistory

/// A renewal info in the history, which keeps it as long as the rows are used. Rules ask it many questions, and each would
/// copy all of a plain `RenewalRow`.
struct Info: BitwiseCopyable {
    private let place: UnsafePointer<RenewalRow>

    init(_ place: UnsafePointer<RenewalRow>) { self.place = place }

    var version: Version { place.pointee.version }
    var autoRenewStatus: Int64? { place.pointee.autoRenewStatus }
    var autoRenewProductId: TextNumber { place.pointee.autoRenewProductId }
    var expirationIntent: Int64? { place.pointee.expirationIntent }
    var gracePeriodExpiresDate: Int64? { place.pointee.gracePeriodExpiresDate }
    var priceIncreaseStatus: Int64? { place.pointee.priceIncreaseStatus }
    var renewalDate: Int64? { place.pointee.renewalDate }
    var renewalPrice: Int64? { place.pointee.renewalPrice }
    var appAccountToken: TextNumber { place.pointee.appAccountToken }
    var renewalBillingPlan: TextNumber { place.pointee.renewalBillingPlan }
    var commitment: RenewalRow.Commitment? { place.pointee.commitment }
    var showsRetry: Bool { place.pointee.showsRetry }
    var isCancelled: Bool { place.pointee.isCancelled }
    var saysMore: Bool { place.pointee.saysMore }
}
