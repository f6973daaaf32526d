import KafkaTestKit
import Log
import Platform
import RDKafkaTestKit
import Testing

@testable import Kafka

/// The Kafka log as far as the mock supports it. What depends on transactions is tested on a real broker.
extension `On the mock cluster` {
    /// A session that reads `in` and writes `out`.
    private func withSession(
        _ properties: [(String, String)] = [], readAheadBytes: Int? = nil,
        _ body: @escaping @Sendable (MockCluster, any LogSession, RecordBatch) throws -> Void
    ) async throws {
        try await withCluster { cluster in
            var all = ClientProperties(bootstrapServers: cluster.bootstrapServers)
            for (name, value) in properties { all.set(name, value) }
            var options = SessionOptions(group: "g", identity: "g.0-0", inputs: ["in"], outputs: ["out"])
            if let readAheadBytes { options.readAheadBytes = readAheadBytes }
            let session = try KafkaLog(all).openSession(options, by: Deadline(after: soon))
            try body(cluster, session, RecordBatch())
            #expect(session.close(by: Deadline(after: soon)))
        }
    }

    private func log(_ cluster: MockCluster) -> KafkaLog {
        KafkaLog(ClientProperties(bootstrapServers: cluster.bootstrapServers))
    }

    private static let inputs = (0..<4).map { TopicPartition("in", $0) }
    private static let beginnings = Dictionary(uniqueKeysWithValues: inputs.map { ($0, NextOffset(0)) })

    private func outputs(_ count: Int, partition: Int32 = 0) -> OutputBatch {
        let outputs = OutputBatch()
        for number in 0..<count {
            outputs.append(
                topic: 0, partition: partition, timestamp: 1_771_000_000_000, key: nil,
                value: Array(String(number).utf8))
        }
        return outputs
    }

    // MARK: Fetching

    /// By itself librdkafka looks after a second whether its queue has room again.
    @Test func `a session that is slower than its fetches does not wait for them`() async throws {
        // The queue has room for a thousand records, and a fetch brings some hundred.
        try await withSession([("fetch.message.max.bytes", "20000")], readAheadBytes: 1) { cluster, session, batch in
            var writing = ClientProperties(bootstrapServers: cluster.bootstrapServers)
            writing.set("batch.num.messages", "200")
            writing.set("queue.buffering.max.messages", "100000")
            try fill("in", partitions: 1, records: 60_000, writing)
            guard case .assigned = try session.poll(into: batch, limit: 10, wait: soon) else {
                Issue.record("no assignment")
                return
            }
            try session.take(Self.beginnings, paused: [])
            var (read, start) = (0, ContinuousClock.now)
            while read < 60_000 {
                let event = try session.poll(into: batch, limit: 250, wait: soon)
                try #require(event == .records)
                if read == 0 { start = .now }
                read += batch.count
                pause(for: .milliseconds(2))
            }
            let duration = start.duration(to: .now)
            #expect(duration < .seconds(30), "\(duration)")
        }
    }

    // MARK: Rebalances as values

    @Test func `an assignment ends a long wait, and its answer chooses where to start`() async throws {
        try await withSession { cluster, session, batch in
            try fill("in", partitions: 1, records: 5, ClientProperties(bootstrapServers: cluster.bootstrapServers))
            let start = ContinuousClock.now
            #expect(try session.poll(into: batch, limit: 10, wait: soon) == .assigned(Self.inputs))
            // The mock assigns partitions after three seconds.
            #expect(start.duration(to: .now) < soon / 2)
            var starts = Self.beginnings
            starts[Self.inputs[0]] = NextOffset(3)
            try session.take(starts, paused: [])
            #expect(session.position(of: Self.inputs[0]) == NextOffset(3))
            #expect(try session.poll(into: batch, limit: 10, wait: soon) == .records)
            #expect(batch[0].offset == 3)
            #expect(batch[0].topic == 0)
        }
    }

