// Runs of the worker of refund requests, of its sender, and of the C loop that sends the same answers.

import AppStoreAPI
import Consumption
import ConsumptionSender
import ConsumptionWorker
import Contract
import Crypto
import Glibc
import IngestTestKit
import JSON
import Kafka
import KafkaTestKit
import Log
import MemoryLog
import Platform
import Runtime
import Service
import Store
import Synchronization
import Telemetry

private let app = "perennial/1.0.0"
/// Size of the pool, and the greatest number of requests that the sender has in flight.
private let connections = 32

func refundNames(_ prefix: String) -> Names {
    guard let prefix = TopicPrefix(prefix) else { preconditionFailure("\(prefix) is not a valid prefix") }
    return Names(prefix: prefix, environment: .production)
}

private func processor(_ names: Names, _ feed: RefundFeed) -> ConsumptionProcessor {
    ConsumptionProcessor(
        names, rules: ConsumptionRules(apps: feed.apps, policy: nil, wait: 3_600_000), partitions: workerPartitions,
        app: app, metrics: ConsumptionMetrics(Metrics(), policy: nil))
}

/// All topics of the worker.
func refundTopics(_ names: Names) -> [NewTopic] {
    let definition = processor(names, RefundFeed(bundleId: "", transactionIds: [])).definition
    let inputs = [definition.events.topic] + definition.tables.map(\.topic)
    return (inputs + definition.outputs.map(\.topic) + [definition.deadLetters])
        .map { NewTopic($0, partitions: workerPartitions) }
        + [NewTopic(definition.changelog, partitions: workerPartitions, isCompacted: true)]
}

private func makeService(
    _ names: Names, _ feed: RefundFeed, _ log: any RecordLog, _ stores: any PartitionStores
) -> WorkerService {
    var configuration = WorkerService.Configuration()
    configuration.showsOwnership = true
    return WorkerService(
        { processor(names, feed) }, log: log, stores: stores, configuration, health: Health(), metrics: Metrics(),
        logger: Logger(level: .warning, format: .text))
}

private func fail(_ fault: any Error) {
    printMessage("bench: a part has ended: \(fault)")
    exitProcess(3)
}

// MARK: Decisions

/// The app does not matter, because nothing is sent.
let refundFeed = RefundFeed(bundleId: "com.example.subscriptions", transactionIds: ["3000000000000000"])

/// Measures from the first record to the commit of the last: the worker writes `requested` and `decided` for each request.
func runRefunds(_ bootstrap: String, _ prefix: String, requests: Int) throws -> RunFigures {
    let scratch = try ScratchDirectory("bench-refunds")
    defer { withExtendedLifetime(scratch) {} }
    let meter = Meter()
    let told = OutputCount()
    let log = WatchedLog(
        KafkaLog(ClientProperties(bootstrapServers: bootstrap)), told.hooks(meter.hooks(records: 2 * requests)))
    let worker = makeService(refundNames(prefix), refundFeed, log, try openStores(scratch.path))
    try worker.start(failed: fail)
    let spending = try requireSpending(meter, within: .seconds(300))
    try worker.stop(by: Deadline(after: .seconds(20)))
    var figures = RunFigures(spending)
    figures["told"] = Double(told.count(of: 0))
    return figures
}

// MARK: Answers

/// The simulator in the role of Apple, in a process of its own.
final class RefundServer {
    /// The files that it writes, by the names of its arguments.
    struct Files {
        let directory: String
        var settings: String { "\(directory)/apple.conf" }
        var authority: String { "\(directory)/apple.pem" }
        var key: String { "\(directory)/apple.p8" }
        var truth: String { "\(directory)/truth.jsonl" }

        func setting(_ name: String) throws -> String {
            for line in String(decoding: try readFile(settings), as: UTF8.self).split(separator: "\n") {
                let parts = line.split(separator: "=", maxSplits: 1).map { $0.filter { $0 != " " } }
                if parts.count == 2, parts[0] == name { return parts[1] }
            }
            throw NotInTime("the setting \(name) of \(settings)", limit: .zero)
        }

        /// Requests for purchases that the server knows, all of one app.
        func feed() throws -> RefundFeed {
            var bundleId: String?
            var ids: [String] = []
            for line in try readFile(truth, limitBytes: 64 << 20).split(separator: UInt8(ascii: "\n")) {
                let json = try JSONValue.read(Array(line))
                guard json["kind"]?.string == "refund_request",
                    json["productType"]?.string == "Auto-Renewable Subscription",
                    json["advancedCommerce"]?.bool == false, json["family"]?.bool == false,
                    let id = json["transactionId"]?.string, let app = json["bundleId"]?.string
                else { continue }
                bundleId = bundleId ?? app
                if bundleId == app { ids.append(id) }
            }
            guard let bundleId else { throw NotInTime("a refund request in \(truth)", limit: .zero) }
            return RefundFeed(bundleId: bundleId, transactionIds: ids)
        }
    }

    let files: Files
    private let scratch: ScratchDirectory
    private let process: ChildProcess

