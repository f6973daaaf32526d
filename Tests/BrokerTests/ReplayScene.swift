// Notifications of simulated lives in a real log, a live worker, and replays that run beside it.

import Contract
import Crypto
import Foundation
import Glibc
import JSON
import Kafka
import KafkaTestKit
import Log
import MakeBelieve
import Platform
import Testing

struct ReplayScene: Sendable {
    let installation: Installation
    let disks: ScratchDirectory
    private let apps: String

    var broker: Broker { installation.broker }

    static func make(_ label: String, partitions: Int, subscribers: Int) async throws -> ReplayScene {
        let installation = try await Installation.make(label, try await Broker.shared(), partitions: partitions)
        let scratch = try ScratchDirectory("replay")
        let apps = try scratch.write(
            #"[{"bundleId":"com.example.reader","appAppleId":1500000001,"entitlements":{"all":["a"]}}]"#,
            to: "apps.json")
        let scene = ReplayScene(installation: installation, disks: scratch, apps: apps)
        if subscribers > 0 { try await scene.feed(subscribers: subscribers) }
        return scene
    }

    /// Uses topics that exist and are not empty, with both apps of the simulated store.
    static func over(_ installation: Installation) throws -> ReplayScene {
        let scratch = try ScratchDirectory("replay")
        let apps = try scratch.write(
            #"[{"bundleId":"com.example.reader","appAppleId":1500000001,"entitlements":{"all":["a"]}},"#
                + #"{"bundleId":"com.example.player","appAppleId":1500000002},"#
                + #"{"bundleId":"com.example.one","appAppleId":1}]"#,
            to: "apps.json")
        return ReplayScene(installation: installation, disks: scratch, apps: apps)
    }

    // MARK: Input

