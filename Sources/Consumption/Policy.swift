// The refund policy: which answer a request gets, by rules that can be printed.

public import Notices

/// Pure: the same facts get the same rule, in every process.
public struct RefundPolicy: Sendable, Equatable {
    public let version: String
    /// What is said where usage does not; nil: left to what the log tells.
    public let deliveryStatus: DeliveryStatus?
    public let sampleContentProvided: Bool?
    /// In the order of the file: the first that matches wins.
    public let rules: [Rule]
    /// In a box: a value cannot hold one of its own kind.
    private let shadowBox: [RefundPolicy]

    /// A second policy, asked and noted beside this one. It has none itself.
    public var shadow: RefundPolicy? { shadowBox.first }

    init(
        version: String, deliveryStatus: DeliveryStatus?, sampleContentProvided: Bool?, rules: [Rule],
        shadow: RefundPolicy?
    ) {
        self.version = version
        self.deliveryStatus = deliveryStatus
        self.sampleContentProvided = sampleContentProvided
        self.rules = rules
        shadowBox = shadow.map { [$0] } ?? []
    }

    public struct Rule: Sendable, Equatable {
        /// Unlike that of every other rule of the policy.
        public let name: String
        /// All must hold; in the order of the facts. None: every request matches.
        public let tests: [Test]
        public let answer: Answer

        public func matches(_ facts: RefundFacts) -> Bool { tests.allSatisfy { $0.holds(for: facts) } }
    }

    public enum Answer: Sendable, Equatable, CustomStringConvertible {
        /// Nothing is sent to Apple.
        case withhold
        /// nil: none of the rule's own; what usage says is sent then, if anything.
        case prefer(RefundPreference?)

        public var description: String {
            switch self {
            case .withhold: "withhold"
            case .prefer(let preference): preference?.rawValue ?? "usage's, if any"
            }
        }
    }

    /// One fact and what it has to be. It fails while the fact is not known.
    public enum Test: Sendable, Equatable {
        /// Any of the texts, which are sorted, each once.
        case text(TextFact, anyOf: [Text])
        case number(NumberFact, NumberRange)

        public func holds(for facts: RefundFacts) -> Bool {
            switch self {
            case .text(let fact, let texts):
                guard let value = facts.text(fact) else { return false }
                return texts.contains { Self.takes(value, fact, $0) }
            case .number(let fact, let range):
                guard let value = facts.number(fact) else { return false }
                return range.contains(value)
            }
        }

        static func takes(_ value: Text, _ fact: TextFact, _ wanted: Text) -> Bool {
            fact.takesPatterns ? matches(value.bytes, pattern: wanted.bytes) : value == wanted
        }
    }

    /// The first that matches; nil: the request is answered with facts and without a preference.
    public func rule(for facts: RefundFacts) -> Rule? { rules.first { $0.matches(facts) } }
}

/// Whole numbers from one to another, both included; nil: without an end.
public struct NumberRange: Sendable, Equatable {
    public let from: Int64?
    public let to: Int64?

    public func contains(_ value: Int64) -> Bool { (from ?? .min) <= value && value <= (to ?? .max) }

    func isWithin(_ other: NumberRange) -> Bool {
        (other.from ?? .min) <= (from ?? .min) && (to ?? .max) <= (other.to ?? .max)
    }

    func overlaps(_ other: NumberRange) -> Bool {
        max(from ?? .min, other.from ?? .min) <= min(to ?? .max, other.to ?? .max)
    }
}

/// `*` in the pattern stands for any run of bytes, also for none. An asterisk in the text is a byte that only a `*` takes: so the
/// text may be a pattern itself, and is then matched exactly when all that it takes is.
///
/// Only the last `*` is ever tried again: time grows with the product of the lengths at most.
func matches(_ text: [UInt8], pattern: [UInt8]) -> Bool {
    let anything = UInt8(ascii: "*")
    var place = 0
    var next = 0
    /// Behind the last `*`, and where in the text its run ends so far.
    var retry: (pattern: Int, text: Int)?
    while place < text.count {
        if next < pattern.count, pattern[next] == anything {
            next += 1
            retry = (next, place)
        } else if next < pattern.count, pattern[next] == text[place] {
            next += 1
            place += 1
        } else if let last = retry {
            next = last.pattern
            place = last.text + 1
            retry = (next, place)
        } else {
            return false
        }
    }
    return pattern[next...].allSatisfy { $0 == anything }
}
