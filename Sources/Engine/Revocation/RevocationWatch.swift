// Determines the revocation status of chains, independently of requests.

public import Crypto
import HTTPClient
public import Platform
import Synchronization
public import Telemetry

/// Knows the revocation status of the chains that it was asked about, and keeps querying Apple's responder.
///
/// Pass it only chains that lead to a pinned root: it sends requests to the address that a certificate names (only
/// below `http://ocsp.apple.com`), and it remembers 64 chains. Answers are trusted until they expire, four hours at
/// most. A failed query is retried after 1 s, later after up to a minute. A revoked chain stays revoked.
public final class RevocationWatch: Sendable {
    public struct Configuration: Sendable {
        /// Most callers that wait at the same time; further ones do not wait.
        public var maxWaiters = 4096

        public init() {}
    }

    private let table: Mutex<RevocationTable>
    private let inquiry: Inquiry
    private let logger: Logger
    private let now: @Sendable () -> Int64
    /// Wakes the loop to check the table.
    private let bell = Mailbox<Void>(capacity: 1)
    private let ended = Latch()
    /// nil if the caller passed its own `send`.
    private let client: HTTPClient?

    /// Uses its own connection, through `http_proxy` if that is set. Starts threads, which keep this object alive until
    /// it is closed.
    public convenience init(
        _ configuration: Configuration = Configuration(), metrics: Metrics, logger: Logger
    ) throws {
        let client = try Self.makeClient()
        try self.init(
            configuration, client: client, send: { client.send($0, completion: $1) }, metrics: metrics, logger: logger,
            now: WallClock.milliseconds)
    }

    /// - Parameter send: sends a request.
    /// - Parameter now: milliseconds since 1970.
    public convenience init(
        _ configuration: Configuration = Configuration(), send: @escaping OCSPSender, metrics: Metrics, logger: Logger,
        now: @escaping @Sendable () -> Int64
    ) throws {
        try self.init(configuration, client: nil, send: send, metrics: metrics, logger: logger, now: now)
    }

    private init(
        _ configuration: Configuration, client: HTTPClient?, send: @escaping OCSPSender, metrics: Metrics,
        logger: Logger,
        now: @escaping @Sendable () -> Int64
    ) throws {
        table = Mutex(RevocationTable(maxWaiters: configuration.maxWaiters))
        inquiry = Inquiry(send: send, metrics: RevocationMetrics(metrics), now: now)
        self.client = client
        self.logger = logger
        self.now = now
        let worker = WorkerThread.start("ocsp") { self.run() }
        if case .failure(let error)? = worker.result { throw error }
    }

    private static func makeClient() throws(HTTPClientFault) -> HTTPClient {
        var configuration = HTTPClient.Configuration()
        configuration.threadName = "ocsp-http"
        configuration.usesProxyOfEnvironment = true
        configuration.connectTimeout = .seconds(5)
        // Requests wait two seconds at most for a verdict; an answer that takes longer only helps later ones.
        configuration.timeout = .seconds(10)
        // An answer with the certificate of a responder has about 2 KB.
        configuration.maxResponseBytes = 64 << 10
        return try HTTPClient(configuration)
    }

    /// The status known now. Never blocks; a chain that is new here is queried from now on.
    public func status(of chain: TrustedChain) -> RevocationStatus {
        let (status, isNew) = table.withLock { $0.status(of: chain, at: moment()) }
        if isNew { ring() }
        return status
    }

    /// Waits for chains whose status is unknown. Never blocks. `completion` is called once with the worst status of the
    /// chains: on a thread of this object as soon as all are known or the deadline has passed (`unknown`), or on the
    /// calling thread if they are known or too many callers wait already. It must not block.
    public func whenKnown(
        _ chains: [TrustedChain], by deadline: Deadline, completion: @escaping @Sendable (RevocationStatus) -> Void
    ) {
        let moment = moment()
        let waiting = table.withLock {
            $0.wait(for: chains, until: moment.steady + deadline.remaining, at: moment, completion: completion)
        }
        switch waiting {
        case .known(let status): completion(status)
        case .waiting(let isUrgent): if isUrgent { ring() }
        case .refused: completion(.unknown)
        }
    }

    /// The worst status of the chains, when all are known. Blocks until then or until the deadline.
    public func status(of chains: [TrustedChain], waitingUntil deadline: Deadline) -> RevocationStatus {
        let known = Latch()
        let status = Mutex(RevocationStatus.unknown)
        whenKnown(chains, by: deadline) { answer in
            status.withLock { $0 = answer }
            known.open()
        }
        known.wait()
        return status.withLock { $0 }
    }

    /// Callers that wait get `unknown`. Returns when the threads have ended; false: not in time.
    @discardableResult
    public func close(by deadline: Deadline = Deadline(after: .seconds(5))) -> Bool {
        table.withLock { $0.close() }
        ring()
        let hasEnded = ended.wait(until: deadline)
        return (client?.close(by: deadline) ?? true) && hasEnded
    }

    /// For tests: the number of remembered chains.
    var chainsKnown: Int { table.withLock { $0.count } }

    private func run() {
        defer { ended.open() }
        while true {
            let moment = moment()
            let (effects, next, isLast) = table.withLock { table in
                // Read before the step, which ends all waiting if it is true.
                let isLast = table.isClosed
                let step = table.step(at: moment)
                return (step.effects, step.next, isLast)
            }
            for effect in effects { perform(effect) }
            if isLast { return }
            // If there is nothing to do, only the bell wakes the thread; the hour has no meaning.
            let pause = next.map { $0 - ContinuousClock.now } ?? .seconds(3600)
            // The mailbox counts whole milliseconds; a shorter wait would be zero, and the loop would spin.
            _ = bell.take(waiting: max(pause, .milliseconds(1)))
        }
    }

    private func perform(_ effect: RevocationTable.Effect) {
        switch effect {
        case .finish(let completion, let status): completion(status)
        case .ask(let chain):
            inquiry.ask(about: chain) { outcome in
                let notice = self.table.withLock { $0.learn(outcome, of: chain, at: self.moment()) }
                if let notice { self.log(notice) }
                self.ring()
            }
        }
    }

    private func log(_ notice: RevocationTable.Notice) {
        switch notice {
        case .unknown(let leaf, let failure):
            logger.warning(
                "no answer about the revocation of a certificate: can this host reach ocsp.apple.com (by http_proxy)?",
                ["leaf": .string(leaf), "cause": .string(failure.label)])
        case .knownAgain(let leaf):
            logger.info("the revocation status of a certificate is known again", ["leaf": .string(leaf)])
        case .revoked(let leaf):
            logger.error(
                "Apple has revoked a certificate of a chain: what it signed is refused", ["leaf": .string(leaf)])
        }
    }

    private func moment() -> Moment { Moment(wall: now(), steady: ContinuousClock.now) }

    /// false of `post` means that it was rung already.
    private func ring() { _ = bell.post(()) }
}
