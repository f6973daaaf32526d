import Contract
import Follow
import HTTP
import JSON
import KafkaTestKit
import Log
import LogTestKit
import MemoryLog
import Platform
import Store
import Synchronization
import Testing

@testable import ReadAPI

/// Following, step by step: the copy has the same records as the topics, and reports when it has not.
@Suite struct `A copy of the topics` {
    private let one = Record(id: "1")
    private let two = Record(id: "2")

    @Test func `holds the last value of each key, and nothing of a key that was deleted`() throws {
        let rig = try Rig()
        try rig.write(.subscription(one.with("sequence", "1")), .subscription(two), .binding(token, two))
        try rig.write(
            .subscription(one.with("sequence", "2")), .init(topic: .entitlements, key: "2", value: nil),
            .init(topic: .accounts, key: "\(token)|2", value: nil))
        rig.settle()
        #expect(rig.trouble == nil)
        #expect(rig.subscription("1")?["subscription"]?["sequence"]?.integer == 2)
        #expect(rig.status(.subscription, "2") == 404)
        #expect(rig.account(token)?["subscriptions"]?.array?.isEmpty == true)
        #expect(rig.metric(#"perennial_api_records_total{topic="entitlements"}"#) == 4)
        #expect(rig.metric("perennial_api_remaining_records") == 0)
    }

    @Test func `shows nothing of a transaction before it is committed, and nothing of one that was aborted`() throws {
        let rig = try Rig()
        rig.settle(steps: 2)
        let session = try rig.memory.openSession(
            SessionOptions(
                group: "worker", identity: "worker.0-0", inputs: [],
                outputs: FollowedTopic.allCases.map { Rig.names.topic($0.id) }), by: soon)
        try session.append(rig.batch([.subscription(one)]))
        rig.settle()
        #expect(rig.trouble == nil && rig.status(.subscription, "1") == 404)
        try session.abort()
        rig.settle()
        #expect(rig.trouble == nil && rig.status(.subscription, "1") == 404)
        try session.append(rig.batch([.subscription(two)]))
        try session.commit([:])
        rig.settle()
        #expect(rig.status(.subscription, "1") == 404)
        #expect(rig.status(.subscription, "2") == 200)
        // The ends of transactions take offsets, which come before the position.
        #expect(rig.metric("perennial_api_remaining_records") == 0)
        session.close(by: soon)
    }

