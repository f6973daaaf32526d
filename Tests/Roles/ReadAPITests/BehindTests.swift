import Contract
import HTTP
import JSON
import Log
import LogTestKit
import MemoryLog
import Platform
import Testing

@testable import ReadAPI

/// Plays the worker of `notifications` and the ingest that writes them.
private final class Crew {
    let rig: Rig
    private let topic: String
    private var session: (any LogSession)?
    private let writer: any LogWriter
    private let worker: WorkerName

    init(_ rig: Rig, _ worker: WorkerName = .entitlements) throws {
        self.rig = rig
        self.worker = worker
        topic = rig.names.topic(.notifications)
        writer = try rig.memory.openWriter(WriterOptions(name: "ingest", topics: [topic]))
    }

    /// Ingest accepts a notification now.
    func take(partition: Int32 = 0) throws {
        let batch = OutputBatch()
        batch.append(
            topic: 0, partition: partition, timestamp: rig.time.now, key: Array("1".utf8), value: Array("{}".utf8),
            headers: [])
        _ = try writer.append(batch, by: soon)
    }

    /// The worker commits that it has processed this many.
    func deal(upTo count: Int64, partition: Int32 = 0) throws {
        let name = TopicPartition(topic, partition)
        let session = try self.session ?? join()
        try session.commit([name: NextOffset(count)])
    }

    private func join() throws -> any LogSession {
        let options = SessionOptions(
            group: rig.names.group(worker), identity: "\(worker)-0", inputs: [topic],
            outputs: [rig.names.topic(.entitlements)])
        let session = try rig.memory.openSession(options, by: soon)
        let batch = RecordBatch()
        while true {
            guard case .assigned(let given) = try session.poll(into: batch, limit: 1, wait: .zero) else { continue }
            try session.take(Dictionary(uniqueKeysWithValues: given.map { ($0, NextOffset(0)) }), paused: [])
            self.session = session
            return session
        }
    }
}

extension Rig {
    fileprivate func behind(_ answer: JSONValue?) -> Int64? { answer?["position"]?.array?.first?["behind"]?.integer }

    /// The answer to a request about an unknown id, whose partition is the first.
    fileprivate func miss() throws -> (status: Int, behind: Int64?) {
        let response = endpoint.answer(.subscription, nobody[...].utf8, query: nil)
        return (response.status, behind(try JSONValue.read(response.body)))
    }

    fileprivate var nobody: String { nobody(in: 0) }
    fileprivate func nobody(in partition: Int32) -> String {
        (1...).lazy.map { "\($0)" }
            .first { Partitioner.partition(of: Array($0.utf8), count: self.partitions) == partition }!
    }

    /// What `/readyz` says of this environment; nil: nothing.
    fileprivate var unreadiness: String? { shelf.trouble(at: time.asItIs.elapsed(), now: time.now) }

    fileprivate var worst: Double? {
        metric(#"perennial_api_source_behind_seconds{worker="entitlements"}"#)
    }
}

@Suite struct `How far the worker is behind` {
    @Test func `stands in every answer, and grows while a notification waits`() throws {
        let rig = try Rig()
        let crew = try Crew(rig)
        try crew.take()
        try crew.deal(upTo: 1)
        rig.settle(steps: 3)
        #expect(try rig.miss() == (404, 1000), "the age of the last look")
        // From here on the worker is stopped.
        try crew.take()
        rig.settle(steps: 300)
        #expect(try rig.miss() == (404, 300_000))
        #expect(rig.worst == 300)
        // The worker is running again.
        try crew.deal(upTo: 2)
        rig.settle(steps: 3)
        #expect(try rig.miss() == (404, 1000))
    }

    /// A purchase is in the partition of its subscription, and the record of it in that of the account.
    @Test func `is in an answer about an account that of the partition farthest behind`() throws {
        let rig = try Rig(maxBehind: .seconds(600))
        #expect(Partitioner.partition(of: Array(token.utf8), count: rig.partitions) == 1)
        let crew = try Crew(rig)
        try crew.take(partition: 0)
        rig.settle(steps: 300)
        #expect(rig.behind(rig.account(token)) == 300_000)
        rig.settle(steps: 302)
        #expect(rig.status(.account, token) == 503)
        try crew.deal(upTo: 1)
        rig.settle(steps: 3)
        #expect(rig.behind(rig.account(token)) == 1000)
    }

