// Records of `usage`: what an app's own backend reports about a purchase.

public import Contract
public import JSON

public struct UsageRecord: Sendable {
    public let originalTransactionId: String
    /// The environment of its topic; nil: the writer decides.
    public let environment: Environment?
    /// The JSON as received, including unknown members.
    public let value: [UInt8]
    /// Names of unknown members, in their order. If one letter of `consented` is wrong, no refund request is ever
    /// answered.
    public let ignored: [String]

    /// Why a record is refused: a reason for `POST /usage`, which names the member and never its value.
    public struct Fault: Error, Equatable {
        public let reason: String
    }

    /// Apple's ids have about sixteen digits. A key is stored for as long as its topic.
    private static let limitIdentifierBytes = 64

    /// In thousandths of a percent, as Apple expects it.
    private static let percentages: ClosedRange<Int64> = 0...100_000

    /// Apple's numbers for where content was used, and for the state of an account; 0 means "not declared".
    private static let platforms: ClosedRange<Int64> = 0...2
    private static let userStatuses: ClosedRange<Int64> = 0...4

    /// `v` and `originalTransactionId` are required; for each other member null is the same as absent.
    public init(_ json: JSONValue) throws(Fault) {
        guard let object = json.object else { throw Fault(reason: "must be an object, not \(json.kindInWords)") }
        let version = RecordType.usage.version
        guard json[MemberName.v] == .integer(Int64(version)) else { throw Fault(reason: "v must be \(version)") }
        guard let id = json[MemberName.originalTransactionId]?.string, !id.isEmpty else {
            throw Fault(reason: "originalTransactionId must be a string that is not empty")
        }
        guard id.utf8.count <= Self.limitIdentifierBytes else {
            throw Fault(reason: "originalTransactionId must have \(Self.limitIdentifierBytes) digits at most")
        }
        for (name, kind) in Self.kinds {
            guard let value = json[name], value != .null else { continue }
            if let problem = kind.problem(value) { throw Fault(reason: "\(name.text) must be \(problem)") }
        }
        originalTransactionId = id
        environment = json[MemberName.environment]?.string.flatMap { name in
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

        /// The end of a sentence; nil if the value is right.
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

    /// By bytes: == would also accept other spellings that Unicode treats as equal.
    private static func isKnown(_ name: String) -> Bool {
        ([.v, .originalTransactionId] + kinds.map(\.name)).contains { known in
            known.text.withUTF8Buffer { $0.elementsEqual(name.utf8) }
        }
    }

    private static let kinds: [(name: MemberName, kind: Kind)] = [
        (.transactionId, .identifier), (.consented, .bool), (.consentedAt, .integer),
        (.deliveryStatus, .word(DeliveryStatus.allCases.map(\.rawValue))), (.sampleContentProvided, .bool),
        (.consumptionPercentage, .percentage), (.refundPreference, .word(RefundPreference.allCases.map(\.rawValue))),
        (.accountCreatedAt, .integer), (.playTimeSeconds, .integer), (.userStatus, .number(userStatuses)),
        (.platform, .number(platforms)), (.environment, .word(Environment.allCases.map(\.nameOfApple))),
    ]
}
