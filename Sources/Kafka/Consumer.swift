// The consumer: one member of a group, or a reader of partitions it chose itself.

internal import CRDKafka
public import Log
public import Platform

/// Told of partitions that come and go, on the thread that polls, while it polls.
public protocol RebalanceHooks: AnyObject {
    /// These partitions are the member's from now on, and all it has: `range` gives everything anew each time.
    func assigned(_ partitions: [TopicPartition], by consumer: Consumer) -> AssignmentPlan
    /// They are about to go to others, who wait for this call: commit what is open, within seconds.
    func revoked(_ partitions: [TopicPartition], by consumer: Consumer)
    /// They may belong to others already: drop what is open, commit nothing.
    func lost(_ partitions: [TopicPartition], by consumer: Consumer)
}

/// How to begin with partitions just assigned.
public struct AssignmentPlan: Sendable {
    /// Where reading starts; a partition left out starts at the group's committed offset, else at the beginning.
    public var starts: [TopicPartition: NextOffset] = [:]
    /// Given no records until `resume`.
    public var paused: Set<TopicPartition> = []
    private(set) var readsNothing = false

    /// For members that own partitions and want none of their records: no position is asked for, and nothing is given.
    public static var readingNothing: AssignmentPlan {
        var plan = AssignmentPlan()
        plan.readsNothing = true
        return plan
    }

    public init(starts: [TopicPartition: NextOffset] = [:], paused: Set<TopicPartition> = []) {
        self.starts = starts
        self.paused = paused
    }
}

/// Reads partitions in order. One thread owns it and makes every call; none of them is safe elsewhere.
public final class Consumer {
    public struct Configuration {
        public var clientID: String
        /// The group, or for a reader that assigns itself: a name that is never committed to.
        public var groupID: String
        /// Stable over restarts: a member that is back within the session gets its partitions without a rebalance.
        public var instanceID: String?
        public var properties: ClientProperties
        /// Sees records of open and aborted transactions, and the true end of a partition. For watermarks of a restore.
        public var readsUncommitted = false
        /// How long a silent member keeps its partitions; longer than a restart takes.
        public var sessionTimeout: Duration = .seconds(30)
        /// Fetched ahead per partition. When this or `queuedKilobytes` is reached, librdkafka 2.0.2 pauses fetching for up to a
        /// second: enough for live input, and far too little for a replay, which wants 500,000 and 512 MiB.
        public var queuedRecords = 10_000
        /// Fetched ahead by the whole client: every worker thread may hold this much (librdkafka's default is four times it).
        public var queuedKilobytes = 16 * 1024
        public var onEvent: ClientEventHandler = { _ in }
        /// To whoever watches. Only for a client that is polled all the time: the library keeps what nobody takes.
        public var tellsStatistics = false

        /// The library keeps some 400 bytes beside the bytes of each record.
        mutating func readAhead(bytes: Int) {
            queuedKilobytes = max(1024, bytes / 1024 * 2 / 3)
            queuedRecords = max(1000, bytes / 3 / 400)
        }

        public init(clientID: String, groupID: String, instanceID: String? = nil, properties: ClientProperties) {
            self.clientID = clientID
            self.groupID = groupID
            self.instanceID = instanceID
            self.properties = properties
        }
    }

    private let client: OpaquePointer
    private var handle: ClientHandle
    private let context: ClientContext
    private var isClosed = false
    let isStatic: Bool
    /// Internal for tests, which make the library and it disagree.
    let readings = Readings()
    /// Kept alive until `close`.
    private var hooks: (any RebalanceHooks)?
    /// Half of what may be fetched ahead, and what was given since the brokers' threads were last woken.
    private let halfQueue: (records: Int, bytes: Int)
    private var given: (records: Int, bytes: Int) = (0, 0)
    /// What went wrong in a callback, for the next `poll` to throw.
    private var pendingFault: KafkaFault?
    /// Rebalances wait for an answer instead of being dealt with inside the callback; see `Consumer+Answers.swift`.
    var answersLater = false
    /// What the group has said and what has no answer yet: `assigned`, `revoked` or `lost`.
    var unanswered: SessionEvent?
    /// Of a consumer that answers later: owned partitions without a record at their position, which the owner has not heard of
    /// yet. The library reads nothing more of them.
    var gone: [TopicPartition] = []
    /// Topics of questions that have failed: who leads their partitions may have changed.
    var leadersInDoubt: Set<String> = []

