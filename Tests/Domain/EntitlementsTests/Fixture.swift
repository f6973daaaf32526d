// Stories written by hand, one in each file below Fixtures: Apple's notifications, and the expected answers at several instants.
//
// Instants are texts in UTC: 2026-02-10, 2026-02-10T01:00Z, 2026-02-09T23:59:59.999Z. Members that a file leaves out have defaults:
// - `told`: `at` is the date of signing, `arrives` the date of arrival if it is later. A transaction is of the product `pro`. A
//   transaction with an id that came before repeats its members, and so does an id alone. A renewal info `{}` says that renewal is
//   on, with the transaction's product, at its end. A member that is null is left out of the record.
// - `expected`: the answer `at` an instant comes from what had arrived by then. State, reason, access, accessUntil and since are
//   always compared (a reason that is left out means none), other members only if they are named. `archive` and `current` are the
//   accessible issues of `published`.

import Contract
import Foundation
import JSON
import Notices
import Testing

@testable import Entitlements

struct Fixture: CustomTestStringConvertible {
    struct Told {
        let arrives: Int64
        /// The value of a record of `notifications`.
        let record: [UInt8]
    }

    let name: String
    /// What it illustrates: rows of Rules.md, and quotes of the documents of Apple that Rules.md names.
    let shows: [String]
    let environment: Contract.Environment
    let told: [Told]
    let expected: [JSONValue]
    let published: [Int64]
    var testDescription: String { name }

    private static let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .appendingPathComponent("Fixtures")

    static let names: [String] = {
        let files = (try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? []
        return files.filter { $0.hasSuffix(".json") }.map { String($0.dropLast(5)) }.sorted()
    }()

    init(_ name: String) throws {
        let file = try Data(contentsOf: Self.folder.appendingPathComponent("\(name).json"))
        let story = try JSONValue.read(Array(file))
        self.name = name
        shows = try #require(story["shows"]?.array).compactMap(\.string)
        environment = story["environment"]?.string == "Sandbox" ? .sandbox : .production
        published = try (story["published"]?.array ?? []).map(instant)
        expected = try #require(story["expected"]?.array)
        var rows: [String: [JSONObject.Member]] = [:]
        told = try #require(story["told"]?.array).map { told in
            let at = try instant(told["at"])
            return Told(
                arrives: try told["arrives"].map(instant) ?? at,
                record: try record(of: told, at: at, &rows))
        }
    }
}

// MARK: - Records

/// The record as in the log, with defaults filled in.
private func record(of told: JSONValue, at: Int64, _ rows: inout [String: [JSONObject.Member]]) throws -> [UInt8] {
    var writer = JSONWriter()
    var row: [JSONObject.Member]?
    if let transaction = told["transaction"] {
        let id = try #require(transaction.string ?? transaction["transactionId"]?.string)
        let usual =
            rows[id] ?? [
                member("bundleId", .string("com.example.app")), member("productId", .string("pro")),
                member("type", .string("Auto-Renewable Subscription")),
                member("inAppOwnershipType", .string("PURCHASED")),
            ]
        row = try merged(usual, transaction.object?.members ?? [])
        rows[id] = row
    }
    var info: [JSONObject.Member]?
    if let said = told["renewalInfo"] {
        let row = JSONObject(row ?? [])
        let usual = [
            member("autoRenewStatus", .integer(1)), member("autoRenewProductId", row["productId"] ?? .null),
            member("renewalDate", row["expiresDate"] ?? .null),
        ]
        info = try merged(usual, said.object?.members ?? [])
    }
    writer.object { writer in
        writer.member("v", 1)
        writer.member("notificationType", told["type"]?.string)
        writer.member("subtype", told["subtype"]?.string)
        writer.member("signedDate", at)
        writer.name("status")
        writer.value(told["status"] ?? .null)
        for (name, part) in [("transaction", row), ("renewalInfo", info)] {
            writer.name(text: name)
            let dated = part.map { JSONObject($0 + [member("signedDate", .integer(at))]) }
            writer.value(dated.map(JSONValue.object) ?? .null)
        }
    }
    return writer.bytes
}

private func member(_ name: String, _ value: JSONValue) -> JSONObject.Member {
    JSONObject.Member(name: name, value: value)
}