    /// Only the age of the last look shows that records may have come since then.
    @Test func `is never said to be less than it is`() throws {
        let rig = try Rig()
        let crew = try Crew(rig)
        rig.settle(steps: 3)
        for _ in 0..<30 {
            try crew.take()
            let taken = rig.time.now
            rig.time.advance(by: .milliseconds(700))
            let behind = try #require(try rig.miss().behind)
            #expect(rig.time.now - behind <= taken, "the answer claims to be complete, which it cannot know")
            rig.settle(steps: 1)
        }
    }

    @Test func `counts only when the copy has what the worker has written since`() throws {
        let rig = try Rig()
        let crew = try Crew(rig)
        rig.settle(steps: 3)
        _ = rig.following.step()
        try crew.take()
        let taken = rig.time.now
        rig.time.advance(by: .milliseconds(400))
        try crew.deal(upTo: 1)
        // The watch has seen it; the follower has not read new end offsets since.
        rig.watch.look()
        _ = rig.following.step()
        rig.time.advance(by: .milliseconds(400))
        #expect(rig.time.now - (try #require(try rig.miss().behind)) <= taken)
        rig.settle(steps: 2)
        #expect(try rig.miss().behind == 1000)
    }

    /// A commit writes a marker in each partition, and the marker of the offsets may become visible first.
    @Test func `counts only when readers are shown what the worker has written`() throws {
        let rig = try Rig()
        let crew = try Crew(rig)
        rig.settle(steps: 3)
        let entitlements = rig.names.topic(.entitlements)
        let slow = try rig.memory.openSession(
            SessionOptions(group: "slow", identity: "slow-0", inputs: [], outputs: [entitlements]), by: soon)
        try slow.append(rig.batch([.subscription(Record(id: rig.nobody))]))
        try crew.take()
        let taken = rig.time.now
        rig.time.advance(by: .seconds(1))
        try crew.deal(upTo: 1)
        for _ in 0..<5 {
            rig.settle(steps: 1)
            #expect(rig.time.now - (try #require(try rig.miss().behind)) <= taken)
        }
        // A hanging transaction does not affect this.
        rig.settle(steps: 10)
        let hanging = try #require(try rig.miss().behind)
        #expect((1000...23_000).contains(hanging), "\(hanging)")
        try slow.abort()
        rig.settle(steps: 2)
        #expect(try rig.miss().behind == 1000)
    }

    /// Stopping the worker of sandbox does not take production out of service.
    @Test func `takes nothing out of service where it is the second environment`() throws {
        let (memory, time) = (MemoryLog(clock: .manual()), TestTime())
        let names = Names(prefix: Rig.names.prefix, environment: .sandbox)
        let sandbox = try Rig(memory: memory, time: time, maxBehind: .seconds(5), names: names)
        let rig = try Rig(memory: memory, time: time, maxBehind: .seconds(5), beside: sandbox)
        let crew = try Crew(sandbox)
        for partition in 0..<rig.partitions { try crew.take(partition: partition) }
        for partition in 0..<rig.partitions { try crew.deal(upTo: 1, partition: partition) }
        try sandbox.write(.subscription(Record(id: "tested")))
        rig.settle(steps: 3)
        for partition in 0..<rig.partitions { try crew.take(partition: partition) }
        rig.settle(steps: 20)
        let miss = rig.endpoint.answer(.subscription, rig.nobody[...].utf8, query: nil)
        let positions = try JSONValue.read(miss.body)["position"]?.array
        #expect(miss.status == 404 && positions?.map { $0["behind"]?.integer } == [1000, 20_000])
        #expect(rig.status(.account, token) == 200 && rig.status(.refund, "nobody") == 404)
        #expect(rig.status(.subscription, rig.nobody, "environment=sandbox") == 503)
        #expect(rig.status(.subscription, "tested") == 503, "what is found is as old as it is")
    }

    @Test func `makes every answer 503 above its limit, and the api unready`() throws {
        let rig = try Rig(maxBehind: .seconds(600))
        let crew = try Crew(rig)
        for partition in 0..<rig.partitions { try crew.take(partition: partition) }
        try rig.write(.subscription(Record(id: rig.nobody)))
        rig.settle(steps: 600)
        #expect(rig.status(.subscription, rig.nobody) == 200 && rig.unreadiness == nil)
        rig.settle(steps: 2)
        let response = rig.endpoint.answer(.subscription, rig.nobody[...].utf8, query: nil)
        #expect(response.status == 503 && response.headers["Retry-After"] == "5")
        let body = try JSONValue.read(response.body)
        #expect(body["error"]?.string == "behind" && rig.behind(body) == 602_000)
        #expect(rig.unreadiness?.contains("up to 602 s behind the notifications of production") == true)
        #expect(rig.status(.content, rig.nobody, "published=1") == 503)
        // One partition that is current is enough.
        try crew.deal(upTo: 1)
        rig.settle(steps: 3)
        #expect(rig.status(.subscription, rig.nobody) == 200 && rig.unreadiness == nil)
        #expect(rig.status(.subscription, rig.nobody(in: 1)) == 503)
    }

