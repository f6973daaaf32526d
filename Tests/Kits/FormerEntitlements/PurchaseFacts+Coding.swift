// One purchase as bytes.

internal import Notices

private struct Flags: OptionSet {
    let rawValue: UInt64
    static let numericId = Flags(rawValue: 1 << 0)
    static let expires = Flags(rawValue: 1 << 1)
    static let firstSigned = Flags(rawValue: 1 << 2)
    static let firstUpgraded = Flags(rawValue: 1 << 3)
    static let expiry = Flags(rawValue: 1 << 4)
    static let upgraded = Flags(rawValue: 1 << 5)
    static let sameTexts = Flags(rawValue: 1 << 6)
    static let price = Flags(rawValue: 1 << 7)
    static let revocation = Flags(rawValue: 1 << 8)
    static let offer = Flags(rawValue: 1 << 9)
    static let commitment = Flags(rawValue: 1 << 10)
    static let weight = Flags(rawValue: 1 << 11)
    static let all = Flags(rawValue: 1 << 12 - 1)
}

extension PurchaseFacts {
    private var flags: Flags {
        var flags: Flags = []
        if case .number = transaction.id.form { flags.insert(.numericId) }
        if transaction.expiresDate != nil { flags.insert(.expires) }
        if firstSigned != version.signedDate { flags.insert(.firstSigned) }
        if firstUpgraded != nil { flags.insert(.firstUpgraded) }
        if expiry != nil { flags.insert(.expiry) }
        if transaction.isUpgraded { flags.insert(.upgraded) }
        if transaction.price != nil { flags.insert(.price) }
        if transaction.revocationDate != nil { flags.insert(.revocation) }
        if transaction.offer != nil { flags.insert(.offer) }
        if transaction.commitment != nil { flags.insert(.commitment) }
        if weight > Self.weight(of: transaction) { flags.insert(.weight) }
        return flags
    }

    func write(to writer: inout ByteWriter, after previous: PurchaseFacts?, _ texts: inout TextTable) {
        var flags = flags
        let terms = transaction.terms
        if terms == previous?.transaction.terms { flags.insert(.sameTexts) }
        let start = transaction.purchaseDate
        writer.unsigned(flags.rawValue)
        transaction.id.write(to: &writer)
        writer.signed(start, from: previous?.transaction.purchaseDate ?? 0)
        writer.signed(version.signedDate, from: start)
        writer.fixed(version.hash)
        if let expires = transaction.expiresDate { writer.signed(expires, from: start) }
        if flags.contains(.firstSigned) { writer.signed(firstSigned, from: version.signedDate) }
        if let firstUpgraded { writer.signed(firstUpgraded, from: version.signedDate) }
        if let expiry {
            writer.signed(expiry.signedDate, from: start)
            writer.unsigned(texts.number(expiry.subtype))
        }
        if !flags.contains(.sameTexts) {
            terms.write(to: &writer, &texts)
        }
        if let price = transaction.price { writer.signed(price) }
        if let revocation = transaction.revocationDate { writer.signed(revocation, from: start) }
        if let offer = transaction.offer {
            writer.signed(offer.type)
            writer.unsigned(texts.number(offer.identifier))
            writer.unsigned(texts.number(offer.discount))
        }
        if let commitment = transaction.commitment {
            writer.optional(commitment.period)
            writer.optional(commitment.of)
            writer.optional(commitment.endsAt.map { $0 &- start })
            writer.optional(commitment.price)
        }
        if flags.contains(.weight) { writer.unsigned(UInt64(weight)) }
    }