    public init(_ configuration: Configuration) throws(PropertyFault) {
        context = ClientContext(
            events: configuration.properties.watching(configuration.clientID, configuration.onEvent))
        isStatic = configuration.instanceID != nil
        halfQueue = (configuration.queuedRecords / 2, configuration.queuedKilobytes * 512)
        var conf = try ClientConf(clientID: configuration.clientID)
        try conf.set("session.timeout.ms", String(configuration.sessionTimeout.wholeMilliseconds))
        try conf.set("max.poll.interval.ms", "120000")
        try conf.set("fetch.wait.max.ms", "50")
        try conf.set("queued.min.messages", String(configuration.queuedRecords))
        try conf.set("queued.max.messages.kbytes", String(configuration.queuedKilobytes))
        if configuration.tellsStatistics, configuration.properties.watch != nil {
            try conf.set("statistics.interval.ms", String(ClientProperties.watchedStatisticsMilliseconds))
        }
        try conf.apply(configuration.properties, to: .consumer)
        try conf.set("group.id", configuration.groupID)
        if let instance = configuration.instanceID { try conf.set("group.instance.id", instance) }
        try conf.set("enable.auto.commit", "false")
        try conf.set("enable.auto.offset.store", "false")
        try conf.set("isolation.level", configuration.readsUncommitted ? "read_uncommitted" : "read_committed")
        // Gives partition p of all topics to one owner. Cooperative-sticky does not, and aborts the process in 2.0.2 when a
        // member is destroyed early.
        try conf.set("partition.assignment.strategy", "range")
        // A position that does not exist any more is a fault, never a reason to jump: see `starts(of:)` and `hear`.
        try conf.set("auto.offset.reset", "error")
        try conf.set("enable.partition.eof", "true")
        conf.install(context, for: RD_KAFKA_CONSUMER)
        let handle = try ClientHandle(
            RD_KAFKA_CONSUMER, conf: conf, context: context, label: "consumer \(configuration.clientID)")
        client = handle.raw
        self.handle = consume handle
        // One poll serves records and every callback.
        rd_kafka_poll_set_consumer(client)
        context.onRebalance = { [unowned self] code, list in rebalance(code, list) }
    }

    /// The library's handle, which is freed by `close`.
    var raw: OpaquePointer {
        precondition(!isClosed, "a closed consumer is not used")
        return client
    }

    // MARK: Membership

    /// Joins the group. Every member of a group subscribes to the same topics, and passes its hooks here; they are kept
    /// alive until `close`.
    public func subscribe(to topics: [String], hooks: (any RebalanceHooks)? = nil) throws(KafkaFault) {
        self.hooks = hooks
        let list = TopicPartitionList(capacity: topics.count)
        for topic in topics { list.append(TopicPartition(topic, -1)) }
        try KafkaFault.check(rd_kafka_subscribe(raw, list.raw), "subscribe to \(topics.joined(separator: ", "))")
    }

    /// Reads these partitions from these positions, without a group: for restores and readers.
    public func assign(_ starts: [TopicPartition: NextOffset]) throws(KafkaFault) {
        readings.reset(to: Array(starts.keys))
        readings.place(at: starts)
        let list = TopicPartitionList(capacity: starts.count)
        for (partition, start) in starts { list.append(partition, offset: start.value) }
        try KafkaFault.check(rd_kafka_assign(raw, list.raw), "assign partitions")
    }

    /// The partitions owned now, sorted.
    public var assignment: [TopicPartition] { readings.partitions }

    /// For `sendOffsets`; the generation changes with every rebalance.
    public func groupMetadata() throws(KafkaFault) -> GroupMetadata {
        guard let metadata = rd_kafka_consumer_group_metadata(raw) else {
            throw KafkaFault(.rebuildClient, .invalidConfiguration, operation: "read the group's metadata")
        }
        return GroupMetadata(owning: metadata)
    }

