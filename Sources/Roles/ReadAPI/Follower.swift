// Keeps the local copies up to date with their topics.

internal import Churn
internal import Contract
internal import Follow
internal import Log
internal import Platform
internal import Service
internal import Store
internal import Telemetry

/// One thread that follows all partitions.
final class Follower: ServicePart {
    struct Configuration: Sendable {
        /// Day rules of the program that reads the cells; nil: those of the cells are not compared.
        var rules: CellRules?
        /// Pause before a failed step is retried.
        var faultPause: Duration = .seconds(1)
    }

    let name: String
    private let thread: ThreadPart
    /// The parts that read the copies have been stopped, or their time is over.
    private let mayClose = Latch()

    init(
        _ configuration: Configuration, _ shelf: Shelf, log: any RecordLog, stores: any PartitionStores,
        time: ReadAPITime, metrics: ShelfMetrics, logger: Logger
    ) {
        name = "api-\(shelf.names.environment.rawValue)"
        // Each part may have a question to Kafka that nobody answers: the parts wait for these questions together.
        thread = ThreadPart(name, isAlone: true) { [mayClose] stop in
            let following = Following(
                configuration, shelf, log: log, stores: stores, time: time, metrics: metrics, logger: logger)
            while !stop.isOpen {
                if !following.step() { stop.wait(for: configuration.faultPause) }
            }
            mayClose.wait()
            following.close()
        }
    }

    func start(failed: @escaping @Sendable (any Error) -> Void) throws { try thread.start(failed: failed) }
    func stopIsNear() { thread.stopIsNear() }

    func stop(by deadline: Deadline) throws {
        mayClose.open()
        try thread.stop(by: deadline)
    }
}

extension Readiness {
    /// Longer than brokers need for an election, and not longer than access lasts when the notification of a renewal is
    /// late: an hour unless `entitlements.leeway.ms` says otherwise, and in sandbox this minute. So an answer of this
    /// age denies access to nobody whose renewal was known before the silence.
    static let silenceLimit: Duration = .seconds(60)

    convenience init() { self.init(silenceLimit: Self.silenceLimit) }
}

/// The part of the follower that runs on its thread.
final class Following {
    private let rules: CellRules?
    private let shelf: Shelf
    private let time: ReadAPITime
    private let metrics: ShelfMetrics
    private let logger: Logger
    private let follower: TopicFollower<CopySink>
    private var looksSeen = 0
    private var hasToldRules = false
    /// What the log has said last.
    private var toldBehind: [Int32] = []

    init(
        _ configuration: Follower.Configuration, _ shelf: Shelf, log: any RecordLog, stores: any PartitionStores,
        time: ReadAPITime, metrics: ShelfMetrics, logger: Logger
    ) {
        rules = configuration.rules
        self.shelf = shelf
        self.time = time
        self.metrics = metrics
        self.logger = logger
        let names = shelf.names
        let copies = shelf.copies
        let options = FollowOptions(
            name: "perennial-api", group: names.apiGroup,
            topics: FollowedTopic.allCases.map { FollowOptions.Topic(names.topic($0.id), isCompacted: $0.isCompacted) },
            partitions: Int32(copies.count))
        let judge = RecordJudge()
        follower = TopicFollower(
            options, log: log, time: time.ofFollowing, readiness: shelf.readiness, counts: metrics.following,
            logger: logger
        ) { partition in
            CopySink(copies[Int(partition)], of: copies.count, stores, names, judge, metrics, logger)
        }
        follower.follow(partitions: Set(copies.map(\.number)))
    }

    /// Does a little work. false: it has failed, and should not be retried at once.
    func step() -> Bool {
        let step = follower.step()
        if follower.looks != looksSeen {
            looksSeen = follower.looks
            metrics.storeBytes.set(Double(shelf.copies.reduce(0) { $0 + $1.approximateBytes }))
            metrics.cells.set(Double(shelf.totals.count))
            tellBehind()
        }
        for copy in shelf.copies {
            guard let complete = follower.completeAsOf(copy.number) else { continue }
            shelf.pace.confirm(Int(copy.number), completeAsOf: complete)
        }
        warnOfRules()
        return step == .done
    }

    /// `/readyz` says nothing of partitions that are too far behind while another one is current.
    private func tellBehind() {
        let behind = shelf.tooFarBehind(at: time.now())
        if behind == toldBehind { return }
        toldBehind = behind
        let environment = LogValue.string(shelf.names.environment.rawValue)
        if behind.isEmpty {
            logger.info("no partition is too far behind any more", ["environment": environment])
        } else {
            let partitions = behind.map { "\($0)" }.joined(separator: ", ")
            logger.warning(
                "perennial entitlements is too far behind: requests that need these partitions are answered 503",
                [
                    "environment": environment, "partitions": .string(partitions),
                    "detail": .string(shelf.pace.fault.map { "its position cannot be read: \($0)" } ?? ""),
                ])
        }
    }

    /// Warns once, and only when everything has been read: older cells may have rules that the worker no longer uses.
    private func warnOfRules() {
        guard !hasToldRules, let rules,
            shelf.copies.contains(where: { copy in
                guard follower.completeAsOf(copy.number, topic: FollowedTopic.cells.rawValue) != nil,
                    let last = follower.sink(copy.number)?.note.rules
                else { return false }
                return rules.differ(from: last.span)
            })
        else { return }
        hasToldRules = true
        logger.warning("\(rules.warning)")
    }

    func close() { follower.close() }
}
