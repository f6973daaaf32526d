// A takeover of a group of an in-memory log.

internal import Log
internal import Platform

/// A seat that never joins its group.
final class MemoryTakeover: GroupTakeover {
    private let core: LogCore
    private let seat: Seat

    init(_ options: TakeoverOptions, _ core: LogCore) throws(LogFault) {
        self.core = core
        var session = SessionOptions(
            group: options.group, identity: options.identity, inputs: [], outputs: options.topics)
        session.transactionTimeout = options.transactionTimeout
        seat = try core.changing { state throws(LogFault) in
            for name in session.outputs { _ = try state.topic(name) }
            let seat = state.openOutside(session, now: state.clock.now)
            try Self.requireEmpty(seat.group)
            return seat
        }
    }

    private static func requireEmpty(_ group: MemoryGroup) throws(LogFault) {
        if !group.members.isEmpty { throw .occupied(group: group.name, by: group.members.map(\.identity)) }
    }

    private func enter() throws(LogFault) {
        if let ending = seat.ending { throw ending }
        if seat.isWriterFenced {
            throw LogFault(.rebuild, .fenced, "a transaction of \(seat.identity) lasted too long and was aborted")
        }
    }

    func committed(
        _ partitions: [TopicPartition], by deadline: Deadline
    ) throws(LogFault) -> [TopicPartition: NextOffset] {
        let found = try core.waiting(until: deadline) { state throws(LogFault) in
            try enter()
            guard !state.isPending(partitions, in: seat.group) else { return nil as [TopicPartition: NextOffset]? }
            return seat.group.committed.filter { partitions.contains($0.key) }
        }
        guard let found else {
            throw LogFault(.retrySameCall, .timedOut, "an earlier owner's transaction is still open")
        }
        return found
    }

    func append(_ outputs: OutputBatch) throws(LogFault) {
        try core.changing { state throws(LogFault) in
            try enter()
            let fault = fault(at: .append)
            let count = fault == .crashHalfway ? outputs.count / 2 : outputs.count
            if fault != .crashBefore, count > 0 { try seat.put(outputs, count, &state) }
            if fault != nil { throw seat.die() }
        }
    }

    /// As in a session: a process that ends in the middle leaves the offsets pending.
    func commit(_ positions: [TopicPartition: NextOffset]) throws(LogFault) {
        try core.changing { state throws(LogFault) in
            try enter()
            if fault(at: .beforeCommit) != nil { throw seat.die() }
            try Self.requireEmpty(seat.group)
            let fault = fault(at: .commit)
            if fault == .crashHalfway {
                if seat.transaction == nil { seat.transaction = state.begin(now: state.clock.now) }
                seat.transaction?.pending = positions
                throw seat.die()
            }
            if fault != .outcomeUnknownNotDone {
                seat.group.committed.merge(positions) { $1 }
                state.end(seat, committed: true, now: state.clock.now)
            }
            if fault != nil {
                seat.mustRebuild = true
                throw LogFault(.rebuild, .timedOut, "it is unknown whether the commit of \(seat.identity) was done")
            }
            if self.fault(at: .afterCommit) != nil { throw seat.die() }
        }
    }

    private func fault(at step: LogStep) -> InjectedFault.Kind? {
        core.faults?.fault(at: step, of: seat.identity)?.kind
    }

    func close(by deadline: Deadline) -> Bool {
        core.changing { state in
            if !seat.isGone { state.end(seat, committed: false, now: state.clock.now) }
            seat.isClosed = true
        }
        return true
    }
}
