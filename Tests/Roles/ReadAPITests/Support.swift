import Churn
import Contract
import Follow
import HTTP
import HTTPClient
import JSON
import KafkaTestKit
import Log
import MemoryLog
import Platform
import Records
import Store
import Synchronization
import Telemetry
import Testing

@testable import ReadAPI

/// Moves only when the test says so.
final class TestTime: Sendable {
    private let state: Mutex<(now: Int64, wall: Int64, elapsed: Duration)>

    /// The 1st of March 2026.
    init(_ now: Int64 = 1_772_323_200_000) { state = Mutex((now, now, .zero)) }

    var now: Int64 { state.withLock { $0.now } }
    func advance(by duration: Duration) {
        state.withLock { state in
            state.now += duration.wholeMilliseconds
            state.wall += duration.wholeMilliseconds
            state.elapsed += duration
        }
    }
    /// Only the values of access.
    func set(now: Int64) { state.withLock { $0.now = now } }

    var asItIs: ReadAPITime {
        ReadAPITime(
            now: { self.now }, wall: { self.state.withLock { $0.wall } },
            elapsed: { self.state.withLock { $0.elapsed } })
    }
}

/// A record of `entitlements`, written by hand.
struct Record {
    var id = "2000000000000001"
    var bundleId = "com.example.app"
    /// JSON of members by name; nil leaves one out.
    var members: [(name: String, json: String?)] = []

