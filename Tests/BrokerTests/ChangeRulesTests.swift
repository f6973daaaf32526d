import Foundation
import KafkaTestKit
import Platform
import Testing

/// One step that docs/how-to/change-rules.md asks for.
private enum PageStep {
    /// The arguments of `perennial ...`, and the exit codes that the page gives for it.
    case command(words: [String], codes: Set<Int32>)
    case stop
    case start(config: String)

    /// nil: this test does not understand the step.
    init?(_ line: Substring) {
        if let match = line.wholeMatch(of: #/# Start the worker with (\S+\.conf)\./#) {
            self = .start(config: String(match.1))
        } else if line == "# Stop every process of the worker." {
            self = .stop
        } else if let match = line.wholeMatch(of: #/perennial ([^#]+[^# ]) +# exit code ([0-9](?: or [0-9])?)\b.*/#) {
            let codes = match.2.split(separator: " or ").compactMap { Int32($0) }
            self = .command(words: match.1.split(separator: " ").map(String.init), codes: Set(codes))
        } else {
            return nil
        }
    }
}

/// Follows the page in a directory with the two files that it asks for.
private final class Reader {
    private let scene: ReplayScene
    private let hasDiff: Bool
    private var live: [String: ServiceProcess] = [:]
    private(set) var skipped = 0
    private(set) var done = 0

    init(_ scene: ReplayScene, hasDiff: Bool) throws {
        self.scene = scene
        self.hasDiff = hasDiff
        let more =
            #"{"bundleId":"com.example.player","appAppleId":1500000002},{"bundleId":"com.example.one","appAppleId":1}]"#
        let old = #"[{"bundleId":"com.example.reader","appAppleId":1500000001,"entitlements":{"all":["a"]}},"#
        let new =
            #"[{"bundleId":"com.example.reader","appAppleId":1500000001,"entitlements":"#
            + #"{"all":["a"],"more":["com.example.reader.pro.monthly"]}},"#
        let policy = try scene.disks.write(
            #"{"version":"2","rules":[{"name":"all","when":{},"answer":{"refundPreference":"DECLINE"}}]}"#,
            to: "policy.json")
        try write("perennial.conf", apps: try scene.disks.write(old + more, to: "old.json"), [])
        try write(
            "new.conf", apps: try scene.disks.write(new + more, to: "new.json"),
            ["entitlements.leeway.ms = 86400000", "churn.zone = Asia/Tokyo", "consumption.policy = \(policy)"])
    }

    private func write(_ name: String, apps: String, _ changes: [String]) throws {
        let lines =
            [
                "kafka.bootstrap.servers = \(scene.broker.bootstrap)", "topic.prefix = \(scene.installation.prefix)",
                "partitions = \(scene.installation.partitions)", "apps = \(apps)", "worker.slot = 0",
                "worker.leave = true", "state.directory = \(scene.disks.file("state"))", "consumption.send = false",
            ] + changes
        _ = try scene.disks.write(lines.joined(separator: "\n") + "\n", to: name)
    }

    private func start(_ worker: String, _ config: String) async throws {
        let process = try ServiceProcess([worker, "--config", scene.disks.file(config)])
        live[worker] = process
        try await process.waitUntilReady()
        try await scene.waitUntilDealtWith(by: scene.group(worker))
    }

    private func stop(_ worker: String) async throws { try await live.removeValue(forKey: worker)?.stop() }

    func follow(_ block: [PageStep]) async throws {
        guard case .command(let words, _)? = block.first(where: { if case .command = $0 { true } else { false } })
        else { return }
        let worker = words[1]
        // The page assumes a running worker. A block that begins by stopping the worker continues from the block before.
        if live[worker] == nil { try await start(worker, "perennial.conf") }
        for step in block {
            switch step {
            case .stop: try await stop(worker)
            case .start(let config): try await start(worker, config)
            case .command(let words, _) where words[0] == "diff" && !hasDiff: skipped += 1
            case .command(let words, let codes):
                let result = try await run(
                    productPath("perennial"), words, environment: .only([:]), workingDirectory: scene.disks.file("."),
                    timeout: .seconds(120))
                #expect(codes.contains(result.code), "perennial \(words.joined(separator: " ")): \(result.words)")
                done += 1
            }
        }
    }

    func end() async throws {
        for worker in live.keys.sorted() { try await stop(worker) }
    }
}

extension RealBroker {
    @Suite(.serialized) struct `The page about changing rules` {
        @Test func `has commands that end as it says, each in its place`() async throws {
            let page = try String(
                contentsOf: URL(fileURLWithPath: #filePath).appendingPathComponent(
                    "../../../docs/how-to/change-rules.md"
                )
                .standardized, encoding: .utf8)
            var blocks: [[PageStep]] = []
            for block in page.matches(of: #/(?s)\n```sh\n(.*?)\n```\n/#) {
                blocks.append(
                    try block.1.split(separator: "\n").map { try #require(PageStep($0), "not understood: \($0)") })
            }
            // The blocks: a change of apps and its reversal, the zone, the policy, and a repaired fault.
            #expect(blocks.count == 5)
            let help = try await run(productPath("perennial"), ["help", "diff"], environment: .only([:]))
            let scene = try await ReplayScene.make("change-rules", partitions: 2, subscribers: 40)
            try await scene.feedRefundRequest()
            let reader = try Reader(scene, hasDiff: help.code == 0)
            for block in blocks { try await reader.follow(block) }
            try await reader.end()
            #expect(reader.done > 15, "the test has no cases")
            if reader.skipped > 0 {
                print(
                    "change-rules: \(reader.skipped) lines with perennial diff were skipped: this version does not have it"
                )
            }
        }
    }
}
