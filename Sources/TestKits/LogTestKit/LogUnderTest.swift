// What the conformance suite needs of a log.

public import Log
import Platform

/// One log, and what tests have to do to it from outside.
public struct LogUnderTest: Sendable {
    /// Abilities that not every log has in tests.
    public enum Ability: String, Sendable, CaseIterable {
        /// A session that makes no call for `sessionTimeout` loses its partitions.
        case noticesSilence
        /// `holdPositions` is available.
        case holdsPositions
        /// `compact` is available.
        case compactsOnDemand
    }

    public var log: any RecordLog
    /// How long a session may be silent: the shortest that the log allows.
    public var sessionTimeout: Duration
    /// How long a check waits for something that should happen soon.
    public var patience: Duration
    /// How long a poll waits: zero with a clock that stands still.
    public var pollWait: Duration
    public var passTime: @Sendable (Duration) -> Void
    /// Creates a unique topic and returns its name.
    public var makeTopic: @Sendable (_ label: String, _ partitions: Int32, _ isCompacted: Bool) throws -> String
    /// Sends offsets under an identity, in a transaction that a dead process has left open.
    public var holdPositions:
        (@Sendable (_ group: String, _ identity: String, _ positions: [TopicPartition: NextOffset]) throws -> Void)?
    public var compact: (@Sendable () -> Void)?
    public var noticesSilence: Bool

    public init(
        _ log: any RecordLog, sessionTimeout: Duration, patience: Duration, pollWait: Duration, noticesSilence: Bool,
        passTime: @escaping @Sendable (Duration) -> Void,
        makeTopic: @escaping @Sendable (_ label: String, _ partitions: Int32, _ isCompacted: Bool) throws -> String
    ) {
        self.log = log
        self.sessionTimeout = sessionTimeout
        self.patience = patience
        self.pollWait = pollWait
        self.noticesSilence = noticesSilence
        self.passTime = passTime
        self.makeTopic = makeTopic
    }

    public var abilities: Set<Ability> {
        var abilities: Set<Ability> = []
        if noticesSilence { abilities.insert(.noticesSilence) }
        if holdPositions != nil { abilities.insert(.holdsPositions) }
        if compact != nil { abilities.insert(.compactsOnDemand) }
        return abilities
    }
}

/// A promise of the interface that a log breaks.
public struct BrokenPromise: Error, CustomStringConvertible {
    public var description: String
}

/// One promise of the interface, and its check.
public struct LogClaim: Sendable, CustomStringConvertible {
    /// Continues the sentence that begins with "A log".
    public let words: String
    public let needs: Set<LogUnderTest.Ability>
    private let check: @Sendable (borrowing Bench) throws -> Void

    init(
        _ words: String, needs: Set<LogUnderTest.Ability> = [],
        _ check: @escaping @Sendable (borrowing Bench) throws -> Void
    ) {
        self.words = words
        self.needs = needs
        self.check = check
    }

    public var description: String { words }

    /// Throws if the log breaks the promise. Blocks, so it needs its own thread.
    public func check(_ log: LogUnderTest) throws { try check(Bench(log)) }

    public static let all =
        recordClaims + transactionClaims + groupClaims + departureClaims + ownershipClaims
        + takeoverClaims
}