    /// The lives of a few subscribers, and a tick per day in every partition.
    func feed(subscribers: Int, seed: UInt64 = 11) async throws {
        let (broker, partitions) = (broker, Int32(installation.partitions))
        let topic = installation.topic("notifications")
        try await blocking {
            let store = try StoreLog(
                seed: seed, subscribers: subscribers, arrival: 60 * StoreLog.day, after: 100 * StoreLog.day)
            var failure: KafkaCode?
            // What a busy broker has not confirmed is sent again, as ingest does it.
            var unconfirmed: [Int] = []
            var sent: [(partition: Int32, key: [UInt8]?, value: [UInt8], type: String, time: Int64)] = []
            let producer = try Producer(.init(clientID: "feeder", properties: broker.properties)) { report in
                guard let code = report.failure else { return }
                if code == .unconfirmed { unconfirmed.append(Int(report.token)) } else { failure = code }
            }
            defer { producer.close(by: Deadline(after: patience)) }
            let target = try producer.topic(topic)
            func send(_ partition: Int32, _ key: [UInt8]?, _ value: [UInt8], _ type: String, _ time: Int64) throws {
                sent.append((partition, key, value, type, time))
                let headers = [RecordHeader("schema", "\(type)/1")]
                while producer.outstanding > 5_000 { producer.poll(.milliseconds(10)) }
                try producer.send(
                    to: target, partition: partition, key: key?.span, value: value.span, headers: headers,
                    timestamp: time, token: UInt(sent.count - 1))
            }
            var nextTick = StoreLog.start
            func tick(until instant: Int64) throws {
                while nextTick <= instant {
                    for partition in 0..<partitions {
                        try send(partition, nil, Array(#"{"v":1,"tick":\#(nextTick)}"#.utf8), "tick", nextTick)
                    }
                    nextTick += StoreLog.day
                }
            }
            for arrival in store.punctual {
                try tick(until: arrival.at)
                let record = try store.record(of: arrival)
                let partition = Partitioner.partition(of: record.key, count: partitions)
                try send(partition, record.key, record.value, "notification", record.timestamp)
            }
            try tick(until: store.end)
            try producer.flush(by: Deadline(after: .seconds(120)))
            while let number = unconfirmed.popLast() {
                let one = sent[number]
                try send(one.partition, one.key, one.value, one.type, one.time)
                try producer.flush(by: Deadline(after: .seconds(120)))
            }
            if let failure { throw KafkaFault(.stopProcess, failure, operation: "feed notifications") }
        }
    }

    // MARK: Processes

    func settings(_ slot: Int, _ disk: String) -> [String] {
        ["--worker.slot", "\(slot)", "--state.directory", disks.file(disk), "--apps", apps] + installation.settings
    }

    /// - Parameter program: the path of another build.
    func startLive(
        _ worker: String, _ options: [String] = [], disk: String = "live", program: String? = nil
    ) throws -> ServiceProcess {
        var settings = settings(0, disk)
        if worker == "churn" { settings.removeAll { $0 == "--apps" || $0 == apps } }
        if worker == "consumption" { settings += ["--consumption.send", "false"] }
        return try ServiceProcess([worker] + settings + options, program: program)
    }

    func arguments(_ worker: String, slot: Int = 0, disk: String? = nil) -> [String] {
        ["replay", worker] + settings(slot, disk ?? "replay-\(slot)")
    }

    func startReplay(_ worker: String, slot: Int = 0, disk: String? = nil, _ options: [String]) throws -> ChildProcess {
        try ChildProcess(
            productPath("perennial"), arguments(worker, slot: slot, disk: disk) + options, environment: .only([:]),
            workingDirectory: "/")
    }

    func tool(_ worker: String, _ options: [String], slot: Int = 0) async throws -> ProgramResult {
        try await run(
            productPath("perennial"), arguments(worker, slot: slot) + options, environment: .only([:]),
            workingDirectory: "/")
    }

    /// With only the settings of the installation.
    func program(_ arguments: [String]) async throws -> ProgramResult {
        try await run(
            productPath("perennial"), arguments + installation.settings, environment: .only([:]), workingDirectory: "/")
    }

    func group(_ worker: String) -> String { installation.topic(worker) }

    /// The committed positions of a group.
    func positions(_ group: String) async throws -> [TopicPartition: NextOffset] {
        let broker = broker
        return try await blocking {
            let admin = try Admin(clientID: "watch", properties: broker.properties)
            defer { admin.close(by: Deadline(after: patience)) }
            return try admin.currentOffsets(ofGroup: group, by: Deadline(after: patience))
        }
    }

    func waitUntilDealtWith(by group: String) async throws {
        let (broker, topic) = (broker, installation.topic("notifications"))
        let partitions = (0..<Int32(installation.partitions)).map { TopicPartition(topic, $0) }
        let ends = try await blocking {
            let reader = try KafkaLog(broker.properties).openReader(
                ReaderOptions(name: "watch", group: "watch", topics: [topic]))
            defer { reader.close(by: Deadline(after: patience)) }
            return try reader.ends(.committed, of: partitions, by: Deadline(after: patience))
        }
        try await waitUntil("\(group) has processed everything", within: .seconds(300)) {
            let positions = try await positions(group)
            return partitions.allSatisfy { positions[$0] == ends[$0] }
        }
    }

    // MARK: Output

    func topics() async throws -> [String] {
        let broker = broker
        return try await blocking {
            let admin = try Admin(clientID: "watch", properties: broker.properties)
            defer { admin.close(by: Deadline(after: patience)) }
            return try admin.cluster(by: Deadline(after: patience)).topics.map(\.name)
        }.filter { $0.hasPrefix(installation.prefix + ".") }
    }

    func read(_ topic: String, of replay: String? = nil) async throws -> [WholeRecord] {
        try await broker.readWhole(installation.topic(topic) + (replay.map { ".replay-\($0)" } ?? ""))
    }

    /// Every record unchanged, in the order of each partition.
    func sequences(_ topic: String, of replay: String? = nil) async throws -> [Int32: [WholeRecord]] {
        Dictionary(grouping: try await read(topic, of: replay), by: \.partition)
    }

    /// The last record of every key; a tombstone counts as none.
    func last(_ topic: String, of replay: String? = nil) async throws -> [[UInt8]: WholeRecord] {
        var last: [[UInt8]: WholeRecord] = [:]
        for record in try await read(topic, of: replay) { last[record.key ?? []] = record }
        return last.filter { !$0.value.value.isEmpty }
    }
}

extension ReplayScene {
    /// The value of each key, read with another library than the program's: without its history and without zeros.
    func values(_ topics: [String], of replay: String? = nil) async throws -> [String: NSDictionary] {
        var found: [String: NSDictionary] = [:]
        for topic in topics {
            for (key, record) in try await last(topic, of: replay) {
                var object = try #require(
                    try JSONSerialization.jsonObject(with: Data(record.value)) as? [String: Any])
                for member in ["sequence", "asOf", "cause", "offset"] { object[member] = nil }
                object = object.filter { !($0.value is NSNull) }
                for sums in ["counts", "money"] where object[sums] != nil {
                    object[sums] = try #require(object[sums] as? [String: Int]).filter { $0.value != 0 }
                }
                found["\(topic) \(String(decoding: key, as: UTF8.self))"] = object as NSDictionary
            }
        }
        return found
    }

    /// A cell that counts nothing equals a missing cell.
    func cells(of replay: String? = nil) async throws -> [String: NSDictionary] {
        try await values(["churn-cells"], of: replay).filter { _, cell in
            ["counts", "money"].contains { ((cell[$0] as? [String: Any]) ?? [:]).isEmpty == false }
        }
    }
}

extension ReplayScene {
    /// For each partition, the first notification or tick at or after a time.
    func places(at time: Int64) async throws -> [Int32: Int64] {
        let records = try await read("notifications")
        return Dictionary(grouping: records, by: \.partition).mapValues { records in
            records.first { $0.timestamp! >= time }!.offset
        }
    }
}

// MARK: Refund requests

extension ReplayScene {
    /// With every setting that the live worker needs to send answers.
    func refundSettings(apple port: UInt16) throws -> [String] {
        let key = try disks.write(String(decoding: SigningKey(.p256).pem, as: UTF8.self), to: "key.p8")
        let apps = try disks.write(#"[{"bundleId":"com.example.one","appAppleId":1}]"#, to: "refunding.json")
        let file = try disks.write(
            """
            apps = \(apps)
            state.directory = \(disks.file("refunds"))
            worker.slot = 0
            apple.issuer.id = 57246542-96fe-1a63-e053-0824d011072a
            apple.key.id = 2X9R4HXF34
            apple.key = \(key)
            apple.api.production = https://127.0.0.1:\(port)
            """, to: "refunds.conf")
        return ["--config", file]
    }

    /// A request of today, the backend's usage for its purchase, and usage for another purchase in the wrong partition.
    func feedRefundRequest() async throws {
        let (broker, installation) = (broker, installation)
        try await blocking {
            let now = WallClock.milliseconds()
            let transaction = bought("7", from: now - 3 * day, to: now + 27 * day, signed: now)
            let request =
                "{\"v\":1,\"notificationUUID\":\"q\",\"notificationType\":\"CONSUMPTION_REQUEST\",\"subtype\":null,"
                + "\"signedDate\":\(now),\"transaction\":\(transaction),\"renewalInfo\":null}"
            func usage(_ id: String) -> String {
                "{\"v\":1,\"originalTransactionId\":\"\(id)\",\"consented\":true,\"deliveryStatus\":\"DELIVERED\"}"
            }
            let producer = try Producer(.init(clientID: "feeder", properties: broker.properties)) { _ in }
            defer { producer.close(by: Deadline(after: patience)) }
            func home(_ id: String) -> Int32 {
                Partitioner.partition(of: Array(id.utf8), count: Int32(installation.partitions))
            }
            func send(_ topic: String, _ partition: Int32, _ key: String, _ value: String, _ type: String?) throws {
                try producer.send(
                    to: try producer.topic(installation.topic(topic)), partition: partition,
                    key: Array(key.utf8).span, value: Array(value.utf8).span,
                    headers: type.map { [RecordHeader("schema", "\($0)/1")] } ?? [],
                    timestamp: now)
            }
            try send("usage", home("1000"), "1000", usage("1000"), nil)
            try send("usage", 1 - home("1001"), "1001", usage("1001"), nil)
            try send("notifications", home("1000"), "1000", request, "notification")
            try producer.flush(by: Deadline(after: patience))
        }
    }

    func decisions(of replay: String? = nil) async throws -> [WholeRecord] {
        try await read("consumption", of: replay).filter {
            try JSONValue.read($0.value)["kind"]?.string == "decided"
        }
    }
}

/// Listens on a port and never answers.
final class SilentListener {
    private let listener: Listener

    init() throws { listener = try Loopback.listen() }

    var port: UInt16 { listener.port }

    /// Whether a client has connected.
    var wasCalled: Bool {
        var entry = pollfd(fd: listener.descriptor.number, events: Int16(POLLIN), revents: 0)
        return poll(&entry, 1, 0) > 0
    }
}
