// A simulated mix of lives through all workers: how many records a notification causes, and how large they are.

import AppStore
import Contract
import Crypto
import Glibc
import IngestTestKit
import JSON
import Kafka
import KafkaTestKit
import Log
import Platform
import Records
import Sizing

private let subscribers = 1500
private let days = 400
/// Percent of the subscribers.
private let refunds = 5
private let perSecond = 300
private let atOnce = 10

/// A record of the mix before it is in a topic.
private struct Told: Sendable {
    let topic: TopicID
    let key: [UInt8]
    let value: [UInt8]
    let id: String
    let at: Int64
}

/// The notifications as ingest would have written them when they were sent: so the clocks of the partitions, and with them the
/// timers of the workers, go as they would have gone.
private struct Mix: Sendable {
    var told: [Told] = []
    var renewals = 0
    var requests = 0
    /// Notifications about subscriptions.
    var ofSubscriptions = 0
    /// For each key of notifications.
    var perKey: [[UInt8]: Int] = [:]

    init(_ scratch: String, _ program: String) async throws {
        let made = try await run(
            program,
            [
                "simulate", "--subscribers", "\(subscribers)", "--days", "\(days)", "--refunds", "\(refunds)", "--out",
                "\(scratch)/payloads", "--usage-out", "\(scratch)/usage.jsonl", "--apps", "\(scratch)/apps.json",
            ], environment: .only([:]), timeout: .seconds(300))
        guard made.code == 0 else { throw NotInTime("payloads", limit: .zero, detail: made.words) }
        // The simulator's certificates follow from its seed, which is the fixture's.
        let verifier = Verifier(
            VerificationPolicy(anchors: TrustAnchors([try NotificationFixture(count: 1).root]), apps: nil))
        for line in try lines("\(scratch)/payloads/index.jsonl") {
            guard let file = line["file"]?.string, let at = line["at"]?.integer else { continue }
            let jws = try readFile("\(scratch)/payloads/\(file)", limitBytes: 1 << 20)
            let notification = try verifier.notification(jws, now: at)
            count(notification)
            let key = Array(notification.key.utf8)
            told.append(
                Told(
                    topic: .notifications, key: key,
                    value: NotificationRecord.value(notification, receivedDate: at, source: .push),
                    id: notification.notificationUUID, at: at))
        }
        for line in try lines("\(scratch)/usage.jsonl") {
            guard let record = line["record"], let id = record["originalTransactionId"]?.string,
                let at = line["at"]?.integer
            else { continue }
            var json = JSONWriter()
            json.value(record)
            told.append(Told(topic: .usage, key: Array(id.utf8), value: json.bytes, id: "usage-\(at)", at: at))
        }
        told.sort { $0.at < $1.at }
    }

    private mutating func count(_ notification: VerifiedNotification) {
        perKey[Array(notification.key.utf8), default: 0] += 1
        switch notification.notificationType {
        case "CONSUMPTION_REQUEST": requests += 1
        case "ONE_TIME_CHARGE", "TEST", "EXTERNAL_PURCHASE_TOKEN": break
        case "DID_RENEW":
            renewals += 1
            ofSubscriptions += 1
        default: ofSubscriptions += 1
        }
    }

    private func lines(_ path: String) throws -> [JSONValue] {
        try readFile(path, limitBytes: 1 << 28).split(separator: UInt8(ascii: "\n")).map {
            try JSONValue.read(Array($0))
        }
    }

    func write(_ stage: SizingStage, _ names: Names) async throws {
        let (bootstrap, told) = (stage.bootstrap, told)
        try await onThread { try append(told, names, bootstrap) }
    }
}