    @Test func `an assignment comes again until it has its answer`() async throws {
        try await withSession { _, session, batch in
            #expect(try session.poll(into: batch, limit: 10, wait: soon) == .assigned(Self.inputs))
            #expect(try session.poll(into: batch, limit: 10, wait: soon) == .assigned(Self.inputs))
            try session.take(Self.beginnings, paused: Set(Self.inputs))
            #expect(try session.poll(into: batch, limit: 10, wait: .zero) == .nothing)
        }
    }

    @Test func `an answer nobody has asked for, or without a start, breaks the rules`() async throws {
        try await withSession { _, session, batch in
            func cause(_ body: () throws(LogFault) -> Void) -> LogFault.Cause? {
                do throws(LogFault) {
                    try body()
                    return nil
                } catch {
                    return error.cause
                }
            }
            #expect(cause { () throws(LogFault) in try session.take([:], paused: []) } == .misuse)
            #expect(cause { () throws(LogFault) in try session.giveBack() } == .misuse)
            _ = try session.poll(into: batch, limit: 10, wait: soon)
            #expect(cause { () throws(LogFault) in try session.take([:], paused: []) } == .misuse)
            try session.take(Self.beginnings, paused: [])
            #expect(cause { () throws(LogFault) in try session.take(Self.beginnings, paused: []) } == .misuse)
        }
    }

    @Test func `a session closes with an assignment that has no answer`() async throws {
        try await withSession { _, session, batch in
            let event = try session.poll(into: batch, limit: 10, wait: soon)
            #expect(event == .assigned(Self.inputs))
            let start = ContinuousClock.now
            #expect(session.close(by: Deadline(after: soon)))
            #expect(start.duration(to: .now) < soon / 2)
        }
    }

