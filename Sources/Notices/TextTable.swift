// Texts that repeat from row to row, each written once.

/// Collects texts; its numbers are 1 and up, 0 is none.
public struct TextTable: Sendable {
    /// Few texts are compared with each other: that is faster than to hash them. A subscription has about eight.
    public static let fewTexts = 16

    public private(set) var texts: [Text] = []
    /// Of the texts beyond the few.
    private var numbers: [Text: UInt64] = [:]

    public init() { texts.reserveCapacity(Self.fewTexts) }

    public mutating func number(_ text: Text?) -> UInt64 {
        guard let text else { return 0 }
        if let place = texts.prefix(Self.fewTexts).firstIndex(of: text) { return UInt64(place + 1) }
        if let number = numbers[text] { return number }
        texts.append(text)
        if texts.count > Self.fewTexts { numbers[text] = UInt64(texts.count) }
        return UInt64(texts.count)
    }
}

extension ByteReader {
    /// The outer nil is a number that no text has.
    public mutating func text(of texts: [Text]) -> Text?? {
        guard let number = unsigned(), number <= UInt64(texts.count) else { return nil }
        return .some(number == 0 ? nil : texts[Int(number) - 1])
    }
}
