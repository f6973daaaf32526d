// The known status of chains, the next queries, and the waiters. It only decides; callers pass the time.

import Crypto

/// One moment on two clocks: the one that answers are dated by, and the one that never jumps.
struct Moment: Sendable {
    /// Milliseconds since 1970.
    var wall: Int64
    var steady: ContinuousClock.Instant
}

struct RevocationTable {
    /// Most chains that lead to a pinned root: Apple signs with one at a time and rotates about once a year.
    static let limitChains = 64
    /// However long an answer says that it is valid: a revocation is known here after this time at the latest.
    static let longestTrust: Duration = .seconds(4 * 3600)
    /// Shortest time between two queries about one chain, whatever the answers say about their expiry.
    static let shortestPause: Duration = .seconds(1)
    /// Longest time between failed queries; the time doubles, starting with the shortest.
    static let longestPause: Duration = .seconds(60)

    typealias Completion = @Sendable (RevocationStatus) -> Void

    enum Effect {
        case ask(TrustedChain)
        case finish(Completion, RevocationStatus)
    }

    enum Notice: Equatable {
        case unknown(leaf: String, InquiryFailure)
        case knownAgain(leaf: String)
        case revoked(leaf: String)
    }

    private enum Knowledge {
        case nothing
        /// Valid while both clocks agree: the wall clock may be set back.
        case good(until: Int64, trustedUntil: ContinuousClock.Instant)
        /// Stays revoked as long as the chain is remembered.
        case revoked
    }

    private struct Entry {
        let chain: TrustedChain
        var knowledge = Knowledge.nothing
        var isAsking = false
        var failures = 0
        /// nil: nobody is asked again.
        var askAt: ContinuousClock.Instant?
        var lastUse: UInt64 = 0

        var isRevoked: Bool { if case .revoked = knowledge { true } else { false } }

        func status(at now: Moment) -> RevocationStatus {
            switch knowledge {
            case .nothing: .unknown
            case .good(let until, let trusted): now.wall < until && now.steady < trusted ? .good : .unknown
            case .revoked: .revoked
            }
        }
    }

    private struct Waiter {
        let chains: [[UInt8]]
        let deadline: ContinuousClock.Instant
        let completion: Completion
    }

    private let maxWaiters: Int
    private var entries: [[UInt8]: Entry] = [:]
    private var uses: UInt64 = 0
    private var waiters: [Waiter] = []
    /// The earliest deadline of the waiters.
    private var earliest: ContinuousClock.Instant?
    /// true: a status was learnt since the waiters were last checked.
    private var hasNews = false
    private(set) var isClosed = false

    init(maxWaiters: Int) { self.maxWaiters = maxWaiters }

    var count: Int { entries.count }

    /// A chain that is new here is queried at the next step.
    mutating func status(of chain: TrustedChain, at now: Moment) -> (status: RevocationStatus, isNew: Bool) {
        uses += 1
        guard let place = entries.index(forKey: chain.fingerprint) else {
            makeRoom()
            entries[chain.fingerprint] = Entry(chain: chain, askAt: now.steady, lastUse: uses)
            return (.unknown, true)
        }
        entries.values[place].lastUse = uses
        return (entries.values[place].status(at: now), false)
    }

    enum Waiting: Equatable {
        case known(RevocationStatus)
        /// The waiter is added. `isUrgent`: the next step must come earlier than the last step said.
        case waiting(isUrgent: Bool)
        /// Too many callers wait, or the table is closed.
        case refused
    }

    /// A later step returns `completion` if, and only if, the outcome is `waiting`.
    mutating func wait(
        for chains: [TrustedChain], until deadline: ContinuousClock.Instant, at now: Moment,
        completion: @escaping Completion
    ) -> Waiting {
        var hasNewOnes = false
        for chain in chains where status(of: chain, at: now).isNew { hasNewOnes = true }
        let fingerprints = chains.map(\.fingerprint)
        let status = worstStatus(of: fingerprints, at: now)
        guard status == .unknown else { return .known(status) }
        guard waiters.count < maxWaiters, !isClosed else { return .refused }
        waiters.append(Waiter(chains: fingerprints, deadline: deadline, completion: completion))
        let isFirst = earliest.map { deadline < $0 } ?? true
        if isFirst { earliest = deadline }
        return .waiting(isUrgent: isFirst || hasNewOnes)
    }

