// Refusals in a form that programs can read.

extension HTTPResponse {
    /// For a 503: the reason is usually over after this time.
    public static let usualRetrySeconds = 60

    /// `{"error":"<code>"}`. The codes are our own words, none of which needs escaping.
    public static func error(
        _ status: Int, _ code: String, retryAfterSeconds: Int = usualRetrySeconds
    ) -> HTTPResponse {
        var response = HTTPResponse.json(status, Array(#"{"error":"\#(code)"}"#.utf8))
        if status == 503 { response.headers.add("Retry-After", String(retryAfterSeconds)) }
        return response
    }

    /// The server's own refusals in the form of all other refusals: for `HTTPServer.Configuration.refusal`.
    public static let refusalInJSON: @Sendable (Int, String) -> HTTPResponse = { status, _ in
        .error(status, code(ofRefusal: status))
    }

    private static func code(ofRefusal status: Int) -> String {
        switch status {
        case 408: "timed_out"
        case 411: "length_required"
        case 413: "too_large"
        case 431: "head_too_large"
        case 500: "internal"
        case 503: "unavailable"
        default: "bad_request"
        }
    }
}
