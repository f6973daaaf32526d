// Refusals that follow from the head alone.

import HTTP

/// Whether a media type is JSON in UTF-8. Other parameters mean nothing here.
func isJSON(_ contentType: String) -> Bool {
    // What Apple sends, without taking it apart.
    if contentType == "application/json" { return true }
    let parts = contentType.split(separator: ";", omittingEmptySubsequences: false).map { withoutBlanks($0) }
    guard parts[0].lowercased() == "application/json" else { return false }
    for parameter in parts.dropFirst() {
        let pair = parameter.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map {
            withoutBlanks($0)
        }
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
            withoutBlanks($0).lowercased() == "identity"
        }
    }
}
