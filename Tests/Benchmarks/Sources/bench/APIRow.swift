// The read API: how much CPU time an answer costs its process, over connections that stay open.

import Contract
import Glibc
import KafkaTestKit
import Log
import MemoryLog
import Platform
import ReadAPI
import RocksStore
import Service
import Store
import Synchronization
import Telemetry

private let subscriptions = 100_000
private let connections = 16
private let questions = 60_000
private let rounds = 5
/// Answers per second of one core.
private let floor = 20_000.0

private let names = Names(prefix: TopicPrefix("bench")!, environment: .production)
private let partitions: Int32 = 12

/// A record of the usual length for a subscription.
private func record(_ id: String) -> [UInt8] {
    Array(
        """
        {"v":1,"originalTransactionId":"\(id)","environment":"Production","bundleId":"com.example.app",\
        "productId":"pro.yearly","type":"Auto-Renewable Subscription","subscriptionGroupIdentifier":"21430000",\
        "appAccountToken":"\(token(of: id))","ownership":"PURCHASED","entitlements":["premium"],"state":"active",\
        "reason":null,"access":true,"accessUntil":1990000000000,"since":1760000000000,"autoRenew":true,\
        "pendingProductId":null,"pendingBillingPlan":null,"priceConsent":null,"billingPlan":"BILLED_UPFRONT",\
        "commitment":null,"graceUntil":null,"retry":null,"offer":null,"introOfferUsed":true,"price":9990,\
        "currency":"USD","renewsAt":1790000000000,"renewalPrice":9990,\
        "runs":[{"start":1760000000000,"end":1790000000000}],"runsTruncated":false,"sequence":17,\
        "asOf":1771000000420,"cause":null}
        """.utf8)
}

private func id(_ number: Int) -> String { "\(2_000_000_000_000_000 + number)" }
private func token(of id: String) -> String { "7d6f1d1e-0000-4000-8000-\(id.suffix(12))" }

/// Serves until it is killed. This is the process whose CPU time is measured.
func serveAPI() throws -> Never {
    let log = MemoryLog()
    let topics: [TopicID] = [.entitlements, .accounts, .churnCells, .consumption, .entitlementEvents, .notifications]
    let deadline = Deadline(after: .seconds(60))
    try log.create(
        topics.map {
            NewTopic(
                names.topic($0), partitions: partitions,
                isCompacted: TopicCatalogue.definition($0).retention == .lastOfKey)
        }, by: deadline)
    let writer = try log.openWriter(WriterOptions(name: "bench", topics: topics.map { names.topic($0) }))
    for first in stride(from: 0, to: subscriptions, by: 1000) {
        let batch = OutputBatch()
        for number in first..<first + 1000 {
            let id = id(number)
            for (topic, key, subject, type) in [
                (0, id, id, "entitlement"), (1, "\(token(of: id))|\(id)", token(of: id), "account"),
            ] {
                batch.append(
                    topic: topic, partition: Partitioner.partition(of: Array(subject.utf8), count: partitions),
                    timestamp: 1_771_000_000_420, key: Array(key.utf8), value: record(id),
                    headers: [RecordHeader("schema", "\(type)/1")])
            }
        }
        _ = try writer.append(batch, by: deadline)
    }
    let scratch = try ScratchDirectory("bench-api")
    let health = Health()
    let service = ReadAPIService(
        .init(
            [.init(names, try RocksStores(directory: scratch.path, cache: StoreCache(bytes: 256 << 20)))],
            partitions: Int(partitions), listen: ListenAddress("127.0.0.1:0")!, tokens: ["secret"]), log: log,
        health: health, metrics: Metrics(), logger: Logger(level: .warning))
    for part in service.parts { try part.start { _ in } }
    while !health.readiness.isHealthy { pause(for: .milliseconds(50)) }
    printData("port \(service.address?.port ?? 0)")
    while true { pause(for: .seconds(3600)) }
}

private func startServer() async throws -> (process: ChildProcess, port: UInt16) {
    let command = measuredCore + [try productPath("bench"), "run", "api-server"]
    let server = try ChildProcess(command[0], Array(command.dropFirst()))
    try await server.waitUntilPrinted("port ", within: .seconds(120))
    let line = server.standardOutput.split(separator: "\n").first { $0.hasPrefix("port ") }
    guard let port = line.flatMap({ UInt16($0.dropFirst(5)) }) else {
        throw APIFault(description: "the server printed no port")
    }
    return (server, port)
}

