// Reads a record of `notifications`.

internal import Crypto
internal import JSON
internal import Notices
internal import Records

extension Facts {
    /// Apple's prices are below a hundredth of it. A higher price is an error, and must not overflow the sums of other
    /// customers.
    private static let limitPrice: Int64 = 10_000_000_000_000

    /// nil if the notification has no date: then nobody can say when it holds.
    /// - Parameter record: the document with the record's value. A member that is absent, null or of the wrong type is
    ///   ignored.
    init?(notification record: borrowing JSONDocument) {
        guard let signedDate = record.integer(.signedDate, of: record.root) else { return nil }
        self.init()
        let transaction = record.object(.transaction, of: record.root)
        let info = record.object(.renewalInfo, of: record.root)
        let notice = Notice(
            signedDate: signedDate, id: NoticeId(record, transaction, info),
            type: NoticeType(record), subtype: NoticeSubtype(record),
            transaction: transaction.flatMap { self.transaction(record, $0, signedDate) },
            info: info.map { self.info(record, $0, signedDate) })
        self.init(
            notice, texts: texts, parts: parts, hasUnusableTransaction: transaction != nil && notice.transaction == nil)
    }

    private func text(_ record: borrowing JSONDocument, _ name: MemberName, _ object: JSONDocument.Value) -> Text? {
        record.text(name, of: object).flatMap { $0.isUsable ? $0 : nil }
    }

    private mutating func transaction(
        _ record: borrowing JSONDocument, _ object: JSONDocument.Value, _ notificationSigned: Int64
    ) -> Transaction? {
        guard let id = text(record, .transactionId, object),
            let purchaseDate = record.integer(.purchaseDate, of: object),
            let version = Version(record, object, notificationSigned: notificationSigned)
        else { return nil }
        let expiresDate = record.integer(.expiresDate, of: object)
        let kind = ProductKind(record, object)
        if kind == .autoRenewable && expiresDate == nil { return nil }
        let isRenewing = kind == .autoRenewable || kind == .unknown && expiresDate != nil
        let plan = text(record, .billingPlanType, object)
        let numbers = PartNumbers(
            bundle: number(text(record, .bundleId, object)), product: number(text(record, .productId, object)),
            plan: isRenewing ? number(plan ?? .billedUpfront) : 0,
            storefront: number(text(record, .storefront, object)), currency: number(text(record, .currency, object)),
            isCommitment: isRenewing && plan == .monthly)
        let transaction = Transaction(
            id: rowId(id), version: version, purchaseDate: purchaseDate,
            originalPurchaseDate: record.integer(.originalPurchaseDate, of: object), expiresDate: expiresDate,
            revocationDate: record.integer(.revocationDate, of: object),
            revocationPercentage: record.integer(.revocationPercentage, of: object).map { min(max($0, 0), 100_000) },
            price: record.integer(.price, of: object).flatMap { (0...Self.limitPrice).contains($0) ? $0 : nil },
            period: nil, periods: nil, reason: Transaction.Reason(record, object),
            isUpgraded: record.bool(.isUpgraded, of: object) ?? false,
            isFreeTrial: record.isText(.offerDiscountType, of: object, AppleWord.freeTrial),
            isPurchased: record.isAbsent(.inAppOwnershipType, of: object)
                || record.isText(.inAppOwnershipType, of: object, AppleWord.purchased),
            isRenewing: isRenewing,
            continuesAnother: text(record, .previousOriginalTransactionId, object) != nil, parts: addParts(numbers))
        guard let commitment = record.object(.commitmentInfo, of: object) else { return transaction }
        var committed = transaction
        committed.period = record.integer(.billingPeriodNumber, of: commitment)
        committed.periods = record.integer(.totalBillingPeriods, of: commitment)
        return committed
    }

    private mutating func rowId(_ text: Text) -> RowId {
        switch TransactionId(text).form {
        case .number(let number): .number(number)
        case .text(let text): .text(number(text))
        }
    }

