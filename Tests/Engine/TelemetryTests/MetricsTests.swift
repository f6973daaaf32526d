import KafkaTestKit
import Platform
import Testing

@testable import Telemetry

@Suite struct `The metrics registry` {
    let metrics = Metrics()
    var text: String { String(decoding: metrics.exposition(), as: UTF8.self) }

    @Test func `gives every series the common labels that it does not have itself`() {
        let metrics = Metrics(common: ["environment": "both"])
        metrics.counter("perennial_requests_total", help: "Requests.", labels: ["code": "2xx"]).add(3)
        metrics.gauge("perennial_depth", help: "Depth.", labels: ["environment": "sandbox"]).set(1)
        metrics.gauge("perennial_age", help: "Age.") { 7 }
        let lines = String(decoding: metrics.exposition(), as: UTF8.self).split(separator: "\n")
        #expect(
            lines.filter { !$0.hasPrefix("#") } == [
                #"perennial_age{environment="both"} 7"#, #"perennial_depth{environment="sandbox"} 1"#,
                #"perennial_requests_total{environment="both",code="2xx"} 3"#,
            ])
        // The same labels are the same series.
        metrics.counter("perennial_requests_total", help: "Requests.", labels: ["code": "2xx"]).add()
        #expect(String(decoding: metrics.exposition(), as: UTF8.self).contains(#"code="2xx"} 4"#))
    }

    @Test func `knows what the system says of the process`() throws {
        metrics.processInfo()
        var found: [Substring: Double] = [:]
        for line in text.split(separator: "\n") where !line.hasPrefix("#") {
            let sides = line.split(separator: " ")
            found[sides[0]] = Double(sides[1])
        }
        #expect(text.contains("# TYPE process_cpu_seconds_total counter\n"))
        func value(_ name: Substring) throws -> Double { try #require(found[name], "\(name)") }
        let resident = try value("process_resident_memory_bytes")
        #expect(resident > 1_000_000)
        #expect(try value("process_virtual_memory_bytes") > resident)
        #expect(try value("process_cpu_seconds_total") > 0)
        #expect(try value("process_threads") >= 1)
        let open = try value("process_open_fds")
        #expect(try open >= 3 && open < value("process_max_fds"))
        let start = try value("process_start_time_seconds")
        let now = Double(WallClock.milliseconds()) / 1000
        #expect(start < now + 1 && start > now - 86_400, "a test has run for less than a day")
    }

    /// In the format of the manual page, for a program with a hostile name.
    @Test func `reads the files of the system`() throws {
        let fields = (4...52).map { "\($0)" }.joined(separator: " ")
        let stat = "7 (a) b (c) S \(fields)"
        let system = "cpu 1 2\nbtime 1700000000\nprocesses 9\n"
        let status = try #require(
            ProcessStatus(stat: stat, system: system, ticksPerSecond: 100, pageBytes: 4096))
        #expect(status.cpuSeconds == 0.29 && status.threads == 20 && status.virtualBytes == 23)
        #expect(status.residentBytes == 24 * 4096 && status.startSeconds == 1_700_000_000.22)
        for (stat, system) in [("", system), ("7 (a) S 1 2", system), (stat, "cpu 1")] {
            #expect(ProcessStatus(stat: stat, system: system, ticksPerSecond: 100, pageBytes: 4096) == nil)
        }
    }

    @Test func `renders every kind in the text format of Prometheus, in a stable order`() {
        let histogram = metrics.histogram("perennial_wait_seconds", help: "Waits.", bounds: [0.5, 1])
        metrics.counter("perennial_requests_total", help: "Requests.", labels: ["code": "5xx"]).add(2)
        metrics.counter("perennial_requests_total", help: "Requests.", labels: ["code": "2xx"]).add()
        metrics.gauge("perennial_depth", help: "Depth.").set(-1.5)
        metrics.gauge("perennial_age_seconds", help: "Age.") { 7 }
        for value in [0.5, 0.50001, 1, 30] { histogram.observe(value) }
        #expect(
            text == """
                # HELP perennial_age_seconds Age.
                # TYPE perennial_age_seconds gauge
                perennial_age_seconds 7
                # HELP perennial_depth Depth.
                # TYPE perennial_depth gauge
                perennial_depth -1.5
                # HELP perennial_requests_total Requests.
                # TYPE perennial_requests_total counter
                perennial_requests_total{code="2xx"} 1
                perennial_requests_total{code="5xx"} 2
                # HELP perennial_wait_seconds Waits.
                # TYPE perennial_wait_seconds histogram
                perennial_wait_seconds_bucket{le="0.5"} 1
                perennial_wait_seconds_bucket{le="1"} 3
                perennial_wait_seconds_bucket{le="+Inf"} 4
                perennial_wait_seconds_sum 32.00001
                perennial_wait_seconds_count 4

                """)
    }

    @Test func `escapes what would end a label or a help text`() {
        metrics.gauge("perennial_x", help: "a\\b\r\nc\"", labels: ["v": "a\\b\r\nc\"d"]).set(1)
        #expect(
            text
                == "# HELP perennial_x a\\\\b\r\\nc\"\n# TYPE perennial_x gauge\nperennial_x{v=\"a\\\\b\r\\nc\\\"d\"} 1\n"
        )
    }

    @Test(
        arguments: [
            (Double.nan, "NaN"), (.infinity, "+Inf"), (-.infinity, "-Inf"), (1e300, "1e+300"), (0.1, "0.1"),
            (-0.0, "0"),
            (9_007_199_254_740_992, "9007199254740992.0"),
        ] as [(Double, String)])
    func `shows any number`(_ value: Double, _ shown: String) {
        metrics.gauge("perennial_x", help: "X.").set(value)
        #expect(text.hasSuffix("perennial_x \(shown)\n"))
    }

    @Test func `is accepted by Prometheus' own checker`() async throws {
        metrics.buildInfo(version: "1.2.3-\"quoted\"\\\n")
        metrics.counter("perennial_requests_total", help: "Requests.", labels: ["code": "2xx", "server": "admin"]).add()
        metrics.gauge("perennial_depth", help: "Depth with \\ and\nmore.").set(.infinity)
        metrics.histogram(
            "perennial_wait_seconds", help: "Waits.", bounds: Histogram.latencySeconds, labels: ["kind": "a"]
        ).observe(.milliseconds(3))
        // promtool is in the Debian package prometheus.
        let verdict = try await run("promtool", ["check", "metrics"], stdin: text)
        #expect(verdict.code == 0 && verdict.words == "", "\(verdict.words)")
    }

    @Test func `loses no addition of many threads`() async {
        let counter = metrics.counter("perennial_additions_total", help: "Additions.")
        let gauge = metrics.gauge("perennial_level", help: "Level.")
        let histogram = metrics.histogram("perennial_size_bytes", help: "Size.", bounds: [1, 10])
        await withTaskGroup { group in
            for _ in 0..<4 {
                group.addTask {
                    for _ in 0..<5000 {
                        counter.add(2)
                        gauge.add(1)
                        histogram.observe(5)
                    }
                }
            }
        }
        #expect(counter.value == 40_000)
        #expect(gauge.value == 20_000)
        #expect(text.contains("perennial_size_bytes_sum 100000\nperennial_size_bytes_count 20000\n"))
    }

    @Test func `gives the same object for the same name and labels`() {
        let one = metrics.counter("perennial_a_total", help: "A.", labels: ["k": "v"])
        #expect(one === metrics.counter("perennial_a_total", help: "A.", labels: ["k": "v"]))
        #expect(one !== metrics.counter("perennial_a_total", help: "A.", labels: ["k": "w"]))
    }

    @Test func `leaves a NaN out of a histogram`() {
        metrics.histogram("perennial_h", help: "H.", bounds: [1]).observe(.nan)
        #expect(text.contains("perennial_h_sum 0\nperennial_h_count 0\n"))
    }

    @Test func `traps on a name outside its namespace`() async {
        await #expect(processExitsWith: .failure) { _ = Metrics().gauge("other_depth", help: "X.") }
    }

    @Test func `traps on a name that Prometheus refuses`() async {
        await #expect(processExitsWith: .failure) { _ = Metrics().gauge("perennial_a-b", help: "X.") }
    }

    @Test func `traps on a counter that does not end in total`() async {
        await #expect(processExitsWith: .failure) { _ = Metrics().counter("perennial_a", help: "X.") }
    }

    @Test func `traps on a bad label`() async {
        await #expect(processExitsWith: .failure) {
            _ = Metrics().gauge("perennial_a", help: "X.", labels: ["a-b": "c"])
        }
    }

    @Test func `traps on one name with two types`() async {
        await #expect(processExitsWith: .failure) {
            let metrics = Metrics()
            _ = metrics.gauge("perennial_a_total", help: "X.")
            _ = metrics.counter("perennial_a_total", help: "X.")
        }
    }

    @Test func `traps on one name with two sets of labels`() async {
        await #expect(processExitsWith: .failure) {
            let metrics = Metrics()
            _ = metrics.gauge("perennial_a", help: "X.", labels: ["a": "1"])
            _ = metrics.gauge("perennial_a", help: "X.", labels: ["b": "1"])
        }
    }
}
