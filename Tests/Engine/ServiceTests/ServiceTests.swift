import Foundation
import Glibc
import KafkaTestKit
import Testing

@Suite(.serialized) struct `A service` {
    @Test func `is live at once, ready when every part has started, and says why it is not`() async throws {
        let probe = try ProbeProcess("stuck", stopDeadlineMilliseconds: 500)
        let port = try await probe.waitUntilListening()
        #expect(try await get(port, "/livez") == (200, #"{"status":"ok"}"#))
        let ready = try await get(port, "/readyz")
        #expect(ready.status == 503)
        #expect(ready.body == #"{"status":"unavailable","reasons":[{"condition":"service","reason":"starting"}]}"#)
        // A part that never becomes ready does not prevent stopping.
        probe.signal(SIGTERM)
        #expect(try await probe.exitCode(within: .seconds(5)) == 3)
        #expect(probe.log.contains(#""waited_for":"worker""#))
    }

    @Test func `shows metrics that Prometheus' own checker accepts`() async throws {
        let probe = try ProbeProcess("quick")
        let port = try await probe.waitUntilReady()
        let metrics = try await get(port, "/metrics")
        #expect(metrics.status == 200)
        #expect(metrics.body.contains(#"perennial_build_info{version="0.0.0-probe"} 1"#))
        #expect(metrics.body.contains(#"perennial_http_requests_total{server="admin",code="2xx"}"#))
        let verdict = try await run("promtool", ["check", "metrics"], stdin: metrics.body + "\n")
        #expect(verdict.code == 0 && verdict.words == "", "\(verdict.words)")
        #expect(try await get(port, "/other").status == 404)
        probe.signal(SIGTERM)
        #expect(try await probe.exitCode(within: .seconds(5)) == 0)
    }

