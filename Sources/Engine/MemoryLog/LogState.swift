// The whole state of an in-memory log.

internal import Log
internal import Platform

/// Plain data under one lock. Time-outs take effect at the next access.
struct LogState {
    let clock: MemoryLog.Clock
    let tombstonesKept: Int64
    var topics: [String: Topic] = [:]
    var groups: [String: MemoryGroup] = [:]
    /// In the order of opening; a seat is dropped when nothing of it can time out any more.
    private var seats: [Seat] = []
    private var transactionsBegun = 0

    init(clock: MemoryLog.Clock, tombstonesKept: Int64) {
        self.clock = clock
        self.tombstonesKept = tombstonesKept
    }

    // MARK: Topics

    func topic(_ name: String) throws(LogFault) -> Topic {
        guard let topic = topics[name] else { throw LogFault(.stop, .unknownTopic, "there is no topic \(name)") }
        return topic
    }

    func partition(_ name: TopicPartition) throws(LogFault) -> MemoryPartition {
        let topic = try topic(name.topic)
        guard topic.partitions.indices.contains(Int(name.partition)) else {
            throw LogFault(.stop, .unknownTopic, "there is no partition \(name)")
        }
        return topic.partitions[Int(name.partition)]
    }

    func compact(_ partition: MemoryPartition, now: Int64) { partition.compact(tombstonesFrom: now - tombstonesKept) }

    /// Checks the record and appends it to its partition.
    ///
    /// - Parameter transaction: 0: the records are in no transaction.
    func append(_ outputs: OutputBatch, _ index: Int, to topic: Topic, transaction: Int, now: Int64)
        throws(LogFault) -> (partition: MemoryPartition, offset: Int64)
    {
        let output = outputs.records[index]
        guard topic.partitions.indices.contains(Int(output.partition)) else {
            throw LogFault(.stop, .misuse, "\(topic.name) has no partition \(output.partition)")
        }
        if let lead = topic.settings.maximalLead, output.timestamp > now + lead.wholeMilliseconds {
            throw LogFault(
                .stop, .timestampAhead,
                "\(topic.name) refuses a record with the timestamp \(output.timestamp) at \(now): check the clocks"
            )
        }
        let partition = topic.partitions[Int(output.partition)]
        let offset = partition.end
        let record = StoredRecord.make(
            of: outputs, index, offset: offset, timestamp: topic.settings.usesAppendTime ? now : output.timestamp,
            appended: now)
        let bytes = Int(record.header.headers) + record.key.count + record.value.count
        guard bytes <= topic.settings.maximalBytes else {
            throw LogFault(.stop, .tooLarge, "\(topic.name) refuses a record of \(bytes) bytes: it is too large")
        }
        guard !topic.shape.isCompacted || record.key.baseAddress != nil else {
            throw LogFault(.stop, .misuse, "\(topic.name) is compacted and refuses a record without a key")
        }
        partition.append(record, transaction: transaction)
        return (partition, offset)
    }

    /// Call this after records were appended and committed.
    func tidy(_ partition: MemoryPartition, of topic: Topic, now: Int64) {
        if topic.shape.isCompacted {
            if partition.isDueForCompaction { compact(partition, now: now) }
        } else if let count = topic.settings.retainedRecords {
            partition.retain(count)
        }
    }

    // MARK: Groups and sessions

    func seat(_ identity: String) -> Seat? { seats.last { $0.identity == identity } }

    func committed(group: String) -> [TopicPartition: NextOffset] { groups[group]?.committed ?? [:] }

    private func grown(_ options: SessionOptions) throws(LogFault) -> [String: Int32] {
        try options.grown(
            (options.inputs + options.outputs).compactMap { name in
                topics[name].map { (topic: name, count: $0.shape.partitions) }
            })
    }

    mutating func open(_ options: SessionOptions, now: Int64) throws(LogFault) -> Seat {
        var inputs: [Topic] = []
        for name in options.inputs { inputs.append(try topic(name)) }
        let grown = try grown(options)
        let group = groups[options.group] ?? MemoryGroup(options.group)
        groups[options.group] = group
        let seat = Seat(options, inputs: inputs, group, now: now)
        seat.grown = grown
        let old = self.seat(options.identity)
        if let old { fence(old, now: now) }
        seats.append(seat)
        if let old, old.group === group, options.keepsPlace {
            group.replace(old, by: seat, now: now)
        } else {
            group.join(seat, now: now)
        }
        return seat
    }

    /// A seat that is no member and never becomes one. It aborts the open transaction of an older seat of its identity.
    mutating func openOutside(_ options: SessionOptions, now: Int64) -> Seat {
        let group = groups[options.group] ?? MemoryGroup(options.group)
        groups[options.group] = group
        let seat = Seat(options, inputs: [], group, now: now)
        if let old = self.seat(options.identity) { fence(old, now: now) }
        seats.append(seat)
        return seat
    }

    /// What a newer session of the same identity does to an older one.
    func fence(_ seat: Seat, now: Int64) {
        seat.isFenced = true
        end(seat, committed: false, now: now)
    }

    /// Whether a session that has not ended its transaction has pending offsets of one of these partitions.
    func isPending(_ partitions: [TopicPartition], in group: MemoryGroup) -> Bool {
        seats.contains { seat in
            guard seat.group === group, let pending = seat.transaction?.pending else { return false }
            return partitions.contains { pending[$0] != nil }
        }
    }

    // MARK: Transactions

    mutating func begin(now: Int64) -> OpenTransaction {
        transactionsBegun += 1
        return OpenTransaction(number: transactionsBegun, began: now)
    }

    func end(_ seat: Seat, committed: Bool, now: Int64) {
        guard let transaction = seat.transaction else { return }
        seat.transaction = nil
        for part in transaction.parts {
            part.partition.finish(transaction: transaction.number, committed: committed)
            if let topic = topics[part.partition.name.topic] { tidy(part.partition, of: topic, now: now) }
        }
    }

    // MARK: Time

    /// Applies all time-outs that are due. Call this before anything is read.
    mutating func expire(now: Int64) {
        for seat in seats {
            if let transaction = seat.transaction, now - transaction.began >= seat.transactionTimeout {
                end(seat, committed: false, now: now)
                seat.isWriterFenced = true
            }
            guard seat.isMember else { continue }
            let isLate = seat.group.isInRound && seat.holdsPartitions
            let silentSince = isLate ? min(seat.lastSeen, seat.group.roundBegan) : seat.lastSeen
            if now - silentSince >= seat.sessionTimeout { seat.group.expel(seat, now: now) }
        }
        seats.removeAll { ($0.isGone || $0.isFenced || $0.isClosed) && $0.transaction == nil && !$0.isMember }
    }
}