/// In the order in which they were sent, some hundred a second.
private func append(_ told: [Told], _ names: Names, _ bootstrap: String) throws {
    let topics = [names.topic(.notifications), names.topic(.usage)]
    let writer = try KafkaLog(ClientProperties(bootstrapServers: bootstrap))
        .openWriter(WriterOptions(name: "bench", topics: topics))
    defer { writer.close(by: Deadline(after: .seconds(10))) }
    let batch = OutputBatch()
    let start = ContinuousClock.now
    for (number, one) in told.enumerated() {
        let isUsage = one.topic == .usage
        let type = isUsage ? "usage" : "notification"
        batch.append(
            topic: isUsage ? 1 : 0, partition: Partitioner.partition(of: one.key, count: workerPartitions),
            timestamp: one.at, key: one.key, value: one.value,
            headers: [
                RecordHeader("id", one.id), RecordHeader("schema", "\(type)/1"),
                RecordHeader("app", "perennial/0.2.0"),
            ])
        guard batch.count == atOnce || number == told.count - 1 else { continue }
        _ = try writer.append(batch, by: Deadline(after: .seconds(60)))
        batch.removeAll()
        let left = ContinuousClock.now.duration(to: start.advanced(by: .seconds(1) * (number + 1) / perSecond))
        if left > .zero { usleep(UInt32(left.fractionalSeconds * 1e6)) }
    }
}

func measureMix(_ stage: SizingStage, _ figures: inout SizingFigures, _ report: Report) async throws {
    let scratch = try ScratchDirectory("bench-size-mix")
    defer { withExtendedLifetime(scratch) {} }
    let names = stage.names("mix")
    try await stage.createTopics(names)
    let mix = try await Mix(scratch.path, stage.program)
    report.note(
        "mix: \(subscribers) simulated subscribers of \(days) days, \(mix.told.count) notifications and usage records, "
            + "\(mix.renewals) renewals, \(mix.requests) refund requests")
    // The workers are there before the records, as in an installation: from a backlog they would write one state for many changes.
    var workers: [(name: WorkerName, process: ChildProcess)] = []
    for worker in WorkerName.allCases {
        let process = try stage.start(
            worker.rawValue, names,
            ["--apps", "\(scratch.path)/apps.json", "--state.directory", scratch.path, "--worker.slot", "0"]
                + (worker == .consumption ? ["--consumption.send", "false"] : []))
        let admin = try await AdminReading(process)
        try await waitUntil("\(worker.rawValue) is ready", within: .seconds(120)) { try await admin.isReady() }
        workers.append((worker, process))
    }
    try await mix.write(stage, names)
    for (name, process) in workers { try await stage.waitUntilRead(names, by: name, process) }
    // `usage` is read, too, and what it caused is committed.
    try await Task.sleep(for: .seconds(3))
    for (_, process) in workers { _ = try await process.terminate(within: .seconds(60)) }
    printMessage("sizing: the workers have read the mix")
    try await tick(stage, names)
    try read(mix, names, stage, &figures, report)
}

/// Until the clock has written ticks to every partition.
private func tick(_ stage: SizingStage, _ names: Names) async throws {
    let clock = try stage.start("clock", names, ["--tick.interval.ms", "500"])
    try await Task.sleep(for: .seconds(12))
    _ = try await clock.terminate(within: .seconds(30))
}

