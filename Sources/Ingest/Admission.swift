// Refusals that follow from the head alone.

import HTTP

extension HTTPResponse {
    /// `{"error":"<code>"}`. Codes are words of ours; none needs escaping.
    static func error(_ status: Int, _ code: String) -> HTTPResponse {
        var response = HTTPResponse.json(status, Array(#"{"error":"\#(code)"}"#.utf8))
        // Apple repeats after an hour at the earliest; proxies and backends are quicker.
        if status == 503 { response.headers.add("Retry-After", "60") }
        return response
    }
}

/// Whether a media type is JSON in UTF-8. Other parameters mean nothing here.
func isJSON(_ contentType: String) -> Bool {
    // What Apple sends, without taking it apart.
    if contentType == "application/json" { return true }
    let parts = contentType.split(separator: ";", omittingEmptySubsequences: false).map(trimmed)
    guard parts[0].lowercased() == "application/json" else { return false }
    for parameter in parts.dropFirst() {
        let pair = parameter.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(trimmed)
        guard pair.count == 2, pair[0].lowercased() == "charset" else { continue }
        var charset = pair[1].lowercased()
        if charset.count >= 2, charset.hasPrefix("\""), charset.hasSuffix("\"") {
            charset = String(charset.dropFirst().dropLast())
        }
        guard charset == "utf-8" else { return false }
    }
    return true
}

func hasJSONBody(_ headers: HTTPHeaders) -> Bool {
    let types = headers.all("Content-Type")
    guard types.count == 1, isJSON(types[0]) else { return false }
    // A compressed body is small until it is opened.
    return headers.all("Content-Encoding").allSatisfy { encodings in
        encodings.split(separator: ",").allSatisfy {
            trimmed($0).lowercased() == "identity"
        }
    }
}

/// The scheme without regard to case, as the standard has it; the token compared in constant time.
func bears(_ token: String, _ headers: HTTPHeaders) -> Bool {
    let given = headers.all("Authorization")
    guard given.count == 1 else { return false }
    let parts = given[0].split(separator: " ", maxSplits: 1)
    guard parts.count == 2, parts[0].lowercased() == "bearer" else { return false }
    return isEqualInConstantTime(Array(trimmed(parts[1]).utf8), Array(token.utf8))
}

/// Takes as long for a first byte that differs as for the last, so that a token cannot be found byte by byte. Its length
/// is no secret.
func isEqualInConstantTime(_ left: [UInt8], _ right: [UInt8]) -> Bool {
    guard left.count == right.count else { return false }
    return zip(left, right).reduce(0 as UInt8) { $0 | ($1.0 ^ $1.1) } == 0
}

private func trimmed(_ text: some StringProtocol) -> String {
    var rest = text[...]
    while let first = rest.first, first == " " || first == "\t" { rest = rest.dropFirst() }
    while let last = rest.last, last == " " || last == "\t" { rest = rest.dropLast() }
    return String(rest)
}
