// The members that Apple documents, with their JSON types. A payload with a member of another type is rejected.

import JSON
import Records

/// What the value of a known member must be. Null counts as absent for each.
enum MemberType {
    case string, integer, bool, strings
    case object(MemberTable)
    /// Only the name is known: the value may be anything.
    case anything
}

final class MemberTable: Sendable {
    struct Rule: Sendable {
        let name: MemberName
        let type: MemberType
        let isRequired: Bool
    }

    private let rules: [Rule]
    private let requiredCount: Int

    /// Required members are non-empty strings or whole numbers.
    init(required: [(MemberName, MemberType)] = [], _ optional: [(MemberName, MemberType)]) {
        rules =
            required.map { Rule(name: $0.0, type: $0.1, isRequired: true) }
            + optional.map { Rule(name: $0.0, type: $0.1, isRequired: false) }
        requiredCount = required.count
    }

    /// Members that are not in the table may have any value.
    func check(
        _ document: borrowing JSONDocument, _ object: JSONDocument.Value, _ place: StaticString = "payload"
    ) throws(Rejection) {
        var requiredFound = 0
        var next = document.firstMember(of: object)
        while let member = next {
            next = document.member(after: member)
            guard document.kind(of: member.value) != .null, let rule = rule(for: member, in: document) else { continue }
            try check(document, member.value, rule, place)
            if rule.isRequired { requiredFound += 1 }
        }
        guard requiredFound < requiredCount else { return }
        for rule in rules where rule.isRequired && document.value(rule.name, of: object) == nil {
            throw Rejection(.inconsistent, "\(place): \(rule.name.text) is missing")
        }
    }

    private func rule(for member: JSONDocument.Member, in document: borrowing JSONDocument) -> Rule? {
        for rule in rules where document.name(of: member, is: rule.name.text) { return rule }
        return nil
    }

    private func check(
        _ document: borrowing JSONDocument, _ value: JSONDocument.Value, _ rule: Rule, _ place: StaticString
    ) throws(Rejection) {
        switch rule.type {
        case .string:
            guard let text = document.string(value) else { throw wrong(rule, place, "is not a string") }
            if rule.isRequired, text.isEmpty { throw wrong(rule, place, "is empty") }
        case .integer:
            guard document.integer(value) != nil else { throw wrong(rule, place, "is not a whole number of 64 bits") }
        case .bool:
            guard document.bool(value) != nil else { throw wrong(rule, place, "is neither true nor false") }
        case .strings:
            guard document.kind(of: value) == .array else { throw wrong(rule, place, "is not an array") }
            var element = document.firstElement(of: value)
            while let text = element {
                guard document.kind(of: text) == .string else { throw wrong(rule, place, "has non-string elements") }
                element = document.element(after: text)
            }
        case .object(let table):
            guard document.kind(of: value) == .object else { throw wrong(rule, place, "is not an object") }
            try table.check(document, value, rule.name.text)
        case .anything: break
        }
    }

    private func wrong(_ rule: Rule, _ place: StaticString, _ words: StaticString) -> Rejection {
        Rejection(.inconsistent, "\(place): \(rule.name.text) \(words)")
    }
}