    @Test(arguments: ["in", "out"])
    func `a session whose owner counts other partitions is not opened`(_ wrong: String) async throws {
        try await withCluster { cluster in
            try cluster.createTopic("counted", partitions: 3)
            let names = (inputs: wrong == "in" ? "counted" : "in", outputs: wrong == "out" ? "counted" : "out")
            var options = SessionOptions(
                group: "g", identity: "g.0-0", inputs: [names.inputs], outputs: [names.outputs])
            options.partitions = 4
            #expect(throws: LogFault.partitions(of: "counted", are: 3, not: 4)) {
                try log(cluster).openSession(options, by: Deadline(after: soon)).close(by: Deadline(after: soon))
            }
        }
    }

    // MARK: Lending

    @Test func `a session takes back what it has lent before it closes`() async throws {
        try await withSession { cluster, session, batch in
            try fill("in", partitions: 2, records: 50, ClientProperties(bootstrapServers: cluster.bootstrapServers))
            _ = try session.poll(into: batch, limit: 10, wait: soon)
            try session.take(Self.beginnings, paused: [])
            #expect(try session.poll(into: batch, limit: 10, wait: soon) == .records)
            #expect(!batch.isEmpty && batch.count <= 10)
            #expect(session.close(by: Deadline(after: soon)))
            #expect(batch.isEmpty)
        }
    }

    @Test func `a lent record has its nulls, its empties and its headers`() async throws {
        try await withCluster { cluster in
            let writer = try log(cluster).openWriter(WriterOptions(name: "w", topics: ["out", "in"]))
            let outputs = OutputBatch()
            let headers = [
                RecordHeader("a", "1"), RecordHeader("a", [0, 255]), RecordHeader("none", nil),
                RecordHeader("empty", ""), RecordHeader("", "x"),
            ]
            outputs.append(topic: 1, partition: 2, timestamp: 7, key: nil, value: nil, headers: headers)
            outputs.append(topic: 1, partition: 2, timestamp: 8, key: [], value: [])
            outputs.append(topic: 0, partition: 2, timestamp: 9, key: [0], value: [1, 2])
            #expect(try writer.append(outputs, by: Deadline(after: soon)) == [0, 1, 0])
            #expect(writer.close(by: Deadline(after: soon)))

            let reader = try log(cluster).openReader(ReaderOptions(name: "r", group: "r", topics: ["in", "out"]))
            try reader.read(from: [TopicPartition("in", 2): NextOffset(0), TopicPartition("out", 2): NextOffset(0)])
            var seen: [[String]] = []
            let batch = RecordBatch()
            let deadline = Deadline(after: soon)
            while seen.count < 3 && !deadline.hasPassed {
                try reader.poll(into: batch, limit: 10, wait: .seconds(1))
                for index in 0..<batch.count {
                    let record = batch[index]
                    let bytes = [record.copyOfKey(), record.copyOfValue()].map { $0.map { "\($0)" } ?? "null" }
                    seen.append(["\(record.topic)", "\(record.timestamp)"] + bytes)
                    guard record.timestamp == 7 else { continue }
                    #expect(record.headers == headers)
                    func last(_ name: StaticString) -> [UInt8]? {
                        guard let value = record.header(name) else { return nil }
                        return value.withUnsafeBytes { [UInt8]($0) }
                    }
                    #expect(last("a") == [0, 255])
                    #expect(last("none") == nil)
                    #expect(last("empty") == [])
                    #expect(last("other") == nil)
                }
            }
            let expected = [["0", "7", "null", "null"], ["0", "8", "[]", "[]"], ["1", "9", "[0]", "[1, 2]"]]
            #expect(seen.sorted { $0[1] < $1[1] } == expected)
            #expect(reader.close(by: Deadline(after: soon)))
        }
    }

    // MARK: Writing

    @Test func `a transaction longer than the queue is written whole, and its end is told`() async throws {
        try await withSession([("queue.buffering.max.messages", "10")]) { _, session, _ in
            try session.append(outputs(1_000, partition: 1))
            try session.commit([:])
            #expect(session.appendedEnd(topic: 0, partition: 1) == NextOffset(1_000))
            #expect(session.appendedEnd(topic: 0, partition: 0) == nil)
            #expect(session.appendedEnd(topic: 0, partition: 9) == nil)
            // Only of the last commit, not of an aborted transaction.
            try session.append(outputs(1, partition: 1))
            try session.abort()
            #expect(session.appendedEnd(topic: 0, partition: 1) == NextOffset(1_000))
            try session.append(outputs(1))
            try session.commit([:])
            #expect(session.appendedEnd(topic: 0, partition: 1) == nil)
            #expect(session.appendedEnd(topic: 0, partition: 0) != nil)
        }
    }

    @Test func `a commit of positions alone asks the group, and one of nothing asks nobody`() async throws {
        try await withSession { cluster, session, batch in
            _ = try session.poll(into: batch, limit: 10, wait: soon)
            try session.take(Self.beginnings, paused: [])
            cluster.fail(.transactionOffsetCommit, with: [.illegalGeneration])
            try session.commit([:])
            let fault = logFault { () throws(LogFault) in try session.commit(Self.beginnings) }
            #expect(fault?.remedy == .rewind)
            #expect(fault?.cause == .generation)
            try session.abort()
            try session.commit(Self.beginnings)
        }
    }

    @Test func `a position of a partition that is not owned is not committed`() async throws {
        try await withSession { _, session, batch in
            try session.append(outputs(1))
            let early = logFault { () throws(LogFault) in try session.commit(Self.beginnings) }
            #expect(early?.remedy == .rewind)
            #expect(early?.cause == .generation)
            try session.abort()
            _ = try session.poll(into: batch, limit: 10, wait: soon)
            try session.take(Self.beginnings, paused: [])
            try session.commit(Self.beginnings)
        }
    }

    @Test func `a fenced session says whose identity is in use, and that it has ended`() async throws {
        try await withSession { cluster, session, _ in
            cluster.fail(.endTransaction, with: [KafkaCode(rawValue: 90)])
            try session.append(outputs(1))
            let fault = logFault { () throws(LogFault) in try session.commit([:]) }
            #expect(fault?.remedy == .rebuild)
            #expect(fault?.cause == .fenced)
            #expect(fault?.words.contains("g.0-0") == true && fault?.words.contains("worker.slot") == true)
            #expect(logFault { () throws(LogFault) in try session.append(outputs(1)) } == fault)
            #expect(logFault { () throws(LogFault) in try session.abort() } == fault)
        }
    }

    @Test func `a record that the broker refuses stops a session, with the reason`() async throws {
        try await withSession { cluster, session, _ in
            cluster.fail(.produce, with: [.invalidTimestamp])
            try session.append(outputs(1))
            let fault = logFault { () throws(LogFault) in try session.commit([:]) }
            #expect(fault?.remedy == .stop)
            #expect(fault?.cause == .timestampAhead)
            #expect(fault?.words.contains("clock") == true)
        }
    }

    @Test func `a writer goes on after a record that was refused`() async throws {
        try await withCluster { cluster in
            let writer = try log(cluster).openWriter(WriterOptions(name: "w", topics: ["out"]))
            cluster.fail(.produce, with: [.invalidTimestamp])
            let fault = logFault { () throws(LogFault) in
                _ = try writer.append(outputs(1), by: Deadline(after: soon))
            }
            #expect(fault?.cause == .timestampAhead)
            #expect(try writer.append(outputs(2), by: Deadline(after: soon)) == [0, 1])
            #expect(writer.close(by: Deadline(after: soon)))
        }
    }

    @Test func `a writer tells that its time is over`() async throws {
        try await withCluster { cluster in
            let writer = try log(cluster).openWriter(WriterOptions(name: "w", topics: ["out"]))
            _ = try writer.append(outputs(1), by: Deadline(after: soon))
            cluster.fail(.produce, with: Array(repeating: .transport, count: 1_000))
            let fault = logFault { () throws(LogFault) in
                _ = try writer.append(outputs(1), by: Deadline(after: .milliseconds(300)))
            }
            #expect(fault?.remedy == .retrySameCall)
            #expect(fault?.cause == .timedOut)
            #expect(writer.close(by: Deadline(after: soon)))
        }
    }
}

