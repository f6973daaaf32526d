// Texts that repeat from row to row, each written once.

/// Collects texts; its numbers are 1 and up, 0 is none.
struct TextTable {
    private(set) var texts: [Text] = []
    private var numbers: [Text: UInt64] = [:]

    mutating func number(_ text: Text?) -> UInt64 {
        guard let text else { return 0 }
        if let number = numbers[text] { return number }
        texts.append(text)
        numbers[text] = UInt64(texts.count)
        return UInt64(texts.count)
    }
}

extension ByteReader {
    /// The outer nil is a number that no text has.
    mutating func text(of texts: [Text]) -> Text?? {
        guard let number = unsigned(), number <= UInt64(texts.count) else { return nil }
        return .some(number == 0 ? nil : texts[Int(number) - 1])
    }
}
