// The body of Apple's POST.

/// `{"signedPayload": "..."}`; other members are ignored, Apple may add some.
public enum NotificationBody {
    /// The signed text. A body that is no such object is `malformed`, by the JSON rules of payloads.
    public static func signedPayload(of body: [UInt8]) throws(Rejection) -> [UInt8] { fatalError("to be written") }
}
