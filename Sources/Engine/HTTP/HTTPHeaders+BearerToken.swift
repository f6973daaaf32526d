// Whether a request may be answered: the token of its Authorization header.

extension HTTPHeaders {
    /// The scheme is compared without regard to case, as the standard says; the token in constant time. All tokens are
    /// compared, so that the time does not show which one nearly matched.
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

/// A difference in the first byte takes as long as one in the last, so that a token cannot be guessed byte by byte. The
/// length of a token is not secret.
func isEqualInConstantTime(_ left: [UInt8], _ right: [UInt8]) -> Bool {
    guard left.count == right.count else { return false }
    return zip(left, right).reduce(0 as UInt8) { $0 | ($1.0 ^ $1.1) } == 0
}