    convenience init?(_ reader: inout ByteReader, after previous: PurchaseFacts?, _ texts: [Text]) {
        guard let flags = reader.unsigned().map(Flags.init(rawValue:)), Flags.all.isSuperset(of: flags),
            let id = reader.id(isNumber: flags.contains(.numericId)),
            let start = reader.signed(from: previous?.transaction.purchaseDate ?? 0),
            let signed = reader.signed(from: start), let hash = reader.fixed(),
            // An upgraded purchase must have a date of the upgrade: an end is computed from it.
            !flags.contains(.upgraded) || flags.contains(.firstUpgraded)
        else { return nil }
        var expires: Int64?
        var firstSigned = signed
        var firstUpgraded: Int64?
        var expiry: Expiry?
        if flags.contains(.expires) {
            guard let date = reader.signed(from: start) else { return nil }
            expires = date
        }
        if flags.contains(.firstSigned) {
            guard let first = reader.signed(from: signed), first < signed else { return nil }
            firstSigned = first
        }
        if flags.contains(.firstUpgraded) {
            guard let first = reader.signed(from: signed) else { return nil }
            firstUpgraded = first
        }
        if flags.contains(.expiry) {
            guard let date = reader.signed(from: start), let subtype = reader.text(of: texts)?.flatMap({ $0 }) else {
                return nil
            }
            expiry = Expiry(signedDate: date, subtype: subtype)
        }
        let terms: Terms
        if flags.contains(.sameTexts) {
            guard let previous else { return nil }
            terms = previous.transaction.terms
        } else {
            guard let read = Terms(&reader, texts) else { return nil }
            terms = read
        }
        var transaction = Transaction(id: id, purchaseDate: start, terms)
        transaction.expiresDate = expires
        transaction.isUpgraded = flags.contains(.upgraded)
        guard transaction.readRest(&reader, flags, texts) else { return nil }
        var leastWeight = 0
        if flags.contains(.weight) {
            guard let weight = reader.unsigned(), weight <= Facts.limitPurchaseWeight,
                weight > Self.weight(of: transaction)
            else { return nil }
            leastWeight = Int(weight)
        }
        self.init(
            transaction, version: Version(signedDate: signed, hash: hash), firstSigned: firstSigned,
            firstUpgraded: firstUpgraded, expiry: expiry, leastWeight: leastWeight)
    }
}

extension Terms {
    fileprivate func write(to writer: inout ByteWriter, _ texts: inout TextTable) {
        writer.unsigned(texts.number(type))
        writer.unsigned(texts.number(bundleId))
        writer.unsigned(texts.number(productId))
        writer.unsigned(texts.number(subscriptionGroup))
        writer.unsigned(texts.number(appAccountToken))
        writer.unsigned(texts.number(ownership))
        writer.unsigned(texts.number(revocationType))
        writer.unsigned(texts.number(currency))
        writer.unsigned(texts.number(billingPlan))
    }

    fileprivate convenience init?(_ reader: inout ByteReader, _ texts: [Text]) {
        guard let type = reader.text(of: texts), let bundleId = reader.text(of: texts),
            let productId = reader.text(of: texts), let group = reader.text(of: texts),
            let token = reader.text(of: texts), let ownership = reader.text(of: texts),
            let revocationType = reader.text(of: texts), let currency = reader.text(of: texts),
            let billingPlan = reader.text(of: texts)
        else { return nil }
        self.init(
            type: type, bundleId: bundleId, productId: productId, subscriptionGroup: group, appAccountToken: token,
            ownership: ownership, revocationType: revocationType, currency: currency, billingPlan: billingPlan)
    }
}

extension Transaction {
    fileprivate mutating func readRest(_ reader: inout ByteReader, _ flags: Flags, _ texts: [Text]) -> Bool {
        if flags.contains(.price) {
            guard let price = reader.signed() else { return false }
            self.price = price
        }
        if flags.contains(.revocation) {
            guard let date = reader.signed(from: purchaseDate) else { return false }
            revocationDate = date
        }
        var offer: Offer?
        var commitment: Commitment?
        if flags.contains(.offer) {
            guard let type = reader.signed(), let identifier = reader.text(of: texts),
                let discount = reader.text(of: texts)
            else { return false }
            offer = Offer(type: type, identifier: identifier, discount: discount)
        }
        if flags.contains(.commitment) {
            guard let period = reader.optional(), let of = reader.optional(), let end = reader.optional(),
                let price = reader.optional()
            else { return false }
            commitment = Commitment(period: period, of: of, endsAt: end.map { $0 &+ purchaseDate }, price: price)
        }
        if offer != nil || commitment != nil { particulars = Particulars(offer: offer, commitment: commitment) }
        return true
    }
}
