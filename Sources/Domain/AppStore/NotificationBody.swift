// The body of Apple's POST request.

internal import JSON
internal import Records

/// `{"signedPayload": "..."}`; other members are ignored, because Apple may add some.
public enum NotificationBody {
    /// The signed text. A body of any other form is `malformed`, by the JSON rules of payloads. The caller has limited
    /// its size.
    public static func signedPayload(of body: [UInt8]) throws(Rejection) -> [UInt8] {
        var document = PayloadJSON.document(maxBytes: body.count)
        return try signedPayload(of: body, with: &document)
    }

    static func signedPayload(of body: [UInt8], with document: inout JSONDocument) throws(Rejection) -> [UInt8] {
        try PayloadJSON.read(body.span, into: &document, "body")
        guard let value = document.value(.signedPayload, of: document.root) else {
            // Notifications of version 1 have other members and no signature.
            throw Rejection(
                .malformed, "body: there is no signedPayload; only version 2 of the notifications is signed")
        }
        guard let text = document.bytes(of: value) else {
            throw Rejection(.malformed, "body: signedPayload is not a string")
        }
        return text
    }
}
