// One run of `perennial demo`: wires its parts.

import AppStore
import ChurnWorker
import Clock
import CommandLine
import Consumption
import ConsumptionWorker
import Contract
import Crypto
import Entitlements
import EntitlementsWorker
import HTTP
import Ingest
import Platform
import ReadAPI
import Runtime
import Service
import Simulation
import Simulator
import Store
import Telemetry
import Zone

struct DemoRun {
    let place: DemoTopics.Place
    /// nil: the demo runs until a signal arrives.
    let duration: Duration?
    let output: Output

    /// The zone of the counted days: the same on every machine.
    static let zone = Zone.utc
    private static let dayMilliseconds: Int64 = 86_400_000
    /// In the store's time. Short compared with the time that an open refund request leaves.
    private static let tickInterval: Duration = .seconds(5 * 60)
    /// The default in production.
    private static let leeway: Int64 = 3_600_000
    /// The shortest that brokers allow, because the group can only be deleted after its session.
    private static let sessionTimeout: Duration = .seconds(6)
    private static let app = "perennial/\(PerennialVersion.text)"

    func run() -> ExitCode {
        let start = ContinuousClock.now
        let environment = environmentVariables()
        let isOnTerminal = TerminalCanvas.size(of: environment) != nil
        let troubles = DemoTroubles()
        let sink: @Sendable ([UInt8]) -> Void = { line in
            if isOnTerminal { troubles.add(line) } else { writeAll(line, to: 2) }
        }
        let health = Health()
        let isOver = Latch()
        let service: Service
        do {
            let parts = try parts(
                start: start, isOver: isOver, health: health, sink: sink, troubles: troubles,
                style: DemoView.Style(
                    size: { isOnTerminal ? TerminalCanvas.size(of: environment) : nil },
                    isColoured: TerminalCanvas.isColoured(in: environment), print: output.data,
                    draw: { writeAll(Array($0.utf8), to: 1) }, isAbandoned: { isAbandoned(1) }))
            // There are no settings to read again, and the terminal is closed.
            let hangUp: @Sendable () -> Void = { isOver.open() }
            service = Service(
                parts, health: health, logger: Logger(level: .warning, format: .text, sink: sink),
                reload: Signals.hangUpIsIgnored ? nil : hangUp)
        } catch {
            output.message("perennial demo: \(error)")
            return .gaveUp
        }
        WorkerThread.start("demo-end") {
            if let duration { isOver.wait(for: duration - start.duration(to: .now)) } else { isOver.wait() }
            service.stop()
        }
        let code = service.run()
        if code != .done, isOnTerminal { for line in troubles.lines { output.message(line) } }
        return code
    }

    // MARK: Parts

    /// In the order in which they start. The view stops after the parts that it shows.
    private func parts(
        start: ContinuousClock.Instant, isOver: Latch, health: Health, sink: @escaping @Sendable ([UInt8]) -> Void,
        troubles: DemoTroubles, style: DemoView.Style
    ) throws -> [any ServicePart] {
        let logger = Logger(level: .warning, format: .text, sink: sink)
        let topics = DemoTopics(place, say: output.message)
        let world = try DemoWorld(place, asksForRefunds: true, elapsed: { start.duration(to: .now) })
        let (store, clock) = (world.store, world.clock)
        let metrics = Metrics()
        let board = DemoBoard()
        let identity = try Self.identity()
        let answers = try DemoAnswers(store, listen: Self.anyPort, userAgent: Self.app)
        let usageToken = Self.secret()
        let ingest = ingest(
            topics, usageToken: usageToken,
            policy: VerificationPolicy(anchors: TrustAnchors([store.root]), apps: Self.apps),
            identity: identity,
            clock: clock, health: health, metrics: metrics,
            // Only errors: ingest warns about refused requests, and the demo sends forgeries.
            logger: Logger(level: .error, format: .text, sink: sink))
        var ticking = LogTicker.Configuration(
            prefix: topics.prefix, partitions: DemoTopics.partitions, interval: Self.tickInterval, app: Self.app)
        ticking.environments = [.production]
        let ticker = LogTicker(ticking, log: topics.log, now: { clock.now }, metrics: metrics, logger: logger)
        let workers = workers(topics, answers, clock: clock, health: health, metrics: metrics, logger: logger)
        let api = ReadAPIService(
            ReadAPIService.Configuration(
                // No limit: a moment of lag is hours in the store's time.
                [.init(topics.names(.production), MemoryStores())], partitions: Int(DemoTopics.partitions),
                listen: Self.anyPort, tokens: []),
            log: topics.log, time: world.readAPITime, health: health, metrics: metrics, logger: logger)
        let door: @Sendable (String) -> String? = { path in ingest.address.map { "https://\($0)/\(path)" } }
        let url: @Sendable () -> String? = { door("notifications") }
        let subject = DemoView.Subject(
            topics: topics, world: world, board: board, metrics: metrics, troubles: troubles, health: health,
            start: start, isOver: isOver, ingest: url, api: { api.address.map { "http://\($0)" } })
        let view = ThreadPart("view") { stop in
            var view = try DemoView(subject, style)
            try view.run(until: stop)
        }
        let appStore = DemoStore.part(
            store, clock: clock, board: board, authority: identity.certificate,
            isIngestReady: {
                // Only conditions of Kafka; the other parts are ready when they have started.
                !health.readiness.reasons.contains { $0.condition == "kafka" || $0.condition == "topics" }
            }, url: url,
            usage: { door("usage").map { Courier.Options.Usage(url: $0, token: usageToken) } })
        let others: [any ServicePart] = [view, answers] + workers + [ticker] + api.parts + ingest.parts + [appStore]
        return [topics] + others.map { EarlierStop(part: $0, by: DemoTopics.stopShare) }
    }

