import Churn
import Foundation
import Testing

/// Numbers.md, which lists the tests of each number.
@Suite struct `The table of numbers` {
    private struct Line {
        let name: String
        let heldBy: [String]
    }

    private static let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
    private static let identities = ["running sums", "outcomes", "any order or repetition"]

    /// By section, in the order of the file.
    private func lines() throws -> [String: [Line]] {
        let text = try String(contentsOf: Self.folder.appendingPathComponent("Numbers.md"), encoding: .utf8)
        var lines: [String: [Line]] = [:]
        var section = ""
        for line in text.split(separator: "\n") {
            if line.hasPrefix("## ") { section = String(line.dropFirst(3)) }
            let cells = line.split(separator: " | ", omittingEmptySubsequences: false)
            guard cells.count == 3, line.hasPrefix("| "), cells[0] != "| Name" else { continue }
            let tests = cells[2].dropLast(2).matches(of: #/(?:^|, )`([^`]+)`/#).map { String($0.1) }
            lines[section, default: []].append(Line(name: String(cells[0].dropFirst(2)), heldBy: tests))
        }
        return lines
    }

    /// The text between a test's title and the next one.
    private func tests() throws -> [String: Substring] {
        var tests: [String: Substring] = [:]
        for file in try FileManager.default.contentsOfDirectory(atPath: Self.folder.path) where file.hasSuffix(".swift")
        {
            let source = try String(contentsOf: Self.folder.appendingPathComponent(file), encoding: .utf8)
            let titles = source.matches(of: #/@Test[^`]*?func `([^`]+)`\(/#)
            for (place, title) in titles.enumerated() {
                let end = place + 1 < titles.count ? titles[place + 1].range.lowerBound : source.endIndex
                #expect(tests[String(title.1)] == nil, "two tests have the name \(title.1)")
                tests[String(title.1)] = source[title.range.upperBound..<end]
            }
        }
        return tests
    }

    @Test func `has every counter, every money figure and every identity, once and in order`() throws {
        let lines = try lines()
        #expect(Set(lines.keys) == ["counts", "money", "identities"])
        #expect(lines["counts"]?.map(\.name) == ChurnCounter.allCases.filter { !$0.isMoney }.map(\.name))
        #expect(lines["money"]?.map(\.name) == ChurnCounter.allCases.filter(\.isMoney).map(\.name))
        #expect(lines["identities"]?.map(\.name) == Self.identities)
    }

    @Test func `names tests that exist, and that name the number`() throws {
        let tests = try tests()
        for (section, lines) in try lines() {
            for line in lines {
                #expect(!line.heldBy.isEmpty, "no test is listed for \(line.name)")
                for test in line.heldBy {
                    guard let body = tests[test] else {
                        Issue.record("\(line.name): no test `\(test)`")
                        continue
                    }
                    guard section != "identities" else { continue }
                    let isNamed = test.words.contains { $0 == line.name } || body.expects(line.name)
                    #expect(isNamed, "\(line.name) is not in the name of `\(test)`")
                }
            }
        }
    }

    @Test func `is of numbers that a story expects to be other than 0`() throws {
        let bodies = try tests().values
        for counter in ChurnCounter.allCases {
            #expect(bodies.contains { $0.expects(counter.name) }, "no story expects the counter \(counter.name)")
        }
    }
}

extension String {
    fileprivate var words: [Substring] { split { !$0.isLetter && !$0.isNumber } }
}

extension Substring {
    /// Whether a cell written by hand has a value other than 0 for this name.
    fileprivate func expects(_ name: String) -> Bool {
        for sign in ["", "-"] {
            for range in ranges(of: ".\(name): \(sign)") {
                if let digit = self[range.upperBound...].first?.wholeNumberValue, digit > 0 { return true }
            }
        }
        return false
    }
}
