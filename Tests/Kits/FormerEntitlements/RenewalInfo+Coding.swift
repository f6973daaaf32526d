// Encodes one renewal info as bytes: date, hash, status, then every member in order. Dates are relative to the signing
// date.

internal import Notices

extension RenewalInfo {
    func write(to writer: inout ByteWriter, after date: Int64, _ texts: inout TextTable) {
        let signed = version.signedDate
        writer.signed(signed, from: date)
        writer.fixed(version.hash)
        writer.signed(status)
        writer.byte((isInBillingRetryPeriod ? 1 : 0) | (commitment == nil ? 0 : 2))
        writer.optional(autoRenewStatus)
        writer.optional(expirationIntent)
        writer.optional(gracePeriodExpiresDate.map { $0 &- signed })
        writer.optional(priceIncreaseStatus)
        writer.optional(renewalDate.map { $0 &- signed })
        writer.optional(renewalPrice)
        writer.unsigned(texts.number(autoRenewProductId))
        writer.unsigned(texts.number(appAccountToken))
        writer.unsigned(texts.number(renewalBillingPlan))
        guard let commitment else { return }
        writer.optional(commitment.autoRenewStatus)
        writer.unsigned(texts.number(commitment.autoRenewProductId))
        writer.unsigned(texts.number(commitment.renewalBillingPlan))
    }

    init?(_ reader: inout ByteReader, after date: Int64, _ texts: [Text]) {
        guard let signed = reader.signed(from: date), let hash = reader.fixed(), let status = reader.signed(),
            let flags = reader.byte(), flags <= 3, let autoRenewStatus = reader.optional(),
            let intent = reader.optional(), let grace = reader.optional(), let increase = reader.optional(),
            let renewalDate = reader.optional(), let price = reader.optional(), let product = reader.text(of: texts),
            let token = reader.text(of: texts), let plan = reader.text(of: texts)
        else { return nil }
        self.init(version: Version(signedDate: signed, hash: hash))
        self.status = status
        isInBillingRetryPeriod = flags & 1 != 0
        self.autoRenewStatus = autoRenewStatus
        expirationIntent = intent
        gracePeriodExpiresDate = grace.map { $0 &+ signed }
        priceIncreaseStatus = increase
        self.renewalDate = renewalDate.map { $0 &+ signed }
        renewalPrice = price
        autoRenewProductId = product
        appAccountToken = token
        renewalBillingPlan = plan
        guard flags & 2 != 0 else { return }
        guard let status = reader.optional(), let product = reader.text(of: texts), let plan = reader.text(of: texts)
        else { return nil }
        commitment = Commitment(autoRenewStatus: status, autoRenewProductId: product, renewalBillingPlan: plan)
    }
}