    private func rebalance(
        _ code: rd_kafka_resp_err_t, _ list: UnsafeMutablePointer<rd_kafka_topic_partition_list_t>
    ) {
        let partitions = list.partitions.sorted()
        if answersLater { return note(code, partitions) }
        do throws(KafkaFault) {
            if code == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS {
                try take(partitions, list)
            } else {
                if rd_kafka_assignment_lost(raw) != 0 {
                    hooks?.lost(partitions, by: self)
                } else {
                    hooks?.revoked(partitions, by: self)
                }
                readings.reset(to: [])
                try KafkaFault.check(rd_kafka_assign(raw, nil), "give partitions back")
            }
        } catch {
            // An assignment is answered in any case, or the group waits for ever. What was not taken over is not offered again to
            // this member, so polling once more would read nothing, quietly.
            readings.reset(to: [])
            rd_kafka_assign(raw, nil)
            pendingFault = KafkaFault(
                error.remedy == .stopProcess ? .stopProcess : .rebuildClient, error.code, operation: error.operation,
                detail: error.detail)
        }
    }

    private func take(
        _ partitions: [TopicPartition], _ list: UnsafeMutablePointer<rd_kafka_topic_partition_list_t>
    ) throws(KafkaFault) {
        readings.reset(to: partitions)
        let plan = hooks?.assigned(partitions, by: self) ?? AssignmentPlan()
        if plan.readsNothing { return try own(partitions, list) }
        let starts = try plan.starts.merging(self.starts(of: partitions.filter { plan.starts[$0] == nil })) { $1 }
        for index in 0..<Int(list.pointee.cnt) {
            // A partition without a committed position starts at its beginning, said in so many words.
            let start = starts[TopicPartition(list.pointee.elems[index])]
            list.pointee.elems[index].offset = start?.value ?? Int64(RD_KAFKA_OFFSET_BEGINNING)
        }
        readings.place(at: starts)
        try KafkaFault.check(rd_kafka_assign(raw, list), "take partitions over")
        try pause(plan.paused.sorted())
    }

    /// The end is where nothing has to be fetched until the pause is in force.
    private func own(
        _ partitions: [TopicPartition], _ list: UnsafeMutablePointer<rd_kafka_topic_partition_list_t>
    ) throws(KafkaFault) {
        for index in 0..<Int(list.pointee.cnt) { list.pointee.elems[index].offset = Int64(RD_KAFKA_OFFSET_END) }
        try KafkaFault.check(rd_kafka_assign(raw, list), "take partitions over")
        try pause(partitions)
    }

    /// The group's committed positions. Waits for transactions that an earlier owner has left open: until they are settled, nobody
    /// knows where to start.
    private func starts(of partitions: [TopicPartition]) throws(KafkaFault) -> [TopicPartition: NextOffset] {
        if partitions.isEmpty { return [:] }
        // Longer than a dead owner's transaction lives (10 s, and as long again until the broker looks), shorter than the time
        // after which the group takes a silent member for dead.
        return try committed(partitions, by: Deadline(after: .seconds(45)))
    }

    // MARK: Reading

    /// The next record; nil when none came within `timeout`. Serves callbacks, rebalances among them, so partitions may have
    /// come or gone when it returns.
    ///
    /// Call at least once a second, also when everything is paused.
    public func poll(_ timeout: Duration = .zero) throws(KafkaFault) -> ConsumedRecord? {
        guard let message = try message(within: timeout) else { return nil }
        return ConsumedRecord(owning: message)
    }

    /// The next record as the library's message, which the caller destroys; nil also when a rebalance waits for its answer.
    func message(within timeout: Duration) throws(KafkaFault) -> UnsafeMutablePointer<rd_kafka_message_t>? {
        if timeout <= .zero { return try nextMessage(wait: 0) }
        let deadline = Deadline(after: timeout)
        repeat {
            // An event ends the library's wait as well as a record does.
            if let message = try nextMessage(wait: deadline.remaining.timeoutMilliseconds) { return message }
        } while unanswered == nil && !deadline.hasPassed
        return nil
    }

    /// The next record of those that are there; waits, at most once, only when nothing is. No clock is read here: with 500-byte
    /// records one look at it costs a tenth of the whole loop.
    func nextMessage(wait: Int32) throws(KafkaFault) -> UnsafeMutablePointer<rd_kafka_message_t>? {
        var wait = wait
        while let message = rd_kafka_consumer_poll(raw, wait) {
            wait = 0
            if message.pointee.err == RD_KAFKA_RESP_ERR_NO_ERROR {
                if readings.moveOn(past: message) { return message }
                rd_kafka_message_destroy(message)
            } else {
                defer { rd_kafka_message_destroy(message) }
                try hear(message)
            }
        }
        if let fault = pendingFault.take() { throw fault }
        return nil
    }

