// Sends the answers that the worker has decided.

internal import Consumption
public import Contract
internal import Follow
public import Log
internal import Notices
internal import Platform
public import Runtime
internal import Telemetry

/// What the sender can read of the worker in the same process.
public struct WorkerView: Sendable {
    /// Ownership of the worker's partitions.
    public var ownership: Ownership
    /// The positions up to which the worker has processed its inputs in a partition and committed, in the order of the
    /// inputs.
    public var positions: @Sendable (Int32) -> [NextOffset]?

    public init(ownership: Ownership, positions: @escaping @Sendable (Int32) -> [NextOffset]?) {
        self.ownership = ownership
        self.positions = positions
    }
}

public struct SenderOptions: Sendable {
    public var names: Names
    /// Number of partitions of each topic.
    public var partitions: Int32
    /// Answers per second for each app, over all replicas together.
    public var rate: Int
    /// `perennial/<version>`.
    public var app: String
    /// Most attempts in flight for each app: a slow app must not hold up the others.
    public var maxInFlight = SenderOptions.usualMaxInFlight
    public static let usualMaxInFlight = 32
    /// Longest wait of a step for records; Apple's responses may be processed this much later.
    public var pollWait: Duration = .milliseconds(20)

    public init(_ names: Names, partitions: Int32, rate: Int, app: String) {
        self.names = names
        self.partitions = partitions
        self.rate = rate
        self.app = app
    }
}

/// Follows the committed records of `consumption` in the partitions that the worker in the same process owns, sends the
/// decided answers, and writes Apple's responses. One thread; the carrier responds on others.
///
/// An attempt begins only
/// 1. while the partition certainly belongs to this process: a successor sends the same bytes, and they must not be
///    sent twice at the same time;
/// 2. after a look at the log that began after the attempt was due: consent may be withdrawn, the case may be closed;
/// 3. within this process's share of Apple's rate, earliest deadline first, and not in the last seconds before the
///    deadline.
///
/// Right before the bytes are sent, 1 and the deadline are checked again, and whether 2 is recent. While the log does
/// not accept Apple's responses, no attempt begins.
final class Sender {
    /// How far back decisions are read: earlier ones are too old to be sent.
    private static let reach = ConsumptionRules.timeToAnswer + 3_600_000
    /// Answers that one step considers, for each app and partition: those after them have later deadlines.
    private static let candidates = 64
    /// From the start of an attempt until its bytes are sent: after a longer wait, or if the process was stopped
    /// meanwhile, the look is too old.
    private static let wireLimit: Duration = .seconds(10)

    private let options: SenderOptions
    private let worker: WorkerView
    private let carrier: any Carrier
    private let log: any RecordLog
    private let time: SenderTime
    private let logger: Logger
    private let metrics: SenderMetrics
    private let reports: SenderReports
    private let inputs: [String]

    private let desk = SendDesk()
    private let follower: TopicFollower<AnswerBook>
    private let readiness = Readiness(silenceLimit: .seconds(60))
    private let rows: AttemptWriter
    private let arrivals = Mailbox<Arrival>(capacity: .max)
    private var views: [Int32: FreshView] = [:]
    /// For each partition, the time when its view began: after its lease has ended the view is made anew.
    private var leases: [Int32: Duration] = [:]
    private var paces: [Text: AppPace] = [:]
    private var endsReader: (any LogReader)?
    private var nextEnds: Duration = .zero
    private var endsTrouble: String?

    private struct Arrival: Sendable {
        let name: AnswerName
        let begun: Duration
        let delivery: Delivery
    }

    init(
        _ options: SenderOptions, worker: WorkerView, carrier: any Carrier, log: any RecordLog, time: SenderTime,
        troubles: SenderTroubles, metrics: SenderMetrics, logger: Logger
    ) {
        self.options = options
        self.worker = worker
        self.carrier = carrier
        self.log = log
        self.time = time
        self.logger = logger
        self.metrics = metrics
        reports = SenderReports(troubles, metrics: metrics, time: time)
        inputs = WorkerName.consumption.inputs.map { options.names.topic($0) }
        rows = AttemptWriter(
            topic: options.names.topic(.consumptionAttempts), app: options.app, log: log, logger: logger)
        let wall = time.wall
        var follow = FollowOptions(
            name: "perennial-consumption-sender", group: options.names.group(.consumption),
            topics: [
                .init(
                    options.names.topic(.consumption), isCompacted: false,
                    start: .time { wall() - Self.reach })
            ], partitions: options.partitions)
        follow.pollWait = options.pollWait
        // The worker's memory is limited, and this is not part of its plan.
        follow.readAheadBytes = 8 << 20
        // The worker learns that a commit is done before the log shows all of it; the output counts as read up to the
        // end of the transaction.
        follow.ends = .all
        follower = TopicFollower(
            follow, log: log, time: FollowTime(wall: time.wall, elapsed: time.elapsed), readiness: readiness,
            counts: metrics.follow, logger: logger
        ) { [desk] partition in AnswerBook(partition, desk, logger: logger) }
    }

