// Decimal digits, read and written eight at a time.

// MARK: Reading

/// A number in decimal digits. nil if there are none, if another byte is among them, or if it does not fit 64 bits.
public func decimalNumber(_ digits: UnsafeBufferPointer<UInt8>) -> UInt64? {
    guard digits.count > 0 else { return nil }
    let bytes = UnsafeRawBufferPointer(digits)
    var result: UInt64 = 0
    func add(_ value: UInt64, power: UInt64) -> Bool {
        let (product, overflows) = result.multipliedReportingOverflow(by: power)
        let (sum, overflowsToo) = product.addingReportingOverflow(value)
        result = sum
        return !overflows && !overflowsToo
    }
    var place = 0
    while place + 8 <= bytes.count {
        let word = bytes.loadUnaligned(fromByteOffset: place, as: UInt64.self)
        guard let eight = number(ofDigits: UInt64(littleEndian: word)), add(eight, power: 100_000_000) else {
            return nil
        }
        place += 8
    }
    while place < bytes.count {
        let digit = UInt64(bytes[place] ^ UInt8(ascii: "0"))
        guard digit < 10, add(digit, power: 10) else { return nil }
        place += 1
    }
    return result
}

/// Of eight bytes, the first digit in the lowest one. nil if a byte is not a digit.
@inline(__always) private func number(ofDigits word: UInt64) -> UInt64? {
    let digits = word ^ 0x3030_3030_3030_3030
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
    var count = 0
    func write(_ eight: UInt64, without zeros: Int) {
        let text = (eight | 0x3030_3030_3030_3030) >> UInt64(8 * zeros)
        UnsafeMutableRawPointer(place + count).storeBytes(of: text.littleEndian, as: UInt64.self)
        count += 8 - zeros
    }
    func writeFirst(_ number: UInt64) {
        let eight = digits(of: number)
        // Zero has one digit.
        write(eight, without: min(eight.trailingZeroBitCount / 8, 7))
    }
    if isNegative {
        place[0] = UInt8(ascii: "-")
        count = 1
    }
    let (upper, lower) = magnitude.quotientAndRemainder(dividingBy: 100_000_000)
    if upper == 0 {
        writeFirst(lower)
        return count
    }
    let (top, middle) = upper.quotientAndRemainder(dividingBy: 100_000_000)
    if top == 0 {
        writeFirst(middle)
    } else {
        writeFirst(top)
        write(digits(of: middle), without: 0)
    }
    write(digits(of: lower), without: 0)
    return count
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
