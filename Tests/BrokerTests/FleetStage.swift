// A whole installation of release builds under a steady pace of notifications, and the judgement of what it wrote.

import Glibc
import KafkaTestKit
import PlainChurn
import Platform
import Testing
import TruthCheck

/// Three brokers, ingest, and two processes of each worker. Everything runs at the pace that was asked for while a test does
/// something to it.
final class FleetStage {
    /// Each fetch of a broker from another one looks at all partitions, of 34 topics here: with twelve, three brokers on two
    /// cores have no time for 500 notifications a second.
    static let partitions = 6
    /// Posts of a subscriber in the hundred days of a story.
    private static let notificationsOfASubscriber = 4
    /// Long enough that a moving partition is seen to move.
    private static let calm: Int64 = 2_500
    private static let calmFor = Duration.seconds(2)
    /// How long the judges may take to read a topic: they are built without optimisation.
    private static let readingLimit = Duration.seconds(1_200)
    private static let sampleInterval = Duration.seconds(5)
    /// In percent: enough refund requests for the consumption worker.
    private static let refunds = 20

    let rate: Int
    let seconds: Int
    let cluster: KafkaCluster
    let installation: Installation
    let crew: ManyCrew
    let watch: FleetWatch
    private(set) var meter = FleetMeter()
    private(set) var steps: [ManyCause: Int] = [:]
    private let name: String
    private let subscribers: Int
    private let store: MakeBelieveStore
    private let scratch: ScratchDirectory
    private var simulator: ChildProcess?
    private var sampled = ContinuousClock.now
    /// In milliseconds since 1970.
    private var began: Int64 = 0
    private var ended: Int64 = 0
    /// After the warm-up, without a trouble and what followed it; in milliseconds since 1970.
    private var quietTimes: [Range<Int64>] = []
    private var quietSince = Int64.max

    init(_ shape: ManyShape, _ cluster: KafkaCluster, seconds: Int, rate: Int) async throws {
        (name, self.seconds, self.rate, self.cluster) = (shape.name, seconds, rate, cluster)
        subscribers = seconds * rate / Self.notificationsOfASubscriber
        let broker = Broker(bootstrap: cluster.bootstrapServers)
        installation = try await Installation.make(shape.name, broker, partitions: Self.partitions, replicas: 3)
        store = try await MakeBelieveStore.ofAHundredDays(
            seed: 31, subscribers: subscribers, adding: ["--refunds", "\(Self.refunds)"], program: shape.program)
        scratch = try ScratchDirectory(shape.name)
        var shape = shape
        shape.settings[.consumption] = try await Self.settingsForApple(key: scratch.file("apple.p8"))
        crew = try ManyCrew(installation, store, shape)
        watch = FleetWatch(installation, shape.kinds)
    }

    /// Nobody listens there: every refund request is of the past, so nothing is sent.
    private static func settingsForApple(key: String) async throws -> [String] {
        let made = try await run(
            "openssl", ["genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", key])
        try #require(made.code == 0, "\(made.words)")
        return [
            "--apple.issuer.id", "57246542-96fe-1a63-e053-0824d011072a", "--apple.key.id", "ABCDEFGHIJ", "--apple.key",
            key,
            "--apple.api.production", "https://127.0.0.1:9",
        ]
    }

    // MARK: Play

    var isPosting: Bool { simulator?.isRunning == true }
    var age: Duration { .milliseconds(WallClock.milliseconds() - began) }

    /// Returns when all partitions move.
    func open() async throws {
        try await crew.start()
        began = WallClock.milliseconds()
        // With fewer connections one slow broker would lower the pace.
        simulator = try store.post(to: crew.port, rate: rate, connections: 64)
        watch.start()
        try await waitUntilCalm("all partitions move")
        watch.now(.nothing)
        quietSince = WallClock.milliseconds()
    }

