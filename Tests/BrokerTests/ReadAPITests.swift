import JSON
import Kafka
import KafkaTestKit
import Log
import Platform
import Testing

extension RealBroker {
    @Suite(.serialized) struct `The read API` {
        @Test func `shows what is committed and nothing else, also after kill -9, and builds a lost copy again`()
            async throws
        {
            let installation = try await Installation.make("api", try await Broker.shared(), partitions: 3)
            let writer = try await blocking { try RecordWriter(installation) }
            defer { writer.close() }
            let account = "7d6f1d1e-0000-4000-8000-00000000000a"
            try await blocking {
                try writer.commit { transaction in
                    for number in 0..<300 { try transaction.tell("\(number)", account: account, sequence: 1) }
                }
                try writer.abort { try $0.tell("0", account: account, sequence: 2) }
                try writer.commit { try $0.tell("1", account: account, sequence: 2) }
            }
            let folder = try ScratchDirectory("api")
            var api = try APIProcess(installation, folder)
            try await api.service.waitUntilReady()
            #expect(try await api.sequence(of: "0") == 1)
            #expect(try await api.sequence(of: "1") == 2)
            #expect(try await api.purchases(of: account).count == 300)

            // An open transaction: nobody sees its records, and answers do not wait for it.
            try await blocking { try writer.begin { try $0.tell("2", account: account, sequence: 9) } }
            api.service.process.killNow()
            _ = try await api.service.process.wait()
            api = try APIProcess(installation, folder)
            try await api.service.waitUntilReady()
            #expect(try await api.sequence(of: "2") == 1)
            // It continued where it had stopped: of the 602 records it read only the few after its saved offset.
            let read = try await api.service.metric(#"perennial_api_records_total{topic="entitlements"}"#)
            #expect((read ?? 999) < 302)
            try await blocking { try writer.commit { try $0.end("1", account: account) } }
            // Its partitions are read one after the other.
            try await waitUntil("the open transaction is seen") {
                guard try await api.sequence(of: "2") == 9 else { return false }
                guard try await api.sequence(of: "1") == nil else { return false }
                return try await api.purchases(of: account).count == 299
            }
            try await api.service.stop()

            // With another directory everything is read again.
            let other = try APIProcess(installation, try ScratchDirectory("api"))
            try await other.service.waitUntilReady()
            #expect(try await other.sequence(of: "2") == 9)
            #expect(try await other.sequence(of: "1") == nil)
            #expect(try await other.purchases(of: account).count == 299)
            try await other.service.stop()
        }

        @Test func `has what a compacted topic has left, and its copy goes when the topic is made anew`() async throws {
            let broker = try await Broker.shared()
            let installation = try await Installation.make("api-compact", broker, partitions: 1)
            let topic = installation.topic("entitlements")
            try await blocking {
                let admin = try Admin(clientID: "test", properties: broker.properties)
                defer { admin.close(by: Deadline(after: patience)) }
                // Segments close at once and are always cleaned; tombstones stay only as long as the API needs them.
                let settings: [(name: String, value: String)] = [
                    ("segment.ms", "50"), ("min.cleanable.dirty.ratio", "0.0"), ("delete.retention.ms", "60000"),
                ]
                try admin.change(settings, of: topic, by: Deadline(after: patience))
            }
            let writer = try await blocking { try RecordWriter(installation) }
            let account = "7d6f1d1e-0000-4000-8000-00000000000a"
            let folder = try ScratchDirectory("api")
            var sequence: Int64 = 0
            try await blocking {
                try writer.commit { try $0.tell("gone", account: account, sequence: 1) }
                try writer.commit { try $0.end("gone", account: account) }
            }
            // The cleaner runs when it likes: until it has run, there is something to clean.
            try await waitUntil("the topic is compacted", within: patience * 3) {
                sequence += 1
                let next = sequence
                try await blocking { try writer.commit { try $0.tell("1", account: account, sequence: next) } }
                return try await broker.read(topic).count < Int(next)
            }
            var api = try APIProcess(installation, folder)
            try await api.service.waitUntilReady()
            #expect(try await api.sequence(of: "1") == sequence)
            #expect(try await api.sequence(of: "gone") == nil)
            try await api.service.stop()
            try await blocking {
                writer.close()
                let admin = try Admin(clientID: "test", properties: broker.properties)
                defer { admin.close(by: Deadline(after: patience)) }
                _ = try admin.delete(topics: [topic], by: Deadline(after: patience))
            }
            try await waitUntil("the topic is made anew") {
                do {
                    try await installation.makeTopics()
                    return try await broker.read(topic).isEmpty
                } catch { return false }
            }
            api = try APIProcess(installation, folder)
            try await api.service.waitUntilReady()
            #expect(try await api.sequence(of: "1") == nil)
            #expect(try await api.service.metric("perennial_api_store_wipes_total") == 1)
            try await api.service.stop()
        }
    }
}

/// `perennial api` of an installation, with its copy in a folder.
struct APIProcess: Sendable {
    let service: ServiceProcess

