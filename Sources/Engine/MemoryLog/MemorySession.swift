// A worker's session with an in-memory log.

internal import Log
internal import Platform

final class MemorySession: LogSession {
    private let core: LogCore
    private let seat: Seat
    private var cursors = Cursors()
    /// Of the last commit.
    private var appended: [OpenTransaction.Part] = []
    private var stalledPolls = 0
    private var lease: Lease
    private let bootClock: @Sendable () -> Duration

    init(_ options: SessionOptions, _ core: LogCore) throws(LogFault) {
        self.core = core
        lease = Lease(sessionTimeout: options.sessionTimeout)
        bootClock = options.bootClock
        seat = try core.changing { state throws(LogFault) in try state.open(options, now: state.clock.now) }
    }

    /// Every call is a sign of life, and none has an effect after the session has ended.
    private func enter(_ state: borrowing LogState) throws(LogFault) {
        if let ending = seat.ending { throw ending }
        seat.lastSeen = state.clock.now
    }

    /// Adds the rules for writing.
    private func enterWriter(_ state: borrowing LogState) throws(LogFault) {
        try enter(state)
        if seat.isWriterFenced {
            throw LogFault(.rebuild, .fenced, "a transaction of \(seat.identity) lasted too long and was aborted")
        }
    }

    // MARK: Reading

    func poll(into batch: RecordBatch, limit: Int, wait: Duration) throws(LogFault) -> SessionEvent {
        let now = bootClock()
        batch.begin(StoredRecordAccess.shared)
        var allowed = limit
        var diesAfter = false
        if core.faults != nil {
            try core.changing { state throws(LogFault) in
                try enter(state)
                guard let fault = try disturb(.poll, state) else { return }
                switch fault.kind {
                case .slow: allowed = min(limit, fault.amount)
                case .stall: stalledPolls = fault.amount
                default: diesAfter = true
                }
            }
            if stalledPolls > 0 {
                stalledPolls -= 1
                allowed = 0
            }
        }
        let event = try core.waiting(until: Deadline(after: wait)) { state throws(LogFault) in
            try enter(state)
            if let event = try membership(state) { return event }
            guard seat.standing == .owning else { return nil as SessionEvent? }
            if let gone = cursors.fill(batch, limit: allowed) {
                cursors.stop(gone)
                return .positionGone(gone)
            }
            return batch.isEmpty ? nil : .records
        }
        if diesAfter {
            batch.removeAll()
            throw core.locked { _ in seat.die() }
        }
        switch event {
        case .assigned?, .revoked?, .lost?: lease.end()
        case .records?, .nothing?, .positionGone?, nil: lease.extend(at: now)
        }
        return event ?? .nothing
    }

    /// Changes of the assignment since the last poll.
    private func membership(_ state: borrowing LogState) throws(LogFault) -> SessionEvent? {
        switch seat.standing {
        case .granted:
            seat.standing = .told
            return .assigned(seat.assigned)
        case .owning where seat.group.isInRound:
            seat.standing = .revoking
            return .revoked(seat.assigned)
        case .expelled:
            seat.standing = .losing
            return .lost(seat.assigned)
        case .outside:
            seat.group.join(seat, now: state.clock.now)
            // The only member of a group gets its partitions at once.
            return seat.standing == .granted ? try membership(state) : nil
        case .told: throw LogFault(.stop, .misuse, "poll before take: partitions of \(seat.identity) have no start")
        case .revoking, .losing: throw LogFault(.stop, .misuse, "poll before giveBack by \(seat.identity)")
        case .waiting, .owning: return nil
        }
    }

    func committed(_ partitions: [TopicPartition], by deadline: Deadline) throws(LogFault)
        -> [TopicPartition: NextOffset]
    {
        if core.faults != nil {
            try core.changing { state throws(LogFault) in
                try enter(state)
                _ = try disturb(.committed, state)
            }
        }
        let found = try core.waiting(until: deadline) { state throws(LogFault) in
            try enter(state)
            guard !state.isPending(partitions, in: seat.group) else { return nil as [TopicPartition: NextOffset]? }
            return seat.group.committed.filter { partitions.contains($0.key) }
        }
        guard let found else {
            throw LogFault(.retrySameCall, .timedOut, "an earlier owner's transaction is still open")
        }
        return found
    }

    func beginnings(of partitions: [TopicPartition], by deadline: Deadline) throws(LogFault)
        -> [TopicPartition: NextOffset]
    {
        try core.locked { state throws(LogFault) in
            try enter(state)
            var found: [TopicPartition: NextOffset] = [:]
            for partition in partitions { found[partition] = NextOffset(try state.partition(partition).beginning) }
            return found
        }
    }

    func take(_ starts: [TopicPartition: NextOffset], paused: Set<TopicPartition>) throws(LogFault) {
        try core.changing { state throws(LogFault) in
            try enter(state)
            // The group has removed the member meanwhile: the next poll reports it.
            guard seat.standing == .told || seat.standing == .expelled else {
                throw LogFault(.stop, .misuse, "take may only answer assigned")
            }
            guard starts.count == seat.assigned.count, seat.assigned.allSatisfy({ starts[$0] != nil }) else {
                throw LogFault(.stop, .misuse, "take needs a start for each assigned partition: \(seat.assigned)")
            }
            try cursors.set(starts, paused: paused, topics: seat.options.inputs, in: state)
            guard seat.standing == .told else { return }
            seat.standing = .owning
            seat.group.settle()
        }
    }