    private mutating func info(
        _ record: borrowing JSONDocument, _ object: JSONDocument.Value, _ notificationSigned: Int64
    ) -> Info {
        let version =
            Version(record, object, notificationSigned: notificationSigned)
            ?? Version(signedDate: notificationSigned, hash: 0)
        var info = Info(version: version)
        info.autoRenewStatus = record.integer(.autoRenewStatus, of: object)
        info.expirationIntent = record.integer(.expirationIntent, of: object)
        info.gracePeriodExpiresDate = record.integer(.gracePeriodExpiresDate, of: object)
        info.priceIncreaseStatus = record.integer(.priceIncreaseStatus, of: object)
        info.product = number(text(record, .autoRenewProductId, object))
        info.plan = number(text(record, .renewalBillingPlanType, object))
        guard let commitment = record.object(.commitmentInfo, of: object) else { return info }
        info.commitmentAutoRenewStatus = record.integer(.commitmentAutoRenewStatus, of: commitment)
        info.commitmentProduct = number(text(record, .commitmentAutoRenewProductId, commitment))
        info.commitmentPlan = number(text(record, .commitmentRenewalBillingPlanType, commitment))
        return info
    }
}

extension Text {
    private static let limit = 256

    /// Longer values, and values that would break the key of a cell, are ignored.
    fileprivate var isUsable: Bool {
        !bytes.isEmpty && bytes.count <= Self.limit && !bytes.contains(CellKey.divider)
    }

    fileprivate static let billedUpfront = Text(AppleWord.billedUpfront)
    fileprivate static let monthly = Text(AppleWord.monthly)
}

private enum ProductKind {
    case autoRenewable, oneTime, unknown

    init(_ record: borrowing JSONDocument, _ object: JSONDocument.Value) {
        if record.isText(.type, of: object, AppleWord.autoRenewable) {
            self = .autoRenewable
        } else if record.isText(.type, of: object, AppleWord.nonConsumable)
            || record.isText(.type, of: object, AppleWord.consumable)
            || record.isText(.type, of: object, AppleWord.nonRenewing)
        {
            self = .oneTime
        } else {
            self = .unknown
        }
    }
}

extension Transaction.Reason {
    fileprivate init(_ record: borrowing JSONDocument, _ object: JSONDocument.Value) {
        if record.isText(.transactionReason, of: object, AppleWord.renewal) {
            self = .renewal
        } else if record.isText(.transactionReason, of: object, AppleWord.purchase) {
            self = .purchase
        } else {
            self = .unknown
        }
    }
}

extension NoticeType {
    private static let words: [(word: StaticString, type: NoticeType)] = [
        (AppleWord.didRenew, .didRenew), (AppleWord.subscribed, .subscribed), (AppleWord.expired, .expired),
        (AppleWord.didFailToRenew, .didFailToRenew), (AppleWord.gracePeriodExpired, .gracePeriodExpired),
        (AppleWord.didChangeRenewalStatus, .didChangeRenewalStatus),
        (AppleWord.didChangeRenewalPref, .didChangeRenewalPref),
        (AppleWord.offerRedeemed, .offerRedeemed), (AppleWord.refund, .refund),
        (AppleWord.refundDeclined, .refundDeclined),
        (AppleWord.refundReversed, .refundReversed), (AppleWord.consumptionRequest, .consumptionRequest),
        (AppleWord.revoke, .revoke),
    ]

    fileprivate init(_ record: borrowing JSONDocument) {
        self = .other
        guard let value = record.member(MemberName.notificationType.text, of: record.root)?.value else { return }
        for (word, type) in Self.words where record.isString(value, word) {
            self = type
            return
        }
    }
}

extension NoticeSubtype {
    /// nil: it stands for more than one word.
    var word: StaticString? { Self.words.first { $0.subtype == self }?.word }

