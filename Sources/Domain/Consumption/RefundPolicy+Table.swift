// The rules of a policy as a table for people.

internal import Notices
internal import Records

extension RefundPolicy {
    /// A list of texts that is longer than this continues in the next line.
    private static let limitTestCharacters = 60

    /// Aligned columns, one line for each test. The last line shows what holds if no rule matches, unless a rule always
    /// matches.
    public var table: [String] {
        var rows: [(number: String, name: String, tests: [String], answer: String)] = [("", "rule", ["when"], "answer")]
        for (index, rule) in rules.enumerated() {
            let tests = rule.tests.flatMap { Self.lines(of: $0) }
            rows.append((String(index + 1), rule.name, tests.isEmpty ? ["always"] : tests, "\(rule.answer)"))
        }
        if !rules.contains(where: \.tests.isEmpty) {
            rows.append(("", "(no rule)", ["nothing above matches"], "no preference"))
        }
        let numberWidth = rows.map(\.number.count).max() ?? 0
        let nameWidth = rows.map(\.name.count).max() ?? 0
        let testWidth = rows.flatMap(\.tests).map(\.count).max() ?? 0
        return rows.flatMap { row in
            row.tests.enumerated().map { line, test in
                let isFirst = line == 0
                let cells = [
                    Self.padded(isFirst ? row.number : "", numberWidth),
                    Self.padded(isFirst ? row.name : "", nameWidth),
                    isFirst ? Self.padded(test, testWidth) : test, isFirst ? row.answer : "",
                ]
                let text = cells.joined(separator: "  ")
                return String(text.reversed().drop { $0 == " " }.reversed())
            }
        }
    }

    /// The defaults for values that usage does not give, as a line for people.
    public var defaultsLine: String {
        let status = deliveryStatus.map(\.rawValue) ?? "\(DeliveryStatus.delivered.rawValue) (no default given)"
        let sample = sampleContentProvided.map { "\($0)" } ?? "true when the log has a free trial (no default given)"
        return "deliveryStatus \(status), sampleContentProvided \(sample)"
    }

    private static func lines(of test: Test) -> [String] {
        guard case .text(let fact, let texts) = test else { return ["\(test)"] }
        var lines: [String] = []
        var line = fact.rawValue
        for (index, text) in texts.enumerated() {
            let word = index == 0 ? " \(text)" : " or \(text)"
            if index > 0, line.count + word.count > limitTestCharacters {
                lines.append(line)
                line = " "
            }
            line += word
        }
        return lines + [line]
    }

    private static func padded(_ text: String, _ width: Int) -> String {
        text + String(repeating: " ", count: max(0, width - text.count))
    }
}

extension RefundPolicy.Test: CustomStringConvertible {
    public var description: String {
        switch self {
        case .text(let fact, let texts): "\(fact.rawValue) \(texts.map(\.description).joined(separator: " or "))"
        case .number(let fact, let range): "\(fact.rawValue) \(range)"
        }
    }
}

extension NumberRange: CustomStringConvertible {
    public var description: String {
        switch (from, to) {
        case (.some(let from), .some(let to)): from == to ? "\(from)" : "\(from) to \(to)"
        case (.some(let from), nil): "at least \(from)"
        case (nil, .some(let to)): "at most \(to)"
        case (nil, nil): "any number"
        }
    }
}
