// Values of the records of `notifications`.

internal import Contract
internal import Crypto
internal import JSON

/// How we received a verified notification.
public enum NotificationSource: String, Sendable { case push, history, api, device }

public enum NotificationRecord {
    static let version = RecordType.notification.version
    /// Approximate bytes of everything except Apple's parts, with app names of usual length.
    private static let envelopeBytes = 640

    /// One JSON object. It contains the bytes that Apple signed, without parsing and rewriting them: nothing that Apple
    /// adds is lost, and no number changes its form.
    public static func value(_ notification: VerifiedNotification, receivedDate: Int64, source: NotificationSource)
        -> [UInt8]
    {
        var writer = JSONWriter(capacity: envelopeBytes + notification.content.count)
        writer.object { record in
            record.member(MemberName.v.text, version)
            record.member(MemberName.notificationUUID.text, notification.notificationUUID)
            record.member(MemberName.notificationType.text, notification.notificationType)
            record.member(MemberName.subtype.text, notification.subtype)
            record.member(MemberName.signedDate.text, notification.signedDate)
            record.member(MemberName.receivedDate.text, receivedDate)
            record.member(MemberName.source.text, source.rawValue)
            record.member(MemberName.environment.text, notification.environment.nameOfApple)
            record.member(MemberName.bundleId.text, notification.bundleId)
            record.member(MemberName.appAppleId.text, orNull: notification.appAppleId)
            record.member(MemberName.bundleVersion.text, notification.bundleVersion)
            record.member(MemberName.status.text, orNull: notification.status)
            record.member(MemberName.consumptionRequestReason.text, notification.consumptionRequestReason)
            write(notification.content, to: &record)
            record.name(MemberName.evidence.text)
            record.object { evidence in
                evidence.member("sha256", hexadecimal(notification.sha256))
                evidence.member("leaf", notification.leafSerial)
            }
        }
        return writer.bytes
    }

    private static func write(_ content: VerifiedNotification.Content, to record: inout JSONWriter) {
        switch content {
        case .data(let transaction, let renewalInfo):
            record.member(MemberName.transaction.text, json: transaction)
            record.member(MemberName.renewalInfo.text, json: renewalInfo)
        case .summary(let summary): record.member(MemberName.summary.text, json: summary)
        case .externalPurchaseToken(let token): record.member(MemberName.externalPurchaseToken.text, json: token)
        case .appData(let appData): record.member(MemberName.appData.text, json: appData)
        }
    }
}

extension VerifiedNotification.Content {
    fileprivate var count: Int {
        switch self {
        case .data(let transaction, let renewalInfo): (transaction?.count ?? 0) + (renewalInfo?.count ?? 0)
        case .summary(let bytes), .externalPurchaseToken(let bytes), .appData(let bytes): bytes.count
        }
    }
}