    private static let words: [(word: StaticString, subtype: NoticeSubtype)] = [
        (AppleWord.initialBuy, .initialBuy), (AppleWord.upgrade, .upgrade), (AppleWord.downgrade, .downgrade),
        (AppleWord.billingRecovery, .billingRecovery), (AppleWord.billingRetry, .billingRetry),
        (AppleWord.voluntary, .voluntary),
        (AppleWord.priceIncrease, .priceIncrease), (AppleWord.productNotForSale, .productNotForSale),
        (AppleWord.autoRenewEnabled, .autoRenewEnabled), (AppleWord.autoRenewDisabled, .autoRenewDisabled),
    ]

    fileprivate init(_ record: borrowing JSONDocument) {
        self = .other
        guard let value = record.member(MemberName.subtype.text, of: record.root)?.value else { return }
        for (word, subtype) in Self.words where record.isString(value, word) {
            self = subtype
            return
        }
    }
}

extension NoticeId {
    fileprivate init(
        _ record: borrowing JSONDocument, _ transaction: JSONDocument.Value?, _ info: JSONDocument.Value?
    ) {
        if let uuid = record.text(.notificationUUID, of: record.root), uuid.isUsable {
            self = Self.uuid(uuid.bytes) ?? Self.hash(SHA256.Prefix(uuid.bytes.span))
            return
        }
        // The fetcher wrote this record: each answer from Apple is a fact of its own.
        var hash = SHA256.Prefix(Array("fetched".utf8).span)
        for name in [MemberName.notificationType, .subtype] {
            if let value = record.member(name.text, of: record.root)?.value { hash.add(record.raw(value)) }
        }
        if let transaction { hash.add(record.raw(transaction)) }
        if let info { hash.add(record.raw(info)) }
        self = Self.hash(hash)
    }

    private static func hash(_ hash: SHA256.Prefix) -> NoticeId {
        let digest = hash.digest()
        var (high, low): (UInt64, UInt64) = (0, 0)
        for index in 0..<8 {
            high = high << 8 | UInt64(digest[index])
            low = low << 8 | UInt64(digest[index + 8])
        }
        return NoticeId(high: high, low: low)
    }

    /// 32 hexadecimal digits with hyphens between the groups, in upper or lower case.
    private static func uuid(_ text: [UInt8]) -> NoticeId? {
        guard text.count == 36 else { return nil }
        var (high, low): (UInt64, UInt64) = (0, 0)
        var digits = 0
        for index in text.indices {
            let byte = text[index]
            if index == 8 || index == 13 || index == 18 || index == 23 {
                guard byte == UInt8(ascii: "-") else { return nil }
                continue
            }
            let digit: UInt8
            switch byte {
            case UInt8(ascii: "0")...UInt8(ascii: "9"): digit = byte - UInt8(ascii: "0")
            case UInt8(ascii: "a")...UInt8(ascii: "f"): digit = byte - UInt8(ascii: "a") + 10
            case UInt8(ascii: "A")...UInt8(ascii: "F"): digit = byte - UInt8(ascii: "A") + 10
            default: return nil
            }
            if digits < 16 { high = high << 4 | UInt64(digit) } else { low = low << 4 | UInt64(digit) }
            digits += 1
        }
        return NoticeId(high: high, low: low)
    }
}

extension JSONDocument {
    fileprivate borrowing func isString(_ value: Value, _ word: StaticString) -> Bool {
        guard let text = string(value), text.count == word.utf8CodeUnitCount else { return false }
        for index in text.indices where text[index] != word.utf8Start[index] { return false }
        return true
    }

    fileprivate borrowing func isText(_ name: MemberName, of object: Value, _ word: StaticString) -> Bool {
        member(name.text, of: object).map { isString($0.value, word) } ?? false
    }

    fileprivate borrowing func isAbsent(_ name: MemberName, of object: Value) -> Bool {
        member(name.text, of: object).map { kind(of: $0.value) != .string } ?? true
    }
}
