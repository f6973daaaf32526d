// What can go wrong on demand.

/// A plan of faults, for tests: the log asks it at each step, under its own lock. It must not call the log.
public protocol LogFaults: Sendable {
    /// - Parameter identity: of the session; of a reader its name.
    func fault(at step: LogStep, of identity: String) -> InjectedFault?
}

/// Where a fault can happen.
public enum LogStep: String, Sendable, CaseIterable {
    case poll, append, beforeCommit, commit, afterCommit, committed
    /// A poll of a reader; `restore` is that of one that reads ahead.
    case readerPoll, restore

    /// What can happen here, in a fixed order.
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

/// A fault as the log carries it out.
public struct InjectedFault: Sendable, Equatable, CustomStringConvertible {
    public enum Kind: String, Sendable, CaseIterable {
        /// The process is gone before the step has an effect. Of a reader: it, and the session of its name.
        case crashBefore
        /// With half of the outputs appended; of a commit: with the positions sent and the transaction open.
        case crashHalfway
        /// The step is done, and nobody hears of it.
        case crashAfter
        /// The cycle is refused: `rewind`.
        case refuse
        /// No answer in time: `retrySameCall`.
        case retry
        /// The commit is done, and answered with `rebuild`.
        case outcomeUnknownDone
        /// The commit is not done, and answered with `rebuild`.
        case outcomeUnknownNotDone
        /// As if a younger session had the identity.
        case fence
        /// The member is thrown out of its group.
        case lose
        /// A round in which partitions go to other members.
        case move
        /// At most `amount` records.
        case slow
        /// No records at this poll and the next, `amount` in all.
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
