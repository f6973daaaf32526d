// Writes a history as bytes: rows that have not changed are copied from the kept bytes. The format is in
// `History+Reading.swift`.

public import Notices

extension History {
    /// - Parameter copiesKept: false: every row is written from its values, for tests. The bytes are the same.
    public mutating func write(to head: inout ByteWriter, copiesKept: Bool = true) {
        writtenNumbers.fill(0, count: texts.count + 1)
        writtenTexts.removeAll()
        body.removeAll()
        writePurchases(copiesKept: copiesKept)
        body.unsigned(UInt64(renewals.count))
        var date = purchases.last?.purchaseDate ?? 0
        for place in renewals.indices {
            write(renewals[place], after: date)
            date = renewals[place].version.signedDate
        }
        writeHead(to: &head)
        head.unsigned(UInt64(writtenTexts.count))
        for place in writtenTexts.indices {
            if let text = texts[writtenTexts[place]] { head.text(text.bytes) }
        }
        head.append(body)
    }

    private func writeHead(to head: inout ByteWriter) {
        head.byte(Self.codingVersion)
        var flags: HistoryFlags = introOfferUsed ? .introOfferUsed : []
        if let forgottenPurchase {
            flags.insert(.forgottenPurchase)
            if forgottenPurchase.id.text == nil { flags.insert(.numericForgotten) }
        }
        if forgottenRenewal != nil { flags.insert(.forgottenRenewal) }
        head.byte(flags.rawValue)
        if let forgottenPurchase {
            head.signed(forgottenPurchase.purchaseDate)
            forgottenPurchase.id.write(to: &head)
        }
        if let forgottenRenewal {
            head.signed(forgottenRenewal.version.signedDate)
            head.fixed(forgottenRenewal.version.hash)
            head.signed(forgottenRenewal.status)
        }
    }

    /// Texts are numbered in the order in which rows use them first.
    @discardableResult
    private mutating func number(_ text: TextNumber) -> UInt64 {
        if text.isNone { return 0 }
        let written = writtenNumbers[Int(text.value)]
        if written != 0 { return UInt64(written) }
        writtenTexts.append(text)
        writtenNumbers[Int(text.value)] = UInt32(writtenTexts.count)
        return UInt64(writtenTexts.count)
    }

    // MARK: Purchases

    private mutating func writePurchases(copiesKept: Bool) {
        body.unsigned(UInt64(purchases.count))
        // Neighbours that have not changed are copied together.
        var (copiedFrom, copiedTo) = (keptPurchasesFrom, keptPurchasesFrom)
        // Where the row before ends in the kept bytes; -1: it has changed.
        var endBefore = keptPurchasesFrom
        var termsBefore: Int32 = -1
        for place in purchases.indices {
            let row = purchases.place(of: place)
            let (from, to) = (row.pointee.keptFrom, row.pointee.keptTo)
            let hasOwnTerms = row.pointee.terms != termsBefore
            termsBefore = row.pointee.terms
            if copiesKept, from < to, from == endBefore, hasKeptNumbers(row, hasOwnTerms: hasOwnTerms) {
                if copiedTo != from {
                    body.append(kept.bytes(from: copiedFrom, to: copiedTo))
                    copiedFrom = from
                }
                copiedTo = to
            } else {
                body.append(kept.bytes(from: copiedFrom, to: copiedTo))
                (copiedFrom, copiedTo) = (0, 0)
                write(
                    purchases[place], after: place == 0 ? 0 : purchases[place - 1].purchaseDate,
                    hasOwnTerms: hasOwnTerms && !hasTermsOfRow(before: place))
            }
            endBefore = from < to ? to : -1
        }
        body.append(kept.bytes(from: copiedFrom, to: copiedTo))
    }

    @inline(__always) private func hasTermsOfRow(before place: Int) -> Bool {
        place > 0 && terms[Int(purchases[place].terms)] == terms[Int(purchases[place - 1].terms)]
    }

    /// Whether all its texts have the numbers that they have in the kept bytes.
    @inline(__always) private mutating func hasKeptNumbers(
        _ row: UnsafePointer<Purchase>, hasOwnTerms: Bool
    ) -> Bool {
        if !hasOwnTerms, row.pointee.expiry == nil, row.pointee.particulars < 0 { return true }
        return hasKeptNumbers(row.pointee, hasOwnTerms: hasOwnTerms)
    }