    @Test func `is not asked before every partition is read to the end that was seen`() throws {
        let rig = try Rig()
        let many = (0..<5000).map { Rig.Write.subscription(Record(id: "\($0)")) }
        try rig.write(many)
        _ = rig.following.step()
        #expect(rig.trouble?.hasPrefix("not caught up yet: ") == true)
        #expect(rig.status(.subscription, "1") == 503)
        #expect((rig.metric("perennial_api_remaining_records") ?? 0) > 0)
        #expect(rig.logged.contains("catching up") && !rig.logged.contains("caught up"))
        rig.settle()
        #expect(rig.trouble == nil)
        #expect(rig.logged.contains("caught up"))
        for id in [0, 2500, 4999] { #expect(rig.status(.subscription, "\(id)") == 200) }
    }

    /// The last records come in a full batch, which would not be written at once if it were alone.
    @Test func `has everything at the moment at which it may be asked`() throws {
        let rig = try Rig(partitions: 1)
        try rig.write((0..<4000).map { .subscription(Record(id: "\($0)")) })
        rig.watch.look()
        for _ in 0..<20 where rig.trouble != nil { _ = rig.following.step() }
        #expect(rig.trouble == nil)
        #expect(rig.status(.subscription, "3999") == 200)
    }

    @Test func `goes on where it was after the process has died`() throws {
        let rig = try Rig()
        try rig.write((0..<100).map { .subscription(Record(id: "\($0)")) })
        rig.settle()
        try rig.write(.subscription(one.with("sequence", "99")))
        rig.settle()
        rig.disk.crash()
        let next = try Rig(memory: rig.memory, disk: rig.disk, time: rig.time)
        try next.write(.subscription(Record(id: "new")))
        next.settle()
        #expect(next.trouble == nil)
        #expect(next.subscription("1")?["subscription"]?["sequence"]?.integer == 99)
        #expect(next.status(.subscription, "50") == 200)
        #expect(next.status(.subscription, "new") == 200)
        #expect(next.metric(#"perennial_api_records_total{topic="entitlements"}"#) == 1)
        #expect(next.metric("perennial_api_store_wipes_total") == 0)
    }

    /// What was written while a copy is built may be lost with the process, but only the newest part.
    @Test func `loses nothing when the process dies while it is built`() throws {
        let rig = try Rig(partitions: 1)
        try rig.write((0..<25_000).map { .subscription(Record(id: "\($0)")) })
        for _ in 0..<8 { _ = rig.following.step() }
        #expect(rig.trouble != nil)
        rig.disk.crash()
        let next = try Rig(memory: rig.memory, disk: rig.disk, time: rig.time, partitions: 1)
        next.settle(steps: 40)
        #expect(next.trouble == nil)
        for id in 0..<25_000 where next.status(.subscription, "\(id)") != 200 { Issue.record("\(id) is missing") }
    }

    // MARK: Rebuilding

    @Test(arguments: [(hours: 19, isNew: false), (hours: 21, isNew: true), (hours: -1, isNew: true)])
    func `is built anew when it was away for so long that deletions may be gone`(_ hours: Int, _ isNew: Bool) throws {
        let rig = try Rig(partitions: 1)
        try rig.write(.subscription(one), .subscription(two))
        rig.settle()
        rig.following.close()
        // Compaction has dropped a tombstone: no record says that 1 is gone.
        let later = MemoryLog(clock: .manual())
        let next = try Rig(
            memory: later, disk: rig.disk, time: TestTime(rig.time.now + Int64(hours) * 3_600_000), partitions: 1)
        try next.write(.subscription(two), .subscription(two), .subscription(two))
        next.settle()
        #expect(next.trouble == nil)
        #expect(next.status(.subscription, "1") == (isNew ? 404 : 200))
        #expect(next.status(.subscription, "2") == 200)
        #expect(next.metric("perennial_api_store_wipes_total") == (isNew ? 1 : 0))
        #expect(next.logged.contains("it is so old that it may have missed deletions") == isNew)
    }

    @Test(arguments: [(minutes: 80, isNew: false), (minutes: 110, isNew: true)])
    func `is built anew sooner where the topic forgets deletions sooner`(_ minutes: Int, _ isNew: Bool) throws {
        let rig = try Rig(memory: MemoryLog(clock: .manual(), tombstonesKept: .seconds(7200)))
        try rig.write(.subscription(one))
        rig.settle()
        rig.following.close()
        rig.time.advance(by: .seconds(60 * minutes))
        let next = try Rig(memory: rig.memory, disk: rig.disk, time: rig.time)
        try next.write(.subscription(one))
        next.settle()
        #expect(next.trouble == nil && next.status(.subscription, "1") == 200)
        #expect(next.metric("perennial_api_store_wipes_total") == (isNew ? 1 : 0))
    }

    @Test func `follows no topic that forgets deletions at once`() throws {
        let rig = try Rig(memory: MemoryLog(clock: .manual(), tombstonesKept: .milliseconds(59_999)))
        rig.settle(steps: 2)
        #expect(
            rig.trouble
                == "the topic appstore.production.entitlements keeps deletions for only 59999 ms, so some may be missed: "
                + "run perennial topics apply")
    }

    /// A demonstration runs through years in minutes; the log that it reads does not.
    @Test func `ages by the clock of its host, not by the time that access is judged by`() throws {
        let rig = try Rig(partitions: 1)
        try rig.write(.subscription(one))
        rig.settle()
        rig.following.close()
        rig.time.set(now: rig.time.now + 100 * 86_400_000)
        let next = try Rig(memory: rig.memory, disk: rig.disk, time: rig.time, partitions: 1)
        try next.write(.subscription(two))
        next.settle()
        #expect(next.trouble == nil && next.metric("perennial_api_store_wipes_total") == 0)
        let host = ReadAPITime(now: { 5 }, elapsed: { .zero })
        #expect(host.now() == 5 && abs(host.wall() - WallClock.milliseconds()) < 60_000)
    }

