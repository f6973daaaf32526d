// Decimal digits, read and written eight at a time.

// MARK: Reading

/// A number in decimal digits. nil if there are none, if another byte is among them, or if it does not fit 64 bits.
public func decimalNumber(_ digits: UnsafeBufferPointer<UInt8>) -> UInt64? {
    let bytes = UnsafeRawBufferPointer(digits)
    func word(at place: Int) -> UInt64 {
        UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: place, as: UInt64.self))
    }
    if bytes.count < 8 { return shortNumber(digits) }
    // First those that are no eight, behind as many zeros as are missing.
    var place = bytes.count % 8
    let zeros = zeroDigits >> UInt64(8 * place)
    guard var result = number(ofDigits: word(at: 0) << UInt64(8 * (8 - place)) | zeros) else { return nil }
    while place < bytes.count {
        guard let eight = number(ofDigits: word(at: place)) else { return nil }
        let (product, overflows) = result.multipliedReportingOverflow(by: 100_000_000)
        let (sum, overflowsToo) = product.addingReportingOverflow(eight)
        if overflows || overflowsToo { return nil }
        result = sum
        place += 8
    }
    return result
}

/// Of fewer than eight digits.
private func shortNumber(_ digits: UnsafeBufferPointer<UInt8>) -> UInt64? {
    var result: UInt64 = 0
    for byte in digits {
        let digit = UInt64(byte ^ UInt8(ascii: "0"))
        guard digit < 10 else { return nil }
        result = result * 10 + digit
    }
    return digits.isEmpty ? nil : result
}

private let zeroDigits: UInt64 = 0x3030_3030_3030_3030

/// Of eight bytes, the first digit in the lowest one. nil if a byte is not a digit.
@inline(__always) private func number(ofDigits word: UInt64) -> UInt64? {
    let digits = word ^ zeroDigits
    // 0x76 more than 9 is 0x7f.
    guard (digits | (digits &+ 0x7676_7676_7676_7676)) & 0x8080_8080_8080_8080 == 0 else { return nil }
    let pairs = (digits &* 10 &+ digits >> 8) & 0x00ff_00ff_00ff_00ff
    let fours = (pairs &* 100 &+ pairs >> 16) & 0x0000_ffff_0000_ffff
    return (fours &* 10_000 &+ fours >> 32) & 0xffff_ffff
}

// MARK: Writing

/// The most that `writeDecimal` writes.
let decimalBytes = 21

/// Eight digits at a time, the first of them without leading zeros.
func writeDecimal(isNegative: Bool, _ magnitude: UInt64, to place: UnsafeMutablePointer<UInt8>) -> Int {
    var end = place
    if isNegative {
        end[0] = UInt8(ascii: "-")
        end += 1
    }
    let (upper, lower) = magnitude.quotientAndRemainder(dividingBy: 100_000_000)
    if upper == 0 {
        writeFirst(lower, to: &end)
        return end - place
    }
    let (top, middle) = upper.quotientAndRemainder(dividingBy: 100_000_000)
    if top == 0 {
        writeFirst(middle, to: &end)
    } else {
        writeFirst(top, to: &end)
        write(digits(of: middle), to: &end)
    }
    write(digits(of: lower), to: &end)
    return end - place
}

@inline(__always) private func writeFirst(_ number: UInt64, to end: inout UnsafeMutablePointer<UInt8>) {
    let eight = digits(of: number)
    // Zero has one digit.
    write(eight, without: min(eight.trailingZeroBitCount / 8, 7), to: &end)
}

@inline(__always) private func write(
    _ eight: UInt64, without zeros: Int = 0, to end: inout UnsafeMutablePointer<UInt8>
) {
    let text = (eight | zeroDigits) &>> UInt64(8 * zeros)
    UnsafeMutableRawPointer(end).storeBytes(of: text.littleEndian, as: UInt64.self)
    end += 8 - zeros
}

/// The digits of a number below 100,000,000 as bytes, the first digit in the lowest one.
@inline(__always) private func digits(of number: UInt64) -> UInt64 {
    // Divisions by 10,000, 100 and 10; the last two in all parts at once, as multiplications by rounded inverses.
    let fours = number / 10_000 | (number % 10_000) << 32
    let hundreds = (fours &* 5_243) >> 19 & 0x0000_007f_0000_007f
    let pairs = hundreds | (fours &- hundreds &* 100) << 16
    let tens = (pairs &* 103) >> 10 & 0x000f_000f_000f_000f
    return tens | (pairs &- tens &* 10) << 8
}
