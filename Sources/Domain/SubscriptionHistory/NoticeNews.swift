// Reads a record of `notifications`.

internal import Crypto
public import JSON
public import Notices
internal import Records

/// What one record says about the subscription that its key names: plain values. Texts stay in the document, so this is
/// valid until the document reads another record.
public struct NoticeNews {
    /// A transaction that can be used.
    public struct Transaction {
        public fileprivate(set) var id = TextPlace("")
        public fileprivate(set) var purchaseDate: Int64 = 0
        public fileprivate(set) var version = Version(signedDate: 0, hash: 0)
        public fileprivate(set) var expiresDate: Int64?
        public fileprivate(set) var revocationDate: Int64?
        public fileprivate(set) var isUpgraded = false
        public fileprivate(set) var price: Int64?
        public fileprivate(set) var originalPurchaseDate: Int64?
        public fileprivate(set) var revocationPercentage: Int64?
        public fileprivate(set) var type: TextPlace?
        public fileprivate(set) var bundleId: TextPlace?
        public fileprivate(set) var productId: TextPlace?
        public fileprivate(set) var subscriptionGroup: TextPlace?
        public fileprivate(set) var appAccountToken: TextPlace?
        public fileprivate(set) var ownership: TextPlace?
        /// A text that is too long for `ownership` counts too.
        public fileprivate(set) var isPurchased = true
        public fileprivate(set) var reason: TextPlace?
        public fileprivate(set) var storefront: TextPlace?
        public fileprivate(set) var previousOriginalTransactionId: TextPlace?
        public fileprivate(set) var revocationType: TextPlace?
        public fileprivate(set) var currency: TextPlace?
        public fileprivate(set) var billingPlan: TextPlace?
        public fileprivate(set) var offerType: Int64?
        public fileprivate(set) var offerIdentifier: TextPlace?
        public fileprivate(set) var offerDiscount: TextPlace?
        public fileprivate(set) var commitment: Particulars.Commitment?
    }

    public struct Renewal {
        /// Without its texts.
        public fileprivate(set) var row = RenewalRow(version: Version(signedDate: 0, hash: 0))
        public fileprivate(set) var autoRenewProductId: TextPlace?
        public fileprivate(set) var appAccountToken: TextPlace?
        public fileprivate(set) var renewalBillingPlan: TextPlace?
        public fileprivate(set) var commitmentProductId: TextPlace?
        public fileprivate(set) var commitmentBillingPlan: TextPlace?
    }

    public fileprivate(set) var notificationUUID: TextPlace?
    public fileprivate(set) var type: TextPlace?
    public fileprivate(set) var subtype: TextPlace?
    public fileprivate(set) var signedDate: Int64?
    /// Apple's own status, which came with the renewal info.
    public fileprivate(set) var status: Int64?
    /// The record has a transaction that cannot be used: without an id or a purchase date, or a renewing one without an
    /// end. This is counted, because Apple does not send such transactions.
    public fileprivate(set) var hasUnusableTransaction = false
    /// `transaction` can be used.
    public fileprivate(set) var hasTransaction = false
    /// `renewal` can be used.
    public fileprivate(set) var hasRenewal = false
    // Both are written and used where they are: copying one takes as long as reading some of its members.
    public fileprivate(set) var transaction = Transaction()
    public fileprivate(set) var renewal = Renewal()
    var introOfferUsed = false

    /// Of no record: it says nothing.
    public init() {}

    /// It says nothing about a subscription.
    public var isEmpty: Bool { !hasTransaction && !hasRenewal && !introOfferUsed }
    /// nil: it has no renewal info.
    public var renewalKey: RenewalRow.Key? { hasRenewal ? renewal.row.key : nil }
    var isExpired: Bool { type?.isWord(AppleWord.expired) ?? false }
}

