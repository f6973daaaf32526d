// Encodes facts as bytes: the state that a worker keeps for a subscription.
//
// Format 1:
//
//     1, flags, the greatest keys that were forgotten, texts, purchases, renewal infos
//
// Each of the three lists begins with its count. A purchase consists of flags, id, dates, hash, and the numbers of its
// texts unless the purchase before has the same ones, followed by the fields that the flags announce. A row takes 35 to
// 40 bytes, however long its names are: five years of monthly periods take less than 4 KiB, as many years of weekly
// periods less than 16 KiB. Longer lives grow up to the limits of `Facts`, where the oldest rows and infos are dropped.
//
// The same facts always give the same bytes. Bytes of another version, truncated bytes and bytes that no facts can have
// are rejected.

internal import Notices

extension Facts {
    /// A greater version was written by a later program.
    static let codingVersion: UInt8 = 1

    private struct Flags: OptionSet {
        let rawValue: UInt8
        static let introOfferUsed = Flags(rawValue: 1)
        static let forgottenPurchase = Flags(rawValue: 2)
        static let numericForgotten = Flags(rawValue: 4)
        static let forgottenInfo = Flags(rawValue: 8)
        static let all: Flags = [.introOfferUsed, .forgottenPurchase, .numericForgotten, .forgottenInfo]
    }

    func write(to head: inout ByteWriter) {
        var texts = TextTable()
        var body = ByteWriter(capacity: 256 + purchases.count * 48 + renewalInfos.count * 48)
        body.unsigned(UInt64(purchases.count))
        var previous: PurchaseFacts?
        for purchase in purchases {
            purchase.write(to: &body, after: previous, &texts)
            previous = purchase
        }
        body.unsigned(UInt64(renewalInfos.count))
        var date = previous?.transaction.purchaseDate ?? 0
        for info in renewalInfos {
            info.write(to: &body, after: date, &texts)
            date = info.version.signedDate
        }
        head.byte(Self.codingVersion)
        var flags: Flags = introOfferUsed ? .introOfferUsed : []
        if let forgottenPurchase {
            flags.insert(.forgottenPurchase)
            if case .number = forgottenPurchase.id.form { flags.insert(.numericForgotten) }
        }
        if forgottenInfo != nil { flags.insert(.forgottenInfo) }
        head.byte(flags.rawValue)
        if let forgottenPurchase {
            head.signed(forgottenPurchase.purchaseDate)
            forgottenPurchase.id.write(to: &head)
        }
        if let forgottenInfo {
            head.signed(forgottenInfo.version.signedDate)
            head.fixed(forgottenInfo.version.hash)
            head.signed(forgottenInfo.status)
        }
        head.unsigned(UInt64(texts.texts.count))
        for text in texts.texts { head.text(text) }
        head.append(body)
    }

    /// Reads everything that is left. nil if the bytes have another version or are invalid.
    init?(_ reader: inout ByteReader) {
        guard reader.byte() == Self.codingVersion, let flags = reader.byte().map(Flags.init(rawValue:)),
            Flags.all.isSuperset(of: flags),
            flags.contains(.forgottenPurchase) || !flags.contains(.numericForgotten)
        else { return nil }
        var forgottenPurchase: PurchaseFacts.Key?
        if flags.contains(.forgottenPurchase) {
            guard let date = reader.signed(), let id = reader.id(isNumber: flags.contains(.numericForgotten)) else {
                return nil
            }
            forgottenPurchase = PurchaseFacts.Key(purchaseDate: date, id: id)
        }
        var forgottenInfo: RenewalInfo.Key?
        if flags.contains(.forgottenInfo) {
            guard let date = reader.signed(), let hash = reader.fixed(), let status = reader.signed() else {
                return nil
            }
            forgottenInfo = RenewalInfo.Key(version: Version(signedDate: date, hash: hash), status: status)
        }
        guard let textCount = reader.count() else { return nil }
        var texts: [Text] = []
        // Foreign bytes may claim any count, here and below.
        texts.reserveCapacity(min(textCount, TextTable.fewTexts))
        for _ in 0..<textCount {
            guard let text = reader.text() else { return nil }
            texts.append(text)
        }
        guard let purchaseCount = reader.count() else { return nil }
        var purchases: [PurchaseFacts] = []
        purchases.reserveCapacity(min(purchaseCount, Facts.limitPurchases))
        for _ in 0..<purchaseCount {
            guard let purchase = PurchaseFacts(&reader, after: purchases.last, texts) else { return nil }
            purchases.append(purchase)
        }
        guard let infoCount = reader.count() else { return nil }
        var infos: [RenewalInfo] = []
        var date = purchases.last?.transaction.purchaseDate ?? 0
        for _ in 0..<infoCount {
            guard let info = RenewalInfo(&reader, after: date, texts) else { return nil }
            date = info.version.signedDate
            infos.append(info)
        }
        guard reader.isAtEnd else { return nil }
        self.init(
            purchases: purchases, renewalInfos: infos, introOfferUsed: flags.contains(.introOfferUsed),
            forgottenPurchase: forgottenPurchase, forgottenInfo: forgottenInfo)
    }
}
