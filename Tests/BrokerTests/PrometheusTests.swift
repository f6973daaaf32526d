import JSON
import Kafka
import KafkaTestKit
import Log
import Platform
import Testing

extension RealBroker {
    @Suite(.serialized) struct `Metrics in a real Prometheus` {
        private static let apps =
            #"[{"bundleId":"com.example.app","appAppleId":1,"entitlements":{"premium":["pro.monthly"]}}]"#

        @Test func `make an alert fire at the first dead letter, and pass the checker of Prometheus`() async throws {
            let installation = try await Installation.make("prometheus", try await Broker.shared(), partitions: 1)
            let scratch = try ScratchDirectory("prometheus")
            let worker = try ServiceProcess(
                [
                    "entitlements", "--state.directory", "\(scratch.path)/state", "--worker.slot", "0",
                    "--apps", try scratch.write(Self.apps, to: "apps.json"),
                ] + installation.settings)
            let api = try APIProcess(installation, try ScratchDirectory("prometheus-api"))
            try await worker.waitUntilReady()
            try await api.service.waitUntilReady()
            let prometheus = try await Prometheus.start(
                in: scratch, scraping: try await worker.port("admin server listens"),
                alert: "sum by (worker, input) (increase(perennial_dead_letters_total[1m])) > 0")
            // A series that appears with its first event has no increase, so every series exists before its first event.
            try await waitUntil("the counters were scraped twice", within: patience) {
                try await prometheus.value("min(count_over_time(perennial_dead_letters_total[1m]))") ?? 0 >= 2
            }
            // After a scrape that took too long there is no value.
            try await waitUntil("no dead letter is counted", within: patience) {
                try await prometheus.value("sum(perennial_dead_letters_total)") == 0
            }
            #expect(try await prometheus.firing().isEmpty)

            try await send("{", to: installation)
            try await waitUntil("the alert fires", within: patience) { try await !prometheus.firing().isEmpty }
            #expect(
                try await prometheus.firing()
                    == [["alertname": "DeadLetters", "worker": "entitlements", "input": "events"]])

            for service in [worker, api.service] {
                let verdict = try await run("promtool", ["check", "metrics"], stdin: try await service.metrics())
                #expect(verdict.code == 0 && verdict.words.isEmpty, "\(verdict.words)")
            }
            try await prometheus.stop()
            for service in [worker, api.service] { try await service.stop() }
        }

        private func send(_ value: String, to installation: Installation) async throws {
            let (topic, properties) = (installation.topic("notifications"), installation.broker.properties)
            try await blocking {
                let producer = try Producer(.init(clientID: "test", properties: properties)) { _ in }
                try producer.send(
                    to: try producer.topic(topic), partition: 0, key: Array("1".utf8).span,
                    value: Array(value.utf8).span,
                    headers: [RecordHeader("schema", "notification/1")],
                    timestamp: WallClock.milliseconds())
                try producer.flush(by: Deadline(after: patience))
                producer.close(by: Deadline(after: patience))
            }
        }
    }
}

/// A Prometheus server of its own, which scrapes twice a second and has one alert.
private struct Prometheus {
    private let process: ChildProcess
    private let port: Substring

    static func start(in scratch: ScratchDirectory, scraping target: UInt16, alert: String) async throws -> Prometheus {
        let rules = try scratch.write(
            """
            groups:
              - name: perennial
                rules:
                  - alert: DeadLetters
                    expr: \(alert)
            """, to: "rules.yaml")
        let settings = try scratch.write(
            """
            global:
              scrape_interval: 500ms
              scrape_timeout: 500ms
              evaluation_interval: 200ms
            rule_files: ["\(rules)"]
            scrape_configs:
              - job_name: perennial
                static_configs: [{targets: ["127.0.0.1:\(target)"]}]
            """, to: "prometheus.yaml")
        let process = try ChildProcess(
            "prometheus",
            [
                "--config.file=\(settings)", "--storage.tsdb.path=\(scratch.path)/data",
                "--web.listen-address=127.0.0.1:0",
            ])
        var port: Substring?
        try await waitUntil("Prometheus listens: \(process.lastLines(5))", within: patience) {
            port = process.standardError.firstMatch(of: #/msg="Listening on" address=127\.0\.0\.1:([0-9]+)/#)?.1
            return port != nil
        }
        let server = Prometheus(process: process, port: try #require(port))
        // Prometheus listens before it has read its data, and answers every question with 503 until then.
        try await waitUntil("Prometheus is ready", within: patience) {
            try await server.get("/-/ready", []).code == 0
        }
        return server
    }

    /// The value of the only series in the answer; nil if there is none.
    func value(_ query: String) async throws -> Double? {
        try await ask("query", ["--get", "--data-urlencode", "query=\(query)"])?["result"]?.array?.first?["value"]?
            .array?.last?.string.flatMap { Double($0) }
    }

    /// The labels of the firing alerts.
    func firing() async throws -> [[String: String]] {
        let alerts = try await ask("alerts", [])?["alerts"]?.array ?? []
        return alerts.filter { $0["state"]?.string == "firing" }.map { alert in
            let labels = alert["labels"]?.object?.members ?? []
            return Dictionary(uniqueKeysWithValues: labels.map { ($0.name, $0.value.string ?? "") })
        }
    }

    private func ask(_ path: String, _ arguments: [String]) async throws -> JSONValue? {
        let answer = try await get("/api/v1/\(path)", arguments)
        try #require(answer.code == 0, "\(path): \(answer.words)")
        return try JSONValue.read(Array(answer.standardOutput.utf8))["data"]
    }

    private func get(_ path: String, _ arguments: [String]) async throws -> ProgramResult {
        try await run(
            "curl", ["--silent", "--fail", "--max-time", "30"] + arguments + ["http://127.0.0.1:\(port)\(path)"])
    }

    func stop() async throws {
        #expect(try await process.terminate(within: .seconds(30)) == .exited(code: 0), "\(process.lastLines(20))")
    }
}
