// Records of `notifications`, `signed` and `rejected`: key, headers, value.

public import AppStore

/// Where a verified notification came from.
public enum NotificationSource: String, Sendable { case push, history, api, device }

public enum NotificationRecord {
    /// The value: one JSON object, Apple's parts carried as the bytes that were signed.
    public static func value(_ notification: VerifiedNotification, receivedDate: Int64, source: NotificationSource)
        -> [UInt8]
    { fatalError("to be written") }
}

public enum TickRecord {
    /// `{"v":1,"tick":1771000000000}`
    public static func value(_ milliseconds: Int64) -> [UInt8] { fatalError("to be written") }
    /// `tick-<partition>-<ms>`
    public static func id(partition: Int32, _ milliseconds: Int64) -> String { fatalError("to be written") }
}