    init() async throws {
        scratch = try ScratchDirectory("bench-apple")
        files = Files(directory: scratch.path)
        let program = try productPath("perennial")
        let story = ["simulate", "--seed", "5", "--subscribers", "400", "--hours", "3", "--refunds", "100"]
        let told = try await run(program, story + ["--truth", files.truth, "--out", "\(scratch.path)/payloads"])
        guard told.code == 0 else { throw NotInTime("a story", limit: .zero, detail: told.words) }
        let api = [
            "--api", "127.0.0.1:0", "--api-ca", files.authority, "--api-key", files.key, "--api-settings",
            files.settings,
        ]
        process = try ChildProcess(program, story + api)
        try await waitUntil("Apple's API is served: \(process.lastLines(5))", within: .seconds(60)) {
            fileExists(files.settings)
        }
    }

    func stop() async throws { _ = try await process.terminate(within: .seconds(30)) }
}

/// The worker has decided everything before the sender starts. Measures what both do until every answer is accepted and recorded.
func runAnswers(_ files: RefundServer.Files, requests: Int) throws -> RunFigures {
    let names = refundNames("bench")
    let memory = MemoryLog()
    try memory.create(
        refundTopics(names).map { NewTopic($0.name, partitions: workerPartitions) }, by: Deadline(after: .seconds(1)))
    let feed = try files.feed()
    try feed.fill(memory, names, requests: requests)
    let told = OutputCount()
    let log = WatchedLog(memory, told.hooks(SessionHooks()))
    let worker = makeService(names, feed, log, MemoryStores())
    try worker.start(failed: fail)
    try wait("decisions") { told.count(of: 0) >= 2 * requests }

    var settings = AppStoreServerAPI.Configuration()
    settings.production = try files.setting("apple.api.production")
    settings.authorities = try readFile(files.authority)
    settings.maxInFlight = connections
    let key = try APIKey(
        issuerId: files.setting("apple.issuer.id"), keyId: files.setting("apple.key.id"), pem: readFile(files.key))
    let meter = Meter()
    meter.start()
    let api = try AppStoreServerAPI(key: key, configuration: settings, now: WallClock.milliseconds)
    let sender = SenderService(
        // The sender is limited only by its own speed.
        SenderOptions(names, partitions: workerPartitions, rate: 1_000_000, app: app),
        worker: WorkerView(ownership: worker.ownership, positions: { worker.positions(of: $0) }),
        carrier: AppStoreCarrier(api, .production, now: WallClock.milliseconds), log: memory, health: Health(),
        metrics: Metrics(), logger: Logger(level: .warning, format: .text))
    try sender.start(failed: fail)
    try wait("answers") { told.count(of: 0) >= 3 * requests }
    meter.stop()
    try sender.stop(by: Deadline(after: .seconds(20)))
    try worker.stop(by: Deadline(after: .seconds(20)))
    api.close()
    var figures = RunFigures(try requireSpending(meter, within: .zero))
    figures["told"] = Double(told.count(of: 0))
    return figures
}

private func wait(_ what: String, _ condition: () -> Bool) throws {
    let deadline = Deadline(after: .seconds(120))
    while !condition() {
        guard !deadline.hasPassed else { throw NotInTime(what, limit: .seconds(120)) }
        pause(for: .milliseconds(5))
    }
}

/// Sends as many of the same bodies, to the URL of one of the same purchases, with a token like the sender's.
func runAnswersInC(_ files: RefundServer.Files, requests: Int) throws -> RunFigures {
    let feed = try files.feed()
    var bodies = Bodies()
    bodies.append(Array(#"{"customerConsented":true,"deliveryStatus":"DELIVERED","sampleContentProvided":false}"#.utf8))
    let server = try files.setting("apple.api.production")
    var load = Load(
        "\(server)/inApps/v2/transactions/consumption/\(feed.transactionIds[0])", authorityFile: files.authority,
        bodies: bodies, .requests(requests))
    load.method = "PUT"
    load.header = "Authorization: Bearer \(try token(files, feed.bundleId))"
    load.connectionCount = connections
    let meter = Meter()
    meter.start()
    let outcome = try load.run()
    meter.stop()
    guard outcome.answered(202) == requests else { throw NotInTime("202: \(outcome)", limit: .zero) }
    return RunFigures(try requireSpending(meter, within: .zero))
}

private func token(_ files: RefundServer.Files, _ bundleId: String) throws -> String {
    let seconds = WallClock.milliseconds() / 1000
    let header = #"{"alg":"ES256","kid":"\#(try files.setting("apple.key.id"))","typ":"JWT"}"#
    let claims =
        #"{"iss":"\#(try files.setting("apple.issuer.id"))","iat":\#(seconds - 60),"exp":\#(seconds + 1740),"#
        + #""aud":"appstoreconnect-v1","bid":"\#(bundleId)"}"#
    var text = Base64.encodeURL(Array(header.utf8).span)
    text.append(UInt8(ascii: "."))
    text += Base64.encodeURL(Array(claims.utf8).span)
    let digest = SHA256.digest(text.span)
    let signature = try SigningKey(pem: readFile(files.key)).sign(digest: digest.span)
    text.append(UInt8(ascii: "."))
    text += Base64.encodeURL(signature.span)
    return String(decoding: text, as: UTF8.self)
}