    init(_ installation: Installation, _ folder: ScratchDirectory, _ settings: [String] = []) throws {
        service = try ServiceProcess(
            ["api", "--api.listen", "127.0.0.1:0", "--state.directory", folder.path] + installation.settings + settings)
        keptFolder = folder
    }
    private let keptFolder: ScratchDirectory

    /// nil: there is no such subscription.
    func sequence(of id: String) async throws -> Int64? {
        try await ask("/v1/subscriptions/\(id)")?["subscription"]?["sequence"]?.integer
    }

    func purchases(of account: String) async throws -> [JSONValue] {
        try await ask("/v1/accounts/\(account)")?["subscriptions"]?.array ?? []
    }

    private func ask(_ path: String) async throws -> JSONValue? {
        let (status, body) = try await answer(to: path)
        if status == 404 { return nil }
        try #require(status == 200, "\(path): \(status)")
        return body
    }

    func answer(to path: String) async throws -> (status: Int, body: JSONValue) {
        let port = try await service.port("the read API listens")
        // Asks with curl, an independent HTTP client.
        let answer = try await run(
            "curl",
            ["--silent", "--max-time", "30", "--write-out", "\n%{http_code}", "http://127.0.0.1:\(port)\(path)"])
        let lines = answer.standardOutput.split(separator: "\n", omittingEmptySubsequences: false)
        let status = try #require(lines.last.flatMap { Int($0) }, "\(answer.words)")
        return (status, try JSONValue.read(Array(lines.dropLast().joined(separator: "\n").utf8)))
    }
}

/// Writes as the worker does, in transactions. Every call blocks; the test makes one call after the other.
private final class RecordWriter: @unchecked Sendable {
    private let producer: TransactionalProducer
    private let installation: Installation
    private let topics: [ProducerTopic]

    init(_ installation: Installation) throws {
        self.installation = installation
        var options = TransactionalProducer.Configuration(
            transactionalID: "writer-\(installation.prefix)", properties: installation.broker.properties)
        // One transaction stays open while a program starts.
        options.transactionTimeout = .seconds(300)
        producer = try TransactionalProducer(options)
        try producer.start(by: Deadline(after: patience))
        topics = [
            try producer.topic(installation.topic("entitlements")), try producer.topic(installation.topic("accounts")),
        ]
    }

    func close() { producer.close(by: Deadline(after: patience)) }

    private var isOpen = false

    /// Continues the open transaction.
    func begin(_ body: (RecordWriter) throws -> Void) throws {
        if !isOpen { try producer.begin() }
        isOpen = true
        try body(self)
        let deadline = Deadline(after: patience)
        while producer.outstanding > 0 && !deadline.hasPassed { producer.poll(.milliseconds(10)) }
    }
    func commit(_ body: (RecordWriter) throws -> Void) throws {
        try begin(body)
        try producer.commit()
        isOpen = false
    }
    func abort(_ body: (RecordWriter) throws -> Void) throws {
        try begin(body)
        try producer.abort()
        isOpen = false
    }

    func tell(_ id: String, account: String, sequence: Int64) throws {
        let value = """
            {"v":1,"originalTransactionId":"\(id)","bundleId":"com.example.app","entitlements":["premium"],\
            "state":"active","access":true,"accessUntil":null,"sequence":\(sequence)}
            """
        try send(id, account, Array(value.utf8))
    }
    func end(_ id: String, account: String) throws { try send(id, account, nil) }

    private func send(_ id: String, _ account: String, _ value: [UInt8]?) throws {
        for (index, key, subject, type) in [
            (0, id, id, "entitlement"), (1, "\(account)|\(id)", account, "account"),
        ] {
            let headers = [RecordHeader("schema", "\(type)/1")]
            let partition = Partitioner.partition(of: Array(subject.utf8), count: Int32(installation.partitions))
            let key = Array(key.utf8)
            if let value {
                try producer.send(
                    to: topics[index], partition: partition, key: key.span, value: value.span, headers: headers)
            } else {
                try producer.send(to: topics[index], partition: partition, key: key.span, value: nil, headers: headers)
            }
        }
    }
}
