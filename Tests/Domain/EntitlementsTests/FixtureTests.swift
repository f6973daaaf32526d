import Contract
import JSON
import Testing

@testable import Entitlements

@Suite struct `A story told by Apple` {
    @Test(arguments: Fixture.names)
    func `is answered as its fixture says, forwards, backwards and with everything told twice`(_ name: String) throws {
        let fixture = try Fixture(name)
        #expect(!fixture.shows.isEmpty && !fixture.told.isEmpty && !fixture.expected.isEmpty)
        let rules = rules(fixture.environment)
        for expected in try fixture.expected.map(withInstants) {
            let now = try #require(expected["at"]?.integer)
            let known = try fixture.told.filter { $0.arrives <= now }.map { try reading($0.record) }
            let timeline = try #require(Timeline(merged(known), rules), "nothing is known by then")
            let answer = timeline.entitlement(at: now)
            let usual = [JSONObject.Member(name: "reason", value: .null)]
            for member in usual.filter({ expected[$0.name] == nil }) + (expected.object?.members ?? []) {
                let found = value(of: member.name, answer, fixture.published.filter { $0 <= now }, at: now)
                let isEqual = same(try #require(found, "fixtures know no member \(member.name)"), member.value)
                #expect(isEqual, "\(name) at \(now): \(member.name) is \(found as Any), not \(member.value)")
            }
            for name in ["state", "access", "accessUntil", "since"] {
                #expect(expected[name] != nil, "\(name) is left out")
            }
            for others in [known.reversed(), known + known, known.flatMap { [$0, $0] }.reversed()] {
                #expect(
                    Timeline(merged(others), rules)?.entitlement(at: now) == answer, "\(name) at \(now), as it came")
            }
        }
    }

    /// `L.4: users may also receive a refund`: Rules.md says which document that is. A `;` marks words that are left out.
    @Test(arguments: Fixture.names)
    func `is shown in the words of a document of Apple's, unless none describes it`(_ name: String) throws {
        let quotes = try Fixture(name).shows.filter { $0.hasPrefix("L.") }
        for quote in quotes {
            #expect(quote.wholeMatch(of: #/L\.[0-4](?:, [^:]+)?: \S.*/#) != nil, "\(name): \(quote)")
        }
        #expect(quotes.isEmpty == (toldElsewhere[name] != nil), "\(name)")
    }

    @Test func `has its fixture, and no fixture is lost`() {
        #expect(Fixture.names.count >= 86)
        #expect(Set(toldElsewhere.keys).isSubset(of: Fixture.names))
    }
}

/// Stories that are in none of Apple's five documents, with the reason.
private let toldElsewhere = [
    "advanced-commerce": "the documents name no notification for changes that the developer makes by an API",
    "consumable": "the documents are about subscriptions",
    "extension-failed": "the documents know no extension of a renewal date",
    "non-consumable-shared": "the documents describe neither family sharing nor lifetime purchases",
    "price-without-consent": "in the documents every price increase asks for consent",
]

private func merged(_ readings: [Reading]) -> Facts {
    readings.reduce(into: Facts()) { $0.merge($1.facts) }
}

private func value(of name: String, _ answer: Entitlement, _ published: [Int64], at now: Int64) -> JSONValue? {
    switch name {
    case "at": .integer(now)
    case "archive": .array(answer.runs.accessible(published, at: now).map(JSONValue.integer))
    case "current": .array(answer.runs.accessible(published, at: now, scope: .current).map(JSONValue.integer))
    default: answer.value(of: name)
    }
}

/// A member that an object leaves out counts as null.
private func same(_ found: JSONValue, _ expected: JSONValue) -> Bool {
    guard case .object(let members) = found, case .object(let expected) = expected else { return found == expected }
    let known = Set(members.members.map(\.name))
    return expected.members.allSatisfy { known.contains($0.name) }
        && members.members.allSatisfy { $0.value == expected[$0.name] ?? .null }
}
