// Reading without a group.

internal import Log
internal import Platform

final class MemoryReader: LogReader {
    private let core: LogCore
    private let options: ReaderOptions
    private var cursors = Cursors()
    private var stalledPolls = 0
    private var isGone = false

    init(_ options: ReaderOptions, _ core: LogCore) {
        self.core = core
        self.options = options
    }

    func beginnings(of partitions: [TopicPartition], by deadline: Deadline) throws(LogFault)
        -> [TopicPartition: NextOffset]
    {
        try each(partitions) { $0.beginning }
    }

    func ends(_ kind: EndKind, of partitions: [TopicPartition], by deadline: Deadline) throws(LogFault)
        -> [TopicPartition: NextOffset]
    {
        try each(partitions) {
            switch kind {
            case .committed: $0.stableEnd
            case .all: $0.end
            }
        }
    }

    func offsets(at timestamp: Int64, in partitions: [TopicPartition], by deadline: Deadline) throws(LogFault)
        -> [TopicPartition: NextOffset]
    {
        try each(partitions) { $0.offset(at: timestamp) }
    }

    private func each(_ names: [TopicPartition], _ value: (MemoryPartition) -> Int64) throws(LogFault)
        -> [TopicPartition: NextOffset]
    {
        try core.locked { state throws(LogFault) in
            try enter()
            var values: [TopicPartition: NextOffset] = [:]
            for name in names { values[name] = NextOffset(value(try state.partition(name))) }
            return values
        }
    }

    func read(from starts: [TopicPartition: NextOffset]) throws(LogFault) {
        try core.locked { state throws(LogFault) in
            try enter()
            try cursors.set(starts, paused: [], topics: options.topics, in: state)
        }
    }

    func poll(into batch: RecordBatch, limit: Int, wait: Duration) throws(LogFault) {
        batch.begin(StoredRecordAccess.shared)
        var allowed = limit
        var diesAfter = false
        if core.faults != nil {
            try core.locked { state throws(LogFault) in
                try enter()
                guard let fault = try disturb(state) else { return }
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
        _ = try core.waiting(until: Deadline(after: wait)) { state throws(LogFault) in
            try enter()
            if let gone = cursors.fill(batch, limit: allowed) {
                let position = cursors.position(of: gone)?.description ?? ""
                throw LogFault(.stop, .positionGone, "\(gone) no longer has a record at \(position)")
            }
            return batch.isEmpty ? nil : ()
        }
        if diesAfter {
            batch.removeAll()
            throw core.locked { state in die(state) }
        }
    }

    func position(of partition: TopicPartition) -> NextOffset? { cursors.position(of: partition) }

    func close(by deadline: Deadline) -> Bool {
        cursors.removeAll()
        return true
    }

    // MARK: Faults

    private func enter() throws(LogFault) {
        if isGone { throw LogFault(.rebuild, .other, "the process of \(options.name) has ended") }
    }

    private func disturb(_ state: borrowing LogState) throws(LogFault) -> InjectedFault? {
        let step: LogStep = options.readsAhead ? .restore : .readerPoll
        guard let fault = core.faults?.fault(at: step, of: options.name) else { return nil }
        precondition(step.kinds.contains(fault.kind), "\(fault) cannot happen at \(step)")
        switch fault.kind {
        case .crashBefore: throw die(state)
        case .retry: throw LogFault(.retrySameCall, .timedOut, "no answer in time")
        default: return fault
        }
    }

    /// A worker's reader has the name of its identity: both are one process.
    private func die(_ state: borrowing LogState) -> LogFault {
        isGone = true
        state.seat(options.name)?.isGone = true
        return LogFault(.rebuild, .other, "the process of \(options.name) has ended")
    }
}
