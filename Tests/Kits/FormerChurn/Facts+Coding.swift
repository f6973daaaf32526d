// Encodes facts as bytes:
//
//     key of the newest forgotten notice, texts, parts, notices
//
// Each list begins with its count. A notice consists of its kind, date, id and flags, followed by the fields that the
// flags announce. Dates are stored as differences. A notification from Apple takes about 60 bytes, however long its
// names are.

internal import Notices

private struct Flags: OptionSet {
    let rawValue: UInt64
    static let transaction = Flags(rawValue: 1 << 0)
    static let info = Flags(rawValue: 1 << 1)
    static let numericId = Flags(rawValue: 1 << 2)
    static let original = Flags(rawValue: 1 << 3)
    static let expires = Flags(rawValue: 1 << 4)
    static let revocation = Flags(rawValue: 1 << 5)
    static let percentage = Flags(rawValue: 1 << 6)
    static let price = Flags(rawValue: 1 << 7)
    static let period = Flags(rawValue: 1 << 8)
    static let periods = Flags(rawValue: 1 << 9)
    static let upgraded = Flags(rawValue: 1 << 10)
    static let freeTrial = Flags(rawValue: 1 << 11)
    static let notPurchased = Flags(rawValue: 1 << 12)
    static let notRenewing = Flags(rawValue: 1 << 13)
    static let purchaseReason = Flags(rawValue: 1 << 14)
    static let renewalReason = Flags(rawValue: 1 << 15)
    static let autoRenew = Flags(rawValue: 1 << 16)
    static let intent = Flags(rawValue: 1 << 17)
    static let grace = Flags(rawValue: 1 << 18)
    static let priceIncrease = Flags(rawValue: 1 << 19)
    static let commitmentRenew = Flags(rawValue: 1 << 20)
    /// The product or plan of the next renewal.
    static let wanted = Flags(rawValue: 1 << 21)
    static let wantedCommitment = Flags(rawValue: 1 << 22)
    static let continuesAnother = Flags(rawValue: 1 << 23)
    static let all = Flags(rawValue: 1 << 24 - 1)

    mutating func insert(_ flag: Flags, if condition: Bool) {
        if condition { formUnion(flag) }
    }
}

extension Facts {
    func write(to writer: inout ByteWriter) {
        writer.byte(forgotten == nil ? 0 : 1)
        if let forgotten {
            writer.signed(forgotten.signedDate)
            writer.fixed(forgotten.id.high)
            writer.fixed(forgotten.id.low)
        }
        writer.unsigned(UInt64(texts.count))
        for text in texts { writer.text(text) }
        writer.unsigned(UInt64(parts.count))
        for numbers in parts { numbers.write(to: &writer) }
        writer.unsigned(UInt64(notices.count))
        var date: Int64 = 0
        for place in notices.indices {
            notices[place].write(to: &writer, after: date)
            date = notices[place].signedDate
        }
    }

    init?(_ reader: inout ByteReader) {
        guard let hasForgotten = reader.byte(), hasForgotten <= 1 else { return nil }
        var forgotten: Notice.Key?
        if hasForgotten == 1 {
            guard let date = reader.signed(), let high = reader.fixed(), let low = reader.fixed() else { return nil }
            forgotten = Notice.Key(signedDate: date, id: NoticeId(high: high, low: low))
        }
        guard let textCount = reader.count() else { return nil }
        var texts: [Text] = []
        texts.reserveCapacity(min(textCount, 64))
        for _ in 0..<textCount {
            guard let text = reader.text() else { return nil }
            texts.append(text)
        }
        guard let partsCount = reader.count() else { return nil }
        var parts: [PartNumbers] = []
        for _ in 0..<partsCount {
            guard let numbers = PartNumbers(&reader, texts: texts.count) else { return nil }
            parts.append(numbers)
        }
        guard let count = reader.count() else { return nil }
        var notices: [Notice] = []
        // Room for the notice that the caller is about to add.
        notices.reserveCapacity(min(count, Facts.limit) + 1)
        var date: Int64 = 0
        for _ in 0..<count {
            guard let notice = Notice(&reader, after: date, texts: texts.count, parts: parts.count) else { return nil }
            notices.append(notice)
            date = notice.signedDate
        }
        self.init(texts: texts, parts: parts, notices: notices, forgotten: forgotten)
    }
}

extension PartNumbers {
    fileprivate func write(to writer: inout ByteWriter) {
        writer.unsigned(UInt64(bundle))
        writer.unsigned(UInt64(product))
        writer.unsigned(UInt64(plan))
        writer.unsigned(UInt64(storefront))
        writer.unsigned(UInt64(currency))
        writer.byte(isCommitment ? 1 : 0)
    }

