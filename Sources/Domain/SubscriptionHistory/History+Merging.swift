// Adds what is new. Every member is a minimum or a maximum, so order and repetition do not matter.

internal import Notices

extension History {
    /// - Returns: whether anything was new.
    public mutating func merge(_ news: NoticeNews) -> Bool {
        var isNew = false
        if news.hasTransaction, add(purchase(news.transaction, news)) { isNew = true }
        if news.hasRenewal, add(row(of: news.renewal)) { isNew = true }
        if news.introOfferUsed, !introOfferUsed { isNew = true }
        introOfferUsed = introOfferUsed || news.introOfferUsed
        return isNew
    }

    /// Adds another history of the same subscription. Its texts must stay where they lie.
    /// - Returns: whether anything was new.
    public mutating func merge(_ other: borrowing History) -> Bool {
        var isNew = false
        for place in other.purchases.indices where add(copied(other.purchases[place], of: other)) { isNew = true }
        for place in other.renewals.indices where add(copied(other.renewals[place], of: other)) { isNew = true }
        if other.introOfferUsed, !introOfferUsed { isNew = true }
        introOfferUsed = introOfferUsed || other.introOfferUsed
        return isNew
    }

    // MARK: Purchases

    private mutating func add(_ purchase: Purchase) -> Bool {
        let key = purchase.key
        if let forgottenPurchase, !(forgottenPurchase < key) { return false }
        let place = purchases.values.firstPlace { !($0.key < key) }
        if place < purchases.count, purchases[place].key == key {
            let known = purchases[place]
            guard isNews(purchase, to: known) else { return false }
            purchases[place] = merged(known, with: purchase)
            purchaseWeight += Int(purchases[place].weight - known.weight)
        } else {
            purchases.insert(purchase, at: place)
            if place > 0, !purchases[place - 1].id.isNumber(below: purchase.id) { idsGrow = false }
            if place + 1 < purchases.count, !purchase.id.isNumber(below: purchases[place + 1].id) { idsGrow = false }
            purchaseWeight += Int(purchase.weight)
        }
        // The weight of a purchase never decreases, so a dropped one could never have come back.
        var gone = 0
        while purchases.count - gone > Self.limitPurchases || purchaseWeight > Self.limitPurchaseWeight {
            purchaseWeight -= Int(purchases[gone].weight)
            gone += 1
        }
        guard gone > 0 else { return true }
        forgottenPurchase = purchases[gone - 1].key
        purchases.removeFirst(gone)
        return true
    }

    /// Two facts with one version have the same content.
    @inline(__always) private func isNews(_ other: Purchase, to known: Purchase) -> Bool {
        known.version < other.version || other.firstSigned < known.firstSigned || other.weight > known.weight
            || earlier(known.firstUpgraded, other.firstUpgraded) != known.firstUpgraded
            || later(known.expiry, other.expiry) != known.expiry
    }

    /// What is known about one transaction from two sources.
    @inline(__always) public func merged(_ known: Purchase, with other: Purchase) -> Purchase {
        var merged = known.version < other.version ? other : known
        merged.firstSigned = min(known.firstSigned, other.firstSigned)
        merged.firstUpgraded = earlier(known.firstUpgraded, other.firstUpgraded)
        merged.expiry = later(known.expiry, other.expiry)
        merged.weight = max(known.weight, other.weight)
        merged.keptTo = merged.keptFrom
        return merged
    }

    @inline(__always) private func later(_ left: Purchase.Expiry?, _ right: Purchase.Expiry?) -> Purchase.Expiry? {
        guard let left, let right else { return left ?? right }
        if left.signedDate != right.signedDate { return left.signedDate < right.signedDate ? right : left }
        guard let one = texts[left.subtype], let other = texts[right.subtype] else { return left }
        return one < other ? right : left
    }

    // MARK: Renewal infos

    private mutating func add(_ renewal: RenewalRow) -> Bool {
        let key = renewal.key
        if let forgottenRenewal, !(forgottenRenewal < key) { return false }
        let place = renewals.values.firstPlace { !($0.key < key) }
        if place < renewals.count, renewals[place].key == key { return false }
        let isNewest = place == renewals.count
        guard isNewest || renewal.saysMore else { return false }
        if isNewest, let last = renewals.last, !last.saysMore { renewals.removeLast() }
        renewals.insert(renewal, at: min(place, renewals.count))
        // The newest info always counts, and has no weight while it is the newest.
        var weight = 0
        for place in 0..<renewals.count - 1 { weight += renewals[place].weight(texts) }
        var gone = 0
        while renewals.count - gone > Self.limitRenewals || weight > Self.limitRenewalWeight {
            weight -= renewals[gone].weight(texts)
            gone += 1
        }
        guard gone > 0 else { return true }
        forgottenRenewal = renewals[gone - 1].key
        renewals.removeFirst(gone)
        return true
    }

