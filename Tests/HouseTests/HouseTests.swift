import Foundation
import Testing

/// Rules about the source tree that no compiler checks.
@Suite struct `The tree` {
    private let manifest: PackageManifest

    init() throws { manifest = try PackageManifest() }

    @Test func `has every folder of Sources in the layer of its target`() throws {
        let sources = repository.appendingPathComponent("Sources").path
        let layers = try FileManager.default.contentsOfDirectory(atPath: sources).filter { !$0.hasPrefix(".") }
        #expect(Set(layers) == Set(PackageManifest.layers.keys))
        for (layer, list) in PackageManifest.layers {
            let folders = try FileManager.default.contentsOfDirectory(atPath: "\(sources)/\(layer)")
                .filter { !$0.hasPrefix(".") && $0 != "README.md" }
            let targets = manifest.targets(list).filter { $0.path == nil }.map(\.name)
            #expect(Set(folders) == Set(targets), "Sources/\(layer) is not what Package.swift lists as \(list)")
            let page = "Sources/\(layer)/README.md"
            #expect(
                (try? String(contentsOf: repository.appendingPathComponent(page), encoding: .utf8)) != nil, "\(page)")
        }
    }

    /// In the header `app` the rules of a worker follow the version behind a plus sign.
    @Test func `has a version without a plus sign`() throws {
        let file = repository.appendingPathComponent("Sources/Roles/CommandLine/PerennialVersion.swift")
        let text = try String(contentsOf: file, encoding: .utf8)
        let version = try #require(text.firstMatch(of: /static let text = "([^"]*)"/)).1
        #expect(!version.isEmpty && !version.contains("+"), "\(version)")
    }

    @Test func `has arrows that only go down`() {
        let values = manifest.names("values", "system")
        let domain = manifest.names("domain").union(manifest.names("values"))
        let engine = manifest.names("engine", "values", "system")
        for target in manifest.targets("values") {
            #expect(
                values.isSuperset(of: target.dependencies),
                "\(target.name) is in Values: it may depend only on libraries")
        }
        for target in manifest.targets("domain") {
            #expect(
                domain.isSuperset(of: target.dependencies),
                "\(target.name) is domain: it may use domain and values only")
        }
        for target in manifest.targets("engine") {
            #expect(
                engine.isSuperset(of: target.dependencies),
                "\(target.name) is engine: it knows nothing of subscriptions")
        }
        let testSupport = manifest.names("testSupport", "tests")
        for target in manifest.targets("roles") {
            #expect(testSupport.isDisjoint(with: target.dependencies), "\(target.name) is shipped, test support is not")
        }
    }

    /// The floors of each layer, the lowest first. A module depends only on modules of lower floors of its layer.
    private static let floors: [String: [[String]]] = [
        "values": [["JSON", "Crypto"], ["Comparison"]],
        "domain": [
            ["Contract"], ["Zone", "Records"], ["AppStore", "Notices"], ["SubscriptionHistory"],
            ["Entitlements", "Churn", "Consumption"],
        ],
        "engine": [
            ["Platform"], ["Log", "Store", "Settings", "Telemetry", "HTTPClient"],
            ["MemoryLog", "HTTP", "Kafka", "Follow", "Revocation", "RocksStore", "Service"],
            ["Administration", "Runtime"],
        ],
        "roles": [
            ["Configuration", "NotificationWorker", "AppStoreAPI", "Clock", "ReadAPI", "Simulation", "Sizing"],
            [
                "Ingest", "EntitlementsWorker", "ChurnWorker", "ConsumptionWorker", "ConsumptionSender", "CommandLine",
                "Cluster",
            ],
            ["Serving", "Simulator"], ["Workers"], ["Demo", "Tools"], ["Roles"], ["perennial"],
        ],
    ]

    @Test func `has dependencies inside a layer that only go to lower floors`() {
        for (layer, floors) in Self.floors {
            let targets = manifest.targets(layer)
            #expect(floors.flatMap(\.self).sorted() == targets.map(\.name).sorted(), "the floors of \(layer)")
            for target in targets {
                let floor = floors.firstIndex { $0.contains(target.name) } ?? 0
                let lower = Set(floors.prefix(floor).joined())
                let higher = Set(target.dependencies).intersection(targets.map(\.name)).subtracting(lower)
                #expect(higher.isEmpty, "\(target.name) uses \(higher), which is on no lower floor")
            }
        }
    }

    /// Who uses the first links the second only if a person chose it.
    @Test(arguments: [
        ("Runtime", ["HTTP", "Kafka", "RocksStore"]), ("Service", ["HTTP"]), ("Configuration", ["Kafka"]),
    ])
    func `keeps implementations out of the modules that need their interface`(_ module: String, _ kept: [String]) {
        let targets = Dictionary(
            uniqueKeysWithValues: PackageManifest.layers.values.flatMap { manifest.targets($0) }.map { ($0.name, $0) })
        var reached: Set<String> = []
        var waiting = [module]
        while let name = waiting.popLast() {
            guard reached.insert(name).inserted, let target = targets[name] else { continue }
            waiting += target.dependencies
        }
        #expect(targets[module] != nil && reached.count > 2)
        #expect(reached.isDisjoint(with: kept), "\(module) reaches \(reached.intersection(kept))")
    }

    /// With this the dependencies of Package.swift are those of the files, and no file imports Foundation: it is slow to load,
    /// and its results for dates, numbers and text depend on the machine.
    @Test func `has files that import only what their target declares`() throws {
        let ofTheSystem: Set = ["Glibc", "Synchronization"]
        let pure: Set = ["values", "domain"]
        for layer in ["values", "domain", "engine", "roles", "testSupport"] {
            for target in manifest.targets(layer) {
                // No clock, no threads, no I/O.
                var allowed = Set(target.dependencies).union(pure.contains(layer) ? [] : ofTheSystem)
                // The kits are separate, because programs that are not tests use them.
                if target.name == "TestTraits" { allowed.insert("Testing") }
                // An independent check of days needs another calendar than the product's.
                if target.name == "PlainChurn" { allowed.insert("Foundation") }
                for file in try SourceFile.all(below: manifest.folder(of: target)) {
                    for (_, module) in file.imports {
                        #expect(allowed.contains(module), "\(file.path) imports \(module)")
                    }
                }
            }
        }
    }

    /// The modules that may call a C library. All others use the wrapper.
    private static let wrappers: [String: Set<String>] = [
        "CRDKafka": ["Kafka", "RDKafkaTestKit"],
        "CRocksDB": ["RocksStore"],
        "CRocksDBVersion": ["Tools"],
        "CPlatform": ["HTTP", "HTTPClient", "Platform"],
        "CCrypto": ["Crypto"],
        "CCurl": ["HTTPClient"],
        "CLoad": ["IngestTestKit"],
        "COpenSSL": ["Tools"],
        "CMicroHTTPD": ["HTTP"],
        "CSIMDJSON": ["JSON"],
        "CZlib": ["HTTP"],
    ]

    @Test func `keeps C libraries inside their wrappers`() throws {
        for target in manifest.targets("system") {
            #expect(Self.wrappers[target.name] != nil, "\(target.name) has no wrapper yet: name it in this test")
        }
        for file in try SourceFile.all(below: "Sources") {
            let target = String(file.path.split(separator: "/")[2])
            for (access, module) in file.imports {
                guard let users = Self.wrappers[module] else { continue }
                #expect(users.contains(target), "\(file.path) imports \(module)")
                #expect(access == "internal" || access == "private", "\(file.path) shows \(module) to its users")
            }
        }
    }

    @Test func `has no name of librdkafka in the public face of Kafka`() throws {
        for file in try SourceFile.all(below: "Sources/Engine/Kafka") {
            for line in file.lines where line.drop(while: { $0 == " " }).hasPrefix("public") {
                // Text behind it belongs to the body.
                let declaration = line.prefix { $0 != "{" && $0 != "=" }
                #expect(!declaration.lowercased().contains("rd_kafka"), "\(file.path): \(line)")
            }
        }
    }

    /// A reader that spells a name itself would go on looking for it when the writer has changed it.
    @Test func `spells the name of a header in one file`() throws {
        let list = try #require(
            try SourceFile.all(below: "Sources/Engine/Log").first { $0.path.hasSuffix("/HeaderName.swift") })
        let names = Set(list.lines.flatMap { $0.matches(of: #/StaticString \{ "([a-z-]+)" \}/#).map { $0.1 } })
        #expect(names.count > 10)
        // Words that nothing else is called by.
        let own = names.filter { $0.contains("-") || ["rerouted", "truncated"].contains($0) }
        for file in try SourceFile.all(below: "Sources")
        where !file.path.hasPrefix("Sources/TestKits/") && !file.path.hasSuffix("/HeaderName.swift") {
            for line in file.lines {
                let found =
                    line.matches(of: #/\b(?:header|RecordHeader|isNamed)\("([a-z-]+)"/#).map(\.1).filter(names.contains)
                    + own.filter { line.contains("\"\($0)\"") }
                #expect(found.isEmpty, "\(file.path) spells a header: \(line)")
            }
        }
    }

    @Test func `has nothing unexpected at its top`() throws {
        let expected: Set = [
            "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "Makefile", "NOTICE", "Package.swift", "README.md",
            "SECURITY.md", "Sources", "Tests", "deploy", "docs",
        ]
        let ignored = try String(contentsOf: repository.appendingPathComponent(".gitignore"), encoding: .utf8)
        for name in try FileManager.default.contentsOfDirectory(atPath: repository.path) where !name.hasPrefix(".") {
            #expect(expected.contains(name) || ignored.contains("/\(name)/\n"), "\(name) does not belong here")
        }
    }

    @Test func `installs every library that Package.swift asks Debian for`() throws {
        let setup = repository.appendingPathComponent("deploy/setup.sh").path
        func packages(_ answer: (code: Int32, words: String)) -> Set<Substring> {
            #expect(answer.code == 0, "\(answer.words)")
            return Set(answer.words.split(separator: "\n"))
        }
        let installed = packages(try run(setup, "needs", "product"))
        let asked = manifest.text.matches(of: #/\.apt\(\["([^"]+)"\]\)/#).map { String($0.1) }
        #expect(!asked.isEmpty)
        for package in asked {
            #expect(installed.contains(package[...]), "\(package) is missing in debian-packages.txt")
        }
        // Those who only run the product need no Prometheus, which brings hundreds of megabytes.
        let all = packages(try run(setup, "needs"))
        #expect(all.isSuperset(of: installed) && all.contains("prometheus") && !installed.contains("prometheus"))
    }

    @Test func `names in the reference every property that is refused`() throws {
        let page = try String(
            contentsOf: repository.appendingPathComponent("docs/reference/settings.md"), encoding: .utf8)
        let source = try String(
            contentsOf: repository.appendingPathComponent("Sources/Engine/Kafka/ClientProperties.swift"),
            encoding: .utf8)
        let table = try #require(source.range(of: "refused: [String: String] = ["))
        let end = try #require(source.range(of: "\n    ]", range: table.upperBound..<source.endIndex))
        let names = source[table.upperBound..<end.lowerBound].matches(of: #/\n {8}"([a-z._]+)":/#).map { $0.1 }
        #expect(names.count > 20)
        for name in names { #expect(page.contains("`\(name)`"), "docs/reference/settings.md does not name \(name)") }
    }

    /// Who meets an error finds it in one table.
    @Test func `has in one table every error of the read API`() throws {
        let page = try String(
            contentsOf: repository.appendingPathComponent("docs/reference/read-api.md"), encoding: .utf8)
        let document = try JSONSerialization.jsonObject(
            with: Data(contentsOf: repository.appendingPathComponent("docs/reference/read-api.openapi.json")))
        let start = try #require(page.range(of: "\n## Errors\n"))
        let end = try #require(page.range(of: "\n## ", range: start.upperBound..<page.endIndex))
        let table = page[start.upperBound..<end.lowerBound]
        let all = errors(in: document)
        #expect(all.count > 9)
        for error in all.sorted() {
            #expect(
                table.contains("\"error\":\"\(error)\"") || table.contains("`\(error)`"),
                "the table Errors of docs/reference/read-api.md lacks \(error)")
        }
    }

    /// An operator finds the metric of any alert in the reference, and can alert on any metric of the reference.
    @Test func `has in its reference every metric, and none that is not exposed`() throws {
        let page = try String(
            contentsOf: repository.appendingPathComponent("docs/reference/metrics.md"), encoding: .utf8)
        let listed = page.matches(of: #/\n\| `([a-z_]+)` \| (?:counter|gauge|histogram) \|/#).map { String($0.1) }
        var exposed: Set<String> = []
        for module in [
            "ChurnWorker", "Clock", "Cluster", "ConsumptionSender", "ConsumptionWorker", "EntitlementsWorker", "HTTP",
            "Ingest", "ReadAPI", "Revocation", "Runtime", "Service", "Serving", "Telemetry", "Workers",
        ] {
            for file in try SourceFile.all(below: manifest.folder(ofModule: module)) {
                let source = file.lines.joined(separator: "\n")
                exposed.formUnion(source.matches(of: #/"((?:perennial|process)_[a-z_]*[a-z])"/#).map { String($0.1) })
                // The short forms of WorkerMetrics: kind, name.
                guard module == "Runtime" else { continue }
                for match in source.matches(of: #/(?:= (counter|gauge|seconds)|\b(set))\(\s*"([a-z_]+)"/#) {
                    let ending = ["counter": "_total", "seconds": "_seconds"][String(match.1 ?? ""), default: ""]
                    exposed.insert("perennial_\(match.3)\(ending)")
                }
            }
        }
        #expect(exposed.count > 90 && Set(listed).count == listed.count)
        for name in exposed.subtracting(listed).sorted() { Issue.record("docs/reference/metrics.md lacks \(name)") }
        for name in Set(listed).subtracting(exposed).sorted() {
            Issue.record("docs/reference/metrics.md has \(name), but no module exposes it")
        }
    }

    /// A counter that appears with its first count shows no increase.
    @Test func `has a counter for every reason of a dead letter before the first one`() throws {
        for (module, list) in [
            ("Runtime", #/reasonsOfEngine = \[([^\]]*)\]/#),
            ("EntitlementsWorker", #/failureReasons =\s*\[([^\]]*)\]/#),
            ("ChurnWorker", #/failureReasons =\s*\[([^\]]*)\]/#),
            ("ConsumptionWorker", #/failureReasons =\s*\[([^\]]*)\]/#),
        ] {
            let source = try SourceFile.all(below: manifest.folder(ofModule: module)).flatMap(\.lines).joined(
                separator: "\n")
            let known = try #require(source.firstMatch(of: list), "\(module)").1
            let given = source.matches(of: #/ProcessFailure\(\s*"([a-z_]+)"/#).map { String($0.1) }
            #expect(given.count > 2)
            for reason in Set(given) { #expect(known.contains("\"\(reason)\""), "\(module) lacks \(reason)") }
        }
    }

    /// With hundreds of tests in parallel, what should take a few seconds is late.
    @Test func `has every test that promises time in the quiet part of make test`() throws {
        let script = try String(contentsOf: repository.appendingPathComponent("Tests/run.sh"), encoding: .utf8)
        let list = try #require(script.firstMatch(of: #/\nquiet='([^']+)'/#)).1
        let quiet = Set(list.split(separator: "|"))
        // Half a minute and more is only patience: no test needs that long on a working machine.
        let bound =
            #/(?:< |(?:wait|wait[A-Z]\w*|terminate|exitCode)\(.*\b(?:within|for): )\.(milliseconds|seconds)\((\d+)\)/#
        let opening = #/^ *(?:@Suite.*|extension ).*`([^`]+)`/#
        var suites: Set<Substring> = []
        for target in manifest.targets("tests") where target.name != "BrokerTests" {
            for file in try SourceFile.all(below: manifest.folder(of: target)) {
                var suite: Substring = "no suite"
                for (number, line) in zip(1..., file.lines) {
                    if let match = line.firstMatch(of: opening) {
                        suite = match.1
                        suites.insert(suite)
                    }
                    // A wait that must time out measures nothing, and processor time is the same on a busy machine.
                    let isMeasured = !["!", "== nil", "(time <"].contains { line.contains($0) }
                    guard isMeasured, let match = line.firstMatch(of: bound) else { continue }
                    let isShort = match.1 == "milliseconds" || Int(match.2)! < 30
                    #expect(
                        !isShort || quiet.contains(suite),
                        "\(file.path):\(number) promises time: name \"\(suite)\" in Tests/run.sh, or give it `patience`"
                    )
                }
            }
        }
        for name in quiet { #expect(suites.contains(name), "Tests/run.sh names \"\(name)\", which is no suite") }
    }

    /// A suite of BrokerTests that `quick` does not name is in the tier `soak`, any other suite in the tier `test`.
    @Test func `has every suite in exactly one tier`() throws {
        let script = try String(contentsOf: repository.appendingPathComponent("Tests/run.sh"), encoding: .utf8)
        func list(_ name: String) throws -> [String] {
            let line = script.split(separator: "\n").first { $0.hasPrefix("\(name)='") }
            let text = try #require(line?.dropFirst(name.count + 2).dropLast())
            return text.split(separator: "|").map(String.init)
        }
        let opening = #/\bstruct `?([^`:{]+)`? \{/#
        var homes: [String: Set<String>] = [:]
        for target in manifest.targets("tests") {
            for file in try SourceFile.all(below: manifest.folder(of: target)) {
                for match in file.lines.compactMap({ $0.firstMatch(of: opening) }) {
                    homes[String(match.1), default: []].insert(target.name)
                }
            }
        }
        let (quick, quiet) = (try list("quick"), try list("quiet"))
        // The groups of the tier `soak`; the last group has all other suites.
        let soak = try list("first") + list("second") + list("measuring")
        for name in quick {
            #expect(homes[name] == ["BrokerTests"], "Tests/run.sh: \"\(name)\" is not a suite of BrokerTests alone")
        }
        for name in soak {
            #expect(
                homes[name]?.contains("BrokerTests") == true, "Tests/run.sh: \"\(name)\" is no suite of BrokerTests")
        }
        let named = quick + quiet + soak
        #expect(Set(named).count == named.count, "a suite is in two lists of Tests/run.sh")
        let modules = Set(manifest.targets("tests").map(\.name))
        for name in try list("computing") {
            #expect(modules.contains(name), "Tests/run.sh: there is no module \(name)")
        }
    }

    @Test func `has a list of mutants that fits the sources`() throws {
        let verdict = try run(repository.appendingPathComponent("Tests/Mutants/run.sh").path, "--check")
        #expect(verdict.code == 0, "\(verdict.words)")
    }
}

@Suite struct `The program` {
    /// Sonames change with the Debian release. A program that was built elsewhere fails here, not at its first start.
    @Test func `finds its shared libraries`() throws {
        let listing = try run("/usr/bin/ldd", ownProgram.path)
        try #require(listing.code == 0, "\(listing.words)")
        #expect(!listing.words.contains("not found"), "\(listing.words)")
        for library in ["librdkafka", "libcrypto", "librocksdb", "libsimdjson"] {
            let line = listing.words.split(separator: "\n").first { $0.contains("\(library).so") }
            #expect(line?.contains(" => /") == true, "\(library) is not linked: \(listing.words)")
        }
        // The first library with a function is the one whose function is called.
        let loaded = listing.words.split(separator: "\n")
        let ours = try #require(loaded.firstIndex { $0.contains("libjemalloc.so") }, "\(listing.words)")
        let theirs = try #require(loaded.firstIndex { $0.contains("libc.so.6") }, "\(listing.words)")
        #expect(ours < theirs, "malloc of glibc comes before malloc of jemalloc: \(listing.words)")
    }

    /// With an arena for each core it would take more memory on a larger machine.
    @Test func `has as many arenas of memory on every machine`() throws {
        let version = try run(ownProgram.path, "version", environment: ["MALLOC_CONF": "confirm_conf:true"])
        #expect(version.words.contains("Set conf value: narenas:8\n"), "\(version.words)")
    }

    private var ownProgram: URL {
        URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath().deletingLastPathComponent()
            .appendingPathComponent("perennial")
    }
}

/// Runs a program to its end. Returns its standard output and standard error.
private func run(
    _ program: String, _ arguments: String..., environment: [String: String] = [:]
) throws -> (code: Int32, words: String) {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: program)
    process.arguments = arguments
    // Checks all mutants, whatever the environment of this run selects.
    process.environment = ProcessInfo.processInfo.environment.filter { !["GROUP", "ONE"].contains($0.key) }
        .merging(environment) { $1 }
    let output = Pipe()
    process.standardOutput = output
    process.standardError = output
    try process.run()
    let words = output.fileHandleForReading.readDataToEndOfFile()
    process.waitUntilExit()
    return (process.terminationStatus, String(decoding: words, as: UTF8.self))
}

/// The values of every member `error` that a schema in this part of an OpenAPI description has.
private func errors(in part: Any) -> Set<String> {
    if let list = part as? [Any] { return list.reduce(into: []) { $0.formUnion(errors(in: $1)) } }
    guard let object = part as? [String: Any] else { return [] }
    let member = (object["properties"] as? [String: Any])?["error"] as? [String: Any]
    let own = member?["enum"] as? [String] ?? [member?["const"] as? String].compactMap { $0 }
    return object.values.reduce(into: Set(own)) { $0.formUnion(errors(in: $1)) }
}