    /// After records were given. A thread of 2.0.2 that finds the queue full looks again after a second, or when it has something
    /// else to do: it gets a question before what is queued has run out.
    func keepFetching(records: Int, bytes: Int) throws(KafkaFault) {
        given.records += records
        given.bytes += bytes
        guard given.records >= halfQueue.records || given.bytes >= halfQueue.bytes else { return }
        given = (0, 0)
        do throws(KafkaFault) {
            _ = try ends(of: readings.partitions, by: Deadline(after: .milliseconds(200)))
        } catch {
            // Nobody wanted the answer.
            if error.remedy == .stopProcess { throw error }
        }
    }

    /// Gives every record that is there, without waiting for more; stops after `limit`. Returns how many there were.
    ///
    /// Fewer than `limit` means the input is drained for now: the moment to commit.
    public func drain<E: Error>(
        limit: Int, _ body: (borrowing ConsumedRecord) throws(E) -> Void
    ) throws -> Int {
        var count = 0
        while count < limit, let message = try nextMessage(wait: 0) {
            count += 1
            try body(ConsumedRecord(owning: message))
        }
        return count
    }

    /// A message that is an event.
    private func hear(_ message: UnsafeMutablePointer<rd_kafka_message_t>) throws(KafkaFault) {
        let code = KafkaCode(message.pointee.err)
        switch message.pointee.err {
        case RD_KAFKA_RESP_ERR__PARTITION_EOF:
            do throws(KafkaFault) { try readings.reachEnd(message) } catch { try noteGone(message, error) }
        case RD_KAFKA_RESP_ERR__FATAL:
            throw handle.fatalFault
                ?? KafkaFault(.rebuildClient, code, operation: "read", detail: code.explanation)
        case RD_KAFKA_RESP_ERR__AUTO_OFFSET_RESET:
            let fault = KafkaFault(
                .stopProcess, .offsetOutOfRange, operation: "read \(Self.partition(of: message))",
                detail:
                    "there is no record at the position any more: retention has deleted records before they were read, or the "
                    + "topic was created again")
            try noteGone(message, fault)
        default:
            let detail = rd_kafka_message_errstr(message).map { String(cString: $0) } ?? code.explanation
            if code.isAuthorisation {
                throw KafkaFault(.stopProcess, code, operation: "read", detail: detail)
            }
            context.noteError(code, detail)
        }
    }

    /// The owner of a session goes on with its other partitions; for everybody else it is a fault.
    private func noteGone(
        _ message: UnsafeMutablePointer<rd_kafka_message_t>, _ fault: KafkaFault
    ) throws(KafkaFault) {
        guard answersLater else { throw fault }
        let partition = Self.partition(of: message)
        if owns(partition), !gone.contains(partition) { gone.append(partition) }
    }

    private static func partition(of message: UnsafeMutablePointer<rd_kafka_message_t>) -> TopicPartition {
        TopicPartition(String(cString: rd_kafka_topic_name(message.pointee.rkt)), message.pointee.partition)
    }

    // MARK: Positions

    /// The next record to be given, of every owned partition that has shown one, its end, or was told where to start.
    public var positions: [TopicPartition: NextOffset] {
        var positions: [TopicPartition: NextOffset] = [:]
        for (partition, slot) in readings.all { positions[partition] = slot.next }
        return positions
    }

    /// The same of one; nil when it is not owned.
    func position(of partition: TopicPartition) -> NextOffset? { readings[partition]?.pointee.next }

    func owns(_ partition: TopicPartition) -> Bool { readings[partition] != nil }

    /// Whether every partition that is not paused was last seen at its end (of committed records). False without partitions.
    public var isAtEnd: Bool {
        !readings.partitions.isEmpty && readings.all.allSatisfy { $0.slot.isPaused || $0.slot.isAtEnd }
    }

    /// Records below the expected position that the library gave again, and that were not passed on.
    public var droppedRepeats: Int { readings.droppedRepeats }

    /// No records of these partitions until `resume`. A paused partition stays paused only while it is owned.
    public func pause(_ partitions: [TopicPartition]) throws(KafkaFault) {
        try setPaused(true, partitions)
    }

