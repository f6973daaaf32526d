// Reads the kept bytes of a history.
//
// Format 1:
//
//     1, flags, the greatest keys that were forgotten, texts, purchases, renewal infos
//
// Each of the three lists begins with its count. A purchase consists of flags, id, dates, hash, and the numbers of its
// texts unless the purchase before has the same ones, followed by the fields that the flags announce. A row takes 35 to
// 40 bytes, however long its names are: five years of monthly periods take less than 4 KiB, as many years of weekly
// periods less than 16 KiB. Longer lives grow up to the limits of `History`, where the oldest rows and infos are dropped.
//
// The same history always gives the same bytes. Bytes of another version, truncated bytes and bytes that no history can
// have are rejected.

internal import Notices

/// What a purchase has.
struct PurchaseFlags: OptionSet {
    let rawValue: UInt64
    static let numericId = PurchaseFlags(rawValue: 1 << 0)
    static let expires = PurchaseFlags(rawValue: 1 << 1)
    static let firstSigned = PurchaseFlags(rawValue: 1 << 2)
    static let firstUpgraded = PurchaseFlags(rawValue: 1 << 3)
    static let expiry = PurchaseFlags(rawValue: 1 << 4)
    static let upgraded = PurchaseFlags(rawValue: 1 << 5)
    static let sameTexts = PurchaseFlags(rawValue: 1 << 6)
    static let price = PurchaseFlags(rawValue: 1 << 7)
    static let revocation = PurchaseFlags(rawValue: 1 << 8)
    static let offer = PurchaseFlags(rawValue: 1 << 9)
    static let commitment = PurchaseFlags(rawValue: 1 << 10)
    static let weight = PurchaseFlags(rawValue: 1 << 11)
    static let all = PurchaseFlags(rawValue: 1 << 12 - 1)
}

/// What a history has.
struct HistoryFlags: OptionSet {
    let rawValue: UInt8
    static let introOfferUsed = HistoryFlags(rawValue: 1)
    static let forgottenPurchase = HistoryFlags(rawValue: 2)
    static let numericForgotten = HistoryFlags(rawValue: 4)
    static let forgottenRenewal = HistoryFlags(rawValue: 8)
    static let all: HistoryFlags = [.introOfferUsed, .forgottenPurchase, .numericForgotten, .forgottenRenewal]
}

extension History {
    /// A greater version was written by a later program.
    static let codingVersion: UInt8 = 1
    private static let limitKeptBytes = 1 << 24

    /// Reads everything that is left. The bytes must stay where they are as long as the history is used.
    /// - Returns: false: the bytes have another version, or are invalid. Then nothing is known.
    public mutating func read(_ reader: inout KeptReader) -> Bool {
        removeAll()
        // Larger values cannot have been written: no log accepts them.
        if reader.rest <= Self.limitKeptBytes, readAll(&reader) { return true }
        removeAll()
        return false
    }

    private mutating func readAll(_ reader: inout KeptReader) -> Bool {
        guard reader.byte() == Self.codingVersion else { return false }
        let flags = HistoryFlags(rawValue: reader.byte())
        guard reader.isValid, HistoryFlags.all.isSuperset(of: flags),
            flags.contains(.forgottenPurchase) || !flags.contains(.numericForgotten)
        else { return false }
        introOfferUsed = flags.contains(.introOfferUsed)
        if flags.contains(.forgottenPurchase) {
            forgottenPurchase = Purchase.Key(
                purchaseDate: reader.signed(), id: reader.id(isNumber: flags.contains(.numericForgotten)))
        }
        if flags.contains(.forgottenRenewal) {
            let version = Version(signedDate: reader.signed(), hash: reader.fixed())
            forgottenRenewal = RenewalRow.Key(version: version, status: reader.signed())
        }
        let textCount = reader.count()
        for _ in 0..<textCount where reader.isValid {
            let number = texts.number(reader.text())
            keptTexts.append(number)
            if Int(number.value) != keptTexts.count { isKeptTextRepeated = true }
        }
        let purchaseCount = reader.count()
        guard reader.isValid, purchaseCount <= Self.limitPurchases else { return false }
        keptPurchasesFrom = Int32(reader.place)
        guard readPurchases(purchaseCount, &reader) else { return false }
        let renewalCount = reader.count()
        guard reader.isValid, renewalCount <= Self.limitRenewals else { return false }
        var date = purchases.last?.purchaseDate ?? 0
        for place in 0..<renewalCount {
            let row = readRenewal(&reader, after: date)
            guard reader.isValid else { return false }
            if let last = renewals.last, !(last.key < row.key) { return false }
            // Of those that say no more only the newest is kept.
            guard place == renewalCount - 1 || row.saysMore else { return false }
            date = row.version.signedDate
            renewals.append(row)
        }
        guard reader.isAtEnd else { return false }
        guard purchaseWeight <= Self.limitPurchaseWeight else { return false }
        if let forgottenPurchase {
            guard !purchases.isEmpty, forgottenPurchase < purchases[0].key else { return false }
        }
        if let forgottenRenewal {
            guard !renewals.isEmpty, forgottenRenewal < renewals[0].key else { return false }
        }
        kept = reader
        return true
    }

    /// Inlined, as all that is called for each row and does not change the history: a call would pass a copy of all of it.
    @inline(__always) private func text(_ reader: inout KeptReader) -> TextNumber {
        let number = reader.unsigned()
        guard number <= UInt64(keptTexts.count) else {
            reader.refuse()
            return .none
        }
        return number == 0 ? .none : keptTexts[Int(number) - 1]
    }

    // MARK: Purchases

    private mutating func readPurchases(_ count: Int, _ kept: inout KeptReader) -> Bool {
        // What few rows have is read by copies of this reader, so that its own place stays in a register.
        var reader = kept
        for _ in 0..<count {
            guard readPurchase(&reader) else { return false }
        }
        kept = reader
        return true
    }