    @Test func `holds no more in memory for many partitions than for one`() {
        for count in [1, 100, 10_000] { #expect(FollowLimits.heldBytes(partitions: count) * count <= 32 << 20) }
    }

    @Test func `stays however long nothing came`() throws {
        let rig = try Rig()
        try rig.write(.subscription(one))
        rig.settle()
        rig.following.close()
        rig.time.advance(by: .seconds(100 * 86_400))
        let next = try Rig(memory: rig.memory, disk: rig.disk, time: rig.time)
        next.settle()
        #expect(next.trouble == nil && next.status(.subscription, "1") == 200)
        #expect(next.metric("perennial_api_store_wipes_total") == 0)
    }

    /// For a process that runs for months: its copy does not get older as long as it reads.
    @Test func `grows no older while nothing comes and Kafka answers`() throws {
        let rig = try Rig()
        try rig.write(.subscription(one))
        rig.settle()
        for _ in 0..<30 {
            rig.time.advance(by: .seconds(3600))
            _ = rig.following.step()
        }
        rig.disk.crash()
        let next = try Rig(memory: rig.memory, disk: rig.disk, time: rig.time)
        try next.write(.subscription(one), .subscription(two))
        next.settle()
        #expect(next.metric("perennial_api_store_wipes_total") == 0)
    }

    @Test func `is built anew by a process that was cut off for as long`() throws {
        let broken = BrokenLog(MemoryLog(clock: .manual()))
        let rig = try Rig(memory: broken.memory, log: broken, partitions: 1)
        try rig.write(.subscription(one))
        rig.settle()
        broken.fault = LogFault(.retrySameCall, .timedOut, "no broker answers")
        rig.settle(steps: 3)
        rig.time.advance(by: .seconds(21 * 3600))
        rig.settle(steps: 3)
        #expect(rig.trouble?.contains("no broker answers") == true)
        broken.fault = nil
        try rig.write(.subscription(two))
        rig.settle()
        #expect(rig.trouble == nil && rig.status(.subscription, "1") == 200 && rig.status(.subscription, "2") == 200)
        #expect(rig.metric("perennial_api_store_wipes_total") == 1)
    }

    @Test func `is built anew when the topic does not reach back to it any more`() throws {
        let broken = BrokenLog(MemoryLog(clock: .manual()))
        let rig = try Rig(memory: broken.memory, log: broken, partitions: 1)
        try rig.write(.subscription(one))
        rig.settle()
        // Records were deleted: the reader learns it first.
        try rig.write(.subscription(two), .subscription(two), .subscription(two))
        broken.beginning = NextOffset(3)
        broken.faultOnce = LogFault(.stop, .positionGone, "there is no record at 1 any more")
        rig.settle()
        #expect(rig.trouble == nil)
        #expect(rig.logged.contains("begins after the position of the copy"))
        #expect(rig.status(.subscription, "1") == 404 && rig.status(.subscription, "2") == 200)
    }

    @Test func `is built anew when the topic was made anew`() throws {
        let rig = try Rig(partitions: 1)
        try rig.write(.subscription(one), .subscription(one), .binding(token, one))
        rig.settle()
        rig.following.close()
        let next = try Rig(memory: MemoryLog(clock: .manual()), disk: rig.disk, time: rig.time, partitions: 1)
        try next.write(.subscription(two))
        next.settle()
        #expect(next.trouble == nil)
        #expect(next.logged.contains("which was deleted and created again"))
        #expect(next.status(.subscription, "1") == 404 && next.status(.subscription, "2") == 200)
        #expect(next.account(token)?["subscriptions"]?.array?.isEmpty == true)
    }

    @Test func `is built anew for another number of partitions, and where another build has written it`() throws {
        let rig = try Rig(partitions: 2)
        try rig.write(.subscription(one))
        rig.settle()
        rig.following.close()
        let next = try Rig(memory: MemoryLog(clock: .manual()), disk: rig.disk, time: rig.time, partitions: 3)
        next.settle()
        #expect(next.trouble == nil && next.status(.subscription, "1") == 404)
        #expect(next.metric("perennial_api_store_wipes_total") == 2)
        next.following.close()

        let store = try MemoryStores(disk: rig.disk).open(0)
        let changes = StoreChanges()
        changes.note = [2, 0, 0]
        try store.write(changes, .process)
        try store.close()
        let third = try Rig(memory: next.memory, disk: rig.disk, time: rig.time, partitions: 3)
        third.settle()
        #expect(third.trouble == nil && third.metric("perennial_api_store_wipes_total") == 1)
    }

    // MARK: Malformed records

    @Test func `waits before a record of a later schema, and is not asked meanwhile`() throws {
        let rig = try Rig(partitions: 1)
        try rig.write(.subscription(one))
        rig.settle()
        var later = Rig.Write.subscription(two)
        later.headers = Rig.headers(.entitlements, schema: "entitlement/2")
        try rig.write(later, .subscription(Record(id: "3")), .binding(token, two))
        rig.settle()
        #expect(rig.trouble?.contains("entitlement/2, and this build reads up to 1: upgrade perennial api") == true)
        #expect(rig.status(.subscription, "1") == 503)
        #expect(rig.metric("perennial_api_paused_partitions") == 1)
        // Nothing after it was read, but the other topic was.
        #expect(rig.copies[0].value(.entitlements, Array("3".utf8))?.found == nil)
        #expect(rig.copies[0].value(.granting, Array("\(token)|2".utf8))?.found != nil)
        #expect(rig.copies[0].value(.entitlements, [])?.place.next == NextOffset(1))
        // A later build continues there; this build stops at the same offset again.
        rig.following.close()
        let next = try Rig(memory: rig.memory, disk: rig.disk, time: rig.time, partitions: 1)
        next.settle()
        #expect(next.trouble?.contains("at 1: ") == true)
    }

    static let bad: [(name: String, key: String?, value: String, headers: [(String, String)], cause: String)] = [
        ("no JSON", "1", "not JSON", usual, "json"), ("empty", "1", "", usual, "json"),
        ("half", "1", #"{"originalTransactionId":"1","#, usual, "json"),
        ("twice", "1", #"{"originalTransactionId":"1","access":true,"access":false}"#, usual, "json"),
        ("deep", "1", String(repeating: "[", count: 2000), usual, "json"),
        ("array", "1", "[]", usual, "shape"), ("text", "1", #""1""#, usual, "shape"),
        ("access is text", "1", #"{"originalTransactionId":"1","access":"yes"}"#, usual, "shape"),
        ("end is text", "1", #"{"originalTransactionId":"1","access":true,"accessUntil":"never"}"#, usual, "shape"),
        ("end is too large", "1", #"{"originalTransactionId":"1","access":true,"accessUntil":9e99}"#, usual, "shape"),
        ("id is a number", "1", #"{"originalTransactionId":1,"access":true}"#, usual, "shape"),
        ("empty key", "", "{}", usual, "key"),
        ("no type", "1", Record(id: "1").json, [("app", "perennial/0.2.0")], "type"),
        ("no slash", "1", Record(id: "1").json, [("schema", "entitlement")], "schema"),
        ("empty schema", "1", Record(id: "1").json, [("schema", "")], "schema"),
        ("new schema 0", "1", Record(id: "1").json, [("schema", "entitlement/0")], "schema"),
        ("new long number", "1", Record(id: "1").json, [("schema", "entitlement/99999999999")], "schema"),
        ("another's schema", "1", Record(id: "1").json, [("type", "entitlement"), ("schema", "account/1")], "schema"),
        ("schema 0", "1", Record(id: "1").json, [("type", "entitlement"), ("schema", "entitlement/0")], "schema"),
        ("no number", "1", Record(id: "1").json, [("type", "entitlement"), ("schema", "entitlement/x")], "schema"),
        (
            "long number", "1", Record(id: "1").json, [("type", "entitlement"), ("schema", "entitlement/99999999999")],
            "schema"
        ),
    ]
    static let usual = [("type", "entitlement"), ("schema", "entitlement/1")]

    @Test(arguments: bad.indices)
    func `keeps out what no answer can be given from, and counts it`(_ index: Int) throws {
        let row = Self.bad[index]
        let rig = try Rig(partitions: 1)
        try rig.write(.subscription(one))
        try rig.write(
            .init(
                topic: .entitlements, key: row.key, value: row.value,
                headers: row.headers.map { RecordHeader($0.0, $0.1) }))
        try rig.write(.subscription(two))
        rig.settle()
        #expect(rig.trouble == nil, "\(row.name)")
        let series = #"perennial_api_records_kept_out_total{topic="entitlements",cause="\#(row.cause)"}"#
        #expect(rig.metric(series) == 1, "\(row.name)")
        // The earlier value of the key is not its state any more.
        #expect(rig.status(.subscription, "1") == (row.cause == "key" ? 200 : 404), "\(row.name)")
        #expect(rig.status(.subscription, "2") == 200)
        #expect(!rig.logged.contains("not JSON"))
    }

    @Test func `keeps out bindings whose key names no account`() throws {
        let rig = try Rig(partitions: 1)
        for key in ["1", "|1"] { try rig.write(.init(topic: .accounts, key: key, value: one.json)) }
        rig.settle()
        #expect(rig.metric(#"perennial_api_records_kept_out_total{topic="accounts",cause="key"}"#) == 2)
    }

    @Test func `skips types that it does not know, and takes an old record without a schema for one of the first`()
        throws
    {
        let rig = try Rig(partitions: 1)
        try rig.write(
            .init(topic: .entitlements, key: "9", value: "?", headers: [RecordHeader("type", "erase")]),
            .init(topic: .entitlements, key: "9", value: "?", headers: [RecordHeader("schema", "erase/1")]),
            .init(topic: .entitlements, key: "1", value: one.json, headers: [RecordHeader("type", "entitlement")]))
        rig.settle()
        #expect(rig.metric(#"perennial_api_records_skipped_total{topic="entitlements"}"#) == 2)
        #expect(rig.trouble == nil && rig.status(.subscription, "1") == 200)
    }

    // MARK: Trouble

    /// Another thread asks, and gets what is there at that moment.
    @Test func `is not asked from the moment it is emptied until it has everything again`() throws {
        let broken = BrokenLog(MemoryLog(clock: .manual()))
        let rig = try Rig(memory: broken.memory, log: broken, partitions: 1)
        try rig.write(.subscription(one), .subscription(two), .binding(token, two))
        rig.settle()
        #expect(rig.status(.subscription, "2") == 200 && rig.status(.account, token) == 200)
        let seen = Mutex<[Int]>([])
        let (endpoint, account) = (rig.endpoint, token)
        broken.atRead = {
            let asked: [(Question.Route, String)] = [
                (.subscription, "2"), (.account, account), (.subscription, "nobody"),
            ]
            let statuses = asked.map { endpoint.answer($0.0, $0.1[...].utf8, query: nil).status }
            seen.withLock { $0 += statuses }
        }
        broken.beginning = NextOffset(3)
        try rig.write(.subscription(one), .subscription(one), .subscription(two))
        broken.faultOnce = LogFault(.stop, .positionGone, "there is no record at 2 any more")
        rig.settle(steps: 2)
        #expect(rig.metric("perennial_api_store_wipes_total") == 1)
        #expect(seen.withLock { $0 } == [503, 503, 503])
        rig.settle()
        #expect(rig.trouble == nil && rig.status(.subscription, "2") == 200)
    }

    @Test func `is asked for a minute while Kafka is silent, and then no more until it speaks`() throws {
        let broken = BrokenLog(MemoryLog(clock: .manual()))
        let rig = try Rig(memory: broken.memory, log: broken)
        try rig.write(.subscription(one))
        rig.settle()
        broken.fault = LogFault(.retrySameCall, .timedOut, "no broker answers")
        rig.settle(steps: 55)
        #expect(rig.trouble == nil && rig.status(.subscription, "1") == 200)
        rig.settle(steps: 10)
        #expect(rig.trouble?.contains("s behind: no broker answers") == true)
        #expect(rig.status(.subscription, "1") == 503)
        // Logged once.
        #expect(rig.logged.ranges(of: "the topics cannot be followed").count == 1)
        broken.fault = nil
        rig.settle(steps: 5)
        #expect(rig.trouble == nil && rig.status(.subscription, "1") == 200)
        #expect(rig.logged.contains("the topics are followed again"))
    }

    @Test func `is told of without alarm while leaders move, and with it when that lasts`() throws {
        let broken = BrokenLog(MemoryLog(clock: .manual()))
        let rig = try Rig(memory: broken.memory, log: broken)
        let words = "the topics cannot be followed"
        broken.fault = LogFault(.retrySameCall, .leaderMoves, "not the leader")
        rig.settle(steps: 5)
        #expect(rig.trouble?.contains("not the leader") == true)
        broken.fault = nil
        rig.settle(steps: 5)
        #expect(rig.trouble == nil && !rig.logged.contains(words) && !rig.logged.contains("followed again"))
        broken.fault = LogFault(.retrySameCall, .leaderMoves, "not the leader")
        rig.settle(steps: 20)
        #expect(rig.logged.ranges(of: words).count == 1)
        broken.fault = nil
        rig.settle(steps: 5)
        #expect(rig.logged.contains("the topics are followed again"))
    }

    @Test func `opens its store again after a fault, and builds a broken one anew`() throws {
        for (cause, wipes) in [(StoreFault.Cause.system, 0.0), (.corrupt, 1.0)] {
            let rig = try Rig(partitions: 1)
            try rig.write(.subscription(one))
            rig.settle()
            let fault = StoreFault(cause, "the disk reports an error")
            rig.disk.fail { operation, _ in operation == .write ? fault : nil }
            try rig.write(.subscription(two))
            rig.settle(steps: 3)
            #expect(rig.logged.contains("the disk reports an error"))
            rig.disk.fail(nil)
            rig.settle()
            #expect(rig.trouble == nil)
            #expect(rig.status(.subscription, "1") == 200 && rig.status(.subscription, "2") == 200)
            #expect((rig.metric("perennial_api_store_wipes_total") ?? 0) >= wipes)
        }
    }

    @Test func `answers 503 when its store cannot be read, and recovers`() throws {
        let rig = try Rig(partitions: 1)
        try rig.write(.subscription(one), .binding(token, one))
        rig.settle()
        rig.disk.fail { operation, _ in operation == .read ? StoreFault(.system, "unreadable") : nil }
        #expect(rig.status(.subscription, "1") == 503 && rig.status(.account, token) == 503)
        rig.disk.fail(nil)
        // Not by chance: it stays so until the follower has opened it again.
        #expect(rig.status(.subscription, "1") == 503)
        rig.settle()
        #expect(rig.trouble == nil && rig.status(.subscription, "1") == 200)
        #expect(rig.logged.contains("unreadable"))
    }

    @Test func `says what to do when the topics are not as they should be`() throws {
        let missing = try Rig(makesTopics: false)
        missing.settle(steps: 2)
        #expect(
            missing.trouble
                == "the topic appstore.production.entitlements is missing: run perennial topics apply")
        let other = try Rig(memory: missing.memory, partitions: 4)
        _ = other
        missing.settle(steps: 2)
        #expect(
            missing.trouble?.hasSuffix(
                "Set it back if it was changed, or set topic.prefix to the prefix of topics with 3 partitions") == true)
        let memory = MemoryLog(clock: .manual())
        try memory.create(FollowedTopic.allCases.map { NewTopic(Rig.names.topic($0.id), partitions: 3) }, by: soon)
        let plain = try Rig(memory: memory, makesTopics: false)
        plain.settle(steps: 2)
        #expect(plain.trouble?.contains("is not compacted") == true)
    }
}