    /// Does something, and waits until all partitions move again. The time until then counts as this cause.
    func step(_ cause: ManyCause, _ body: () async throws -> Void) async throws {
        watch.now(cause)
        let (start, since) = (ContinuousClock.now, WallClock.milliseconds())
        endQuiet(at: since)
        try await body()
        let done = start.duration(to: .now)
        try await waitUntilCalm("all partitions move again after: \(cause.rawValue)")
        let (calm, step) = (start.duration(to: .now), watch.lastStep)
        let longest = step.stands.values.map(\.milliseconds).max() ?? 0
        let pace = Int(watch.pace(in: [since..<WallClock.milliseconds()]))
        print(
            "\(name): \(cause.rawValue): \(done.inSeconds), calm after \(calm.inSeconds); longest pause \(longest) ms, \(pace) notifications a second, "
                + "publish to committed: \(FleetWaits.words(FleetWaits.merged([step])))")
        steps[cause, default: 0] += 1
        watch.now(.nothing)
        quietSince = WallClock.milliseconds()
    }

    private func endQuiet(at now: Int64) {
        let since = max(quietSince, began + Int64(FleetLimits.warmUp) * 1_000)
        if since < now { quietTimes.append(since..<now) }
        quietSince = .max
    }

    /// Lets time pass, in which processes that have ended are started again.
    func pass(_ duration: Duration) async throws {
        let deadline = Deadline(after: duration)
        repeat {
            try await tend()
            try await Task.sleep(for: .milliseconds(100))
        } while !deadline.hasPassed
    }

    private func tend() async throws {
        try await crew.restartEnded()
        guard sampled.duration(to: .now) >= Self.sampleInterval else { return }
        sampled = .now
        var running = crew.running
        for broker in cluster.brokers {
            if let process = broker.current { running.append(("broker \(broker.id)", process)) }
        }
        if let simulator { running.append(("simulator", simulator)) }
        meter.take(running)
    }

    func waitUntilCalm(_ what: String) async throws {
        let limit = Duration.seconds(120)
        let deadline = Deadline(after: limit)
        var calmSince: ContinuousClock.Instant?
        while true {
            try await pass(.milliseconds(100))
            // Where nothing is published any more, nothing can be seen to move. `end` waits until all is processed.
            guard isPosting else { return }
            let standing = watch.standing(longerThan: Self.calm)
            if !standing.isEmpty { calmSince = nil } else if calmSince == nil { calmSince = .now }
            if let calmSince, calmSince.duration(to: .now) >= Self.calmFor { return }
            if deadline.hasPassed {
                throw NotInTime(
                    what, limit: limit,
                    detail: standing.joined(separator: "\n") + "\n" + (try await crew.words(lines: 10)))
            }
        }
    }

    /// Nothing more is posted, and the workers process the rest.
    func end() async throws {
        let simulator = try #require(simulator)
        // Exit code 0: every post that was not accepted was sent again and accepted.
        let ending = try await simulator.wait(within: .seconds(300))
        #expect(ending == .exited(code: 0), "\(simulator.lastLines(10))")
        ended = WallClock.milliseconds()
        endQuiet(at: ended)
        try await crew.stopIngest()
        let stopped = WallClock.milliseconds()
        let kinds = crew.shape.kinds
        try await waitUntil("everything is processed", within: .seconds(300)) {
            for kind in kinds where try await !installation.isDealtWith(by: kind.rawValue) { return false }
            return true
        }
        // The watch has to read the last notes, too.
        try await Task.sleep(for: .seconds(2))
        try await watch.stop()
        print("\(name): everything was processed \(WallClock.milliseconds() - stopped) ms after the end of ingest")
        try await crew.stopWorkers()
    }

    // MARK: Judgement