    // MARK: A step

    /// Trouble that the sender cannot repair now; nil: everything is fine.
    var trouble: String? { rows.trouble ?? endsTrouble ?? readiness.trouble(at: time.elapsed()) }

    /// Does a little work, and waits a moment for records. false: there is nothing to do, or it has failed and should
    /// not be retried at once.
    func step(mayBegin: Bool = true) -> Bool {
        settleArrivals()
        noteRows()
        follow()
        let outcome = follower.step()
        let now = time.elapsed()
        desk.advance(to: time.wall(), now)
        if mayBegin, rows.trouble == nil {
            let wanted = begin(at: now)
            look(for: wanted, at: now)
        }
        metrics.open.set(Double(desk.agenda.count + desk.flights.count))
        if desk.agenda.count + desk.flights.count == 0 { reports.nothingIsOpen() }
        return outcome == .done
    }

    /// Finishes all attempts that have begun; false: some are still in flight. Attempts that are not being sent yet are
    /// stopped.
    func finishFlights() -> Bool {
        desk.withdrawFlights()
        settleArrivals()
        noteRows()
        return desk.flights.isEmpty
    }

    func close(by deadline: Deadline) {
        follower.close()
        rows.close(by: deadline)
        endsReader?.close(by: deadline)
        endsReader = nil
    }

    /// Follows exactly the worker's partitions.
    private func follow() {
        let held = worker.ownership.held
        for (partition, lease) in held where leases[partition] != lease.since {
            leases[partition] = lease.since
            views[partition, default: FreshView()].reset()
        }
        for partition in leases.keys where held[partition] == nil {
            leases[partition] = nil
            views[partition] = nil
        }
        follower.follow(partitions: Set(held.keys))
    }

    // MARK: Looks

    /// - Parameter wanted: partitions whose views are too old for their ready answers.
    private func look(for wanted: Set<Int32>, at now: Duration) {
        for partition in views.keys.sorted() {
            guard let positions = worker.positions(partition) else { continue }
            let readAsOf = follower.completeAsOf(partition)
            if views[partition]!.advance(positions: positions, readAsOf: readAsOf, at: now) { follower.lookNow() }
        }
        let asked = wanted.filter { views[$0].map { !$0.isLooking } ?? false }.sorted()
        guard !asked.isEmpty, now >= nextEnds else { return }
        let partitions = asked.flatMap { number in inputs.map { TopicPartition($0, number) } }
        do throws(LogFault) {
            let ends = try openEndsReader().ends(.committed, of: partitions, by: Deadline(after: .seconds(5)))
            for number in asked {
                let found = inputs.compactMap { ends[TopicPartition($0, number)] }
                if found.count == inputs.count { views[number]?.begin(asked: now, ends: found) }
            }
            endsTrouble = nil
        } catch {
            endsTrouble = "the ends of the worker's inputs are not known: \(error.words)"
            endsReader?.close(by: Deadline(after: .seconds(5)))
            endsReader = nil
            nextEnds = now + .seconds(1)
        }
    }

    private func openEndsReader() throws(LogFault) -> any LogReader {
        if let endsReader { return endsReader }
        let made = try log.openReader(
            ReaderOptions(
                name: "perennial-consumption-ends", group: options.names.group(.consumption), topics: inputs))
        endsReader = made
        return made
    }

    // MARK: Attempts

