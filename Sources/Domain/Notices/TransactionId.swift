// The id of a transaction.

internal import JSON

/// Apple's ids are numbers, which need no separate memory here; any other text is also an id. Sorted by the order of
/// their bytes.
public struct TransactionId: Sendable, Hashable {
    public enum Form: Sendable, Hashable {
        case number(UInt64)
        case text(Text)
    }

    /// The least number with 20 digits: more digits may not fit into 64 bits. Apple's ids have up to 18.
    public static let limitNumber: UInt64 = 10_000_000_000_000_000_000
    private static let limitDigits = 19

    public let form: Form

    /// `number` is below `limitNumber`.
    public init(number: UInt64) { form = .number(number) }

    public init(_ text: Text) { self.init(text.bytes.span, elseText: text) }

    public init(_ bytes: Span<UInt8>) { self.init(bytes, elseText: nil) }

    private init(_ bytes: Span<UInt8>, elseText text: Text?) {
        if let number = bytes.withUnsafeBufferPointer({ Self.number($0) }) {
            form = .number(number)
        } else {
            form = .text(text ?? bytes.withUnsafeBufferPointer { Text(Array($0)) })
        }
    }

    /// nil unless it is a number in decimal digits without leading zeros.
    public static func number(_ bytes: UnsafeBufferPointer<UInt8>) -> UInt64? {
        guard (1...limitDigits).contains(bytes.count), bytes.count == 1 || bytes[0] != UInt8(ascii: "0") else {
            return nil
        }
        return decimalNumber(bytes)
    }

    public var text: Text {
        switch form {
        case .number(let number): Text(String(number))
        case .text(let text): text
        }
    }
}

extension TransactionId: Comparable {
    public static func < (left: TransactionId, right: TransactionId) -> Bool {
        if case .number(let left) = left.form, case .number(let right) = right.form { return precedes(left, right) }
        return left.text < right.text
    }

    /// The order of two ids that are numbers: that of their decimal digits as texts.
    public static func precedes(_ left: UInt64, _ right: UInt64) -> Bool {
        if digits(left) == digits(right) { return left < right }
        return String(left) < String(right)
    }

    private static func digits(_ number: UInt64) -> Int {
        // A number of so many bits has this many digits, or one more.
        let least = ((64 - number.leadingZeroBitCount) * 1_233) >> 12
        return least + (number >= powersOfTen[least] ? 1 : 0)
    }

    private static let powersOfTen: InlineArray<20, UInt64> = [
        0, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000, 1_000_000_000, 10_000_000_000,
        100_000_000_000, 1_000_000_000_000, 10_000_000_000_000, 100_000_000_000_000, 1_000_000_000_000_000,
        10_000_000_000_000_000, 100_000_000_000_000_000, 1_000_000_000_000_000_000, 10_000_000_000_000_000_000,
    ]
}

extension TransactionId: ExpressibleByStringLiteral, CustomStringConvertible {
    public init(stringLiteral value: String) { self.init(Text(value)) }
    public var description: String { text.description }
}

// MARK: As bytes

extension TransactionId {
    public func write(to writer: inout ByteWriter) {
        switch form {
        case .number(let number): writer.unsigned(number)
        case .text(let text): writer.text(text)
        }
    }
}

extension ByteReader {
    public mutating func id(isNumber: Bool) -> TransactionId? {
        guard isNumber else {
            guard let text = text() else { return nil }
            let id = TransactionId(text)
            if case .number = id.form { return nil }
            return id
        }
        guard let number = unsigned(), number < TransactionId.limitNumber else { return nil }
        return TransactionId(number: number)
    }
}