    /// What was written, and what it needed. Prints the figures, with `more` in the last line.
    ///
    /// - Parameter onlyQuiet: the pace counts only between the troubles. While a host is cut off, ingest answers 503.
    func judge(_ more: String, onlyQuiet: Bool) async throws {
        let waits = watch.waits
        printFigures(waits)
        #expect(waits.unfinished == 0, "\(waits.unfinished) notifications were never answered by a commit")
        let pace = watch.pace(in: [began + Int64(FleetLimits.warmUp) * 1_000..<ended])
        let quietPace = watch.pace(in: quietTimes)
        print("\(name): \(Int(quietPace)) notifications a second in \(quietTimes.count) times without trouble")
        #expect(
            (onlyQuiet ? quietPace : pace) >= Double(rate) * FleetLimits.leastPace,
            "from the third minute on \(Int(pace)) notifications a second, \(Int(quietPace)) without trouble, instead of \(rate)"
        )
        let workers = crew.shape.places.map { "\($0)" }
        let faults = FleetLimits.faults(
            of: meter, workers: workers, judgesGrowth: seconds >= FleetLimits.secondsToJudgeGrowth)
        #expect(faults.isEmpty, "\(faults.joined(separator: "; "))")
        let written = try await judgeRecords()
        let most = workers.map(meter.most).max() ?? 0
        print(
            "\(name): \(written), \(Int(pace)) notifications a second of \(rate), \(Int(quietPace)) without trouble, publish to committed: "
                + "\(FleetWaits.words(FleetWaits.merged(waits.steps.dropFirst()))), a worker at most \(most >> 20) MiB, \(more)"
        )
    }

    private func judgeRecords() async throws -> String {
        let heard = try await HeardNotifications.all(installation, zone: ManyCrew.zone, within: Self.readingLimit)
        try store.expectKept(in: heard.uuids)
        // Ingest may store what Apple sends twice, and nothing besides.
        #expect(heard.uuids.count >= subscribers)
        let entitlements = try await EntitlementsJudge(installation, store, ended: ended, within: Self.readingLimit)
        let churn = try await ChurnJudge(installation, heard.judge, within: Self.readingLimit)
        let refunds = try ExpiredJudge(truth: store.truth(), began: began)
        let (lines, repeats) = try await installation.consumptionLines(within: Self.readingLimit)
        let wrong = refunds.wrong(lines)
        #expect(wrong.isEmpty, "\(wrong.count): \(wrong.prefix(8).joined(separator: "\n"))")
        #expect(repeats == 0, "\(repeats) records of consumption are there twice")
        let letters = try await installation.read("consumption.dead-letters")
        #expect(letters.isEmpty, "\(letters.count) dead letters of consumption")
        // Without any cases the judges would find nothing wrong.
        #expect(entitlements.truth.subscriptionCount >= subscribers * 9 / 10)
        #expect(churn.judge.cells.count > 500)
        #expect(refunds.count > subscribers / 20)
        return "\(heard.count) notifications, \(entitlements.values) values, "
            + "\(entitlements.events + churn.events) events, \(churn.judge.cells.count) cells, \(refunds.count) refund requests"
    }

    private func printFigures(_ waits: FleetWaits) {
        for line in ManyReport(waits.pauses).lines(steps: steps) { print(line) }
        for cause in ManyCause.allCases {
            let some = waits.steps.filter { $0.cause == cause }
            guard !some.isEmpty else { continue }
            print("  publish to committed, \(cause.rawValue): \(FleetWaits.words(FleetWaits.merged(some)))")
        }
        let troubled = waits.steps.filter { ![.start, .nothing].contains($0.cause) }
        print("  publish to committed, all disturbances: \(FleetWaits.words(FleetWaits.merged(troubled)))")
        print("  the watch read nothing for up to \(watch.blindest) ms")
        var parts: [(String, Double)] = [("brokers", meter.cores { $0.hasPrefix("broker") })]
        for kind in crew.shape.kinds { parts.append((kind.rawValue, meter.cores { $0.hasPrefix(kind.rawValue) })) }
        parts += [("ingest", meter.cores { $0 == "ingest" }), ("simulator", meter.cores { $0 == "simulator" })]
        let words = parts.map { "\($0.0) \(Self.hundredths($0.1))" }.joined(separator: ", ")
        print("  cores: \(words); this machine has \(sysconf(Int32(_SC_NPROCESSORS_ONLN)))")
        for (part, samples) in meter.samples.sorted(by: { $0.key < $1.key }) {
            let growth = meter.growth(part, after: FleetLimits.warmUp).map {
                ", first third \($0.early >> 20), last third \($0.late >> 20)"
            }
            print("  \(part): at most \(meter.most(part) >> 20) MiB in \(samples.count) samples\(growth ?? "")")
        }
        for ending in crew.endings { print("  \(ending)") }
    }

    private static func hundredths(_ number: Double) -> String {
        let all = Int((number * 100).rounded())
        return "\(all / 100).\(all % 100 < 10 ? "0" : "")\(all % 100)"
    }
}
