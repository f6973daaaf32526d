// Policies that are valid but probably not what was meant.

public import Notices

extension RefundPolicy {
    /// Rules that can never match, each with the earlier rule that already matches all its requests. A rule that only
    /// several earlier rules together cover is not found.
    public func unreachable() -> [(rule: Rule, because: Rule)] {
        rules.indices.compactMap { index in
            rules[..<index].first { $0.takesAll(of: rules[index]) }.map { (rules[index], $0) }
        }
    }

    /// Something that the author should check.
    public enum Remark: Sendable, Equatable {
        /// No fact can have such a value.
        case impossible(rule: String, fact: NumberFact, NumberRange)
        /// A word that Apple does not use today.
        case unusualWord(rule: String, fact: TextFact, Text, usual: [String])
    }

    public func remarks() -> [Remark] { rules.flatMap { rule in rule.tests.flatMap { rule.remarks(on: $0) } } }
}

extension RefundPolicy.Rule {
    /// True if this rule matches every request that `other` matches. In doubt the result is false.
    ///
    /// A fact that `other` does not test may be unknown, and a test of an unknown fact fails.
    func takesAll(of other: RefundPolicy.Rule) -> Bool {
        tests.allSatisfy { wide in other.tests.contains { $0.isWithin(wide) } }
    }

    fileprivate func remarks(on test: RefundPolicy.Test) -> [RefundPolicy.Remark] {
        switch test {
        case .number(let fact, let range):
            return range.overlaps(fact.possible) ? [] : [.impossible(rule: name, fact: fact, range)]
        case .text(let fact, let texts):
            guard let usual = fact.usualWords else { return [] }
            let unusual = texts.filter { text in !usual.contains { Text($0) == text } }
            return unusual.map { .unusualWord(rule: name, fact: fact, $0, usual: usual) }
        }
    }
}

extension RefundPolicy.Test {
    /// True if every value that passes this test also passes `wide`.
    func isWithin(_ wide: RefundPolicy.Test) -> Bool {
        switch (self, wide) {
        case (.text(let fact, let texts), .text(let wideFact, let wideTexts)):
            // A pattern of this test is treated as a text here: see `matches`.
            fact == wideFact && texts.allSatisfy { text in wideTexts.contains { Self.takes(text, fact, $0) } }
        case (.number(let fact, let range), .number(let wideFact, let wideRange)):
            fact == wideFact && range.isWithin(wideRange)
        default: false
        }
    }
}
