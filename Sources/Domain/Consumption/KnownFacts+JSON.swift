// The member `facts` of decisions.

internal import JSON
internal import Notices
internal import Records

extension KnownFacts {
    /// Every value that the policy could test, the assumed values, and everything else that decides the answer.
    func json(_ verdict: PolicyVerdict) -> [UInt8] {
        let tested = verdict.tested
        var json = JSONWriter(capacity: 768)
        json.object { json in
            json.member("productId", utf8: tested.productId?.bytes)
            json.member("productType", utf8: tested.productType?.bytes)
            json.member("bundleId", utf8: tested.bundleId?.bytes)
            json.member("storefront", utf8: tested.storefront?.bytes)
            json.member("reason", utf8: tested.reason?.bytes)
            json.member("billingPlan", utf8: tested.billingPlan?.bytes)
            json.member("offerType", utf8: tested.offerType?.bytes)
            json.member("deliveryStatus", utf8: tested.deliveryStatus?.bytes)
            json.member("commitmentPeriod", orNull: tested.commitmentPeriod)
            json.member("consumptionPercentage", orNull: tested.consumptionPercentage)
            json.member("daysSincePurchase", orNull: tested.daysSincePurchase)
            json.member("refundsRequested", orNull: tested.refundsRequested)
            json.member("refundsGranted", orNull: tested.refundsGranted)
            json.member("purchaseDate", purchase.purchaseDate)
            json.member("price", orNull: purchase.price)
            json.member("currency", utf8: purchase.currency?.bytes)
            json.member("quantity", orNull: purchase.quantity)
            json.member("freeTrial", hadFreeTrial)
            json.member("advancedCommerce", purchase.isAdvancedCommerce)
            json.name("assumed")
            json.array { json in for name in verdict.assumed { json.string(name) } }
            json.name("usage")
            usage.write(to: &json)
        }
        return json.bytes
    }

    /// Reads what `json` has written; nil if `facts` has another form.
    init?(_ record: borrowing JSONDocument, _ facts: JSONDocument.Value, transactionId: Text?) {
        guard let date = record.integer("purchaseDate", of: facts),
            let days = record.integer("daysSincePurchase", of: facts),
            let requested = record.integer("refundsRequested", of: facts),
            let granted = record.integer("refundsGranted", of: facts),
            let usage = record.object("usage", of: facts)
        else { return nil }
        var purchase = Purchase(transactionId: transactionId ?? "", purchaseDate: date)
        purchase.productId = record.text("productId", of: facts)
        purchase.productType = record.text("productType", of: facts)
        purchase.bundleId = record.text("bundleId", of: facts)
        purchase.storefront = record.text("storefront", of: facts)
        purchase.billingPlan = record.text("billingPlan", of: facts)
        purchase.offerType = record.text("offerType", of: facts).flatMap { OfferType.type(of: $0.description) }
        purchase.commitmentPeriod = record.integer("commitmentPeriod", of: facts)
        purchase.price = record.integer("price", of: facts)
        purchase.currency = record.text("currency", of: facts)
        purchase.quantity = record.integer("quantity", of: facts)
        purchase.isAdvancedCommerce = record.bool("advancedCommerce", of: facts) ?? false
        let told = Usage(record, usage)
        // Without a reported value, the recorded share is the computed one.
        let share = told.consumptionPercentage == nil ? record.integer("consumptionPercentage", of: facts) : nil
        self.init(
            purchase: purchase, reason: record.text("reason", of: facts), usage: told, elapsedShare: share,
            daysSincePurchase: days, refundsRequested: requested, refundsGranted: granted,
            hadFreeTrial: record.bool("freeTrial", of: facts) ?? false)
    }
}

extension Usage {
    fileprivate func write(to json: inout JSONWriter) {
        json.object { json in
            if let consent {
                json.member(MemberName.consented.text, consent.isGiven)
                json.member(MemberName.consentedAt.text, consent.at)
            }
            if let deliveryStatus { json.member(MemberName.deliveryStatus.text, deliveryStatus.rawValue) }
            if let sampleContentProvided { json.member(MemberName.sampleContentProvided.text, sampleContentProvided) }
            if let consumptionPercentage { json.member(MemberName.consumptionPercentage.text, consumptionPercentage) }
            if let refundPreference { json.member(MemberName.refundPreference.text, refundPreference.rawValue) }
            if let accountCreatedAt { json.member(MemberName.accountCreatedAt.text, accountCreatedAt) }
            if let playTimeSeconds { json.member(MemberName.playTimeSeconds.text, playTimeSeconds) }
            if let userStatus { json.member(MemberName.userStatus.text, userStatus) }
            if let platform { json.member(MemberName.platform.text, platform) }
        }
    }

    fileprivate init(_ record: borrowing JSONDocument, _ object: JSONDocument.Value) {
        if let isGiven = record.bool(.consented, of: object), let at = record.integer(.consentedAt, of: object) {
            consent = Consent(isGiven: isGiven, at: at)
        }
        deliveryStatus = record.text(.deliveryStatus, of: object).flatMap { DeliveryStatus(rawValue: $0.description) }
        sampleContentProvided = record.bool(.sampleContentProvided, of: object)
        consumptionPercentage = record.integer(.consumptionPercentage, of: object)
        refundPreference = record.text(.refundPreference, of: object).flatMap {
            RefundPreference(rawValue: $0.description)
        }
        accountCreatedAt = record.integer(.accountCreatedAt, of: object)
        playTimeSeconds = record.integer(.playTimeSeconds, of: object)
        userStatus = record.integer(.userStatus, of: object)
        platform = record.integer(.platform, of: object)
    }
}