    fileprivate init?(_ reader: inout ByteReader, texts: Int) {
        guard let bundle = reader.number(texts), let product = reader.number(texts), let plan = reader.number(texts),
            let storefront = reader.number(texts), let currency = reader.number(texts), let commitment = reader.byte(),
            commitment <= 1
        else { return nil }
        self.init(
            bundle: bundle, product: product, plan: plan, storefront: storefront, currency: currency,
            isCommitment: commitment == 1)
    }
}

extension ByteReader {
    fileprivate mutating func number(_ limit: Int) -> TextNumber? {
        unsigned().flatMap { $0 <= UInt64(limit) ? TextNumber($0) : nil }
    }

    fileprivate mutating func id(isNumber: Bool, texts: Int) -> RowId? {
        guard isNumber else { return number(texts).flatMap { $0 > 0 ? .text($0) : nil } }
        return unsigned().flatMap { $0 < TransactionId.limitNumber ? .number($0) : nil }
    }
}

extension Notice {
    private var flags: Flags {
        var flags: Flags = []
        if let transaction {
            flags.insert(.transaction)
            if case .number = transaction.id { flags.insert(.numericId) }
            flags.insert(.original, if: transaction.originalPurchaseDate != nil)
            flags.insert(.expires, if: transaction.expiresDate != nil)
            flags.insert(.revocation, if: transaction.revocationDate != nil)
            flags.insert(.percentage, if: transaction.revocationPercentage != nil)
            flags.insert(.price, if: transaction.price != nil)
            flags.insert(.period, if: transaction.period != nil)
            flags.insert(.periods, if: transaction.periods != nil)
            flags.insert(.upgraded, if: transaction.isUpgraded)
            flags.insert(.freeTrial, if: transaction.isFreeTrial)
            flags.insert(.notPurchased, if: !transaction.isPurchased)
            flags.insert(.notRenewing, if: !transaction.isRenewing)
            flags.insert(.continuesAnother, if: transaction.continuesAnother)
            flags.insert(.purchaseReason, if: transaction.reason == .purchase)
            flags.insert(.renewalReason, if: transaction.reason == .renewal)
        }
        if let info {
            flags.insert(.info)
            flags.insert(.autoRenew, if: info.autoRenewStatus != nil)
            flags.insert(.intent, if: info.expirationIntent != nil)
            flags.insert(.grace, if: info.gracePeriodExpiresDate != nil)
            flags.insert(.priceIncrease, if: info.priceIncreaseStatus != nil)
            flags.insert(.commitmentRenew, if: info.commitmentAutoRenewStatus != nil)
            flags.insert(.wanted, if: info.product != 0 || info.plan != 0)
            flags.insert(.wantedCommitment, if: info.commitmentProduct != 0 || info.commitmentPlan != 0)
        }
        return flags
    }

    fileprivate func write(to writer: inout ByteWriter, after date: Int64) {
        writer.byte(type.rawValue << 4 | subtype.rawValue)
        writer.signed(signedDate, from: date)
        writer.fixed(id.high)
        writer.fixed(id.low)
        let flags = flags
        writer.unsigned(flags.rawValue)
        if let transaction { transaction.write(to: &writer, signedDate) }
        if let info { info.write(to: &writer, signedDate, flags) }
    }

    fileprivate init?(_ reader: inout ByteReader, after date: Int64, texts: Int, parts: Int) {
        guard let kind = reader.byte(), let type = NoticeType(rawValue: kind >> 4),
            let subtype = NoticeSubtype(rawValue: kind & 0xf), let signedDate = reader.signed(from: date),
            let high = reader.fixed(), let low = reader.fixed(),
            let flags = reader.unsigned().map(Flags.init(rawValue:)),
            Flags.all.isSuperset(of: flags)
        else { return nil }
        self.init(signedDate: signedDate, id: NoticeId(high: high, low: low), type: type, subtype: subtype)
        if flags.contains(.transaction) {
            guard let transaction = Transaction(&reader, flags, signedDate, texts: texts, parts: parts) else {
                return nil
            }
            self.transaction = transaction
        }
        if flags.contains(.info) {
            guard let info = Info(&reader, flags, signedDate, texts: texts) else { return nil }
            self.info = info
        }
    }
}

