// What is known about one transaction: a row of the history.

public import Notices
internal import Records

/// The id of a transaction, where it lies. Sorted by the order of the ids' bytes, as `TransactionId`.
public struct PurchaseId: BitwiseCopyable, Equatable {
    /// Apple's ids are numbers.
    public let number: UInt64
    /// nil: it is the number.
    public let text: TextPlace?

    public init(number: UInt64) {
        self.number = number
        text = nil
    }

    /// Any text is an id.
    public init(_ place: TextPlace) {
        if let number = TransactionId.number(place.bytes) {
            self.number = number
            text = nil
        } else {
            number = 0
            text = place
        }
    }

    public static func < (left: PurchaseId, right: PurchaseId) -> Bool {
        if left.text == nil, right.text == nil { return TransactionId.precedes(left.number, right.number) }
        return left.withBytes { left in right.withBytes { left.lexicographicallyPrecedes($0) } }
    }

    /// Both are numbers, and this is the smaller one. Its digits may still sort behind those of the other.
    @inline(__always) func isNumber(below other: PurchaseId) -> Bool {
        text == nil && other.text == nil && number < other.number
    }

    private func withBytes<Result>(_ body: (UnsafeBufferPointer<UInt8>) -> Result) -> Result {
        if let text { return body(text.bytes) }
        return withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 20) { digits in
            var first = digits.count
            var rest = number
            repeat {
                first -= 1
                digits[first] = UInt8(ascii: "0") + UInt8(truncatingIfNeeded: rest % 10)
                rest /= 10
            } while rest > 0
            return body(UnsafeBufferPointer(rebasing: digits[first...]))
        }
    }

    /// A copy.
    public var copy: TransactionId { text.map { TransactionId($0.text) } ?? TransactionId(number: number) }
}

/// Values that rarely change from one period to the next: neighbours with the same ones share a row in `History.terms`.
public struct Terms: BitwiseCopyable, Equatable {
    public var type = TextNumber.none
    public var bundleId = TextNumber.none
    public var productId = TextNumber.none
    public var subscriptionGroup = TextNumber.none
    /// In lower case.
    public var appAccountToken = TextNumber.none
    public var ownership = TextNumber.none
    public var revocationType = TextNumber.none
    public var currency = TextNumber.none
    public var billingPlan = TextNumber.none
    /// What their words mean. To be set whenever they change.
    public var meaning = Meaning()

    public struct Meaning: BitwiseCopyable, Equatable {
        /// According to `type`.
        public var isOneTime = false
        /// `MONTHLY`.
        public var isMonthly = false
        public var isFamilyShared = false
        /// A family or an organisation takes it back instead of Apple refunding it.
        public var isRevokedByFamily = false
        var textBytes: Int32 = 0
    }

    /// Replaces all texts, in the order in which they are kept.
    @inline(__always) mutating func mapTexts(_ number: (TextNumber) -> TextNumber) {
        type = number(type)
        bundleId = number(bundleId)
        productId = number(productId)
        subscriptionGroup = number(subscriptionGroup)
        appAccountToken = number(appAccountToken)
        ownership = number(ownership)
        revocationType = number(revocationType)
        currency = number(currency)
        billingPlan = number(billingPlan)
    }

    @inline(__always) func forEachText(_ body: (TextNumber) -> Void) {
        var terms = self
        terms.mapTexts {
            body($0)
            return $0
        }
    }

    mutating func readWords(_ texts: borrowing KnownTexts) {
        var bytes = 0
        forEachText { bytes += texts.byteCount($0) }
        meaning = Meaning()
        meaning.textBytes = Int32(bytes)
        if let type = texts[type] {
            meaning.isOneTime =
                type.isWord(AppleWord.nonConsumable) || type.isWord(AppleWord.consumable)
                || type.isWord(AppleWord.nonRenewing)
        }
        if let plan = texts[billingPlan] { meaning.isMonthly = plan.isWord(AppleWord.monthly) }
        if let ownership = texts[ownership] {
            meaning.isFamilyShared = ownership.isWord(AppleWord.familyShared)
            meaning.isRevokedByFamily = meaning.isFamilyShared || ownership.isWord(AppleWord.assigned)
        }
        if let type = texts[revocationType] {
            if type.isWord(AppleWord.familyRevoke) || type.isWord(AppleWord.assignmentRevoke) {
                meaning.isRevokedByFamily = true
            }
        }
    }
}

/// Values that few transactions have: in `History.particulars`.
public struct Particulars: BitwiseCopyable, Equatable {
    public struct Offer: BitwiseCopyable, Equatable {
        public var type: Int64
        public var identifier: TextNumber
        public var discount: TextNumber
    }

    public struct Commitment: BitwiseCopyable, Equatable {
        public var period: Int64?
        public var of: Int64?
        public var endsAt: Int64?
        public var price: Int64?
    }

    public var offer: Offer?
    public var commitment: Commitment?
}

/// Everything known about one transaction with one purchase date.
///
/// The purchase date of a transaction should not change, but nothing guarantees it. Because the date is part of the
/// key, the key alone decides what exceeds the limit of a subscription, whatever came first.
///
/// The order of its members leaves no gaps between them: all rows of a subscription are to fit in the fastest memory.
public struct Purchase: BitwiseCopyable {
    /// The content of an `EXPIRED` notification, and when Apple signed it.
    public struct Expiry: BitwiseCopyable, Equatable {
        /// A subtype longer than any of Apple's is cut off.
        static let limitSubtypeBytes = 40

        public var signedDate: Int64
        /// Never none: the empty text if it was absent.
        public var subtype: TextNumber
    }

    /// The key that the limit uses.
    public struct Key: BitwiseCopyable, Equatable {
        var purchaseDate: Int64
        var id: PurchaseId

        @inline(__always) static func < (left: Key, right: Key) -> Bool {
            left.purchaseDate == right.purchaseDate ? left.id < right.id : left.purchaseDate < right.purchaseDate
        }
    }

    public internal(set) var id: PurchaseId
    public internal(set) var purchaseDate: Int64
    /// The newest version. The members below are its content, except those that say something else.
    public var version: Version
    /// The earliest signing date of all versions.
    public var firstSigned: Int64
    public var expiresDate: Int64?
    public var isUpgraded = false
    /// The place in `History.terms`.
    public var terms: Int32 = 0
    public var revocationDate: Int64?
    /// Where it lies in the kept bytes; empty: it is not kept yet, or is kept in another form.
    var keptFrom: Int32 = 0
    public var price: Int64?
    var keptTo: Int32 = 0
    /// The earliest signing date of the versions that are marked as upgraded.
    public var firstUpgraded: Int64?
    /// The place in `History.particulars`; -1: it has none.
    public var particulars: Int32 = -1
    /// The greatest known one, of any version.
    public var expiry: Expiry?
    /// From the heaviest version: the bytes of its texts plus an estimate for the rest. Used for the limit.
    var weight: Int32 = 0

    init(id: PurchaseId, purchaseDate: Int64, _ version: Version) {
        self.id = id
        self.purchaseDate = purchaseDate
        self.version = version
        firstSigned = version.signedDate
    }

    public var key: Key { Key(purchaseDate: purchaseDate, id: id) }
}
