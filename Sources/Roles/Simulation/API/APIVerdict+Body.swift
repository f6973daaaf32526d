// The error responses of the simulated App Store Server API.

internal import JSON

extension APIVerdict {
    /// Empty for a 202 and for verdicts without an error code.
    public var body: [UInt8] {
        guard let errorCode else { return [] }
        var json = JSONWriter()
        json.object { json in
            json.member("errorCode", errorCode)
            json.member("errorMessage", message)
        }
        return json.bytes
    }

    /// More requests within a second than Apple allows.
    public static let tooMany = APIVerdict(status: 429, errorCode: 4_290_000, message: "Rate limit exceeded.")
    /// A temporary error on Apple's side.
    public static let internalError = APIVerdict(
        status: 500, errorCode: 5_000_001, message: "An unknown error occurred. Please try again.")
    public static let unavailable = APIVerdict(status: 503, message: "The service is unavailable.")
}