    // MARK: Rows of this history from news

    @inline(__always) private mutating func purchase(_ news: NoticeNews.Transaction, _ notice: NoticeNews) -> Purchase {
        var purchase = Purchase(id: PurchaseId(news.id), purchaseDate: news.purchaseDate, news.version)
        purchase.expiresDate = news.expiresDate
        purchase.revocationDate = news.revocationDate
        purchase.isUpgraded = news.isUpgraded
        purchase.price = news.price
        if news.isUpgraded { purchase.firstUpgraded = news.version.signedDate }
        if notice.isExpired {
            // The record of a fetched transaction has no type: it does not report an end.
            purchase.expiry = Purchase.Expiry(
                signedDate: notice.signedDate ?? news.version.signedDate,
                subtype: texts.number((notice.subtype ?? TextPlace("")).prefix(Purchase.Expiry.limitSubtypeBytes)))
        }
        var terms = Terms()
        terms.type = texts.number(news.type)
        terms.bundleId = texts.number(news.bundleId)
        terms.productId = texts.number(news.productId)
        terms.subscriptionGroup = texts.number(news.subscriptionGroup)
        terms.appAccountToken = texts.number(news.appAccountToken)
        terms.ownership = texts.number(news.ownership)
        terms.revocationType = texts.number(news.revocationType)
        terms.currency = texts.number(news.currency)
        terms.billingPlan = texts.number(news.billingPlan)
        terms.readWords(texts)
        purchase.terms = place(of: terms)
        let offer = news.offerType.map {
            Particulars.Offer(
                type: $0, identifier: texts.number(news.offerIdentifier), discount: texts.number(news.offerDiscount))
        }
        purchase.particulars = place(of: offer, news.commitment)
        purchase.weight = weight(of: purchase)
        return purchase
    }

    @inline(__always) private mutating func row(of news: NoticeNews.Renewal) -> RenewalRow {
        var row = news.row
        row.autoRenewProductId = texts.number(news.autoRenewProductId)
        row.appAccountToken = texts.number(news.appAccountToken)
        row.renewalBillingPlan = texts.number(news.renewalBillingPlan)
        row.commitment?.autoRenewProductId = texts.number(news.commitmentProductId)
        row.commitment?.renewalBillingPlan = texts.number(news.commitmentBillingPlan)
        return row
    }

    // MARK: Rows of this history from those of another

    private mutating func copied(_ purchase: Purchase, of other: borrowing History) -> Purchase {
        var copy = purchase
        var terms = other.terms(of: purchase)
        terms.mapTexts { texts.number(other.texts[$0]) }
        copy.terms = place(of: terms)
        var offer = other.offer(of: purchase)
        if let theirs = offer {
            offer?.identifier = texts.number(other.texts[theirs.identifier])
            offer?.discount = texts.number(other.texts[theirs.discount])
        }
        copy.particulars = place(of: offer, other.commitment(of: purchase))
        if let expiry = purchase.expiry { copy.expiry?.subtype = texts.number(other.texts[expiry.subtype]) }
        copy.keptTo = copy.keptFrom
        return copy
    }

    private mutating func copied(_ renewal: RenewalRow, of other: borrowing History) -> RenewalRow {
        var copy = renewal
        copy.autoRenewProductId = texts.number(other.texts[renewal.autoRenewProductId])
        copy.appAccountToken = texts.number(other.texts[renewal.appAccountToken])
        copy.renewalBillingPlan = texts.number(other.texts[renewal.renewalBillingPlan])
        if let commitment = renewal.commitment {
            copy.commitment?.autoRenewProductId = texts.number(other.texts[commitment.autoRenewProductId])
            copy.commitment?.renewalBillingPlan = texts.number(other.texts[commitment.renewalBillingPlan])
        }
        return copy
    }
}

/// nil counts as the latest of all.
private func earlier(_ left: Int64?, _ right: Int64?) -> Int64? {
    guard let left, let right else { return left ?? right }
    return min(left, right)
}
