import Contract
import HTTPClient
import HTTPTestKit
import KafkaTestKit
import Log
import LogTestKit
import MemoryLog
import Platform
import Service
import Store
import Synchronization
import Telemetry
import Testing

@testable import ReadAPI

/// Each part may have a question to Kafka that nobody answers. A service that stops one part after the other would wait
/// for one question after the other.
@Suite struct `A read API that is about to stop` {
    private let log = BrokenLog(MemoryLog(clock: .manual()))
    private let health = Health()

    @Test func `asks Kafka nothing more, but answers until it is stopped`() async throws {
        let rig = try Rig(memory: log.memory)
        try rig.write(.subscription(Record()))
        let service = ReadAPIService(
            .init(
                [.init(rig.names, MemoryStores())], partitions: Int(rig.partitions),
                listen: ListenAddress("127.0.0.1:0")!, tokens: []),
            log: log, health: health, metrics: Metrics(), logger: Logger { _ in })
        for part in service.parts { try part.start { _ in } }
        defer { for part in service.parts.reversed() { try? part.stop(by: soon) } }
        let asked = Asked()
        log.atEnds = { asked.add() }
        try await waitUntil("it answers, and asks Kafka again and again", within: patience) {
            health.readiness.isHealthy && asked.count > 4
        }

        for part in service.parts { part.stopIsNear() }
        try await waitUntil("nobody has read or asked for two seconds", within: patience) {
            log.faultOnce = LogFault(.retrySameCall, .timedOut, "somebody reads")
            let before = asked.count
            try await Task.sleep(for: .seconds(2))
            return log.faultOnce != nil && asked.count == before
        }
        let answer = try await blocking { [address = try #require(service.address)] in
            let client = try HTTPClient()
            defer { client.close() }
            return try client.answer(to: .init("GET", "http://\(address)/v1/subscriptions/\(Record().id)"))
        }
        #expect(answer.status == 200, "\(String(decoding: answer.body, as: UTF8.self))")
    }

    private final class Asked: Sendable {
        private let number = Mutex(0)
        var count: Int { number.withLock { $0 } }
        func add() { number.withLock { $0 += 1 } }
    }
}
