// Values of the records of `notifications`.

public import AppStore
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
            record.member("v", version)
            record.member("notificationUUID", notification.notificationUUID)
            record.member("notificationType", notification.notificationType)
            record.member("subtype", notification.subtype)
            record.member("signedDate", notification.signedDate)
            record.member("receivedDate", receivedDate)
            record.member("source", source.rawValue)
            record.member("environment", notification.environment.nameOfApple)
            record.member("bundleId", notification.bundleId)
            record.member("appAppleId", orNull: notification.appAppleId)
            record.member("bundleVersion", notification.bundleVersion)
            record.member("status", orNull: notification.status)
            record.member("consumptionRequestReason", notification.consumptionRequestReason)
            write(notification.content, to: &record)
            record.name("evidence")
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
            record.member("transaction", json: transaction)
            record.member("renewalInfo", json: renewalInfo)
        case .summary(let summary): record.member("summary", json: summary)
        case .externalPurchaseToken(let token): record.member("externalPurchaseToken", json: token)
        case .appData(let appData): record.member("appData", json: appData)
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
