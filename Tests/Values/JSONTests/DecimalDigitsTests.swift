import Testing

@testable import JSON

@Suite struct `Decimal digits` {
    /// Every count of digits, the least and the greatest number of each, and all near them.
    private static let numbers: [UInt64] = {
        var numbers: Set<UInt64> = [0, .max, .max - 1]
        var power: UInt64 = 1
        for _ in 1..<20 {
            power *= 10
            for near in 0..<12 {
                numbers.formUnion([power - UInt64(min(near, 9)), power + UInt64(near), power / 9 * 8])
            }
        }
        for bits in 0..<64 { numbers.formUnion([1 << UInt64(bits), 0x9e37_79b9_7f4a_7c15 >> UInt64(bits)]) }
        // Every group of four digits.
        for group in 0..<10_000 as Range<UInt64> { numbers.formUnion([group, group * 10_000 + 9_999 - group]) }
        return numbers.sorted()
    }()

    private func read(_ bytes: [UInt8]) -> UInt64? { bytes.withUnsafeBufferPointer { decimalNumber($0) } }

    @Test func `are written as Swift writes them, and read back`() {
        let memory = UnsafeMutableBufferPointer<UInt8>.allocate(capacity: decimalBytes + 1)
        defer { memory.deallocate() }
        for number in Self.numbers {
            for isNegative in [false, true] {
                memory.initialize(repeating: 0xee)
                let count = writeDecimal(isNegative: isNegative, number, to: memory.baseAddress!)
                let text = String(decoding: memory[..<count], as: UTF8.self)
                #expect(text == (isNegative ? "-" : "") + String(number))
                // Nothing is written beyond the room that was made.
                #expect(memory[decimalBytes] == 0xee)
            }
            #expect(read(Array(String(number).utf8)) == number)
        }
    }

    @Test func `are no number with any other byte among them`() {
        for count in 1...20 {
            let digits = Array("12345678901234567890".utf8.prefix(count))
            for place in digits.indices {
                for byte in UInt8.min ... .max where !(UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) {
                    var changed = digits
                    changed[place] = byte
                    #expect(read(changed) == nil, "\(changed)")
                }
            }
        }
    }

    @Test func `are no number beyond 64 bits, and without any digit`() {
        #expect(read([]) == nil)
        #expect(read(Array("18446744073709551615".utf8)) == .max)
        for text in [
            "18446744073709551616", "18446744073709551620", "99999999999999999999", "184467440737095516150",
            "1000000000000000000000000", "99999999999999999999999999999999",
        ] {
            #expect(read(Array(text.utf8)) == nil, "\(text)")
        }
        #expect(read(Array("000000000000000000000000000000018446744073709551615".utf8)) == .max)
    }
}
