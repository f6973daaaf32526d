// Who may ask: the token of an Authorization header.

extension HTTPHeaders {
    /// The scheme without regard to case, as the standard has it; the token compared in constant time.
    public func bear(_ token: String) -> Bool {
        let given = all("Authorization")
        guard given.count == 1 else { return false }
        let parts = given[0].split(separator: " ", maxSplits: 1)
        guard parts.count == 2, equalsIgnoringCase(String(parts[0]), "bearer") else { return false }
        return isEqualInConstantTime(Array(withoutBlanks(parts[1]).utf8), Array(token.utf8))
    }
}

/// Takes as long for a first byte that differs as for the last, so that a token cannot be found byte by byte. Its length
/// is no secret.
func isEqualInConstantTime(_ left: [UInt8], _ right: [UInt8]) -> Bool {
    guard left.count == right.count else { return false }
    return zip(left, right).reduce(0 as UInt8) { $0 | ($1.0 ^ $1.1) } == 0
}

/// Without the blanks around it, which mean nothing in a header.
package func withoutBlanks(_ text: some StringProtocol) -> String {
    var rest = text[...]
    while let first = rest.first, first == " " || first == "\t" { rest = rest.dropFirst() }
    while let last = rest.last, last == " " || last == "\t" { rest = rest.dropLast() }
    return String(rest)
}
