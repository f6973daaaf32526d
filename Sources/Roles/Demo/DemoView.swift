// Watches the demo and shows it.

import Contract
import HTTPClient
import Log
import Platform
import Synchronization
import Telemetry
import Zone

/// Reads the topics that the workers write, like any consumer, and draws. One thread.
struct DemoView: ~Copyable {
    /// What the view reads.
    struct Subject: Sendable {
        let topics: DemoTopics
        let world: DemoWorld
        let board: DemoBoard
        let metrics: Metrics
        let troubles: DemoTroubles
        let health: Health
        let start: ContinuousClock.Instant
        /// Opened when nobody reads the output any more.
        let isOver: Latch
        let ingest: @Sendable () -> String?
        /// The address of the read API.
        let api: @Sendable () -> String?
    }

    /// How the view draws.
    struct Style: Sendable {
        /// nil: the output is not a terminal. Called before each drawing, because people resize windows.
        let size: @Sendable () -> TerminalCanvas.Size?
        let isColoured: Bool
        /// Prints a whole line.
        let print: @Sendable (String) -> Void
        /// Sends raw bytes to a terminal.
        let draw: @Sendable (String) -> Void
        /// Whether nobody can read the output any more.
        let isAbandoned: @Sendable () -> Bool
    }

    private struct Sample {
        let at: ContinuousClock.Instant
        let sent: Int
        let storeTime: Int64
    }

    private static let pollWait: Duration = .milliseconds(50)
    /// Nobody can read faster.
    private static let frameInterval: Duration = .milliseconds(200)
    /// For a log.
    private static let lineInterval: Duration = .seconds(5)
    /// Rates are averages over this time.
    private static let rateSpan: Duration = .seconds(5)
    private static let questionInterval: Duration = .milliseconds(300)

    private let subject: Subject
    private let style: Style
    private let questions: DemoQuestions
    private var outputs = DemoOutputs()
    private var counts = DemoCounts()
    private var refunds = DemoRefunds()
    private var report = DemoReport()
    private var canvas: TerminalCanvas
    private var samples: [Sample] = []
    private var firstOutput: Duration?

    init(_ subject: Subject, _ style: Style) throws(HTTPClientFault) {
        self.subject = subject
        self.style = style
        questions = try DemoQuestions()
        canvas = TerminalCanvas(isColoured: style.isColoured)
    }

    /// Shows the demo until `stop` opens, and then its last state.
    mutating func run(until stop: Latch) throws(LogFault) {
        defer { questions.close() }
        let names = subject.topics.names(.production)
        let topics = [.entitlements, .entitlementEvents, .churnCells, .consumption].map { names.topic($0) }
        let reader = try subject.topics.log.openReader(
            ReaderOptions(name: "perennial-demo-view", group: names.group(.entitlements), topics: topics))
        defer { reader.close(by: Deadline(after: .seconds(2))) }
        let partitions = topics.flatMap { topic in
            (0..<DemoTopics.partitions).map { TopicPartition(topic, $0) }
        }
        try reader.read(from: Dictionary(uniqueKeysWithValues: partitions.map { ($0, NextOffset(0)) }))
        let isOnTerminal = style.size() != nil
        var nextShow = ContinuousClock.now
        var nextLine = subject.start + Self.lineInterval
        var nextQuestion = ContinuousClock.now
        let batch = RecordBatch()
        while !stop.isOpen {
            try take(from: reader, batch)
            let now = ContinuousClock.now
            if now >= nextQuestion, let example = outputs.example, let api = subject.api() {
                nextQuestion = now + Self.questionInterval
                questions.ask(api, example, today: DemoRun.zone.day(of: subject.world.clock.now))
            }
            guard now >= nextShow else { continue }
            nextShow = now + Self.frameInterval
            if style.isAbandoned() { subject.isOver.open() }
            let scene = scene(at: now)
            if isOnTerminal, let size = style.size() {
                show(scene, size)
            } else {
                for line in report.news(scene) { style.print(line) }
                guard now >= nextLine else { continue }
                nextLine = now + Self.lineInterval
                for line in report.status(scene) { style.print(line) }
            }
        }
        // The last committed records.
        try take(from: reader, batch)
        let last = scene(at: .now)
        if isOnTerminal, let size = style.size() {
            show(last, size)
        } else {
            for line in report.news(last) { style.print(line) }
        }
        for line in DemoReport.summary(last) { style.print(line) }
    }