    /// A paid subscription.
    static let usual: [(name: String, json: String)] = [
        ("productId", #""pro.yearly""#), ("type", #""Auto-Renewable Subscription""#), ("entitlements", #"["premium"]"#),
        ("state", #""active""#), ("reason", "null"), ("access", "true"), ("accessUntil", "1790000000000"),
        ("since", "1760000000000"), ("autoRenew", "true"), ("pendingProductId", "null"), ("priceConsent", "null"),
        ("billingPlan", #""BILLED_UPFRONT""#), ("commitment", "null"), ("graceUntil", "null"), ("retry", "null"),
        ("runs", #"[{"start":1760000000000,"end":1790000000000}]"#), ("runsTruncated", "false"), ("sequence", "17"),
        ("asOf", "1771000000420"), ("cause", "null"),
    ]

    var json: String {
        var text = #"{"v":1,"originalTransactionId":"\#(id)","environment":"Production","bundleId":"\#(bundleId)""#
        for (name, usual) in Self.usual {
            guard let json = members.first(where: { $0.name == name })?.json ?? (has(name) ? nil : usual) else {
                continue
            }
            text += #","\#(name)":\#(json)"#
        }
        return text + "}"
    }

    func named(_ id: String) -> Record {
        var copy = self
        copy.id = id
        return copy
    }

    private func has(_ name: String) -> Bool { members.contains { $0.name == name } }

    func with(_ name: String, _ json: String?) -> Record {
        var copy = self
        copy.members.insert((name, json), at: 0)
        return copy
    }
}

/// A record of `churn-cells`, written by hand.
struct Cell {
    var partition: Int32 = 0
    var day = "2026-02-10"
    var product = "pro"
    var currency = "USD"
    /// Members of JSON.
    var counts = #""started":1,"activeDelta":1"#
    var money = #""mrrNew":9990"#
    var asOf: Int64 = 1_771_000_000_000

    var key: String { "\(partition)|\(day)|com.example.app|\(product)|BILLED_UPFRONT|USA|\(currency)" }
    var json: String {
        """
        {"v":1,"partition":\(partition),"day":"\(day)","bundleId":"com.example.app","productId":"\(product)",\
        "billingPlan":"BILLED_UPFRONT","storefront":"USA","currency":"\(currency)","counts":{\(counts)},\
        "money":{\(money)},"asOf":\(asOf),"offset":7}
        """
    }
}

let token = "7d6f1d1e-0000-4000-8000-00000000000a"
let otherToken = "7d6f1d1e-0000-4000-8000-00000000000b"

/// Topics, copies and an endpoint that the test's own thread moves: nothing happens by itself.
final class Rig {
    static let names = Names(prefix: TopicPrefix("appstore")!, environment: .production)

    let log: any RecordLog
    let memory: MemoryLog
    let disk: MemoryDisk
    let time: TestTime
    let metrics = Metrics()
    let partitions: Int32
    let shelf: Shelf
    let following: Following
    let watch: WorkerWatch
    let tokens: TokenRing
    let endpoint: Endpoint
    /// The environment of `write` and `following`: the first of those that are served.
    let names: Names
    /// The other environment, if it is served, too.
    let other: Rig?

    var readiness: Readiness { shelf.readiness }
    var copies: [PartitionCopy] { shelf.copies }
    var totals: CellTotals { shelf.totals }

    init(
        memory: MemoryLog = MemoryLog(clock: .manual()), log: (any RecordLog)? = nil, disk: MemoryDisk = MemoryDisk(),
        time: TestTime = TestTime(), partitions: Int32 = 3, tokens: [String] = [], makesTopics: Bool = true,
        rules: CellRules? = nil, maxBehind: Duration? = nil, names: Names = Rig.names, beside other: Rig? = nil
    ) throws {
        self.names = names
        self.other = other
        self.memory = memory
        self.log = log ?? memory
        self.disk = disk
        self.time = time
        self.partitions = partitions
        if makesTopics {
            let topics = FollowedTopic.allCases.map {
                NewTopic(names.topic($0.id), partitions: partitions, isCompacted: $0.isCompacted)
            }
            try memory.create(topics, by: soon)
            try memory.create([NewTopic(names.topic(.notifications), partitions: partitions)], by: soon)
        }
        shelf = Shelf(names, partitions: Int(partitions), maxBehind: maxBehind, isWorked: names == Self.names)
        let lines = Lines()
        self.loggedLines = lines
        let logger = Logger { lines.append($0) }
        following = Following(
            .init(rules: rules), shelf, log: self.log, stores: MemoryStores(disk: disk), time: time.asItIs,
            metrics: ShelfMetrics(metrics, shelf, now: time.asItIs.now), logger: logger)
        watch = WorkerWatch(
            names, partitions: partitions, log: self.log, time: time.asItIs, pace: shelf.pace, logger: logger)
        self.tokens = TokenRing(tokens)
        endpoint = Endpoint(
            [shelf] + (other.map { [$0.shelf] } ?? []), tokens: self.tokens, time: time.asItIs,
            metrics: ReadAPIMetrics(metrics), dayOf: dayInUTC)
    }

    final class Lines: Sendable {
        private let text = Mutex("")
        var all: String { text.withLock { $0 } }
        func append(_ line: [UInt8]) { text.withLock { $0 += String(decoding: line, as: UTF8.self) } }
    }
    private let loggedLines: Lines
    var logged: String { loggedLines.all }

    // MARK: Moving

    var trouble: String? { readiness.trouble(at: time.asItIs.elapsed()) }

    /// Steps until everything is read, or for `steps` steps. A second passes in each.
    func settle(steps: Int = 20) {
        for _ in 0..<steps {
            watch.look()
            _ = following.step()
            other?.watch.look()
            _ = other?.following.step()
            time.advance(by: .seconds(1))
        }
    }

    /// - Parameter line: name and labels, without the environment.
    func metric(_ line: String) -> Double? {
        let environment = #"environment="\#(names.environment.rawValue)""#
        return String(decoding: metrics.exposition(), as: UTF8.self).split(separator: "\n").lazy
            .map {
                $0.replacing("{\(environment)}", with: "").replacing("{\(environment),", with: "{")
            }
            .first { $0.hasPrefix(line + " ") }.flatMap { Double($0.dropFirst(line.count + 1)) }
    }

    // MARK: Writing

    struct Write {
        var topic: FollowedTopic
        var key: String?
        var value: String?
        var headers: [RecordHeader]?
        var partition: Int32?
        var timestamp: Int64?

        static func subscription(_ record: Record) -> Write {
            Write(topic: .entitlements, key: record.id, value: record.json)
        }
        static func binding(_ token: String, _ record: Record) -> Write {
            Write(topic: .accounts, key: "\(token)|\(record.id)", value: record.json)
        }
        static func cell(_ cell: Cell, rules: String? = nil) -> Write {
            Write(
                topic: .cells, key: cell.key, value: cell.json,
                headers: rules.map { Rig.headers(.cells) + [RecordHeader("app", "perennial/0.2.0+\($0)")] },
                partition: cell.partition)
        }
    }

    static func headers(_ topic: FollowedTopic, schema: String? = nil) -> [RecordHeader] {
        [RecordHeader("schema", schema ?? topic.type.schema)]
    }

    func batch(_ writes: [Write]) -> OutputBatch {
        let batch = OutputBatch()
        for write in writes {
            let key = write.key.map { Array($0.utf8) }
            let subject = Array((write.key ?? "").prefix { write.topic != .accounts || $0 != "|" }.utf8)
            batch.append(
                topic: write.topic.rawValue,
                partition: write.partition ?? Partitioner.partition(of: subject, count: partitions),
                timestamp: write.timestamp ?? 1_771_000_000_000, key: key, value: write.value.map { Array($0.utf8) },
                headers: write.headers ?? Self.headers(write.topic))
        }
        return batch
    }

    func write(_ writes: Write...) throws { try write(writes) }
    func write(_ writes: [Write]) throws {
        let writer = try memory.openWriter(
            WriterOptions(name: "test", topics: FollowedTopic.allCases.map { names.topic($0.id) }))
        _ = try writer.append(batch(writes), by: soon)
    }

    // MARK: Asking

    /// The handler's answer, without a server.
    func subscription(_ id: String) -> JSONValue? { ask(.subscription, id, nil) }
    func account(_ token: String) -> JSONValue? { ask(.account, token, nil) }
    func content(_ id: String, _ query: String) -> JSONValue? { ask(.content, id, query) }
    func refunds(_ id: String) -> JSONValue? { ask(.refunds, id, nil) }
    func refund(_ id: String) -> JSONValue? { ask(.refund, id, nil) }
    func metrics(_ query: String = "from=2026-02-01&to=2026-03-01") -> JSONValue? { ask(.metrics, "", query) }

    private func ask(_ route: Question.Route, _ subject: String, _ query: String?) -> JSONValue? {
        let response = endpoint.answer(route, subject[...].utf8, query: query)
        return response.status == 200 ? try? JSONValue.read(response.body) : nil
    }
    func status(_ route: Question.Route, _ subject: String, _ query: String? = nil) -> Int {
        endpoint.answer(route, subject[...].utf8, query: query).status
    }
}

var soon: Deadline { Deadline(after: patience) }
