// Reads the tests of a rule.

internal import JSON
internal import Notices

extension PolicyReader {
    /// Sorted in the order of the facts, so that rules with the same tests are equal.
    mutating func tests(_ value: Value) -> [RefundPolicy.Test]? {
        let known = TextFact.allCases.map(\.rawValue) + NumberFact.allCases.map(\.rawValue)
        guard let members = members(of: value, known, "when") else { return nil }
        var tests: [RefundPolicy.Test] = []
        var isComplete = true
        for fact in TextFact.allCases {
            guard let value = members[fact.rawValue] else { continue }
            if let texts = texts(value, fact) { tests.append(.text(fact, anyOf: texts)) } else { isComplete = false }
        }
        for fact in NumberFact.allCases {
            guard let value = members[fact.rawValue] else { continue }
            if let range = range(value, fact) { tests.append(.number(fact, range)) } else { isComplete = false }
        }
        return isComplete ? tests : nil
    }

    private mutating func texts(_ value: Value, _ fact: TextFact) -> [Text]? {
        switch document.kind(of: value) {
        case .string: return text(value, fact).map { [$0] }
        case .array: break
        default:
            refuse(value, "\(fact.rawValue) must be a text or a list of texts, not \(kind(value))")
            return nil
        }
        var texts: Set<Text> = []
        var count = 0
        var isComplete = true
        var next = document.firstElement(of: value)
        while let element = next {
            count += 1
            guard count <= RefundPolicy.limitTexts else {
                refuse(element, "a list has at most \(RefundPolicy.limitTexts) texts")
                return nil
            }
            if document.kind(of: element) != .string {
                refuse(element, "a list for \(fact.rawValue) must contain texts, not \(kind(element))")
                isComplete = false
            } else if let text = text(element, fact) {
                texts.insert(text)
            } else {
                isComplete = false
            }
            next = document.element(after: element)
        }
        guard count > 0 else {
            refuse(value, "the list for \(fact.rawValue) is empty and could never match; add a text, or remove it")
            return nil
        }
        return isComplete ? texts.sorted() : nil
    }

    private mutating func text(_ value: Value, _ fact: TextFact) -> Text? {
        guard let text = document.text(value) else { return nil }
        guard (1...Text.limitBytes).contains(text.utf8.count), !hasControlCharacter(text) else {
            refuse(
                value,
                "a text for \(fact.rawValue) must have 1 to \(Text.limitBytes) bytes, and no control characters")
            return nil
        }
        if let words = fact.closedWords, !words.contains(where: { $0.utf8.elementsEqual(text.utf8) }),
            !(fact == .offerType && text.utf8.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) })
        {
            refuse(value, unknown(text, "no \(fact.rawValue) is called", words))
            return nil
        }
        return Text(text)
    }

    private mutating func range(_ value: Value, _ fact: NumberFact) -> NumberRange? {
        switch document.kind(of: value) {
        case .number: return number(value, fact.rawValue).map { NumberRange(from: $0, to: $0) }
        case .object: break
        default:
            refuse(
                value,
                "\(fact.rawValue) must be a whole number or a range such as {\"from\": 1, \"to\": 3}, not "
                    + kind(value))
            return nil
        }
        guard let members = members(of: value, ["from", "to"], "a range") else { return nil }
        guard members["from"] != nil || members["to"] != nil else {
            refuse(value, "a range needs from, to or both, such as {\"from\": 1, \"to\": 3}")
            return nil
        }
        var ends: [Int64?] = []
        for name in ["from", "to"] {
            guard let end = members[name] else {
                ends.append(nil)
                continue
            }
            guard let number = number(end, name) else { return nil }
            ends.append(number)
        }
        if let from = ends[0], let to = ends[1], from > to {
            refuse(value, "the range from \(from) to \(to) is empty; swap the two numbers")
            return nil
        }
        return NumberRange(from: ends[0], to: ends[1])
    }

    private mutating func number(_ value: Value, _ what: String) -> Int64? {
        if let number = document.integer(value) { return number }
        guard document.kind(of: value) == .number else {
            refuse(value, "\(what) must be a whole number, not \(kind(value))")
            return nil
        }
        refuse(value, "\(what) must be a whole number of at most 64 bits, without fraction and exponent")
        return nil
    }
}
