// Checks the bodies of the consumption endpoints member by member.

internal import JSON

/// Reads members and rejects wrong ones. A null, a wrong type or an unknown name is a general error. A value that has
/// the right type but that Apple does not allow has its own error code.
struct ConsumptionMembers {
    private let object: JSONObject

    init(_ body: [UInt8], known names: [String]) throws(ConsumptionFault) {
        let value: JSONValue
        do throws(JSONFault) {
            value = try JSONValue.read(body)
        } catch {
            throw .general("The body is not JSON: \(error)")
        }
        guard let object = value.object else { throw .general("The body is \(value.kindInWords), not an object.") }
        for member in object.members where !names.contains(member.name) {
            throw .general("The member \(member.name) is not known.")
        }
        self.object = object
    }

    func bool(_ name: String, missing code: Int) throws(ConsumptionFault) -> Bool {
        guard let value = object[name] else { throw Self.invalid(name, code) }
        guard let bool = value.bool else { throw Self.wrongType(name, "true or false", value) }
        return bool
    }

    func text(_ name: String) throws(ConsumptionFault) -> String? {
        guard let value = object[name] else { return nil }
        guard let text = value.string else { throw Self.wrongType(name, "a string", value) }
        return text
    }

    func integer(_ name: String) throws(ConsumptionFault) -> Int64? {
        guard let value = object[name] else { return nil }
        guard let integer = value.integer, Int32(exactly: integer) != nil else {
            throw Self.wrongType(name, "a whole number of 32 bits", value)
        }
        return integer
    }

    /// A required number within a range.
    func choice(_ name: String, _ range: ClosedRange<Int64>, invalid code: Int) throws(ConsumptionFault) -> Int64 {
        guard let number = try integer(name), range.contains(number) else { throw Self.invalid(name, code) }
        return number
    }

    static func invalid(_ name: String, _ code: Int) -> ConsumptionFault {
        ConsumptionFault(code, "Invalid request. The \(name) field is missing or invalid.")
    }

    private static func wrongType(_ name: String, _ expected: String, _ value: JSONValue) -> ConsumptionFault {
        .general("\(name) is \(value.kindInWords), not \(expected).")
    }
}

/// Version 2.
enum ConsumptionBody {
    private static let names = [
        "customerConsented", "sampleContentProvided", "deliveryStatus", "consumptionPercentage", "refundPreference",
    ]
    private static let deliveryStatuses = [
        "DELIVERED", "UNDELIVERED_QUALITY_ISSUE", "UNDELIVERED_WRONG_ITEM", "UNDELIVERED_SERVER_OUTAGE",
        "UNDELIVERED_OTHER",
    ]
    /// 100 percent.
    private static let whole: Int64 = 100_000

    static func answer(
        of body: [UInt8], on transaction: KnownTransaction
    ) throws(ConsumptionFault) -> RefundAnswer {
        let members = try ConsumptionMembers(body, known: names)
        guard try members.bool("customerConsented", missing: 4_000_035) else {
            throw ConsumptionMembers.invalid("customerConsented", 4_000_035)
        }
        _ = try members.bool("sampleContentProvided", missing: 4_000_041)
        guard let delivery = try members.text("deliveryStatus"), deliveryStatuses.contains(delivery) else {
            throw ConsumptionMembers.invalid("deliveryStatus", 4_000_036)
        }
        let answer = try preference(members)
        let isAutoRenewable = transaction.type == ProductKind.autoRenewable.rawValue
        let percentage = try members.integer("consumptionPercentage")
        if let percentage {
            if isAutoRenewable {
                throw ConsumptionFault(4_000_209, "Auto-renewable subscriptions have no consumptionPercentage.")
            }
            guard (0...whole).contains(percentage) else {
                throw .general("consumptionPercentage is not between 0 and \(whole).")
            }
            guard percentage == 0 || delivery == "DELIVERED" else {
                throw .general("consumptionPercentage must be 0 if nothing was delivered.")
            }
        }
        if answer == .grantProrated, !isAutoRenewable {
            guard let percentage, percentage > 0, percentage < whole else {
                throw .general("GRANT_PRORATED needs a consumptionPercentage above 0 and below \(whole).")
            }
        }
        return answer
    }

    private static func preference(_ members: ConsumptionMembers) throws(ConsumptionFault) -> RefundAnswer {
        switch try members.text("refundPreference") {
        case nil: return .noPreference
        case "DECLINE": return .decline
        case "GRANT_FULL": return .grantFull
        case "GRANT_PRORATED": return .grantProrated
        default: throw ConsumptionMembers.invalid("refundPreference", 4_000_044)
        }
    }
}

/// Version 1, whose members are all required.
enum ConsumptionBodyV1 {
    private static let numbers: [(name: String, range: ClosedRange<Int64>, code: Int)] = [
        ("accountTenure", 0...7, 4_000_032), ("consumptionStatus", 0...3, 4_000_034),
        ("deliveryStatus", 0...5, 4_000_036), ("lifetimeDollarsPurchased", 0...7, 4_000_037),
        ("lifetimeDollarsRefunded", 0...7, 4_000_038), ("platform", 0...2, 4_000_039), ("playTime", 0...7, 4_000_040),
        ("userStatus", 0...4, 4_000_042), ("refundPreference", 0...3, 4_000_044),
    ]

    static func answer(of body: [UInt8]) throws(ConsumptionFault) -> RefundAnswer {
        let others = ["customerConsented", "sampleContentProvided", "appAccountToken"]
        let members = try ConsumptionMembers(body, known: numbers.map(\.name) + others)
        guard try members.bool("customerConsented", missing: 4_000_035) else {
            throw ConsumptionMembers.invalid("customerConsented", 4_000_035)
        }
        _ = try members.bool("sampleContentProvided", missing: 4_000_041)
        guard let token = try members.text("appAccountToken"), token.isEmpty || isUUID(token) else {
            throw ConsumptionMembers.invalid("appAccountToken", 4_000_033)
        }
        var preference: Int64 = 0
        for number in numbers {
            preference = try members.choice(number.name, number.range, invalid: number.code)
        }
        switch preference {
        case 1: return .grantFull
        case 2: return .decline
        default: return .noPreference
        }
    }

    private static func isUUID(_ text: String) -> Bool {
        let groups = text.split(separator: "-", omittingEmptySubsequences: false)
        return groups.map(\.utf8.count) == [8, 4, 4, 4, 12]
            && groups.joined().utf8.allSatisfy { byte in
                (0x30...0x39).contains(byte) || (0x61...0x66).contains(byte | 0x20)
            }
    }
}
