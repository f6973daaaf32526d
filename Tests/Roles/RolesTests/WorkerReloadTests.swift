import Glibc
import KafkaTestKit
import Platform
import Testing

/// What a running worker says when its file of apps changes. It needs no broker for that.
@Suite(.serialized) struct `A worker whose apps change` {
    private static func apps(_ product: String) -> String {
        #"[{"bundleId":"com.example.app","appAppleId":1234,"entitlements":{"premium":["\#(product)"]}}]"#
    }

    @Test(arguments: [
        ("entitlements", "new products and apps give no entitlements until a replay is promoted"),
        ("churn", "new apps are not counted until a replay is promoted"),
        ("consumption", "requests of new apps are withheld until this worker is restarted"),
    ])
    func `goes on with the old ones, and says until when`(_ command: String, _ consequence: String) async throws {
        let folder = try ScratchDirectory("worker-reload")
        let file = try folder.write(Self.apps("pro"), to: "apps.json")
        let worker = try ChildProcess(
            try productPath("perennial"),
            [
                command, "--apps", file, "--kafka.bootstrap.servers", "127.0.0.1:1", "--admin.listen", "127.0.0.1:0",
                "--state.directory", "\(folder.path)/state", "--worker.slot", "0",
            ] + (command == "consumption" ? ["--consumption.send", "false"] : []),
            environment: .only([:]), workingDirectory: "/", mergesErrors: true)
        func lines(_ words: String) -> Int {
            worker.standardOutput.split(separator: "\n").count { $0.contains(words) }
        }
        let words = "apps has changed, but this worker continues with the apps that it was started with: \(consequence)"
        try await worker.waitUntilPrinted("started")

        // The same apps, in a file that was written again.
        worker.kill(SIGHUP)
        try await waitUntil("the file was read") { lines("reloaded") == 1 }
        #expect(lines(words) == 0)

        _ = try folder.write("nonsense", to: "apps.json")
        try await waitUntil("the file is refused") { lines("cannot be used") == 1 }
        #expect(lines(words) == 0)

        _ = try folder.write(Self.apps("max"), to: "apps.json")
        try await waitUntil("the change is reported: \(worker.lastLines(10))") { lines(words) == 1 }
        worker.kill(SIGHUP)
        try await waitUntil("it is reported again: \(worker.lastLines(10))") { lines(words) == 2 }
        #expect(try await worker.terminate() == .exited(code: 0), "\(worker.lastLines(20))")
    }
}
