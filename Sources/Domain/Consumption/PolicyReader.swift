// Reads a policy file and reports all faults at once.

internal import JSON
internal import Notices
internal import Records

extension RefundPolicy {
    /// A policy of 500 rules with long lists has a fifth of this size.
    public static let limitBytes = 256 * 1024
    public static let limitRules = 500
    /// The maximum number of texts in one list.
    public static let limitTexts = 500
    /// The maximum length of a version and of a rule's name: every record of a decision contains them.
    public static let limitNameBytes = 200

    /// - Parameter nearest: given an unknown name and the known names, returns the known name that was probably meant.
    public static func read(
        _ bytes: [UInt8], nearest: @escaping (String, [String]) -> String? = { _, _ in nil }
    ) throws(PolicyFaults) -> RefundPolicy {
        var limits = JSONLimits()
        limits.bytes = limitBytes
        limits.depth = 16
        // The policy reader reports repeated names itself, together with all other faults.
        limits.refusesRepeatedNames = false
        var document = JSONDocument(limits: limits)
        do throws(JSONFault) {
            try document.read(bytes.span)
        } catch {
            let place = error.place ?? JSONPlace(of: bytes.count, in: bytes.span)
            throw PolicyFaults(faults: [PolicyFault(place: place, problem: error.problem)])
        }
        var reader = PolicyReader(document, bytes, nearest)
        let policy = reader.policy(reader.root, isShadow: false)
        guard let policy, reader.faults.isEmpty else {
            // The reader finds faults in the order of the names it looks for; they are sorted by their place in the
            // file.
            let faults = reader.faults.sorted { $0.place < $1.place }
            throw PolicyFaults(faults: Array(faults.prefix(PolicyFaults.limit)))
        }
        return policy
    }
}

/// Returns nil for an invalid value, after it has noted a fault.
struct PolicyReader: ~Copyable {
    typealias Value = JSONDocument.Value

    /// The members that an object has, and the places needed for faults.
    struct Members {
        let start: Int
        var values: [(name: String, value: Value)] = []

        subscript(_ name: String) -> Value? { values.first { $0.name == name }?.value }
    }

    let document: JSONDocument
    private let bytes: [UInt8]
    private let nearest: (String, [String]) -> String?
    private(set) var faults: [PolicyFault] = []

    init(_ document: consuming JSONDocument, _ bytes: [UInt8], _ nearest: @escaping (String, [String]) -> String?) {
        self.document = document
        self.bytes = bytes
        self.nearest = nearest
    }

    var root: Value { document.root }

    mutating func policy(_ value: Value, isShadow: Bool) -> RefundPolicy? {
        guard let members = members(of: value, ["version", "defaults", "rules", "shadow"], "a policy") else {
            return nil
        }
        let version = name(members, "version", of: "the policy", such: "\"2026-11\"")
        let defaults = defaults(members["defaults"])
        let rules = rules(members)
        var shadow: RefundPolicy?
        if let value = members["shadow"], document.kind(of: value) != .null {
            if isShadow {
                refuse(value, "a shadow cannot have a shadow of its own; remove it")
            } else {
                shadow = policy(value, isShadow: true)
            }
        }
        guard let version else { return nil }
        return RefundPolicy(
            version: version, deliveryStatus: defaults.status, sampleContentProvided: defaults.sample, rules: rules,
            shadow: shadow)
    }

    private mutating func defaults(_ value: Value?) -> (status: DeliveryStatus?, sample: Bool?) {
        guard let value, document.kind(of: value) != .null,
            let members = members(of: value, ["deliveryStatus", "sampleContentProvided"], "defaults")
        else { return (nil, nil) }
        var status: DeliveryStatus?
        if let value = members["deliveryStatus"], document.kind(of: value) != .null {
            let words = DeliveryStatus.allCases.map(\.rawValue)
            status = word(value, "deliveryStatus", words).flatMap(DeliveryStatus.init(rawValue:))
        }
        var sample: Bool?
        if let value = members["sampleContentProvided"], document.kind(of: value) != .null {
            sample = document.bool(value)
            if sample == nil { refuse(value, "sampleContentProvided must be true or false, not \(kind(value))") }
        }
        return (status, sample)
    }

    private mutating func rules(_ members: Members) -> [RefundPolicy.Rule] {
        guard let list = members["rules"] else {
            refuse(at: members.start, "rules is missing; write \"rules\": [] for a policy without rules")
            return []
        }
        guard document.kind(of: list) == .array else {
            refuse(list, "rules must be a list of rules, not \(kind(list))")
            return []
        }
        var rules: [RefundPolicy.Rule] = []
        var names: Set<Text> = []
        var count = 0
        var next = document.firstElement(of: list)
        while let value = next {
            count += 1
            guard count <= RefundPolicy.limitRules else {
                refuse(value, "a policy has at most \(RefundPolicy.limitRules) rules")
                break
            }
            if let rule = rule(value, &names) { rules.append(rule) }
            next = document.element(after: value)
        }
        return rules
    }

