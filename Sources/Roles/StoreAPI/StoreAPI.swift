// The App Store Server API of the make-believe store, behind an HTTP server.

import HTTP
import Platform
import Simulation
import Synchronization

/// Answers what the judge says, unless it is chosen to be in trouble.
final class StoreAPI: HTTPHandler {
    struct Configuration: Sendable {
        /// In the journal: `production`, `sandbox` or `both`.
        var server: String
        var seed: UInt64 = 1
        /// Of a thousand requests.
        var troublesPerMille = 0
        /// Of each app; nil: no limit.
        var requestsPerSecond: Int?
        /// How long a caller waits for an answer that never comes.
        var hold: Duration = .seconds(60)
    }

    private struct Chance {
        var troubles: APIChance
        var rate: APIRate
    }

    /// A caller that will get no answer.
    private struct Held {
        let until: ContinuousClock.Instant
        let responder: Responder
    }

    /// Milliseconds after which a caller that was refused by chance may come again.
    private static let retryAfter: ClosedRange<UInt64> = 200...2000
    /// How exactly a hold is kept.
    private static let sweepInterval: Duration = .milliseconds(50)

    private let configuration: Configuration
    private let judge: ConsumptionJudge
    private let desk: AnswerDesk?
    private let journal: APIJournal?
    private let now: @Sendable () -> Int64
    private let chance: Mutex<Chance>
    private let held = Mutex<[Held]>([])
    private let journalFault = Mutex<OutputFault?>(nil)

    /// - Parameters:
    ///   - desk: where taken answers go.
    ///   - now: milliseconds since 1970: whether tokens hold.
    init(
        _ configuration: Configuration, judge: ConsumptionJudge, desk: AnswerDesk?, journal: APIJournal?,
        now: @escaping @Sendable () -> Int64 = WallClock.milliseconds
    ) {
        self.configuration = configuration
        self.judge = judge
        self.desk = desk
        self.journal = journal
        self.now = now
        chance = Mutex(
            Chance(
                troubles: APIChance(seed: configuration.seed, perMille: configuration.troublesPerMille),
                rate: APIRate(perSecond: configuration.requestsPerSecond)))
    }

    /// Why the journal is no longer whole; then nothing is answered any more but 503.
    var fault: OutputFault? { journalFault.withLock { $0 } }

    func earlyAnswer(to head: HTTPRequest) -> HTTPResponse? { nil }

    func handle(_ request: HTTPRequest, _ responder: Responder) {
        let time = now()
        let question = APIRequest(
            method: request.method, path: request.path, headers: request.headers.fields.map { ($0.name, $0.value) },
            body: request.body)
        var entry = APIJournal.Entry(
            at: time, server: configuration.server, request: question,
            verdict: judge.verdict(on: question, now: time), isTaken: false, isAnswered: true)
        disturb(&entry, at: time)
        entry.isTaken = entry.verdict.status == 202 && entry.trouble.map(\.comesAfter) ?? true
        do throws(OutputFault) {
            try journal?.append(entry)
        } catch {
            // What is in no journal must not have happened.
            journalFault.withLock { $0 = error }
            responder.respond(Self.response(to: .unavailable, retryAfter: nil))
            return
        }
        if entry.isTaken, let answer = entry.verdict.answer, let id = entry.verdict.transactionId {
            desk?.take(answer, to: id)
        }
        switch entry.trouble {
        case .cutBefore, .cutAfter: responder.hangUp()
        case .timeoutBefore, .timeoutAfter:
            held.withLock { $0.append(Held(until: .now + configuration.hold, responder: responder)) }
        case .tooMany, .internalError, .unavailable, nil:
            responder.respond(Self.response(to: entry.verdict, retryAfter: entry.retryAfter))
        }
    }

    /// The rate first: whoever asks too often learns nothing else.
    private func disturb(_ entry: inout APIJournal.Entry, at time: Int64) {
        let verdict = entry.verdict
        let (refusal, trouble) = chance.withLock { chance in
            (
                verdict.bundleId.flatMap { chance.rate.refusal(of: $0, now: time) },
                chance.troubles.trouble(of: entry.request.path, body: entry.request.body)
            )
        }
        if let refusal {
            entry.verdict = Self.keeping(verdict, .tooMany)
            entry.retryAfter = refusal
            return
        }
        guard let trouble else { return }
        entry.trouble = trouble.trouble
        switch trouble.trouble {
        case .tooMany:
            entry.verdict = Self.keeping(verdict, .tooMany)
            let range = Self.retryAfter
            entry.retryAfter = time + Int64(range.lowerBound + trouble.draw % UInt64(range.count))
        case .internalError: entry.verdict = Self.keeping(verdict, .internalError)
        case .unavailable: entry.verdict = Self.keeping(verdict, .unavailable)
        case .timeoutBefore, .timeoutAfter, .cutBefore, .cutAfter: entry.isAnswered = false
        }
    }

    /// What was asked stays what it was.
    private static func keeping(_ asked: APIVerdict, _ other: APIVerdict) -> APIVerdict {
        var verdict = other
        verdict.version = asked.version
        verdict.transactionId = asked.transactionId
        verdict.bundleId = asked.bundleId
        return verdict
    }

    static func response(to verdict: APIVerdict, retryAfter: Int64?) -> HTTPResponse {
        var response =
            verdict.errorCode == nil ? HTTPResponse(status: verdict.status) : .json(verdict.status, verdict.body)
        if let allow = verdict.allow { response.headers.add("Allow", allow) }
        if let retryAfter { response.headers.add("Retry-After", String(retryAfter)) }
        return response
    }

    /// Hangs up on whoever has waited long enough, until `stop` opens; then on all. Blocks.
    func holdCallers(until stop: Latch) {
        var isOver = false
        while !isOver {
            isOver = stop.wait(for: Self.sweepInterval)
            let now = ContinuousClock.now
            let over = held.withLock { held in
                let over = held.filter { isOver || $0.until <= now }
                held.removeAll { isOver || $0.until <= now }
                return over
            }
            for one in over { one.responder.hangUp() }
        }
    }
}
