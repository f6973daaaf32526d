/// Bytes of hexadecimal text; blanks and line breaks between them are skipped.
func bytes(_ hexadecimal: String) -> [UInt8] {
    let digits = hexadecimal.filter { !$0.isWhitespace }
    precondition(digits.count.isMultiple(of: 2))
    var rest = digits[...]
    var result: [UInt8] = []
    while !rest.isEmpty {
        guard let byte = UInt8(rest.prefix(2), radix: 16) else {
            preconditionFailure("no hexadecimal: \(rest.prefix(2))")
        }
        result.append(byte)
        rest = rest.dropFirst(2)
    }
    return result
}
