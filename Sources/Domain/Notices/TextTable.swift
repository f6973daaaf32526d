// Stores each of the texts that repeat from row to row once.

/// Collects texts and numbers them from 1; 0 means none.
public struct TextTable: Sendable {
    /// A few texts are compared one by one, which is faster than hashing. A subscription has about eight.
    public static let fewTexts = 16

    public private(set) var texts: [Text] = []
    /// Numbers of the texts beyond `fewTexts`.
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
    /// The outer nil: no text has this number.
    public mutating func text(of texts: [Text]) -> Text?? {
        guard let number = unsigned(), number <= UInt64(texts.count) else { return nil }
        return .some(number == 0 ? nil : texts[Int(number) - 1])
    }
}