    private mutating func rule(_ value: Value, _ names: inout Set<Text>) -> RefundPolicy.Rule? {
        guard let members = members(of: value, ["name", "when", "answer"], "a rule") else { return nil }
        let name = name(members, "name", of: "the rule", such: "\"late requests\"")
        if let name, let value = members["name"], !names.insert(Text(name)).inserted {
            refuse(value, "a rule above is also called \(quoted(name)); every rule needs a unique name")
        }
        var tests: [RefundPolicy.Test]?
        if let when = members["when"] {
            tests = self.tests(when)
        } else {
            refuse(at: members.start, "the rule has no when; write \"when\": {} for a rule that matches every request")
        }
        var answer: RefundPolicy.Answer?
        if let value = members["answer"] {
            answer = self.answer(value)
        } else {
            refuse(at: members.start, "the rule has no answer, such as \"answer\": {\"refundPreference\": \"DECLINE\"}")
        }
        guard let name, let tests, let answer else { return nil }
        return RefundPolicy.Rule(name: name, tests: tests, answer: answer)
    }

    private mutating func answer(_ value: Value) -> RefundPolicy.Answer? {
        guard let members = members(of: value, ["refundPreference", "withhold"], "an answer") else { return nil }
        switch (members["refundPreference"], members["withhold"]) {
        case (.some, .some(let withhold)):
            refuse(withhold, "withhold sends nothing and cannot be combined with refundPreference; keep one of the two")
            return nil
        case (nil, nil):
            refuse(
                at: members.start,
                "the answer is empty; give a refundPreference (null for none), or \"withhold\": true")
            return nil
        case (nil, .some(let withhold)):
            if document.bool(withhold) == true { return .withhold }
            refuse(withhold, "withhold can only be true; to send an answer, remove it and give a refundPreference")
            return nil
        case (.some(let preference), nil):
            if document.kind(of: preference) == .null { return .prefer(nil) }
            let words = RefundPreference.allCases.map(\.rawValue)
            return word(preference, "refundPreference", words, orElse: "null")
                .flatMap(RefundPreference.init(rawValue:)).map { .prefer($0) }
        }
    }

    // MARK: What all parts need

    /// nil if the value is not an object. Unknown members and repeated names are noted as faults and left out.
    mutating func members(of object: Value, _ known: [String], _ what: String) -> Members? {
        guard document.kind(of: object) == .object else {
            refuse(object, "\(what) must be an object, not \(kind(object))")
            return nil
        }
        var members = Members(start: document.range(of: object).lowerBound)
        var seen: Set<Text> = []
        var next = document.firstMember(of: object)
        while let member = next {
            next = document.member(after: member)
            let start = document.range(of: member).lowerBound
            let name = document.name(of: member).withUnsafeBufferPointer { Text(Array($0)) }
            let isFirst = seen.insert(name).inserted
            if let match = known.first(where: { Text($0) == name }) {
                if isFirst {
                    members.values.append((match, member.value))
                } else {
                    refuse(at: start, "\(quoted(name.description)) appears here a second time; keep one of the two")
                }
            } else if isFirst {
                refuse(at: start, unknown(name.description, "\(what) has no member called", known))
            }
        }
        return members
    }

    /// One of the allowed words. Any other value is noted as a fault.
    private mutating func word(_ value: Value, _ what: String, _ words: [String], orElse: String? = nil) -> String? {
        let all = (words + (orElse.map { [$0] } ?? [])).joined(separator: ", ")
        guard let text = document.text(value) else {
            refuse(value, "\(what) must be one of \(all), not \(kind(value))")
            return nil
        }
        guard let word = words.first(where: { $0.utf8.elementsEqual(text.utf8) }) else {
            refuse(value, unknown(text, "no \(what) is called", words))
            return nil
        }
        return word
    }

    private mutating func name(_ members: Members, _ name: String, of what: String, such: String) -> String? {
        guard let value = members[name] else {
            refuse(at: members.start, "\(what) has no \(name), such as \"\(name)\": \(such)")
            return nil
        }
        guard let text = document.text(value) else {
            refuse(value, "\(name) must be a text such as \(such), not \(kind(value))")
            return nil
        }
        guard (1...RefundPolicy.limitNameBytes).contains(text.utf8.count), !hasControlCharacter(text) else {
            refuse(value, "\(name) must have 1 to \(RefundPolicy.limitNameBytes) bytes, and no control characters")
            return nil
        }
        return text
    }

    func unknown(_ name: String, _ complaint: String, _ known: [String]) -> String {
        let nearest = nearest(name, known).map { "the nearest is \($0)" }
        return "\(complaint) \(quoted(name)); \(nearest ?? "use one of \(known.joined(separator: ", "))")"
    }

    mutating func refuse(_ value: Value, _ problem: String) {
        refuse(at: document.range(of: value).lowerBound, problem)
    }

    mutating func refuse(at offset: Int, _ problem: String) {
        // Faults beyond the limit would cost time and are never shown.
        guard faults.count < PolicyFaults.limit else { return }
        faults.append(PolicyFault(place: JSONPlace(of: offset, in: bytes.span), problem: problem))
    }

    func kind(_ value: Value) -> String {
        switch document.kind(of: value) {
        case .null: "null"
        case .bool: "true or false"
        case .number: "a number"
        case .string: "a text"
        case .array: "a list"
        case .object: "an object"
        }
    }

    func hasControlCharacter(_ text: String) -> Bool {
        text.unicodeScalars.contains { $0.value < 0x20 || (0x7f..<0xa0).contains($0.value) }
    }

    /// For messages: shortened, and without control characters that move a terminal's cursor.
    func quoted(_ text: String) -> String {
        let shown = String(String.UnicodeScalarView(text.unicodeScalars.prefix(60)))
        var writer = JSONWriter()
        writer.string(shown)
        return String(decoding: writer.bytes, as: UTF8.self)
    }
}