/// CPU microseconds of an answer about an account, which costs more than one about a subscription; the second of two rounds.
func measureQuestionTime() async throws -> Double {
    let (server, port) = try await startServer()
    var microseconds = Double.nan
    for _ in 0...1 {
        let before = try cpuSeconds(server.processID)
        try await onThread { try ask(port) { "/v1/accounts/\(token(of: id($0)))" } }
        microseconds = (try cpuSeconds(server.processID) - before) / Double(questions) * 1e6
    }
    server.killNow()
    return microseconds
}

func measureAPI(_ report: inout Report) async throws {
    let (server, port) = try await startServer()
    report.note(
        "CPU time of the process (/proc/PID/stat) per answer; \(subscriptions) subscriptions in RocksDB, "
            + "\(connections) kept connections, every id as likely as any other")
    for (name, path) in [
        ("api-subscription", { @Sendable (number: Int) in "/v1/subscriptions/\(id(number))" }),
        ("api-account", { @Sendable (number: Int) in "/v1/accounts/\(token(of: id(number)))" }),
    ] {
        var microseconds: [Double] = []
        // The first round fills the caches.
        for round in 0...rounds {
            let before = try cpuSeconds(server.processID)
            try await onThread { try ask(port, path) }
            let spent = (try cpuSeconds(server.processID) - before) / Double(questions) * 1e6
            if round > 0 { microseconds.append(spent) }
        }
        let rate = 1e6 / median(microseconds)
        report.judge(
            name, "\(figures(microseconds)) us per answer, \(decimals(rate))/s per core", ratio: rate / floor,
            .atLeast(1))
    }
}

/// User and system time together.
func cpuSeconds(_ process: Int32) throws -> Double {
    let text = String(decoding: try readFile("/proc/\(process)/stat", limitBytes: 1 << 16), as: UTF8.self)
    // The name of the program, in parentheses, may contain anything.
    let fields = text.split(separator: ")").last.map { $0.split(separator: " ") } ?? []
    guard fields.count > 12, let user = Double(fields[11]), let system = Double(fields[12]) else { return .nan }
    return (user + system) / Double(sysconf(Int32(_SC_CLK_TCK)))
}

// MARK: The client

private struct APIFault: Error, CustomStringConvertible {
    let description: String
}

/// Every connection always has a request in flight, so the server always finds work.
private func ask(_ port: UInt16, _ path: (Int) -> String) throws {
    var sockets: [Int32] = []
    defer { for socket in sockets { close(socket) } }
    for _ in 0..<connections { sockets.append(try connect(port)) }
    var next: UInt64 = 1
    var asked = 0
    func send(_ socket: Int32) throws {
        // Visits all numbers in a scattered order.
        next = next &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
        let request = Array(
            """
            GET \(path(Int(next >> 33) % subscriptions)) HTTP/1.1\r\nHost: localhost\r\nUser-Agent: bench\r\n\
            Accept: application/json\r\nAuthorization: Bearer secret\r\n\r\n
            """.utf8)
        guard Glibc.send(socket, request, request.count, Int32(MSG_NOSIGNAL)) == request.count else {
            throw APIFault(description: "the server closed a connection")
        }
        asked += 1
    }
    for socket in sockets { try send(socket) }
    var buffer = [UInt8](repeating: 0, count: 64 << 10)
    var answered = 0
    var polled = sockets.map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
    while answered < questions {
        guard poll(&polled, nfds_t(polled.count), 10_000) > 0 else { throw APIFault(description: "no answer in 10 s") }
        for index in polled.indices where polled[index].revents != 0 {
            // Head and body may arrive separately; each of them, of a kilobyte or two over loopback, arrives in one piece.
            let count = recv(polled[index].fd, &buffer, buffer.count, 0)
            guard count > 0 else { throw APIFault(description: "the server closed a connection") }
            let isHead = buffer.starts(with: "HTTP/".utf8)
            guard !isHead || buffer[9..<12].elementsEqual("200".utf8) else {
                throw APIFault(
                    description: "not an answer of 200: \(String(decoding: buffer[..<count], as: UTF8.self))")
            }
            guard buffer[count - 1] == UInt8(ascii: "}") else { continue }
            answered += 1
            if asked < questions { try send(polled[index].fd) }
        }
    }
}

private func connect(_ port: UInt16) throws -> Int32 {
    let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
    let result = withUnsafePointer(to: &address) { pointer in
        pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
            Glibc.connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
        }
    }
    guard result == 0 else { throw APIFault(description: "the server accepts no connection") }
    var on: Int32 = 1
    setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &on, socklen_t(MemoryLayout<Int32>.size))
    return descriptor
}
