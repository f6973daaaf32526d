// What is right in a policy and probably not meant.

public import Notices

extension RefundPolicy {
    /// Rules that can never match, each with the earlier one that takes all that it takes. One that several earlier rules take
    /// only together is not found.
    public func unreachable() -> [(rule: Rule, because: Rule)] {
        rules.indices.compactMap { index in
            rules[..<index].first { $0.takesAll(of: rules[index]) }.map { (rules[index], $0) }
        }
    }

    /// Something to look at again.
    public enum Remark: Sendable, Equatable {
        /// No fact can have such a value.
        case impossible(rule: String, fact: NumberFact, NumberRange)
        /// A word that Apple does not have today.
        case unusualWord(rule: String, fact: TextFact, Text, usual: [String])
    }

    public func remarks() -> [Remark] { rules.flatMap { rule in rule.tests.flatMap { rule.remarks(on: $0) } } }
}

extension RefundPolicy.Rule {
    /// Whatever `other` matches this one matches, too. Where that is in doubt: false.
    ///
    /// A fact that `other` does not test may be unknown, and then no test of it holds here.
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
    /// Whatever passes this passes `wide`.
    func isWithin(_ wide: RefundPolicy.Test) -> Bool {
        switch (self, wide) {
        case (.text(let fact, let texts), .text(let wideFact, let wideTexts)):
            // A pattern is taken as a text here: see `matches`.
            fact == wideFact && texts.allSatisfy { text in wideTexts.contains { Self.takes(text, fact, $0) } }
        case (.number(let fact, let range), .number(let wideFact, let wideRange)):
            fact == wideFact && range.isWithin(wideRange)
        default: false
        }
    }
}
