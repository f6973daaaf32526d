// Faults that tests inject.

/// A plan of faults, for tests: the log calls it at each step, under its own lock. It must not call the log.
public protocol LogFaults: Sendable {
    /// - Parameter identity: of the session; for a reader its name.
    func fault(at step: LogStep, of identity: String) -> InjectedFault?
}

/// The steps at which a fault can happen.
public enum LogStep: String, Sendable, CaseIterable {
    case poll, append, beforeCommit, commit, afterCommit, committed
    /// A poll of a reader; `restore` is a poll of one that reads ahead.
    case readerPoll, restore

    /// The faults that can happen at this step, in a fixed order.
    public var kinds: [InjectedFault.Kind] {
        switch self {
        case .poll: [.crashBefore, .crashAfter, .fence, .lose, .move, .slow, .stall]
        case .append: [.crashBefore, .crashHalfway, .crashAfter, .refuse, .fence, .lose, .move]
        case .beforeCommit: [.crashBefore, .refuse, .fence, .lose, .move]
        case .commit: [.crashHalfway, .outcomeUnknownDone, .outcomeUnknownNotDone]
        case .afterCommit: [.crashAfter]
        case .committed: [.crashBefore, .retry, .fence, .lose, .move]
        case .readerPoll, .restore: [.crashBefore, .crashAfter, .retry, .slow, .stall]
        }
    }
}

/// A fault that the log carries out.
public struct InjectedFault: Sendable, Equatable, CustomStringConvertible {
    public enum Kind: String, Sendable, CaseIterable {
        /// The process ends before the step has an effect. For a reader: it ends together with the session of its name.
        case crashBefore
        /// The process ends when half of the outputs are appended; in a commit: when the offsets are sent and the
        /// transaction is open.
        case crashHalfway
        /// The step is done, but the process ends before it gets the answer.
        case crashAfter
        /// The cycle is refused: `rewind`.
        case refuse
        /// No answer in time: `retrySameCall`.
        case retry
        /// The commit is done, but the answer is `rebuild`.
        case outcomeUnknownDone
        /// The commit is not done, and the answer is `rebuild`.
        case outcomeUnknownNotDone
        /// The same effect as a newer session with the identity.
        case fence
        /// The group removes the member.
        case lose
        /// A rebalance that moves partitions to other members.
        case move
        /// At most `amount` records.
        case slow
        /// No records at this poll and the next ones, `amount` polls in all.
        case stall
    }

    public var kind: Kind
    public var amount: Int

    public init(_ kind: Kind, _ amount: Int = 1) {
        self.kind = kind
        self.amount = amount
    }

    public var description: String {
        switch kind {
        case .slow, .stall: "\(kind.rawValue)(\(amount))"
        default: kind.rawValue
        }
    }
}
