import Consumption
import JSON
import Notices
import Schemas
import Testing

@Suite struct `The schemas of records about refunds` {
    private func value(_ record: ConsumptionRecord) throws -> JSONValue { try JSONValue.read(record.value) }

    private func names(_ value: JSONValue?) -> [String] { value?.object?.members.map(\.name) ?? [] }

    @Test func `describe what the worker writes, of every kind and for every reason`() throws {
        let records = try busyScene().records
        let schema = try Schema("consumption")
        for record in records { #expect(schema.problems(of: try value(record)) == [], "\(record)") }
        #expect(Set(records.map(\.kind)) == Set(ConsumptionRecord.Kind.allCases))
        let details = Set(records.compactMap { $0.detail?.description })
        #expect(
            details.isSuperset(of: [
                "no_transaction", "foreign_app", "family_shared", "no_consent", "policy", "refunded", "declined",
                "reversed", "no_percentage", "maybe_sent",
            ]))
    }

    @Test func `name every member, in the order in which it is written`() throws {
        let schema = try Schema("consumption")
        for record in try busyScene().records {
            let told = try value(record)
            let written = names(told)
            #expect(written == schema.order.filter { written.contains($0) })
            #expect(schema.required.isSubset(of: written))
            if let facts = told["facts"] { #expect(names(facts) == schema.names(of: "facts")) }
            if let usage = told["facts"]?["usage"] {
                let known = schema.names(of: "usage", in: "facts")
                #expect(names(usage) == known.filter { names(usage).contains($0) })
            }
        }
    }

    @Test func `have both forms of the answer`() throws {
        let bodies = try busyScene().records.compactMap { try value($0)["body"] }
        #expect(bodies.contains { $0["deliveryStatus"]?.string == "DELIVERED" })
        #expect(bodies.contains { $0["accountTenure"] != nil && $0["deliveryStatus"]?.integer == 0 })
    }

    /// Each is a record of the scene with one place changed.
    private static let wrong: [(ConsumptionRecord.Kind, String, String)] = [
        (.requested, #""kind":"requested""#, #""kind":"asked""#), (.requested, #""v":1"#, #""v":2"#),
        (.requested, #""deadline":"#, #""until":"#), (.requested, #""detail":null"#, #""detail":"policy""#),
        (.decided, #""customerConsented":true"#, #""customerConsented":false"#),
        (.decided, #""body":"#, #""answer":"#), (.decided, #""refundsGranted":"#, #""granted":"#),
        (.decided, #""deliveryStatus":"DELIVERED""#, #""deliveryStatus":"YES""#),
        (.decided, #""refundPreference":"DECLINE""#, #""refundPreference":null"#),
        (.withheld, #""detail":"#, #""reason":"#), (.sent, #""httpStatus":202"#, #""httpStatus":200"#),
        (.sent, #""attempt":3"#, #""attempt":null"#), (.outcome, #""detail":"refunded""#, #""detail":"paid""#),
    ]

    @Test(arguments: wrong)
    func `take nothing else`(_ kind: ConsumptionRecord.Kind, _ old: String, _ new: String) throws {
        let records = try busyScene().records
        let record = try #require(records.first { $0.kind == kind })
        let text = String(decoding: record.value, as: UTF8.self)
        try #require(text.contains(old), "\(text)")
        let changed = Array(text.replacing(old, with: new, maxReplacements: 1).utf8)
        #expect(try Schema("consumption").problems(of: JSONValue.read(changed)) != [])
    }

    @Test func `describe rows of attempts, whatever came back`() throws {
        let schema = try Schema("consumption-attempt")
        let rows = [
            Attempt(id: "u", number: 1, at: firstAsked, httpStatus: nil, errorCode: nil, retryAt: firstAsked + 1),
            Attempt(id: "u", number: 2, at: firstAsked, httpStatus: 429, errorCode: 4_290_000, retryAt: firstAsked + 1),
            Attempt(id: "u", number: 3, at: firstAsked, httpStatus: 202, errorCode: nil, retryAt: nil),
        ]
        for row in rows {
            let value = try JSONValue.read(row.value)
            #expect(schema.problems(of: value) == [])
            #expect(names(value) == schema.order)
        }
        let zero = Attempt(id: "u", number: 0, at: firstAsked, httpStatus: 202, errorCode: nil, retryAt: nil)
        #expect(schema.problems(of: try JSONValue.read(zero.value)) != [])
    }

    @Test func `fit records that are read back and written again`() throws {
        for record in try busyScene().records {
            var document = JSONDocument()
            try document.read(record.value.span)
            #expect(ConsumptionRecord(document) == record)
        }
    }
}