    private mutating func hasKeptNumbers(_ purchase: Purchase, hasOwnTerms: Bool) -> Bool {
        var isSame = true
        func check(_ text: TextNumber, _ history: inout History) {
            if history.number(text) != UInt64(text.value) { isSame = false }
        }
        if let expiry = purchase.expiry { check(expiry.subtype, &self) }
        if hasOwnTerms {
            let terms = terms(of: purchase)
            terms.forEachText { check($0, &self) }
        }
        if let offer = offer(of: purchase) {
            check(offer.identifier, &self)
            check(offer.discount, &self)
        }
        return isSame
    }

    @inline(__always) private func flags(of purchase: Purchase, hasOwnTerms: Bool) -> PurchaseFlags {
        var flags: PurchaseFlags = []
        if purchase.id.text == nil { flags.insert(.numericId) }
        if purchase.expiresDate != nil { flags.insert(.expires) }
        if purchase.firstSigned != purchase.version.signedDate { flags.insert(.firstSigned) }
        if purchase.firstUpgraded != nil { flags.insert(.firstUpgraded) }
        if purchase.expiry != nil { flags.insert(.expiry) }
        if purchase.isUpgraded { flags.insert(.upgraded) }
        if !hasOwnTerms { flags.insert(.sameTexts) }
        if purchase.price != nil { flags.insert(.price) }
        if purchase.revocationDate != nil { flags.insert(.revocation) }
        if offer(of: purchase) != nil { flags.insert(.offer) }
        if commitment(of: purchase) != nil { flags.insert(.commitment) }
        if purchase.weight > weight(of: purchase) { flags.insert(.weight) }
        return flags
    }

    private mutating func write(_ purchase: Purchase, after date: Int64, hasOwnTerms: Bool) {
        let flags = flags(of: purchase, hasOwnTerms: hasOwnTerms)
        let start = purchase.purchaseDate
        let signed = purchase.version.signedDate
        body.unsigned(flags.rawValue)
        purchase.id.write(to: &body)
        body.signed(start, from: date)
        body.signed(signed, from: start)
        body.fixed(purchase.version.hash)
        if let expires = purchase.expiresDate { body.signed(expires, from: start) }
        if flags.contains(.firstSigned) { body.signed(purchase.firstSigned, from: signed) }
        if let firstUpgraded = purchase.firstUpgraded { body.signed(firstUpgraded, from: signed) }
        if let expiry = purchase.expiry {
            body.signed(expiry.signedDate, from: start)
            body.unsigned(number(expiry.subtype))
        }
        if hasOwnTerms {
            let terms = terms(of: purchase)
            terms.forEachText { body.unsigned(number($0)) }
        }
        if let price = purchase.price { body.signed(price) }
        if let revocation = purchase.revocationDate { body.signed(revocation, from: start) }
        if let offer = offer(of: purchase) {
            body.signed(offer.type)
            body.unsigned(number(offer.identifier))
            body.unsigned(number(offer.discount))
        }
        if let commitment = commitment(of: purchase) {
            body.optional(commitment.period)
            body.optional(commitment.of)
            body.optional(commitment.endsAt.map { $0 &- start })
            body.optional(commitment.price)
        }
        if flags.contains(.weight) { body.unsigned(UInt64(purchase.weight)) }
    }

    // MARK: Renewal infos

    /// Date, hash, status, then every member in order. Dates are relative to the signing date.
    private mutating func write(_ row: RenewalRow, after date: Int64) {
        let signed = row.version.signedDate
        body.signed(signed, from: date)
        body.fixed(row.version.hash)
        body.signed(row.status)
        body.byte((row.isInBillingRetryPeriod ? 1 : 0) | (row.commitment == nil ? 0 : 2))
        body.optional(row.autoRenewStatus)
        body.optional(row.expirationIntent)
        body.optional(row.gracePeriodExpiresDate.map { $0 &- signed })
        body.optional(row.priceIncreaseStatus)
        body.optional(row.renewalDate.map { $0 &- signed })
        body.optional(row.renewalPrice)
        body.unsigned(number(row.autoRenewProductId))
        body.unsigned(number(row.appAccountToken))
        body.unsigned(number(row.renewalBillingPlan))
        guard let commitment = row.commitment else { return }
        body.optional(commitment.autoRenewStatus)
        body.unsigned(number(commitment.autoRenewProductId))
        body.unsigned(number(commitment.renewalBillingPlan))
    }
}

extension PurchaseId {
    public func write(to writer: inout ByteWriter) {
        if let text { writer.text(text.bytes) } else { writer.unsigned(number) }
    }
}