    /// Only partitions that are paused: resuming another one makes 2.0.2 read again from an older place.
    public func resume(_ partitions: [TopicPartition]) throws(KafkaFault) {
        try setPaused(false, partitions)
    }

    private func setPaused(_ paused: Bool, _ partitions: [TopicPartition]) throws(KafkaFault) {
        let changing = partitions.filter { partition in
            readings[partition].map { $0.pointee.isPaused != paused } ?? false
        }
        guard !changing.isEmpty else { return }
        let list = TopicPartitionList(capacity: changing.count)
        for partition in changing { list.append(partition) }
        try KafkaFault.check(
            paused ? rd_kafka_pause_partitions(raw, list.raw) : rd_kafka_resume_partitions(raw, list.raw),
            paused ? "pause partitions" : "resume partitions")
        for partition in changing {
            readings[partition]?.pointee.isPaused = paused
            // What came meanwhile is fetched only now; the library tells the end again.
            if !paused { readings[partition]?.pointee.isAtEnd = false }
        }
    }

    /// Goes back or forth; what was fetched before is dropped. Only partitions owned now; others are ignored.
    public func seek(to positions: [TopicPartition: NextOffset]) throws(KafkaFault) {
        let owned = positions.filter { readings[$0.key] != nil }
        guard !owned.isEmpty else { return }
        let list = TopicPartitionList(capacity: owned.count)
        for (partition, next) in owned { list.append(partition, offset: next.value) }
        // A partition just assigned takes no seek for a moment.
        let deadline = Deadline(after: .seconds(5))
        while true {
            // -1: until every partition has answered, which asks no broker. A time-out would be a thousand times too short in
            // 2.0.2.
            try KafkaFault.check(rd_kafka_seek_partitions(raw, list.raw, -1), "seek")
            var fault: KafkaFault?
            list.forEach { element in
                guard element.err != RD_KAFKA_RESP_ERR_NO_ERROR else { return }
                let code = KafkaCode(element.err)
                fault = KafkaFault(
                    code.remedyOutsideTransactions, code, operation: "seek in \(TopicPartition(element))")
            }
            guard let fault else { break }
            if fault.code != .wrongState || deadline.hasPassed { throw fault }
            Platform.pause(for: .milliseconds(5))
        }
        readings.place(at: owned)
    }

    // MARK: End

    /// The newest troubles with brokers, oldest first.
    public var recentFaults: [(code: KafkaCode, detail: String)] { context.recentFaults }

    /// Leaves: the hooks hear of the revocation inside this call. A static member keeps its partitions for the session time.
    ///
    /// False when the client was not gone by the deadline; then end the process.
    @discardableResult
    public func close(by deadline: Deadline) -> Bool {
        guard !isClosed else { return true }
        if answersLater { return closeAnsweringNothing(by: deadline) }
        let raw = client
        let queue = rd_kafka_queue_new(raw)
        if let failure = rd_kafka_consumer_close_queue(raw, queue) {
            context.tell(
                .log(.warning, facility: "CLOSE", message: String(cString: rd_kafka_error_string(failure))))
            rd_kafka_error_destroy(failure)
        } else {
            while rd_kafka_consumer_closed(raw) == 0 && !deadline.hasPassed {
                // Serves the rebalance callback. What was fetched and not given yet comes this way too and is dropped.
                if let message = rd_kafka_consume_queue(queue, 10) { rd_kafka_message_destroy(message) }
            }
        }
        rd_kafka_queue_destroy(queue)
        isClosed = true
        hooks = nil
        return handle.close(by: deadline)
    }

    /// A static member does not leave, so there is nobody to say goodbye to: the library is asked to go without a last rebalance.
    ///
    /// That one could come behind another that has no answer yet, and an answer to it waits for ever when the library has closed
    /// its group meanwhile (librdkafka #4884, seen with 2.0.2). So a member that leaves gives the first answer before, and leaves
    /// on the thread that ends the client, for which nobody waits longer than `deadline`.
    private func closeAnsweringNothing(by deadline: Deadline) -> Bool {
        if !isStatic && unanswered != nil { giveBack() }
        isClosed = true
        return handle.close(by: deadline, leaving: !isStatic)
    }
}