/// `usual` with other values for the named members.
private func merged(_ usual: [JSONObject.Member], _ named: [JSONObject.Member]) throws -> [JSONObject.Member] {
    let names = Set(named.map(\.name))
    return try usual.filter { !names.contains($0.name) }
        + named.compactMap { $0.value == .null ? nil : member($0.name, try withInstants($0.name, $0.value)) }
}

/// Reads texts as instants in members whose names end in `Date`, as all of Apple's dates do.
private func withInstants(_ name: String, _ value: JSONValue) throws -> JSONValue {
    switch value {
    case .string where name.hasSuffix("Date"): .integer(try instant(value))
    case .object(let object):
        .object(JSONObject(try object.members.map { member($0.name, try withInstants($0.name, $0.value)) }))
    default: value
    }
}

// MARK: - Instants

/// Milliseconds of `2026-02-10T01:00:00.000Z` and of the shorter forms of it.
private func instant(_ value: JSONValue?) throws -> Int64 {
    let text = try #require(value?.string, "an instant is a text")
    let form = #/(\d{4})-(\d\d)-(\d\d)(?:T(\d\d):(\d\d)(?::(\d\d)(?:\.(\d{3}))?)?Z)?/#
    let match = try #require(text.wholeMatch(of: form), "\(text) is no instant")
    func number(_ digits: Substring?) -> Int { digits.flatMap { Int($0) } ?? 0 }
    let day = date(number(match.1), number(match.2), number(match.3))
    let seconds = (number(match.4) * 60 + number(match.5)) * 60 + number(match.6)
    return day + Int64(seconds * 1000 + number(match.7))
}

/// Applies this to all texts that look like instants; other values stay as they are.
func withInstants(_ value: JSONValue) throws -> JSONValue {
    switch value {
    case .string(let text) where text.prefix(2) == "20" && text.dropFirst(4).first == "-": .integer(try instant(value))
    case .array(let values): .array(try values.map(withInstants))
    case .object(let object):
        .object(JSONObject(try object.members.map { member($0.name, try withInstants($0.value)) }))
    default: value
    }
}

// MARK: - Answers

extension Entitlement {
    /// The members of a record that fixtures name, with the record's values.
    func value(of name: String) -> JSONValue? {
        switch name {
        case "bundleId": text(bundleId)
        case "productId": text(productId)
        case "type": text(type)
        case "appAccountToken": text(appAccountToken)
        case "ownership": text(ownership)
        case "entitlements": .array(entitlements.map(JSONValue.string))
        case "state": .string(state.rawValue)
        case "reason": reason.map { .string($0.rawValue) } ?? .null
        case "access": .bool(access)
        case "accessUntil": integer(accessUntil)
        case "since": .integer(since)
        case "autoRenew": bool(autoRenew)
        case "pendingProductId": text(pendingProductId)
        case "pendingBillingPlan": text(pendingBillingPlan)
        case "priceConsent": priceConsent.map { .string($0.rawValue) } ?? .null
        case "billingPlan": text(billingPlan)
        case "commitment":
            commitment.map {
                object([
                    ("period", integer($0.period)), ("of", integer($0.of)), ("endsAt", integer($0.endsAt)),
                    ("price", integer($0.price)), ("renews", bool($0.renews)),
                ])
            } ?? .null
        case "graceUntil": integer(graceUntil)
        case "retry": retry.map { object([("since", .integer($0.since)), ("until", .integer($0.until))]) } ?? .null
        case "offer":
            offer.map {
                object([("type", text($0.type)), ("identifier", text($0.identifier)), ("discount", text($0.discount))])
            } ?? .null
        case "introOfferUsed": .bool(introOfferUsed)
        case "price": integer(price)
        case "currency": text(currency)
        case "renewsAt": integer(renewsAt)
        case "renewalPrice": integer(renewalPrice)
        case "runs": .array(runs.map { .array([.integer($0.start), integer($0.end)]) })
        case "runsTruncated": .bool(runsTruncated)
        default: nil
        }
    }
}

private func text(_ text: Text?) -> JSONValue { text.map { .string($0.description) } ?? .null }
private func integer(_ value: Int64?) -> JSONValue { value.map(JSONValue.integer) ?? .null }
private func bool(_ value: Bool?) -> JSONValue { value.map(JSONValue.bool) ?? .null }
private func object(_ members: [(String, JSONValue)]) -> JSONValue {
    .object(JSONObject(members.map { JSONObject.Member(name: $0.0, value: $0.1) }))
}
