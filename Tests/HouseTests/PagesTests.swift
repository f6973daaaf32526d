import Foundation
import Testing

/// Rules about the pages for people: the README, the pages beside it, and `docs`.
@Suite struct `The pages` {
    private let pages: [String: Page]

    init() throws { pages = try Page.all() }

    private var inOrder: [Page] { pages.values.sorted { $0.path < $1.path } }

    @Test func `begin with a README of at most 200 lines`() throws {
        let readme = try #require(pages["README.md"])
        #expect(readme.lineCount <= 200)
    }

    @Test func `have no link that leads nowhere`() {
        var count = 0
        for page in inOrder {
            for link in page.links {
                guard let target = page.target(of: link) else { continue }
                count += 1
                let place = repository.appendingPathComponent(target.path).path
                #expect(
                    FileManager.default.fileExists(atPath: place), "\(page.path): the target of \(link) does not exist")
                guard let anchor = target.anchor else { continue }
                let anchors = pages[target.path]?.anchors ?? []
                #expect(anchors.contains(anchor), "\(page.path): \(link) is no heading")
            }
        }
        #expect(count > 50)
    }

    /// Nobody finds a page without a link to it.
    @Test func `can all be reached by links from the README`() {
        var reached: Set = ["README.md"]
        var waiting = ["README.md"]
        while let path = waiting.popLast() {
            guard let page = pages[path] else { continue }
            for link in page.links {
                guard let target = page.target(of: link), pages[target.path] != nil else { continue }
                if reached.insert(target.path).inserted { waiting.append(target.path) }
            }
        }
        for page in inOrder { #expect(reached.contains(page.path), "no link leads to \(page.path)") }
    }

    @Test(arguments: [
        ("First run", "first-run"), ("`perennial ingest`, in short", "perennial-ingest-in-short"),
        ("What [Kafka](https://kafka.apache.org) does", "what-kafka-does"), ("A_b-c  d", "a_b-c--d"),
    ])
    func `have headings whose anchors are those of GitHub`(_ heading: String, _ anchor: String) {
        #expect(Page.anchor(of: heading) == anchor)
    }
}

/// One page in Markdown: its links and its anchors.
private struct Page {
    /// Path from the repository's root.
    let path: String
    let lineCount: Int
    private(set) var links: [String] = []
    private(set) var anchors: Set<String> = []

    /// README, the pages beside it, and every page below `docs`, by path.
    static func all() throws -> [String: Page] {
        var paths = ["README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"]
        let found = FileManager.default.enumerator(
            at: repository.appendingPathComponent("docs"), includingPropertiesForKeys: nil, options: .skipsHiddenFiles)
        let root = repository.standardizedFileURL.path
        for url in found?.allObjects as? [URL] ?? [] where url.pathExtension == "md" {
            paths.append(String(url.standardizedFileURL.path.dropFirst(root.count + 1)))
        }
        return Dictionary(uniqueKeysWithValues: try paths.map { ($0, try Page($0)) })
    }

    private init(_ path: String) throws {
        let text = try String(contentsOf: repository.appendingPathComponent(path), encoding: .utf8)
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
        self.path = path
        // The text after the last line end is not a line.
        lineCount = lines.count - 1
        var isCode = false
        for line in lines {
            if line.drop(while: { $0 == " " }).hasPrefix("```") {
                isCode.toggle()
            } else if !isCode {
                read(line)
            }
        }
    }

    /// A line that is not code.
    private mutating func read(_ line: Substring) {
        if let heading = line.wholeMatch(of: #/[#]{1,6} +(.+)/#) { add(Self.anchor(of: String(heading.1))) }
        let words = line.replacing(#/`[^`]*`/#, with: "")
        links += words.matches(of: #/\]\(([^()\s]+)\)/#).map { String($0.1) }
    }

    /// The second heading with a name gets `-1`, the third `-2`.
    private mutating func add(_ anchor: String) {
        var name = anchor
        var number = 0
        while !anchors.insert(name).inserted {
            number += 1
            name = "\(anchor)-\(number)"
        }
    }

    static func anchor(of heading: String) -> String {
        var anchor = ""
        for character in heading.replacing(#/\]\([^)]*\)/#, with: "").lowercased() {
            if character.isLetter || character.isNumber || character == "-" || character == "_" {
                anchor.append(character)
            } else if character == " " {
                anchor.append("-")
            }
        }
        return anchor
    }

    /// The target of a link of this page, from the repository's root; nil: it is outside of the repository.
    func target(of link: String) -> (path: String, anchor: String?)? {
        guard !link.contains("://"), !link.hasPrefix("mailto:") else { return nil }
        let parts = link.split(separator: "#", maxSplits: 1, omittingEmptySubsequences: false)
        let anchor = parts.count > 1 ? String(parts[1]) : nil
        guard !parts[0].isEmpty else { return (path, anchor) }
        var folders = path.split(separator: "/").dropLast().map(String.init)
        for step in parts[0].split(separator: "/") where step != "." {
            if step == "..", !folders.isEmpty {
                folders.removeLast()
            } else {
                folders.append(String(step))
            }
        }
        return (folders.joined(separator: "/"), anchor)
    }
}