extension Transaction {
    fileprivate func write(to writer: inout ByteWriter, _ date: Int64) {
        switch id {
        case .number(let number): writer.unsigned(number)
        case .text(let number): writer.unsigned(UInt64(number))
        }
        writer.signed(version.signedDate, from: date)
        writer.fixed(version.hash)
        writer.signed(purchaseDate, from: date)
        writer.unsigned(UInt64(parts))
        if let originalPurchaseDate { writer.signed(originalPurchaseDate, from: purchaseDate) }
        if let expiresDate { writer.signed(expiresDate, from: purchaseDate) }
        if let revocationDate { writer.signed(revocationDate, from: purchaseDate) }
        if let revocationPercentage { writer.signed(revocationPercentage) }
        if let price { writer.signed(price) }
        if let period { writer.signed(period) }
        if let periods { writer.signed(periods) }
    }

    fileprivate init?(_ reader: inout ByteReader, _ flags: Flags, _ date: Int64, texts: Int, parts: Int) {
        guard let id = reader.id(isNumber: flags.contains(.numericId), texts: texts),
            let signed = reader.signed(from: date),
            let hash = reader.fixed(), let purchaseDate = reader.signed(from: date), let place = reader.unsigned(),
            place < UInt64(parts)
        else { return nil }
        self.init(
            id: id, version: Version(signedDate: signed, hash: hash), purchaseDate: purchaseDate, parts: Int(place))
        guard reader.optional(flags.contains(.original), from: purchaseDate, &originalPurchaseDate),
            reader.optional(flags.contains(.expires), from: purchaseDate, &expiresDate),
            reader.optional(flags.contains(.revocation), from: purchaseDate, &revocationDate),
            reader.optional(flags.contains(.percentage), &revocationPercentage),
            reader.optional(flags.contains(.price), &price), reader.optional(flags.contains(.period), &period),
            reader.optional(flags.contains(.periods), &periods)
        else { return nil }
        if flags.contains(.purchaseReason) { reason = .purchase }
        if flags.contains(.renewalReason) { reason = .renewal }
        isUpgraded = flags.contains(.upgraded)
        isFreeTrial = flags.contains(.freeTrial)
        isPurchased = !flags.contains(.notPurchased)
        isRenewing = !flags.contains(.notRenewing)
        continuesAnother = flags.contains(.continuesAnother)
        // A renewing row must have an end: later code relies on it.
        if isRenewing, expiresDate == nil { return nil }
    }
}

extension Info {
    fileprivate func write(to writer: inout ByteWriter, _ date: Int64, _ flags: Flags) {
        writer.signed(version.signedDate, from: date)
        writer.fixed(version.hash)
        if let autoRenewStatus { writer.signed(autoRenewStatus) }
        if let expirationIntent { writer.signed(expirationIntent) }
        if let gracePeriodExpiresDate { writer.signed(gracePeriodExpiresDate, from: date) }
        if let priceIncreaseStatus { writer.signed(priceIncreaseStatus) }
        if let commitmentAutoRenewStatus { writer.signed(commitmentAutoRenewStatus) }
        if flags.contains(.wanted) {
            writer.unsigned(UInt64(product))
            writer.unsigned(UInt64(plan))
        }
        if flags.contains(.wantedCommitment) {
            writer.unsigned(UInt64(commitmentProduct))
            writer.unsigned(UInt64(commitmentPlan))
        }
    }

    fileprivate init?(_ reader: inout ByteReader, _ flags: Flags, _ date: Int64, texts: Int) {
        guard let signed = reader.signed(from: date), let hash = reader.fixed() else { return nil }
        self.init(version: Version(signedDate: signed, hash: hash))
        guard reader.optional(flags.contains(.autoRenew), &autoRenewStatus),
            reader.optional(flags.contains(.intent), &expirationIntent),
            reader.optional(flags.contains(.grace), from: date, &gracePeriodExpiresDate),
            reader.optional(flags.contains(.priceIncrease), &priceIncreaseStatus),
            reader.optional(flags.contains(.commitmentRenew), &commitmentAutoRenewStatus)
        else { return nil }
        if flags.contains(.wanted) {
            guard let product = reader.number(texts), let plan = reader.number(texts) else { return nil }
            (self.product, self.plan) = (product, plan)
        }
        if flags.contains(.wantedCommitment) {
            guard let product = reader.number(texts), let plan = reader.number(texts) else { return nil }
            (commitmentProduct, commitmentPlan) = (product, plan)
        }
    }
}

extension ByteReader {
    /// Returns false if the bytes are invalid.
    fileprivate mutating func optional(_ isThere: Bool, from base: Int64 = 0, _ value: inout Int64?) -> Bool {
        guard isThere else { return true }
        guard let read = signed(from: base) else { return false }
        value = read
        return true
    }
}
