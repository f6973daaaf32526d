// The newest refund requests, one per line.

import CommandLine
import Consumption
import Contract
import JSON
import Notices

struct RefundTable {
    private(set) var lines: [String] = []

    /// Together 80 columns with ids of Apple's length.
    private static let widths = [16, 16, 23, 10]

    init(_ stories: [RefundStory], _ environment: Contract.Environment) {
        lines.append("refund requests, \(environment.rawValue), newest first; in UTC")
        lines.append(Self.line(["asked", "subscription", "answer", "at stake", "outcome"]))
        for story in stories {
            let facts = story.facts.flatMap { RefundFactsShown($0) }
            lines.append(
                Self.line([
                    shownTime(adding(story.requestedAt, -(story.requestedAt % 60_000))),
                    shownText("\(story.originalTransactionId)"), story.answerInWords, facts?.money ?? "-",
                    story.outcome.map { "\($0)" } ?? "-",
                ]))
        }
    }

    private static func line(_ cells: [String]) -> String {
        zip(cells, widths).map { padded($0, to: $1) + " " }.joined() + (cells.last ?? "")
    }
}

extension RefundStory {
    /// `sent DECLINE`, `withheld: no_consent`.
    fileprivate var answerInWords: String {
        if let withholding { return "no: \(withholding)" }
        guard standing == .sent || standing == .decided || standing == .retrying else { return standing.rawValue }
        let preference = decision?.body.flatMap { RefundBodyShown($0) }?.preference
        return [standing.rawValue, preference].compactMap { $0 }.joined(separator: " ")
    }
}

/// Facts of a decision, for people.
struct RefundFactsShown {
    private let facts: JSONValue

    init?(_ bytes: [UInt8]) {
        do throws(JSONFault) { facts = try JSONValue.read(bytes) } catch { return nil }
    }

    subscript(_ name: String) -> JSONValue? { facts[name] }

    func text(_ name: String) -> String? { facts[name]?.string.map(shownText) }
    func number(_ name: String) -> Int64? { facts[name]?.integer }
    var assumed: [String] { facts["assumed"]?.array?.compactMap(\.string) ?? [] }
    var money: String? { number("price").map { shownMoney($0, facts["currency"]?.string) } }
}

/// What was sent, for people.
struct RefundBodyShown {
    let members: [(name: String, value: String)]

    init?(_ bytes: [UInt8]) {
        let body: JSONValue
        do throws(JSONFault) { body = try JSONValue.read(bytes) } catch { return nil }
        members = (body.object?.members ?? []).map { member in
            var json = JSONWriter()
            json.value(member.value)
            return (member.name, member.value.string ?? String(decoding: json.bytes, as: UTF8.self))
        }
    }

    /// For V1 the number in place of the word.
    var preference: String? { members.first { $0.name == "refundPreference" }.map { shownText($0.value) } }
}