    /// Begins the attempts that may begin. - Returns: partitions that must be looked at first.
    private func begin(at now: Duration) -> Set<Int32> {
        var wanted: Set<Int32> = []
        let share = Double(follower.followed.count) / Double(options.partitions)
        for app in desk.agenda.apps {
            // If Apple refuses a key, it is tried with one answer at a time.
            let limit = reports.isRefused(app.description) ? 1 : options.maxInFlight
            var underWay = desk.flights.values.count { $0.bundleId == app }
            for name in desk.agenda.next(Self.candidates, of: app) {
                guard underWay < limit else { break }
                guard let answer = follower.sink(name.partition)?.answers[name.id], answer.isWanted,
                    let readySince = desk.agenda.readySince(name)
                else {
                    desk.drop(name)
                    continue
                }
                // Too late to begin. The worker publishes the outcome.
                let wall = time.wall()
                guard wall < answer.deadline - Retry.lastStart else {
                    desk.postpone(answer, to: wall + Retry.tooLateWait)
                    continue
                }
                guard views[name.partition]?.isGood(for: readySince, at: now) == true else {
                    wanted.insert(name.partition)
                    continue
                }
                guard paces[app, default: AppPace()].take(at: now, perSecond: Double(options.rate) * share) else {
                    break
                }
                attempt(answer)
                underWay += 1
            }
        }
        return wanted
    }

    private func attempt(_ answer: OpenAnswer) {
        let permit = Permit()
        let name = answer.name
        desk.begin(
            name,
            SendDesk.Flight(
                permit: permit, number: answer.attempts + 1, originalTransactionId: answer.originalTransactionId,
                bundleId: answer.bundleId, deadline: answer.deadline))
        let (ownership, wall, elapsed, deadline) = (worker.ownership, time.wall, time.elapsed, answer.deadline)
        let begun = time.elapsed()
        let dispatch = Dispatch(
            bundleId: answer.bundleId.description, transactionId: answer.transactionId, isV1: answer.isV1,
            body: answer.body,
            mayBegin: {
                permit.stands && ownership.isHeld(name.partition) && wall() < deadline - Retry.lastStart / 2
                    && elapsed() - begun <= Self.wireLimit
            })
        carrier.send(dispatch) { [arrivals] delivery in
            _ = arrivals.post(Arrival(name: name, begun: begun, delivery: delivery))
        }
    }

    // MARK: Answers

    private func settleArrivals() {
        for arrival in arrivals.take(waiting: .zero) { settle(arrival) }
    }

    private func settle(_ arrival: Arrival) {
        guard let flight = desk.flights[arrival.name] else { return }
        let (wall, now) = (time.wall(), time.elapsed())
        let app = flight.bundleId.description
        let book = follower.sink(arrival.name.partition)
        let known = book?.answers[arrival.name.id]
        if case .withdrawn = arrival.delivery.result {
            metrics.count(.withdrawn)
            desk.end(arrival.name)
            // Its number is not used up, because nothing was sent.
            if known != nil {
                book?.attempted(arrival.name.id, number: flight.number - 1, dueAt: wall + Retry.firstWait)
            }
            return
        }
        metrics.seconds.observe(now - arrival.begun)
        let status: Int64? = if case .answered(let status) = arrival.delivery.result { Int64(status) } else { nil }
        let verdict = Attempt.verdict(httpStatus: status)
        let pause = reports.heard(arrival.delivery, verdict, app: app, begun: arrival.begun, at: wall)
        if pause?.renewsToken == true { carrier.renewToken(of: app) }
        if let until = pause?.until, until > wall {
            paces[flight.bundleId, default: AppPace()].pause(until: now + .milliseconds(until - wall))
        }
        var retryAt: Int64?
        if verdict == .retry || verdict == .unauthorized {
            let wait = Retry.wait(after: flight.number, jitter: time.jitter())
            // A pause for the whole app is not shortened: nothing is sent before it ends.
            retryAt = pause?.until ?? Retry.due(wall + wait, now: wall, deadline: flight.deadline)
        }
        let attempt = Attempt(
            id: arrival.name.id, number: flight.number, at: wall, httpStatus: status,
            errorCode: arrival.delivery.errorCode, retryAt: retryAt)
        rows.add(
            AttemptRow(
                name: arrival.name, originalTransactionId: flight.originalTransactionId.bytes, attempt: attempt))
    }

    /// An attempt is over when the log has its result: only then may there be another.
    private func noteRows() {
        for row in rows.write(at: time.elapsed()) {
            desk.end(row.name)
            let isOver = row.attempt.verdict == .sent || row.attempt.verdict == .failed
            follower.sink(row.name.partition)?.attempted(
                row.name.id, number: row.attempt.number, dueAt: isOver ? .max : row.attempt.retryAt ?? row.attempt.at)
        }
    }
}
