import Foundation

/// The parts of Package.swift that HouseTests needs: its lists of targets, read from its text. A list or a target in another form
/// shows as a folder of Sources that no list names.
struct PackageManifest {
    struct Target {
        let name: String
        let kind: String
        let dependencies: [String]
        let path: String?
    }

    /// The lists of Package.swift by the folders of Sources that hold their targets.
    static let layers = [
        "System": "system", "Values": "values", "Domain": "domain", "Engine": "engine", "Roles": "roles",
        "TestKits": "testSupport",
    ]

    let text: String
    private let lists: [String: [Target]]

    init() throws {
        text = try String(contentsOf: repository.appendingPathComponent("Package.swift"), encoding: .utf8)
        var lists: [String: [Target]] = [:]
        for match in text.matches(of: #/(?ms)^let (\w+): \[Target\] = \[\n(.*?)^\]/#) {
            lists[String(match.1)] = Self.targets(in: String(match.2))
        }
        self.lists = lists
    }

    /// The targets of one list; empty if there is no such list.
    func targets(_ list: String) -> [Target] { lists[list, default: []] }
    func names(_ lists: String...) -> Set<String> { Set(lists.flatMap { targets($0).map(\.name) }) }

    /// Where the files of a target are, from the repository's root, by the same rule as in Package.swift.
    func folder(of target: Target) -> String {
        if let path = target.path { return path }
        let isTest = target.kind == "testTarget"
        let module = isTest ? String(target.name.dropLast("Tests".count)) : target.name
        let layer = Self.layers.first { names($0.value).contains(module) }?.key
        return [isTest ? "Tests" : "Sources", layer, target.name].compactMap(\.self).joined(separator: "/")
    }

    /// The same of a module of Sources, by its name.
    func folder(ofModule name: String) -> String {
        let layer = Self.layers.first { names($0.value).contains(name) }?.key
        return ["Sources", layer, name].compactMap(\.self).joined(separator: "/")
    }

    private static func targets(in text: String) -> [Target] {
        let starts = text.matches(of: #/(?m)^    \.(\w+)\(/#)
        return starts.indices.map { index in
            let end = index + 1 < starts.count ? starts[index + 1].range.lowerBound : text.endIndex
            let body = text[starts[index].range.upperBound..<end]
            let dependencies = body.firstMatch(of: #/dependencies: \[([^\]]*)\]/#)?.1 ?? ""
            return Target(
                name: body.firstMatch(of: #/name: "([^"]+)"/#).map { String($0.1) } ?? "?",
                kind: String(starts[index].1),
                dependencies: dependencies.matches(of: #/"([^"]+)"/#).map { String($0.1) },
                path: body.firstMatch(of: #/path: "([^"]+)"/#).map { String($0.1) })
        }
    }
}

/// The root of the repository that these tests were built from.
let repository = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent()

/// One Swift file and its imports.
struct SourceFile {
    /// Path from the repository's root.
    let path: String
    let lines: [Substring]
    let imports: [(access: String, module: String)]

    /// Every Swift file below a folder of the repository, without hidden folders.
    static func all(below folder: String) throws -> [SourceFile] {
        let root = repository.appendingPathComponent(folder)
        let found = FileManager.default.enumerator(
            at: root, includingPropertiesForKeys: nil, options: .skipsHiddenFiles)
        return try (found?.allObjects as? [URL] ?? []).filter { $0.pathExtension == "swift" }.map(SourceFile.init)
    }

    private init(_ url: URL) throws {
        path = String(url.standardizedFileURL.path.dropFirst(repository.standardizedFileURL.path.count + 1))
        lines = try String(contentsOf: url, encoding: .utf8).split(separator: "\n", omittingEmptySubsequences: false)
        let statement =
            #/^\s*(?:@\w+\s+)*(?:(public|package|internal|private|fileprivate)\s+)?import\s+(?:(?:struct|class|enum|protocol|func|var|let|typealias)\s+)?(\w+)/#
        imports = lines.compactMap { line in
            line.prefixMatch(of: statement).map { (String($0.1 ?? "internal"), String($0.2)) }
        }
    }
}