private func read(
    _ mix: Mix, _ names: Names, _ stage: SizingStage, _ figures: inout SizingFigures, _ report: Report
) throws {
    let folder = stage.cluster.broker.dataDirectory
    func topic(_ id: TopicID) throws -> TopicOnDisk { try TopicOnDisk(names.topic(id), in: folder) }
    let notifications = Double(mix.told.count { $0.topic == .notifications })
    let requests = Double(mix.requests)
    figures[.notificationsPerRenewal] = Double(mix.ofSubscriptions) / Double(mix.renewals)

    let input = try topic(.notifications)
    let ticks = input.records.filter { $0.key == nil }
    figures[.tickBytes] = input.mean(ticks)
    figures[.notificationBytes] = input.mean(input.records.filter { $0.key != nil })
    figures[.batchBytes] = Double(TopicOnDisk.headerBytes)
    figures[.usageBytes] = try topic(.usage).bytesPerRecord

    let outputs: [(TopicID, bytes: FigureName, count: FigureName)] = [
        (.entitlements, .entitlementBytes, .entitlementsPerNotification),
        (.entitlementEvents, .entitlementEventBytes, .entitlementEventsPerNotification),
        (.accounts, .accountBytes, .accountsPerNotification),
        (.churnCells, .churnCellBytes, .churnCellsPerNotification),
        (.churnEvents, .churnEventBytes, .churnEventsPerNotification),
    ]
    var (markers, markerBytes) = (0, 0)
    for (id, bytes, count) in outputs {
        let output = try topic(id)
        figures[bytes] = output.bytesPerRecord
        figures[count] = Double(output.records.count) / notifications
        markers += output.markers
        markerBytes += output.markerBytes
    }
    figures[.markerBytes] = Double(markerBytes) / Double(markers)
    let consumption = try topic(.consumption)
    figures[.consumptionBytes] = consumption.bytesPerRecord
    figures[.consumptionRecordsPerRequest] = Double(consumption.records.count) / requests

    var notes: [TopicOnDisk.Record] = []
    for worker in WorkerName.allCases {
        let changelog = try topic(.changelog(worker))
        notes += changelog.records.filter { $0.key == [0] }
        let states = changelog.records.filter { $0.key != [0] }
        let last = Dictionary(states.map { ($0.key ?? [], $0.bytes) }) { $1 }
        let perNotification = Double(states.count) / notifications
        let others = last.filter { point($0.key, $0.value, mix) == nil && $0.key.dropFirst().first != 0 }
        report.note("\(worker.rawValue): \(last.count) keys, \(others.count) of them of no subscription and no cell")
        switch worker {
        case .entitlements:
            figures[.entitlementsStateBytes] = changelog.mean(states)
            figures[.entitlementsStatesPerNotification] = perNotification
            let line = Line(last.compactMap { key, bytes in point(key, bytes, mix) })
            figures[.entitlementsKeptBytes] = line.base
            figures[.entitlementsKeptBytesPerNotification] = line.slope
        case .churn:
            figures[.churnStateBytes] = changelog.mean(states)
            figures[.churnStatesPerNotification] = perNotification
            // Keys of cells, and of the partition's overview, begin with 0.
            let line = Line(last.compactMap { key, bytes in key.dropFirst().first == 0 ? nil : point(key, bytes, mix) })
            figures[.churnKeptBytes] = line.base
            figures[.churnKeptBytesPerNotification] = line.slope
            let cells = last.filter { $0.key.dropFirst().first == 0 }.values
            figures[.churnKeptBytesPerCell] = Double(cells.reduce(0, +)) / Double(cells.count)
        case .consumption:
            figures[.consumptionStateBytes] = changelog.mean(states)
            // Usage records change its state, too.
            figures[.consumptionStatesPerNotification] = Double(states.count) / Double(mix.told.count)
            let line = Line(last.compactMap { key, bytes in point(key, bytes, mix) })
            figures[.consumptionKeptBytes] = line.base
            figures[.consumptionKeptBytesPerNotification] = line.slope
        }
    }
    figures[.noteBytes] = Double(notes.reduce(0) { $0 + $1.bytes }) / Double(notes.count)
}

/// How many notifications a key has had, and how many bytes are kept of it. nil: the key is no subscription or purchase.
private func point(_ key: [UInt8], _ bytes: Int, _ mix: Mix) -> (Double, Double)? {
    mix.perKey[Array(key.dropFirst())].map { (Double($0), Double(bytes)) }
}

/// The straight line that is nearest to these points (least squares).
private struct Line {
    let base: Double
    let slope: Double

    init(_ points: [(x: Double, y: Double)]) {
        let count = Double(points.count)
        let (x, y) = (points.reduce(0) { $0 + $1.x } / count, points.reduce(0) { $0 + $1.y } / count)
        let products = points.reduce(0) { $0 + ($1.x - x) * ($1.y - y) }
        slope = products / points.reduce(0) { $0 + ($1.x - x) * ($1.x - x) }
        base = y - slope * x
    }
}
