import Consumption
import Foundation
import Records
import Testing

/// Compares docs/reference/refund-policy.md with the program.
@Suite struct `The page on refund policies` {
    private let page: String

    init() throws {
        let path = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .appendingPathComponent("../../../docs/reference/refund-policy.md").standardized
        page = try String(contentsOf: path, encoding: .utf8)
    }

    private func block(_ language: String) throws -> String {
        let start = try #require(page.range(of: "```\(language)\n"))
        let end = try #require(page.range(of: "```", range: start.upperBound..<page.endIndex))
        return String(page[start.upperBound..<end.lowerBound])
    }

    @Test func `has an example that is taken, and shows its table`() throws {
        let policy = try policy(block("json"))
        #expect(policy.rules.count == 6 && policy.shadow?.rules.count == 1)
        #expect(policy.unreachable().isEmpty && policy.remarks().isEmpty)
        #expect(try block("text") == policy.table.map { $0 + "\n" }.joined())
    }

    @Test func `names every fact and every answer`() {
        for fact in TextFact.allCases.map(\.rawValue) + NumberFact.allCases.map(\.rawValue) {
            #expect(page.contains("\n| `\(fact)` |"), "\(fact)")
        }
        for preference in RefundPreference.allCases { #expect(page.contains("\"\(preference.rawValue)\"")) }
        #expect(page.contains("at most \(RefundPolicy.limitRules) rules and \(RefundPolicy.limitBytes / 1024) KiB"))
    }
}
