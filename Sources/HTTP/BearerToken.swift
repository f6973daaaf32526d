// Who may ask: the token of an Authorization header.

extension HTTPHeaders {
    /// The scheme without regard to case, as the standard has it; the token compared in constant time.
    public func bear(_ token: String) -> Bool { bear(anyOf: [token]) }

    /// Every one of them is compared, so that the time does not tell which came near.
    public func bear(anyOf tokens: [String]) -> Bool {
        let given = all("Authorization")
        guard given.count == 1 else { return false }
        let bytes = Array(given[0].utf8)
        guard let blank = bytes.firstIndex(of: UInt8(ascii: " ")),
            bytes[..<blank].elementsEqual("bearer".utf8, by: { $0 | 0x20 == $1 })
        else { return false }
        let token = Array(withoutBlanks(bytes[blank...]))
        return tokens.reduce(false) { isEqualInConstantTime(token, Array($1.utf8)) || $0 }
    }
}

/// Takes as long for a first byte that differs as for the last, so that a token cannot be found byte by byte. Its length
/// is no secret.
func isEqualInConstantTime(_ left: [UInt8], _ right: [UInt8]) -> Bool {
    guard left.count == right.count else { return false }
    return zip(left, right).reduce(0 as UInt8) { $0 | ($1.0 ^ $1.1) } == 0
}