/// Picks the members of records in one pass for each object.
///
/// A member that is absent, null or of the wrong type is ignored. Documents refuse names that occur twice.
public struct NoticeReader: ~Copyable {
    /// Two tokens in lower case: that of the transaction and that of the renewal info.
    private let lowered: UnsafeMutablePointer<UInt8>

    public init() { lowered = .allocate(capacity: 2 * Text.limitBytes) }

    deinit { lowered.deallocate() }

    /// - Parameter record: the document with the record's value, which must stay as long as the news are used.
    public func read(_ record: borrowing JSONDocument) -> NoticeNews {
        var news = NoticeNews()
        read(record, into: &news)
        return news
    }

    /// The same where the news of another record were.
    public func read(_ record: borrowing JSONDocument, into news: inout NoticeNews) {
        news = NoticeNews()
        var transaction: JSONDocument.Value?
        var renewal: JSONDocument.Value?
        record.forEachMember(of: record.root) { name, value in
            switch name.count {
            case 6 where name.isName(.status): news.status = record.integer(value)
            case 7 where name.isName(.subtype): news.subtype = record.place(value)
            case 10 where name.isName(.signedDate): news.signedDate = record.integer(value)
            case 11 where name.isName(.transaction): transaction = value
            case 11 where name.isName(.renewalInfo): renewal = value
            case 16 where name.isName(.notificationUUID): news.notificationUUID = record.place(value)
            case 16 where name.isName(.notificationType): news.type = record.place(value)
            default: break
            }
        }
        if let renewal, record.kind(of: renewal) == .object {
            news.hasRenewal = readRenewal(renewal, of: record, told: news.signedDate, into: &news.renewal)
            news.renewal.row.status = news.status ?? 0
        }
        if let transaction, record.kind(of: transaction) == .object {
            let reading = readTransaction(transaction, of: record, told: news.signedDate, into: &news.transaction)
            news.hasTransaction = reading == .usable
            news.hasUnusableTransaction = reading == .unusable
            news.introOfferUsed =
                reading != .absent && news.transaction.offerType == OfferType.introductory
        }
    }

    private enum Reading { case absent, unusable, usable }

    private func readTransaction(
        _ object: JSONDocument.Value, of record: borrowing JSONDocument, told notificationSigned: Int64?,
        into read: inout NoticeNews.Transaction
    ) -> Reading {
        var (isSealed, signedDate) = (false, notificationSigned)
        var (id, purchaseDate) = (TextPlace?.none, Int64?.none)
        record.forEachMember(of: object) { name, value in
            switch name.count {
            case 4 where name.isName(.type): read.type = record.place(value)
            case 5 where name.isName(.price): read.price = record.integer(value)
            case 6 where name.isName(.sealed): isSealed = true
            case 8 where name.isName(.bundleId): read.bundleId = record.place(value)
            case 8 where name.isName(.currency): read.currency = record.place(value)
            case 9 where name.isName(.productId): read.productId = record.place(value)
            case 9 where name.isName(.offerType): read.offerType = record.integer(value)
            case 10 where name.isName(.signedDate): signedDate = record.integer(value) ?? signedDate
            case 10 where name.isName(.isUpgraded): read.isUpgraded = record.bool(value) ?? false
            case 10 where name.isName(.storefront): read.storefront = record.place(value)
            case 11 where name.isName(.expiresDate): read.expiresDate = record.integer(value)
            case 12 where name.isName(.purchaseDate): purchaseDate = record.integer(value)
            case 13 where name.isName(.transactionId): id = record.place(value)
            case 14 where name.isName(.revocationDate): read.revocationDate = record.integer(value)
            case 14 where name.isName(.revocationType): read.revocationType = record.place(value)
            case 14 where name.isName(.commitmentInfo): read.commitment = commitment(value, of: record)
            case 15 where name.isName(.appAccountToken): read.appAccountToken = account(value, of: record, number: 0)
            case 15 where name.isName(.billingPlanType): read.billingPlan = record.place(value)
            case 15 where name.isName(.offerIdentifier): read.offerIdentifier = record.place(value)
            case 17 where name.isName(.offerDiscountType): read.offerDiscount = record.place(value)
            case 17 where name.isName(.transactionReason): read.reason = record.place(value)
            case 18 where name.isName(.inAppOwnershipType):
                read.ownership = record.place(value)
                read.isPurchased =
                    read.ownership?.isWord(AppleWord.purchased) ?? (record.kind(of: value) != .string)
            case 20 where name.isName(.originalPurchaseDate): read.originalPurchaseDate = record.integer(value)
            case 20 where name.isName(.revocationPercentage): read.revocationPercentage = record.integer(value)
            case 27 where name.isName(.subscriptionGroupIdentifier): read.subscriptionGroup = record.place(value)
            case 29 where name.isName(.previousOriginalTransactionId):
                read.previousOriginalTransactionId = record.place(value)
            default: break
            }
        }
        // Encrypted with a key that may be deleted: the same as absent.
        if isSealed { return .absent }
        guard let id, let purchaseDate, let signedDate else { return .unusable }
        if read.expiresDate == nil, read.type?.isWord(AppleWord.autoRenewable) ?? false { return .unusable }
        read.id = id
        read.purchaseDate = purchaseDate
        read.version = Version(signedDate: signedDate, hash: SHA256.beginning(of: record.raw(object)))
        return .usable
    }