/// The fault that `body` throws; nil, and a failed test, if it throws none.
func logFault(in body: () throws(LogFault) -> Void) -> LogFault? {
    do throws(LogFault) {
        try body()
        Issue.record("no fault where one was expected")
        return nil
    } catch {
        return error
    }
}

@Suite struct `A fault of the log` {
    struct Case: Sendable, CustomTestStringConvertible {
        var remedy: KafkaFault.Remedy
        var code: KafkaCode
        var expected: LogFault.Remedy
        var cause: LogFault.Cause
        var testDescription: String { "\(remedy) \(code)" }

        init(_ remedy: KafkaFault.Remedy, _ code: Int32, _ expected: LogFault.Remedy, _ cause: LogFault.Cause) {
            self.remedy = remedy
            self.code = KafkaCode(rawValue: code)
            self.expected = expected
            self.cause = cause
        }
    }

    @Test(arguments: [
        Case(.abortTransaction, 22, .rewind, .generation), Case(.abortTransaction, 25, .rewind, .generation),
        Case(.abortTransaction, 27, .rewind, .generation), Case(.rebuildClient, -144, .rebuild, .fenced),
        // The member's fencing is reported as a transaction to abort: reading again would not bring the identity back.
        Case(.abortTransaction, 82, .rebuild, .fenced), Case(.rebuildClient, 82, .rebuild, .fenced),
        Case(.rebuildClient, 90, .rebuild, .fenced), Case(.stopProcess, 1, .stop, .positionGone),
        Case(.stopProcess, -140, .stop, .positionGone), Case(.stopProcess, 3, .stop, .unknownTopic),
        Case(.retrySameCall, -190, .stop, .unknownTopic), Case(.retrySameCall, -185, .retrySameCall, .timedOut),
        Case(.rebuildClient, -185, .rebuild, .timedOut), Case(.abortTransaction, -192, .rewind, .timedOut),
        Case(.abortTransaction, 10, .stop, .tooLarge), Case(.abortTransaction, 32, .stop, .timestampAhead),
        Case(.stopProcess, 29, .stop, .forbidden), Case(.retrySameCall, -195, .retrySameCall, .other),
    ])
    func `says what to do and why`(_ example: Case) {
        let fault = LogFault(KafkaFault(example.remedy, example.code, operation: "commit"))
        #expect(fault.remedy == example.expected)
        #expect(fault.cause == example.cause)
    }
}
