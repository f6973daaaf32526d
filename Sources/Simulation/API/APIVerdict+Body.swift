// How the make-believe App Store Server API writes a refusal.

internal import JSON

extension APIVerdict {
    /// Of a 202 and of what has no number it is empty.
    public var body: [UInt8] {
        guard let errorCode else { return [] }
        var json = JSONWriter()
        json.object { json in
            json.member("errorCode", errorCode)
            json.member("errorMessage", message)
        }
        return json.bytes
    }

    /// More requests than Apple allows within a second.
    public static let tooMany = APIVerdict(status: 429, errorCode: 4_290_000, message: "Rate limit exceeded.")
    /// Something at Apple's side, which passes.
    public static let internalError = APIVerdict(
        status: 500, errorCode: 5_000_001, message: "An unknown error occurred. Please try again.")
    public static let unavailable = APIVerdict(status: 503, message: "Nobody is there.")
}
