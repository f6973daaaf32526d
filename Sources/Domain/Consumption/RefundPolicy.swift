// The refund policy: printable rules that decide which answer a request gets.

public import Notices
public import Records

/// Pure: the same facts always select the same rule.
public struct RefundPolicy: Sendable, Equatable {
    public let version: String
    /// The default if usage gives no value; nil: it is derived from the log.
    public let deliveryStatus: DeliveryStatus?
    public let sampleContentProvided: Bool?
    /// In the order of the file: the first match decides.
    public let rules: [Rule]
    /// In an array, because a struct cannot contain a value of its own type.
    private let shadowBox: [RefundPolicy]

    /// A second policy that is evaluated and recorded next to this one. It has no shadow itself.
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
        /// Unique within the policy.
        public let name: String
        /// All must hold; in the order of the facts. Without tests every request matches.
        public let tests: [Test]
        public let answer: Answer

        public func matches(_ facts: RefundFacts) -> Bool { tests.allSatisfy { $0.holds(for: facts) } }
    }

    public enum Answer: Sendable, Equatable, CustomStringConvertible {
        /// Nothing is sent to Apple.
        case withhold
        /// nil: the rule has no preference; the preference from usage is sent, if there is one.
        case prefer(RefundPreference?)

        public var description: String {
            switch self {
            case .withhold: "withhold"
            case .prefer(let preference): preference?.rawValue ?? "usage's, if any"
            }
        }
    }

    /// One fact and its required value. The test fails if the fact is unknown.
    public enum Test: Sendable, Equatable {
        /// One of these texts, sorted and without duplicates.
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

    /// The first rule that matches; nil: the answer contains facts but no preference.
    public func rule(for facts: RefundFacts) -> Rule? { rules.first { $0.matches(facts) } }
}

/// A range of whole numbers, both ends included; nil: that side has no limit.
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

/// `*` in the pattern matches any number of bytes, including none. An asterisk in the text is matched only by a `*`. So
/// the text may itself be a pattern, and it matches exactly if everything that it matches is matched by `pattern`.
///
/// Only the last `*` is ever retried, so the time is at most the product of the lengths.
func matches(_ text: [UInt8], pattern: [UInt8]) -> Bool {
    let anything = UInt8(ascii: "*")
    var place = 0
    var next = 0
    /// The place after the last `*` in the pattern, and the end of its match so far in the text.
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
