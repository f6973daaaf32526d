// Refusals that depend only on the head.

import HTTP

/// The longest header value that is parsed. No honest client sends a longer one, and parsing it would cost time.
private let limitHeaderBytes = 256

/// Whether a media type is JSON in UTF-8. Other parameters are ignored.
func isJSON(_ contentType: String) -> Bool {
    // The value that Apple sends needs no parsing.
    if contentType == "application/json" { return true }
    guard contentType.utf8.count <= limitHeaderBytes else { return false }
    let parts = Array(contentType.utf8).split(separator: UInt8(ascii: ";"), omittingEmptySubsequences: false)
    guard isWord(withoutBlanks(parts[0]), "application/json") else { return false }
    for parameter in parts.dropFirst() {
        guard let sign = parameter.firstIndex(of: UInt8(ascii: "=")),
            isWord(withoutBlanks(parameter[..<sign]), "charset")
        else { continue }
        var charset = withoutBlanks(parameter[(sign + 1)...])
        let quote = UInt8(ascii: "\"")
        if charset.count >= 2, charset.first == quote, charset.last == quote {
            charset = charset.dropFirst().dropLast()
        }
        guard isWord(charset, "utf-8") else { return false }
    }
    return true
}

func hasJSONBody(_ headers: HTTPHeaders) -> Bool {
    let types = headers.all("Content-Type")
    guard types.count == 1, isJSON(types[0]) else { return false }
    // A compressed body may be very large after decompression.
    return headers.all("Content-Encoding").allSatisfy { encodings in
        encodings.utf8.count <= limitHeaderBytes
            && Array(encodings.utf8).split(separator: UInt8(ascii: ",")).allSatisfy {
                isWord(withoutBlanks($0), "identity")
            }
    }
}

/// Ignores case; `word` is in lower case.
private func isWord(_ text: ArraySlice<UInt8>, _ word: StaticString) -> Bool {
    func lower(_ byte: UInt8) -> UInt8 { (0x41...0x5A).contains(byte) ? byte | 0x20 : byte }
    return text.count == word.utf8CodeUnitCount
        && word.withUTF8Buffer { word in zip(text, word).allSatisfy { lower($0) == $1 } }
}