    @Test func `refuses only what needs its partition, and leaves the api ready for all else`() throws {
        let rig = try Rig(maxBehind: .seconds(600))
        let crew = try Crew(rig)
        func statuses() -> [Int] {
            (0..<rig.partitions).map { rig.status(.subscription, rig.nobody(in: $0)) }
        }
        #expect(rig.unreadiness != nil, "nothing has been read yet")
        for _ in 0..<3 {
            _ = rig.following.step()
            rig.time.advance(by: .seconds(1))
        }
        #expect(rig.unreadiness == "the positions of the workers are not known yet")
        for partition: Int32 in [0, 2] { try crew.take(partition: partition) }
        rig.settle(steps: 602)
        #expect(statuses() == [503, 404, 503])
        #expect(rig.unreadiness == nil)
        #expect(rig.worst == 602)
        #expect(rig.logged.components(of: #""partitions":"0, 2""#) == 1)
        #expect(rig.logged.components(of: "no partition is too far behind any more") == 0)
        for partition: Int32 in [0, 2] { try crew.deal(upTo: 1, partition: partition) }
        rig.settle(steps: 3)
        #expect(statuses() == [404, 404, 404])
        #expect(rig.logged.components(of: "no partition is too far behind any more") == 1)
    }

    /// There need not be a worker of churn or of refunds.
    @Test func `has no limit for a worker that has never begun, and is told all the same`() throws {
        let rig = try Rig(maxBehind: .seconds(5))
        let entitlements = try Crew(rig)
        let churn = try Crew(rig, .churn)
        for partition in 0..<rig.partitions { try entitlements.take(partition: partition) }
        for partition in 0..<rig.partitions { try entitlements.deal(upTo: 1, partition: partition) }
        rig.settle(steps: 20)
        #expect(rig.behind(rig.metrics()) == 20_000)
        #expect(rig.behind(rig.account(token)) == 1000)
        try churn.deal(upTo: 1)
        rig.settle(steps: 3)
        #expect(rig.status(.metrics, "", "from=2026-02-01&to=2026-03-01") == 503)
        #expect(rig.status(.account, token) == 200)
    }

    @Test func `is known from the first answer on, and grows when the groups cannot be asked any more`() throws {
        let memory = MemoryLog(clock: .manual())
        let broken = BrokenLog(memory)
        let rig = try Rig(memory: memory, log: broken, maxBehind: .seconds(30))
        for _ in 0..<3 {
            _ = rig.following.step()
            rig.time.advance(by: .seconds(1))
        }
        #expect(rig.status(.subscription, rig.nobody) == 503, "nobody has looked at the worker yet")
        rig.settle(steps: 3)
        #expect(try rig.miss() == (404, 1000))
        broken.fault = LogFault(.retrySameCall, .timedOut, "the coordinator does not answer")
        for _ in 0..<20 {
            rig.watch.look()
            rig.time.advance(by: .seconds(1))
        }
        #expect(try rig.miss() == (404, 21_000))
        rig.time.advance(by: .seconds(10))
        #expect(try rig.miss().status == 503)
        #expect(rig.shelf.pace.fault == "the coordinator does not answer")
        #expect(rig.logged.components(of: "the positions of the workers cannot be read") == 1)
    }

    /// After a week without a worker Kafka has deleted its committed offsets.
    @Test func `is the age of the first record there is where the group has no position`() throws {
        let rig = try Rig()
        let crew = try Crew(rig)
        try crew.take()
        try crew.deal(upTo: 1)
        rig.settle(steps: 10)
        #expect(try rig.miss().behind == 1000)
        rig.memory.delete(group: rig.names.group(.entitlements))
        rig.settle(steps: 3)
        #expect(try rig.miss().behind == 13_000)
        try rig.memory.deleteRecords(of: TopicPartition(rig.names.topic(.notifications), 0), before: NextOffset(1))
        rig.settle(steps: 3)
        #expect(try rig.miss().behind == 1000)
    }
}

extension String {
    fileprivate func components(of part: String) -> Int {
        split(separator: part, omittingEmptySubsequences: false).count - 1
    }
}