    /// Probes and scrapers have other addresses than an attacker who wants to silence it.
    @Test func `does not give all its places to one client`() async throws {
        let probe = try ProbeProcess("quick")
        let port = try await probe.waitUntilReady()
        let sockets = try (0..<20).map { _ in try beginRequest(from: "127.0.0.2", to: port) }
        defer { for socket in sockets { close(socket) } }
        try await waitUntil("four of twenty are not admitted") {
            try await get(port, "/metrics").body
                .contains(#"perennial_http_refused_total{server="admin",cause="not_admitted"} 4"#)
        }
        probe.signal(SIGTERM)
        #expect(try await probe.exitCode(within: .seconds(5)) == 0)
    }

    /// A connection on which a head has begun; the caller closes it.
    private func beginRequest(from source: String, to port: UInt16) throws -> Int32 {
        func address(_ text: String, _ port: UInt16) -> sockaddr_in {
            var address = sockaddr_in()
            address.sin_family = sa_family_t(AF_INET)
            address.sin_port = port.bigEndian
            address.sin_addr.s_addr = inet_addr(text)
            return address
        }
        func apply(_ address: sockaddr_in, _ body: (__CONST_SOCKADDR_ARG, socklen_t) -> Int32) -> Bool {
            let size = socklen_t(MemoryLayout<sockaddr_in>.size)
            return withUnsafePointer(to: address) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    body(__CONST_SOCKADDR_ARG(__sockaddr__: $0), size)
                }
            } == 0
        }
        let socket = Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        let isConnected =
            apply(address(source, 0)) { bind(socket, $0, $1) }
            && apply(address("127.0.0.1", port)) { connect(socket, $0, $1) }
        try #require(isConnected)
        let head = Array("GET /livez HTTP/1.1\r\nHost: s".utf8)
        _ = send(socket, head, head.count, Int32(MSG_NOSIGNAL))
        return socket
    }

    @Test(arguments: [SIGTERM, SIGINT])
    func `stops in reverse order at a signal and exits 0`(_ signal: Int32) async throws {
        let probe = try ProbeProcess("quick")
        _ = try await probe.waitUntilReady()
        probe.signal(signal)
        #expect(try await probe.exitCode(within: .seconds(5)) == 0)
        #expect(probe.output.hasSuffix("stop worker\nstop announcement\n"))
    }

    @Test func `ends a part that no other part needs while it stops the others`() async throws {
        let probe = try ProbeProcess("alone", stopDeadlineMilliseconds: 4000)
        _ = try await probe.waitUntilReady()
        probe.signal(SIGTERM)
        #expect(try await probe.exitCode(within: .seconds(8)) == 0)
    }

    @Test func `is not ready but live while it stops`() async throws {
        let probe = try ProbeProcess("never", stopDeadlineMilliseconds: 4000)
        let port = try await probe.waitUntilReady()
        probe.signal(SIGTERM)
        try await probe.waitUntilPrinted("stop worker")
        let ready = try await get(port, "/readyz")
        #expect(ready.status == 503 && ready.body.contains(#"{"condition":"service","reason":"stopping"}"#))
        #expect(try await get(port, "/livez").status == 200)
    }

    @Test func `waits for a part that takes its time`() async throws {
        let probe = try ProbeProcess("slow")
        _ = try await probe.waitUntilReady()
        let begin = ContinuousClock.now
        probe.signal(SIGTERM)
        #expect(try await probe.exitCode(within: .seconds(8)) == 0)
        #expect(begin.duration(to: .now) > .milliseconds(380))
    }

    @Test func `exits 3 at its deadline and names the part that does not stop`() async throws {
        let probe = try ProbeProcess("never", stopDeadlineMilliseconds: 700)
        _ = try await probe.waitUntilReady()
        let begin = ContinuousClock.now
        probe.signal(SIGTERM)
        #expect(try await probe.exitCode(within: .seconds(8)) == 3)
        let took = begin.duration(to: .now)
        #expect(took > .milliseconds(680) && took < .seconds(8), "\(took)")
        #expect(probe.log.contains(#""waited_for":"worker","not_stopped":"worker, announcement, admin""#))
    }

    @Test func `exits 3 at once at a second signal`() async throws {
        let probe = try ProbeProcess("never", stopDeadlineMilliseconds: 60_000)
        _ = try await probe.waitUntilReady()
        probe.signal(SIGTERM)
        try await probe.waitUntilPrinted("stop worker")
        probe.signal(SIGINT)
        #expect(try await probe.exitCode(within: .seconds(5)) == 3)
        #expect(probe.log.contains("second signal"))
    }

    /// A log that nobody reads any more: every line blocks the writing thread.
    @Test(arguments: [(60_000, 2), (700, 1)])
    func `exits 3 at a second signal and at its deadline also when its log is stuck`(
        _ deadlineMilliseconds: Int, _ signals: Int
    ) async throws {
        let directory = try ScratchDirectory("perennial-service")
        let pipe = directory.path + "/errors"
        let probe = try ProbeProcess("never", stopDeadlineMilliseconds: deadlineMilliseconds, errors: pipe)
        _ = try await probe.waitUntilReady()
        let descriptor = open(pipe, O_WRONLY | O_NONBLOCK)
        defer { close(descriptor) }
        try #require(descriptor >= 0)
        let zeros = [UInt8](repeating: 0, count: 4096)
        while write(descriptor, zeros, zeros.count) > 0 {}
        while write(descriptor, zeros, 1) > 0 {}
        probe.signal(SIGTERM)
        try await probe.waitUntilPrinted("stop worker")
        if signals == 2 { probe.signal(SIGINT) }
        #expect(try await probe.exitCode(within: .seconds(8)) == 3)
    }

    @Test(arguments: [
        ("fail", "the disk is full", "stop worker\nstop announcement\n"),
        ("ends", "stopped unexpectedly", "stop worker\nstop announcement\n"),
    ])
    func `stops the others and exits 3 when a part fails, and says why`(
        _ behaviour: String, _ reason: String, _ order: String
    ) async throws {
        let probe = try ProbeProcess(behaviour)
        _ = try await probe.waitUntilReady()
        probe.signal(SIGHUP)
        #expect(try await probe.exitCode(within: .seconds(5)) == 3)
        #expect(probe.log.contains(#""reason":"\#(reason)""#), "\(probe.log)")
        #expect(probe.output.hasSuffix(order))
    }

    /// A process that cannot run must not join anything first, because others would make room for it.
    @Test func `exits 3 before any part starts when one lacks what another process has`() async throws {
        let probe = try ProbeProcess("taken")
        #expect(try await probe.exitCode(within: .seconds(5)) == 3)
        #expect(probe.output.isEmpty && probe.log.contains("the port is taken"), "\(probe.output)\(probe.log)")
    }

    @Test func `exits 3 when a part cannot start, and stops those that have`() async throws {
        let probe = try ProbeProcess("refuse")
        #expect(try await probe.exitCode(within: .seconds(5)) == 3)
        #expect(probe.log.contains(#""part":"worker","reason":"no store at /nowhere""#))
        #expect(probe.output.hasSuffix("stop announcement\n") && !probe.output.contains("stop worker"))
    }

    @Test func `exits 3 when a part does not stop cleanly, after the others have`() async throws {
        let probe = try ProbeProcess("unclean")
        _ = try await probe.waitUntilReady()
        probe.signal(SIGTERM)
        #expect(try await probe.exitCode(within: .seconds(5)) == 3)
        #expect(probe.log.contains("the last commit was refused"))
        #expect(probe.output.hasSuffix("stop announcement\n"))
    }

    @Test func `ends with 0 when its owner says that it is over, without a signal`() async throws {
        let probe = try ProbeProcess("over")
        _ = try await probe.waitUntilReady()
        probe.signal(SIGHUP)
        #expect(try await probe.exitCode(within: .seconds(5)) == 0)
        #expect(probe.output.hasSuffix("stop worker\nstop announcement\n"))
    }

    @Test func `reloads at SIGHUP and goes on`() async throws {
        let probe = try ProbeProcess("quick")
        let port = try await probe.waitUntilReady()
        for round in 1...3 {
            probe.signal(SIGHUP)
            try await waitUntil("reload \(round)") {
                probe.output.split(separator: "\n").count { $0 == "reload" } == round
            }
        }
        #expect(try await get(port, "/metrics").body.contains("perennial_probe_reloads_total 3\n"))
        probe.signal(SIGTERM)
        #expect(try await probe.exitCode(within: .seconds(5)) == 0)
    }

    @Test func `logs one JSON object a line`() async throws {
        let probe = try ProbeProcess("slow")
        _ = try await probe.waitUntilReady()
        probe.signal(SIGTERM)
        #expect(try await probe.exitCode(within: .seconds(8)) == 0)
        let lines = probe.log.split(separator: "\n")
        #expect(lines.count >= 4)
        for line in lines {
            let object = try #require(JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
            #expect(object["time"] != nil && object["level"] != nil && object["message"] != nil)
        }
    }
}
