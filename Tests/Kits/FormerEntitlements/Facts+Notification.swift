// Reads a record of `notifications`.

internal import Crypto
internal import JSON
internal import Notices
internal import Records

/// What one record says about the subscription that its key names.
struct NotificationReading: Sendable {
    let facts: Facts
    /// The record has a transaction that cannot be used: without an id or a purchase date, or a renewing one without an
    /// end. This is counted, because Apple does not send such transactions.
    let hasUnusableTransaction: Bool
    let notificationUUID: Text?
    let type: Text?
    let subtype: Text?
    let signedDate: Int64?
    /// Apple's own status, which came with the renewal info.
    let status: Int64?

    /// - Parameter record: the document with the record's value. A member that is absent, null or of the wrong type is
    ///   ignored.
    init(_ record: borrowing JSONDocument) {
        let signedDate = record.integer(.signedDate, of: record.root)
        let status = record.integer(.status, of: record.root)
        let info = record.object(.renewalInfo, of: record.root)
            .flatMap { RenewalInfo(record, $0, status: status, signedDate) }
        self.signedDate = signedDate
        self.status = status
        notificationUUID = record.text(.notificationUUID, of: record.root)
        type = record.text(.notificationType, of: record.root)
        subtype = record.text(.subtype, of: record.root)
        guard let object = record.object(.transaction, of: record.root) else {
            facts = Facts(purchase: nil, renewalInfo: info, introOfferUsed: false)
            hasUnusableTransaction = false
            return
        }
        var purchase: PurchaseFacts?
        if let transaction = Transaction(record, object),
            let version = Version(record, object, notificationSigned: signedDate)
        {
            // The record of a fetched transaction has no type: it does not report an end.
            let hasExpired = type == .expired
            purchase = PurchaseFacts(
                transaction, version: version,
                expiry: hasExpired
                    ? PurchaseFacts.Expiry(signedDate: signedDate ?? version.signedDate, subtype: subtype ?? "") : nil)
        }
        facts = Facts(
            purchase: purchase, renewalInfo: info,
            introOfferUsed: record.integer(.offerType, of: object) == OfferType.introductory)
        hasUnusableTransaction = purchase == nil
    }
}

extension Transaction {
    fileprivate init?(_ record: borrowing JSONDocument, _ object: JSONDocument.Value) {
        guard let id = record.text(.transactionId, of: object),
            let purchaseDate = record.integer(.purchaseDate, of: object)
        else { return nil }
        let terms = Terms(
            type: record.text(.type, of: object), bundleId: record.text(.bundleId, of: object),
            productId: record.text(.productId, of: object),
            subscriptionGroup: record.text(.subscriptionGroupIdentifier, of: object),
            appAccountToken: record.account(of: object),
            ownership: record.text(.inAppOwnershipType, of: object),
            revocationType: record.text(.revocationType, of: object),
            currency: record.text(.currency, of: object), billingPlan: record.text(.billingPlanType, of: object))
        self.init(id: TransactionId(id), purchaseDate: purchaseDate, terms)
        expiresDate = record.integer(.expiresDate, of: object)
        if terms.type == .autoRenewable && expiresDate == nil { return nil }
        revocationDate = record.integer(.revocationDate, of: object)
        isUpgraded = record.bool(.isUpgraded, of: object) ?? false
        price = record.integer(.price, of: object)
        let offer = record.integer(.offerType, of: object).map {
            Offer(
                type: $0, identifier: record.text(.offerIdentifier, of: object),
                discount: record.text(.offerDiscountType, of: object))
        }
        let commitment = record.object(.commitmentInfo, of: object).map {
            Commitment(
                period: record.integer(.billingPeriodNumber, of: $0),
                of: record.integer(.totalBillingPeriods, of: $0),
                endsAt: record.integer(.commitmentExpiresDate, of: $0),
                price: record.integer(.commitmentPrice, of: $0))
        }
        if offer != nil || commitment != nil { particulars = Particulars(offer: offer, commitment: commitment) }
    }
}

extension RenewalInfo {
    fileprivate init?(
        _ record: borrowing JSONDocument, _ object: JSONDocument.Value, status: Int64?, _ notificationSigned: Int64?
    ) {
        guard let version = Version(record, object, notificationSigned: notificationSigned) else { return nil }
        self.init(version: version)
        self.status = status ?? 0
        autoRenewStatus = record.integer(.autoRenewStatus, of: object)
        autoRenewProductId = record.text(.autoRenewProductId, of: object)
        expirationIntent = record.integer(.expirationIntent, of: object)
        isInBillingRetryPeriod = record.bool(.isInBillingRetryPeriod, of: object) ?? false
        gracePeriodExpiresDate = record.integer(.gracePeriodExpiresDate, of: object)
        priceIncreaseStatus = record.integer(.priceIncreaseStatus, of: object)
        renewalDate = record.integer(.renewalDate, of: object)
        renewalPrice = record.integer(.renewalPrice, of: object)
        appAccountToken = record.account(of: object)
        renewalBillingPlan = record.text(.renewalBillingPlanType, of: object)
        commitment = record.object(.commitmentInfo, of: object).map {
            Commitment(
                autoRenewStatus: record.integer(.commitmentAutoRenewStatus, of: $0),
                autoRenewProductId: record.text(.commitmentAutoRenewProductId, of: $0),
                renewalBillingPlan: record.text(.commitmentRenewalBillingPlanType, of: $0))
        }
    }
}

extension JSONDocument {
    /// In lower case. An empty token names nobody, and the vertical bar separates the parts of keys of `accounts`.
    fileprivate borrowing func account(of object: Value) -> Text? {
        guard let token = text(.appAccountToken, of: object), !token.bytes.isEmpty,
            !token.bytes.contains(UInt8(ascii: "|"))
        else { return nil }
        return token.bytes.contains(where: Text.isUpperCase) ? token.lowercased : token
    }
}

extension Text {
    /// Only ASCII letters change: UUIDs contain no others.
    fileprivate var lowercased: Text {
        Text(bytes.map { Self.isUpperCase($0) ? $0 | 0x20 : $0 })
    }

    fileprivate static func isUpperCase(_ byte: UInt8) -> Bool {
        (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte)
    }
}