    /// Writes each member where it stays: a row is large, and copying it takes longer than reading it.
    @inline(__always) private mutating func readPurchase(_ reader: inout KeptReader) -> Bool {
        let from = reader.place
        let row = purchases.appendUnwritten()
        let before = purchases.count > 1 ? row - 1 : nil
        let flags = PurchaseFlags(rawValue: reader.shortUnsigned())
        // An upgraded purchase must have a date of the upgrade: an end is computed from it.
        guard PurchaseFlags.all.isSuperset(of: flags), !flags.contains(.upgraded) || flags.contains(.firstUpgraded)
        else { return false }
        row.pointee.id = reader.id(isNumber: flags.contains(.numericId))
        let start = reader.signed(from: before?.pointee.purchaseDate ?? 0)
        row.pointee.purchaseDate = start
        let signed = reader.signed(from: start)
        row.pointee.version.signedDate = signed
        row.pointee.version.hash = reader.fixed()
        row.pointee.isUpgraded = flags.contains(.upgraded)
        row.pointee.expiresDate = flags.contains(.expires) ? reader.signed(from: start) : nil
        row.pointee.firstSigned = signed
        if flags.contains(.firstSigned) {
            let first = reader.signed(from: signed)
            guard first < signed else { return false }
            row.pointee.firstSigned = first
        }
        row.pointee.firstUpgraded = flags.contains(.firstUpgraded) ? reader.signed(from: signed) : nil
        var isAsWritten = !isKeptTextRepeated
        row.pointee.expiry = nil
        if flags.contains(.expiry) {
            let date = reader.signed(from: start)
            let number = text(&reader)
            guard reader.isValid, let subtype = texts[number] else { return false }
            isAsWritten = isAsWritten && subtype.count <= Purchase.Expiry.limitSubtypeBytes
            row.pointee.expiry = Purchase.Expiry(
                signedDate: date, subtype: texts.number(subtype.prefix(Purchase.Expiry.limitSubtypeBytes)))
        }
        let termsBefore = before?.pointee.terms ?? -1
        if flags.contains(.sameTexts) {
            guard before != nil else { return false }
            row.pointee.terms = termsBefore
        } else {
            var rest = reader
            row.pointee.terms = readTerms(&rest)
            reader = rest
            if row.pointee.terms == termsBefore { isAsWritten = false }
        }
        row.pointee.price = flags.contains(.price) ? reader.signed() : nil
        row.pointee.revocationDate = flags.contains(.revocation) ? reader.signed(from: start) : nil
        row.pointee.particulars = -1
        if !flags.isDisjoint(with: [.offer, .commitment]) {
            var rest = reader
            row.pointee.particulars = readParticulars(flags, from: start, &rest)
            reader = rest
        }
        guard reader.isValid else { return false }
        row.pointee.weight = weight(of: row.pointee)
        if flags.contains(.weight) {
            let weight = reader.unsigned()
            guard reader.isValid, weight <= UInt64(Self.limitPurchaseWeight), weight > UInt64(row.pointee.weight) else {
                return false
            }
            row.pointee.weight = Int32(weight)
        }
        if let before {
            if !(before.pointee.key < row.pointee.key) { return false }
            if !before.pointee.id.isNumber(below: row.pointee.id) { idsGrow = false }
        }
        row.pointee.keptFrom = isAsWritten ? Int32(from) : 0
        row.pointee.keptTo = isAsWritten ? Int32(reader.place) : 0
        purchaseWeight += Int(row.pointee.weight)
        return true
    }

    /// - Returns: the place of the terms.
    private mutating func readTerms(_ reader: inout KeptReader) -> Int32 {
        var terms = Terms()
        terms.mapTexts { _ in text(&reader) }
        terms.readWords(texts)
        return place(of: terms)
    }

    /// - Returns: the place of the particulars.
    private mutating func readParticulars(
        _ flags: PurchaseFlags, from start: Int64, _ reader: inout KeptReader
    ) -> Int32 {
        var offer: Particulars.Offer?
        if flags.contains(.offer) {
            offer = Particulars.Offer(type: reader.signed(), identifier: text(&reader), discount: text(&reader))
        }
        var commitment: Particulars.Commitment?
        if flags.contains(.commitment) {
            var read = Particulars.Commitment()
            read.period = reader.optional()
            read.of = reader.optional()
            read.endsAt = reader.optional().map { $0 &+ start }
            read.price = reader.optional()
            commitment = read
        }
        return place(of: offer, commitment)
    }

    // MARK: Renewal infos

    @inline(__always) private func readRenewal(_ reader: inout KeptReader, after date: Int64) -> RenewalRow {
        let signed = reader.signed(from: date)
        var row = RenewalRow(version: Version(signedDate: signed, hash: reader.fixed()))
        row.status = reader.signed()
        let flags = reader.byte()
        if flags > 3 { reader.refuse() }
        row.isInBillingRetryPeriod = flags & 1 != 0
        row.autoRenewStatus = reader.optional()
        row.expirationIntent = reader.optional()
        row.gracePeriodExpiresDate = reader.optional().map { $0 &+ signed }
        row.priceIncreaseStatus = reader.optional()
        row.renewalDate = reader.optional().map { $0 &+ signed }
        row.renewalPrice = reader.optional()
        row.autoRenewProductId = text(&reader)
        row.appAccountToken = text(&reader)
        row.renewalBillingPlan = text(&reader)
        if flags & 2 != 0 {
            row.commitment = RenewalRow.Commitment(
                autoRenewStatus: reader.optional(), autoRenewProductId: text(&reader),
                renewalBillingPlan: text(&reader))
        }
        return row
    }
}