    /// - Returns: false: it cannot be used.
    private func readRenewal(
        _ object: JSONDocument.Value, of record: borrowing JSONDocument, told notificationSigned: Int64?,
        into read: inout NoticeNews.Renewal
    ) -> Bool {
        var (isSealed, signedDate) = (false, notificationSigned)
        record.forEachMember(of: object) { name, value in
            switch name.count {
            case 6 where name.isName(.sealed): isSealed = true
            case 10 where name.isName(.signedDate): signedDate = record.integer(value) ?? signedDate
            case 11 where name.isName(.renewalDate): read.row.renewalDate = record.integer(value)
            case 12 where name.isName(.renewalPrice): read.row.renewalPrice = record.integer(value)
            case 14 where name.isName(.commitmentInfo): readCommitment(value, of: record, into: &read)
            case 15 where name.isName(.autoRenewStatus): read.row.autoRenewStatus = record.integer(value)
            case 15 where name.isName(.appAccountToken): read.appAccountToken = account(value, of: record, number: 1)
            case 16 where name.isName(.expirationIntent): read.row.expirationIntent = record.integer(value)
            case 18 where name.isName(.autoRenewProductId): read.autoRenewProductId = record.place(value)
            case 19 where name.isName(.priceIncreaseStatus): read.row.priceIncreaseStatus = record.integer(value)
            case 22 where name.isName(.isInBillingRetryPeriod):
                read.row.isInBillingRetryPeriod = record.bool(value) ?? false
            case 22 where name.isName(.gracePeriodExpiresDate):
                read.row.gracePeriodExpiresDate = record.integer(value)
            case 22 where name.isName(.renewalBillingPlanType): read.renewalBillingPlan = record.place(value)
            default: break
            }
        }
        guard !isSealed, let signedDate else { return false }
        read.row.version = Version(signedDate: signedDate, hash: SHA256.beginning(of: record.raw(object)))
        return true
    }

    private func commitment(_ object: JSONDocument.Value, of record: borrowing JSONDocument) -> Particulars.Commitment?
    {
        guard record.kind(of: object) == .object else { return nil }
        var (read, isSealed) = (Particulars.Commitment(), false)
        record.forEachMember(of: object) { name, value in
            switch name.count {
            case 6 where name.isName(.sealed): isSealed = true
            case 15 where name.isName(.commitmentPrice): read.price = record.integer(value)
            case 19 where name.isName(.billingPeriodNumber): read.period = record.integer(value)
            case 19 where name.isName(.totalBillingPeriods): read.of = record.integer(value)
            case 21 where name.isName(.commitmentExpiresDate): read.endsAt = record.integer(value)
            default: break
            }
        }
        return isSealed ? nil : read
    }