    func giveBack() throws(LogFault) {
        lease.end()
        try core.changing { state throws(LogFault) in
            try enter(state)
            switch seat.standing {
            case .revoking: seat.standing = .waiting
            case .losing, .expelled: seat.standing = .outside
            default: throw LogFault(.stop, .misuse, "giveBack may only answer revoked or lost")
            }
            seat.assigned = []
            cursors.removeAll()
            seat.group.settle()
        }
    }

    func pause(_ partitions: [TopicPartition]) throws(LogFault) {
        try core.locked { state throws(LogFault) in try enter(state) }
        cursors.setPaused(true, partitions)
    }

    func resume(_ partitions: [TopicPartition]) throws(LogFault) {
        try core.locked { state throws(LogFault) in try enter(state) }
        cursors.setPaused(false, partitions)
    }

    func seek(to positions: [TopicPartition: NextOffset]) throws(LogFault) {
        try core.locked { state throws(LogFault) in try enter(state) }
        cursors.seek(to: positions)
    }

    func position(of partition: TopicPartition) -> NextOffset? { cursors.position(of: partition) }

    // MARK: Writing

    func append(_ outputs: OutputBatch) throws(LogFault) {
        try core.changing { state throws(LogFault) in
            try enterWriter(state)
            let fault = try disturb(.append, state)
            guard !seat.mustAbort else { throw LogFault(.stop, .misuse, "append after a refusal, before abort") }
            let count = fault?.kind == .crashHalfway ? outputs.count / 2 : outputs.count
            if count > 0 { try seat.put(outputs, count, &state) }
            if fault != nil { throw seat.die() }
        }
    }

    var grown: [String: Int32] { seat.grown }
    var ownedUntil: Duration? { seat.ending == nil ? lease.until : nil }

    /// The order: the offsets are checked against the group, then sent, then everything becomes visible. A session that
    /// ends between the last two leaves the offsets pending, and requests for them must wait.
    func commit(_ positions: [TopicPartition: NextOffset]) throws(LogFault) {
        let now = bootClock()
        var isConfirmed = false
        try core.changing { state throws(LogFault) in
            try enterWriter(state)
            guard !seat.mustAbort else { throw LogFault(.stop, .misuse, "commit after a refusal, before abort") }
            guard seat.transaction != nil || !positions.isEmpty else {
                appended = []
                return
            }
            _ = try disturb(.beforeCommit, state)
            // Without offsets the group is not asked, so a removed member is not noticed: as with Kafka.
            for partition in positions.keys where !(seat.isMember && seat.owns(partition)) {
                seat.mustAbort = true
                throw LogFault(.rewind, .generation, "the group has assigned partitions of \(seat.identity) to others")
            }
            let fault = try disturb(.commit, state)
            switch fault?.kind {
            case .crashHalfway:
                if seat.transaction == nil { seat.transaction = state.begin(now: state.clock.now) }
                seat.transaction?.pending = positions
                throw seat.die()
            case .outcomeUnknownNotDone: break
            default:
                appended = seat.transaction?.parts ?? []
                seat.group.committed.merge(positions) { $1 }
                state.end(seat, committed: true, now: state.clock.now)
            }
            if fault != nil {
                seat.mustRebuild = true
                throw LogFault(.rebuild, .timedOut, "it is unknown whether the commit of \(seat.identity) was done")
            }
            if try disturb(.afterCommit, state) != nil { throw seat.die() }
            // A member whose partitions are being revoked is about to give them up.
            isConfirmed = !positions.isEmpty && seat.standing == .owning
        }
        if isConfirmed { lease.confirm(at: now) }
    }

    func abort() throws(LogFault) {
        try core.changing { state throws(LogFault) in
            try enterWriter(state)
            state.end(seat, committed: false, now: state.clock.now)
            seat.mustAbort = false
        }
    }

    func appendedEnd(topic: Int, partition: Int32) -> NextOffset? {
        appended.first { $0.topic == topic && $0.partition.name.partition == partition }.map {
            NextOffset(after: $0.last)
        }
    }

    func close(by deadline: Deadline) -> Bool {
        let seat = seat
        core.changing { state in
            guard !seat.isGone, !seat.isFenced else { return }
            seat.isClosed = true
            state.end(seat, committed: false, now: state.clock.now)
            if !seat.options.keepsPlace { seat.group.leave(seat, now: state.clock.now) }
        }
        return true
    }

    // MARK: Faults

    /// Carries out the planned fault of this step, if there is one; a fault whose effect depends on the step is
    /// returned.
    private func disturb(_ step: LogStep, _ state: borrowing LogState) throws(LogFault) -> InjectedFault? {
        guard let fault = core.faults?.fault(at: step, of: seat.identity) else { return nil }
        precondition(step.kinds.contains(fault.kind), "\(fault) cannot happen at \(step)")
        let now = state.clock.now
        switch fault.kind {
        case .crashBefore: throw seat.die()
        case .fence:
            state.fence(seat, now: now)
            throw LogFault(.rebuild, .fenced, "a newer session has the identity \(seat.identity)")
        case .refuse:
            seat.mustAbort = true
            throw LogFault(.rewind, .other, "the log refuses this cycle of \(seat.identity)")
        case .retry: throw LogFault(.retrySameCall, .timedOut, "no answer in time")
        case .lose: seat.group.expel(seat, now: now)
        case .move: seat.group.rotate(now: now)
        case .crashHalfway, .crashAfter, .outcomeUnknownDone, .outcomeUnknownNotDone, .slow, .stall: return fault
        }
        return nil
    }
}
