// Records of `usage`: what an app's own backend says of a purchase.

public import Contract
public import JSON

public struct UsageRecord: Sendable {
    public let originalTransactionId: String
    /// Whose topic it belongs to; nil: whoever writes it decides.
    public let environment: Environment?
    /// JSON as it came, members that are not known here included.
    public let value: [UInt8]
    /// Names of members that are not known here, in their order. One letter wrong in `consented`, and no refund is ever
    /// answered.
    public let ignored: [String]

    /// Why one is refused: a reason for `POST /usage`, naming the member and never its value.
    public struct Fault: Error, Equatable {
        public let reason: String
    }

    /// Apple's have some sixteen digits. A key is kept for as long as its topic.
    private static let limitIdentifierBytes = 64

    /// In thousandths of a percent, as Apple takes it.
    private static let percentages: ClosedRange<Int64> = 0...100_000

    /// The words that Apple's Send Consumption Information takes; another one would be found out only when a refund is to be
    /// answered, too late to mend it.
    static let deliveryStatuses = [
        "DELIVERED", "UNDELIVERED_QUALITY_ISSUE", "UNDELIVERED_WRONG_ITEM", "UNDELIVERED_SERVER_OUTAGE",
        "UNDELIVERED_OTHER",
    ]
    static let refundPreferences = ["DECLINE", "GRANT_FULL", "GRANT_PRORATED"]

    /// Apple's numbers for where content was used, and for the state of an account: 0 is "not said".
    private static let platforms: ClosedRange<Int64> = 0...2
    private static let userStatuses: ClosedRange<Int64> = 0...4

    /// `v` and `originalTransactionId` must be there; null is as good as absent for each other member.
    public init(_ json: JSONValue) throws(Fault) {
        guard let object = json.object else { throw Fault(reason: "must be an object, not \(json.kindInWords)") }
        let version = RecordType.usage.version
        guard object["v"] == .integer(Int64(version)) else { throw Fault(reason: "v must be \(version)") }
        guard let id = object["originalTransactionId"]?.string, !id.isEmpty else {
            throw Fault(reason: "originalTransactionId must be a string that is not empty")
        }
        guard id.utf8.count <= Self.limitIdentifierBytes else {
            throw Fault(reason: "originalTransactionId must have \(Self.limitIdentifierBytes) digits at most")
        }
        for (name, kind) in Self.kinds {
            guard let value = object[name], value != .null else { continue }
            if let problem = kind.problem(value) { throw Fault(reason: "\(name) must be \(problem)") }
        }
        originalTransactionId = id
        environment = object["environment"]?.string.flatMap { name in
            Environment.allCases.first { $0.nameOfApple == name }
        }
        ignored = object.members.map(\.name).filter { !Self.isKnown($0) }
        var writer = JSONWriter()
        writer.value(json)
        value = writer.bytes
    }

    private enum Kind {
        case identifier, bool, integer
        case word([String])
        case percentage
        case number(ClosedRange<Int64>)

        /// The rest of a sentence; nil when the value is right.
        func problem(_ value: JSONValue) -> String? {
            switch self {
            case .identifier:
                value.string.map { (1...limitIdentifierBytes).contains($0.utf8.count) } == true
                    ? nil : "a string of 1 to \(limitIdentifierBytes) digits, or null"
            case .bool: value.bool != nil ? nil : "true, false or null"
            case .integer: value.integer != nil ? nil : "a whole number of 64 bits, or null"
            case .word(let words):
                value.string.map { word in words.contains { $0.utf8.elementsEqual(word.utf8) } } == true
                    ? nil : "\(words.joined(separator: ", ")) or null"
            case .percentage:
                value.integer.map(percentages.contains) == true
                    ? nil : "a whole number from 0 to 100000 (thousandths of a percent), or null"
            case .number(let range):
                value.integer.map(range.contains) == true
                    ? nil : "a whole number from \(range.lowerBound) to \(range.upperBound), or null"
            }
        }
    }

    /// By bytes: == would also take other spellings that Unicode calls equal.
    private static func isKnown(_ name: String) -> Bool {
        (["v", "originalTransactionId"] + kinds.map(\.name)).contains { $0.utf8.elementsEqual(name.utf8) }
    }

    private static let kinds: [(name: String, kind: Kind)] = [
        ("transactionId", .identifier), ("consented", .bool), ("consentedAt", .integer),
        ("deliveryStatus", .word(deliveryStatuses)), ("sampleContentProvided", .bool),
        ("consumptionPercentage", .percentage), ("refundPreference", .word(refundPreferences)),
        ("accountCreatedAt", .integer), ("playTimeSeconds", .integer), ("userStatus", .number(userStatuses)),
        ("platform", .number(platforms)), ("environment", .word(Environment.allCases.map(\.nameOfApple))),
    ]
}
