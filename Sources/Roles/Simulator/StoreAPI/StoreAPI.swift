// The App Store Server API of the simulated store, behind an HTTP server.

import HTTP
import Platform
import Simulation
import Synchronization

/// Sends the judge's answer, unless a failure is chosen for the request.
final class StoreAPI: HTTPHandler {
    struct Configuration: Sendable {
        /// For the journal: `production`, `sandbox` or `both`.
        var server: String
        var seed: UInt64 = 1
        /// Per thousand requests.
        var troublesPerMille = 0
        /// For each app; nil: requests are not limited.
        var requestsPerSecond: Int?
        /// How long a request without an answer stays open.
        var hold: Duration = .seconds(60)
    }

    private struct Chance {
        var troubles: APIChance
        var rate: APIRate
    }

    /// A request that gets no answer.
    private struct Held {
        let until: ContinuousClock.Instant
        let responder: Responder
    }

    /// Milliseconds after which a randomly refused caller may retry.
    private static let retryAfter: ClosedRange<UInt64> = 200...2000
    /// The precision of the hold.
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
    ///   - desk: gets accepted answers.
    ///   - now: milliseconds since 1970, to check the validity of tokens.
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

    /// Why the journal is incomplete; from then on every answer is 503.
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
            // A request that is not in the journal must not take effect.
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

    /// The rate limit comes first: a caller above it gets no other answer.
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

    /// Another verdict, but with the request of the first.
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

    /// Closes requests that were open long enough, until `stop` opens; then closes all. Blocks.
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