    private mutating func show(_ scene: DemoScene, _ size: TerminalCanvas.Size) {
        // The cursor waits in the row below.
        let lines = DemoScreen(width: size.width, height: size.height - 1).lines(scene)
        style.draw(canvas.draw(lines, width: size.width))
    }

    private mutating func take(from reader: any LogReader, _ batch: RecordBatch) throws(LogFault) {
        // Waits a moment for records; while records arrive, one frame takes several batches.
        let enough = Deadline(after: Self.frameInterval / 2)
        repeat {
            try reader.poll(into: batch, limit: 500, wait: Self.pollWait)
            for index in 0..<batch.count {
                let (key, value) = (batch[index].copyOfKey() ?? [], batch[index].copyOfValue())
                switch batch[index].topic {
                case 0:
                    if let uuid = outputs.take(entitlement: value, key: key) { subject.board.committed(uuid) }
                    if firstOutput == nil { firstOutput = subject.start.duration(to: .now) }
                case 1:
                    if let value { outputs.take(event: value) }
                case 2: counts.take(cell: value, key: key)
                default:
                    if let value { refunds.take(value, subject.world.clock) }
                }
            }
        } while !batch.isEmpty && !enough.hasPassed
        batch.removeAll()
    }

    private mutating func scene(at now: ContinuousClock.Instant) -> DemoScene {
        var scene = DemoScene()
        scene.running = subject.start.duration(to: now)
        scene.storeTime = subject.world.clock.now
        scene.log = subject.topics.description
        scene.posts = subject.board.posts
        samples.append(Sample(at: now, sent: scene.posts.sent, storeTime: scene.storeTime))
        while samples.count > 2, samples[1].at + Self.rateSpan <= now { samples.removeFirst() }
        if let first = samples.first, first.at < now {
            let seconds = first.at.duration(to: now).fractionalSeconds
            scene.postsPerSecond = Double(scene.posts.sent - first.sent) / seconds
            let days = Double(scene.storeTime - first.storeTime) / 86_400_000
            scene.pace = subject.world.pace(at: scene.storeTime, daysPerSecond: days / seconds)
        }
        scene.ingest = subject.ingest()
        let metrics = MetricsReading(subject.metrics.exposition())
        scene.lag = metrics.lag(of: .entitlements)
        scene.churnLag = metrics.lag(of: .churn)
        scene.consumptionLag = metrics.lag(of: .consumption)
        scene.latency = subject.board.latency
        scene.firstOutput = firstOutput
        scene.subscriptions = outputs.subscriptionCount
        scene.withAccess = outputs.withAccess
        scene.byState = outputs.byState
        scene.byKind = outputs.byKind
        scene.events = outputs.events
        scene.figures = counts.figures(today: DemoRun.zone.day(of: scene.storeTime))
        scene.refunds = refunds.figures
        scene.unreadable = outputs.unreadable + counts.unreadable + refunds.unreadable
        scene.questions = questions.answered
        scene.troubles = subject.troubles.lines(
            at: now, standing: subject.health.readiness.reasons, running: scene.running)
        return scene
    }
}

/// Keeps log lines that would otherwise disturb the screen.
final class DemoTroubles: Sendable {
    private static let limit = 20
    /// A line disappears after this time, because its cause may be over.
    static let shownFor: Duration = .seconds(10)
    private struct State {
        var told: [(line: String, at: ContinuousClock.Instant)] = []
        var hasStarted = false
    }
    private let state = Mutex(State())

    /// All lines that are kept.
    var lines: [String] { state.withLock { $0.told.map(\.line) } }

    /// Recent lines, and conditions that fail now. While everything starts or stops, failed conditions are not shown.
    func lines(at now: ContinuousClock.Instant, standing: [Health.Reason], running: Duration) -> [String] {
        state.withLock { state in
            if standing.isEmpty || running > Self.shownFor { state.hasStarted = true }
            let lately = state.told.filter { $0.at + Self.shownFor > now }.map(\.line)
            guard state.hasStarted, !standing.contains(where: { $0.condition == "service" }) else { return lately }
            return lately + standing.map(\.description)
        }
    }

    func add(_ line: [UInt8], at now: ContinuousClock.Instant = .now) {
        let text = String(decoding: line.last == UInt8(ascii: "\n") ? line.dropLast() : line[...], as: UTF8.self)
        state.withLock { state in
            state.told.append((text, now))
            if state.told.count > Self.limit { state.told.removeFirst() }
        }
    }
}