    private func readCommitment(
        _ object: JSONDocument.Value, of record: borrowing JSONDocument, into renewal: inout NoticeNews.Renewal
    ) {
        guard record.kind(of: object) == .object else { return }
        var (commitment, isSealed) = (RenewalRow.Commitment(), false)
        var (product, plan) = (TextPlace?.none, TextPlace?.none)
        record.forEachMember(of: object) { name, value in
            switch name.count {
            case 6 where name.isName(.sealed): isSealed = true
            case 25 where name.isName(.commitmentAutoRenewStatus): commitment.autoRenewStatus = record.integer(value)
            case 28 where name.isName(.commitmentAutoRenewProductId): product = record.place(value)
            case 32 where name.isName(.commitmentRenewalBillingPlanType): plan = record.place(value)
            default: break
            }
        }
        if isSealed { return }
        renewal.row.commitment = commitment
        renewal.commitmentProductId = product
        renewal.commitmentBillingPlan = plan
    }

    /// In lower case. An empty token names nobody, and the vertical bar separates the parts of keys of `accounts`.
    private func account(
        _ value: JSONDocument.Value, of record: borrowing JSONDocument, number: Int
    ) -> TextPlace? {
        guard let token = record.place(value), token.count > 0 else { return nil }
        let has = token.accountMarks
        if has.bar { return nil }
        guard has.upperCase else { return token }
        let lower = lowered + number * Text.limitBytes
        // Only ASCII letters change: UUIDs contain no others.
        for (place, byte) in token.bytes.enumerated() { lower[place] = isUpperCase(byte) ? byte | 0x20 : byte }
        return TextPlace(start: lower, count: token.count)
    }
}

private func isUpperCase(_ byte: UInt8) -> Bool { (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte) }

extension TextPlace {
    /// Whether it has a vertical bar, and whether it has letters in upper case. Looks at eight bytes at a time.
    fileprivate var accountMarks: (bar: Bool, upperCase: Bool) {
        let (tops, ones) = (0x8080_8080_8080_8080 as UInt64, 0x0101_0101_0101_0101 as UInt64)
        var (bars, letters): (UInt64, UInt64) = (0, 0)
        func look(at word: UInt64) {
            // Sums of bytes below 0x80, so that nothing is carried into the next byte.
            let low = word & ~tops
            bars |= ~((low ^ ones &* 0x7c) &+ ones &* 0x7f) & ~word
            letters |= (low &+ ones &* (0x80 - 0x41)) & ~(low &+ ones &* (0x80 - 0x5b)) & ~word
        }
        var place = 0
        if count >= 8 {
            while place < count - 8 {
                look(at: UnsafeRawPointer(start).loadUnaligned(fromByteOffset: place, as: UInt64.self))
                place += 8
            }
            // The last eight bytes overlap with those before.
            look(at: UnsafeRawPointer(start).loadUnaligned(fromByteOffset: count - 8, as: UInt64.self))
        } else {
            for byte in bytes { look(at: UInt64(byte)) }
        }
        return (bars & tops != 0, letters & tops != 0)
    }
}

extension UnsafeBufferPointer<UInt8> {
    @inline(__always) fileprivate func isName(_ name: MemberName) -> Bool {
        guard let baseAddress else { return name.text.utf8CodeUnitCount == 0 }
        return TextPlace(start: baseAddress, count: count).isWord(name.text)
    }
}

extension JSONDocument {
    fileprivate borrowing func place(_ value: Value) -> TextPlace? {
        guard let bytes = textBytes(value), let start = bytes.baseAddress else { return nil }
        return TextPlace(start: start, count: bytes.count)
    }
}