    mutating func learn(_ outcome: InquiryOutcome, of chain: TrustedChain, at now: Moment) -> Notice? {
        // The chain was forgotten while it was being queried.
        guard var entry = entries[chain.fingerprint] else { return nil }
        defer { entries[chain.fingerprint] = entry }
        entry.isAsking = false
        hasNews = true
        switch outcome {
        case .revoked:
            entry.knowledge = .revoked
            entry.askAt = nil
            return .revoked(leaf: chain.leaf.serial)
        case .good(let until):
            let trust = min(Self.longestTrust, .milliseconds(max(0, until - now.wall)))
            entry.knowledge = .good(until: until, trustedUntil: now.steady + trust)
            // Early enough for several attempts before the answer expires.
            entry.askAt = now.steady + max(Self.shortestPause, trust * 3 / 4)
            let wasUnknown = entry.failures > 0
            entry.failures = 0
            return wasUnknown ? .knownAgain(leaf: chain.leaf.serial) : nil
        case .failed(let failure):
            entry.failures += 1
            entry.askAt = now.steady + Self.pause(afterFailures: entry.failures)
            // Reported for the first failure only, not each time.
            return entry.failures == 1 ? .unknown(leaf: chain.leaf.serial, failure) : nil
        }
    }

    static func pause(afterFailures count: Int) -> Duration {
        // After six doublings the longest pause is reached anyway.
        min(longestPause, shortestPause * (1 << min(max(count - 1, 0), 6)))
    }

    /// The actions to take now, and the time of the next step.
    mutating func step(at now: Moment) -> (effects: [Effect], next: ContinuousClock.Instant?) {
        var effects: [Effect] = []
        if !isClosed {
            for place in entries.indices {
                guard let askAt = entries.values[place].askAt, !entries.values[place].isAsking, askAt <= now.steady
                else {
                    continue
                }
                entries.values[place].isAsking = true
                effects.append(.ask(entries.values[place].chain))
            }
        }
        effects += finishedWaiters(at: now)
        let asking = entries.values.lazy.filter { !$0.isAsking }.compactMap(\.askAt).min()
        return (effects, [asking, earliest].compactMap { $0 }.min())
    }

    /// Ends all waiting; nothing is queried any more.
    mutating func close() { isClosed = true }

    private mutating func finishedWaiters(at now: Moment) -> [Effect] {
        // All waiters are checked only if one of them may be ready: under load there are many.
        guard hasNews || isClosed || earliest.map({ $0 <= now.steady }) ?? false else { return [] }
        hasNews = false
        var effects: [Effect] = []
        var still: [Waiter] = []
        for waiter in waiters {
            let status = worstStatus(of: waiter.chains, at: now)
            if status != .unknown || isClosed || waiter.deadline <= now.steady {
                effects.append(.finish(waiter.completion, status))
            } else {
                still.append(waiter)
            }
        }
        waiters = still
        earliest = waiters.lazy.map(\.deadline).min()
        return effects
    }

    /// Unknown as long as one chain is unknown: a revoked inner part gives no verdict while the outer chain is unknown.
    private func worstStatus(of chains: [[UInt8]], at now: Moment) -> RevocationStatus {
        var worst = RevocationStatus.good
        for chain in chains {
            switch entries[chain]?.status(at: now) ?? .unknown {
            case .unknown: return .unknown
            case .revoked: worst = .revoked
            case .good: break
            }
        }
        return worst
    }

    /// Removes the chain that was used longest ago. Revoked ones go only if there are no others, since a forgotten one
    /// would be accepted until it is queried again.
    private mutating func makeRoom() {
        guard entries.count >= Self.limitChains else { return }
        let oldest = entries.min { left, right in
            (left.value.isRevoked ? 1 : 0, left.value.lastUse) < (right.value.isRevoked ? 1 : 0, right.value.lastUse)
        }
        if let oldest { entries[oldest.key] = nil }
    }
}