    private static let apps = MakeBelieveStore.apps.map(\.contractApp)

    private func ingest(
        _ topics: DemoTopics, usageToken: String, policy: VerificationPolicy, identity: HTTPServer.Identity,
        clock: StoreClock,
        health: Health, metrics: Metrics, logger: Logger
    ) -> IngestService {
        let door = IngestDoor(listen: Self.anyPort, identity: .inMemory(identity))
        var endpoint = Endpoint.Configuration(app: Self.app)
        endpoint.archivesSignedPayloads = false
        endpoint.usageToken = usageToken
        let destination = IngestService.Destination(
            prefix: topics.prefix, partitions: DemoTopics.partitions, topics: DemoTopics.taken)
        let judge = VerifierPool(policy, revocation: nil)
        switch place {
        case .memory:
            return IngestService(
                door, endpoint, judge: judge, to: destination, log: topics.log, now: { clock.now }, metrics: metrics,
                logger: logger)
        case .kafka(let properties):
            return IngestService(
                door, endpoint, judge: judge, to: destination, kafka: properties, now: { clock.now }, health: health,
                metrics: metrics, logger: logger)
        }
    }

    private func workers(
        _ topics: DemoTopics, _ answers: DemoAnswers, clock: StoreClock, health: Health, metrics: Metrics,
        logger: Logger
    ) -> [any ServicePart] {
        let rules = EntitlementRules(apps: Self.apps, leeway: Self.leeway, environment: .production)
        let names = topics.names(.production)
        var configuration = WorkerService.Configuration()
        configuration.sessionTimeout = Self.sessionTimeout
        func service(_ makeProcessor: @escaping @Sendable () -> any Processor) -> WorkerService {
            WorkerService(
                makeProcessor, log: topics.log, stores: MemoryStores(), configuration, health: health,
                metrics: metrics, logger: logger)
        }
        let refundRules = answers.rules(Self.apps)
        configuration.showsOwnership = true
        let consumption = service {
            ConsumptionProcessor(
                names, rules: refundRules, partitions: DemoTopics.partitions, app: Self.app,
                metrics: ConsumptionMetrics(metrics, policy: refundRules.policy))
        }
        configuration.showsOwnership = false
        return [
            service {
                EntitlementsProcessor(
                    names, rules: rules, partitions: DemoTopics.partitions, app: Self.app,
                    metrics: EntitlementsMetrics(metrics))
            },
            service {
                ChurnProcessor(
                    names, zone: Self.zone, partitions: DemoTopics.partitions, app: Self.app,
                    metrics: ChurnMetrics(metrics))
            },
            consumption,
            answers.sender(
                topics, beside: consumption, clock: clock, app: Self.app, health: health, metrics: metrics,
                logger: logger),
        ]
    }

    /// Loopback, on any free port.
    private static let anyPort = ListenAddress("127.0.0.1:0")!

    /// A token for this run only, so that nobody else can report usage.
    private static func secret() -> String {
        hexadecimal((0..<16).map { _ in UInt8.random(in: 0...255) })
    }

    /// A self-signed certificate for this run.
    private static func identity() throws(CertificateFault) -> HTTPServer.Identity {
        let key = SigningKey(.p256)
        let now = WallClock.milliseconds()
        let request = CertificateRequest(
            commonName: "perennial demo", serial: [1], validity: (now - dayMilliseconds)...(now + 30 * dayMilliseconds),
            extensions: [
                .basicConstraints(isAuthority: true, pathLength: nil),
                .subjectAlternativeNames(dns: ["localhost"], addresses: ["127.0.0.1"]),
            ])
        return HTTPServer.Identity(certificate: try Certificate.make(request, key: key).pem, key: key.pem)
    }
}
