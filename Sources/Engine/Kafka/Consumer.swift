// The consumer: a member of a group, or a reader of partitions that it chose itself.

internal import CRDKafka
public import Log
public import Platform

/// Notified of rebalances, on the thread that polls, during the poll.
public protocol RebalanceHooks: AnyObject {
    /// From now on the member owns these partitions and no others: `range` assigns all of them anew each time.
    func assigned(_ partitions: [TopicPartition], by consumer: Consumer) -> AssignmentPlan
    /// Others are about to get these partitions and wait for this call: commit what is open, within seconds.
    func revoked(_ partitions: [TopicPartition], by consumer: Consumer)
    /// Others may already own these partitions: drop what is open, commit nothing.
    func lost(_ partitions: [TopicPartition], by consumer: Consumer)
}

/// Where to start in partitions that were just assigned.
public struct AssignmentPlan: Sendable {
    /// The first offset to read; a partition that is not listed starts at the group's committed offset, or else at the
    /// beginning.
    public var starts: [TopicPartition: NextOffset] = [:]
    /// These deliver no records until `resume`.
    public var paused: Set<TopicPartition> = []
    private(set) var readsNothing = false

    /// For members that own partitions but read none of their records: no offset is requested, and nothing is
    /// delivered.
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

/// Reads partitions in order. One thread owns it and makes every call; none of the calls is safe on another thread.
public final class Consumer {
    public struct Configuration {
        public var clientID: String
        /// The group; for a reader that assigns itself: a name to which nothing is committed.
        public var groupID: String
        /// Stable across restarts: a member that returns within the session timeout gets its partitions without a
        /// rebalance.
        public var instanceID: String?
        public var properties: ClientProperties
        /// Reads records of open and aborted transactions, and sees the true end of a partition, for the ends of a
        /// restore.
        public var readsUncommitted = false
        /// How long a silent member keeps its partitions; longer than a restart takes.
        public var sessionTimeout: Duration = .seconds(30)
        /// Records fetched ahead per partition. When this or `queuedKilobytes` is reached, librdkafka 2.0.2 pauses
        /// fetching for up to a second: enough for live input, and far too little for a replay, which needs 500,000 and
        /// 512 MiB.
        public var queuedRecords = 10_000
        /// KiB that the whole client fetches ahead: every worker thread may hold this much (librdkafka's default is
        /// four times as much).
        public var queuedKilobytes = 16 * 1024
        /// How long a broker may hold a request for records while it has fewer than `fetchBytes`.
        public var fetchWait: Duration = .milliseconds(50)
        public var fetchBytes = 1
        public var onEvent: ClientEventHandler = { _ in }
        /// Reports statistics to `watch`. Only for a client that is polled all the time: librdkafka keeps statistics
        /// that are not polled.
        public var tellsStatistics = false

        /// librdkafka needs about 400 bytes in addition to the bytes of each record.
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
    /// Internal for tests in which librdkafka and the readings disagree.
    let readings = Readings()
    /// Kept alive until `close`.
    private var hooks: (any RebalanceHooks)?
    /// From 2.2 on. How long a partition is not fetched after its queue was full: a second, if it is not set.
    private static let timeToLookAgain = "fetch.queue.backoff.ms"
    private let looksAgainForRoom: Bool
    /// Half of the records and bytes that may be fetched ahead, and the number delivered since the brokers' threads
    /// were last woken.
    private let halfQueue: (records: Int, bytes: Int)
    private var given: (records: Int, bytes: Int) = (0, 0)
    /// The fault of a callback, which the next `poll` throws.
    private var pendingFault: KafkaFault?
    /// Rebalances wait for an answer instead of being handled in the callback; see `Consumer+Answers.swift`.
    var answersLater = false
    /// The rebalance that has no answer yet: `assigned`, `revoked` or `lost`.
    var unanswered: SessionEvent?
    /// For a consumer that answers later: owned partitions without a record at their position, which are not reported
    /// to the owner yet. librdkafka reads no more of them.
    var gone: [TopicPartition] = []
    /// Topics of requests that have failed: their partitions may have other leaders now.
    var leadersInDoubt: Set<String> = []

    public init(_ configuration: Configuration) throws(PropertyFault) {
        context = ClientContext(
            events: configuration.properties.watching(configuration.clientID, configuration.onEvent))
        isStatic = configuration.instanceID != nil
        halfQueue = (configuration.queuedRecords / 2, configuration.queuedKilobytes * 512)
        var conf = try ClientConf(clientID: configuration.clientID)
        try conf.set("session.timeout.ms", String(configuration.sessionTimeout.wholeMilliseconds))
        try conf.set("max.poll.interval.ms", "120000")
        try conf.set("fetch.wait.max.ms", String(configuration.fetchWait.wholeMilliseconds))
        try conf.set("fetch.min.bytes", String(configuration.fetchBytes))
        try conf.set("queued.min.messages", String(configuration.queuedRecords))
        try conf.set("queued.max.messages.kbytes", String(configuration.queuedKilobytes))
        if configuration.tellsStatistics, configuration.properties.watch != nil {
            try conf.set("statistics.interval.ms", String(ClientProperties.watchedStatisticsMilliseconds))
        }
        looksAgainForRoom = conf.get(Self.timeToLookAgain) != nil
        if looksAgainForRoom { try conf.set(Self.timeToLookAgain, "10") }
        try conf.apply(configuration.properties, to: .consumer)
        try conf.set("group.id", configuration.groupID)
        if let instance = configuration.instanceID { try conf.set("group.instance.id", instance) }
        try conf.set("enable.auto.commit", "false")
        try conf.set("enable.auto.offset.store", "false")
        try conf.set("isolation.level", configuration.readsUncommitted ? "read_uncommitted" : "read_committed")
        // Assigns partition p of all topics to one owner. Cooperative-sticky does not, and aborts the process in 2.0.2
        // if a member is destroyed early.
        try conf.set("partition.assignment.strategy", "range")
        // A position that no longer exists is a fault, never a reason to jump: see `starts(of:)` and `hear`.
        try conf.set("auto.offset.reset", "error")
        try conf.set("enable.partition.eof", "true")
        conf.install(context, for: RD_KAFKA_CONSUMER)
        let handle = try ClientHandle(
            RD_KAFKA_CONSUMER, conf: conf, context: context, label: "consumer \(configuration.clientID)")
        client = handle.raw
        self.handle = consume handle
        // One poll delivers records and runs every callback.
        rd_kafka_poll_set_consumer(client)
        context.onRebalance = { [unowned self] code, list in rebalance(code, list) }
    }

    /// librdkafka's handle, which `close` frees.
    var raw: OpaquePointer {
        precondition(!isClosed, "the consumer is closed")
        return client
    }

    // MARK: Membership

    /// Joins the group. Every member of a group must subscribe to the same topics. The hooks are kept alive until
    /// `close`.
    public func subscribe(to topics: [String], hooks: (any RebalanceHooks)? = nil) throws(KafkaFault) {
        self.hooks = hooks
        let list = TopicPartitionList(capacity: topics.count)
        for topic in topics { list.append(TopicPartition(topic, -1)) }
        try KafkaFault.check(rd_kafka_subscribe(raw, list.raw), "subscribe to \(topics.joined(separator: ", "))")
    }

    /// Reads these partitions from these offsets, without a group: for restores and readers.
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
            // Always answer an assignment, or the group waits forever. Partitions that were not taken are not offered
            // again to this member, so further polls would silently read nothing.
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
            // A partition without a committed offset starts at its beginning, which is set explicitly.
            let start = starts[TopicPartition(list.pointee.elems[index])]
            list.pointee.elems[index].offset = start?.value ?? Int64(RD_KAFKA_OFFSET_BEGINNING)
        }
        readings.place(at: starts)
        try KafkaFault.check(rd_kafka_assign(raw, list), "take partitions over")
        try pause(plan.paused.sorted())
    }

    /// Starts at the end, where nothing is fetched before the pause takes effect.
    private func own(
        _ partitions: [TopicPartition], _ list: UnsafeMutablePointer<rd_kafka_topic_partition_list_t>
    ) throws(KafkaFault) {
        for index in 0..<Int(list.pointee.cnt) { list.pointee.elems[index].offset = Int64(RD_KAFKA_OFFSET_END) }
        try KafkaFault.check(rd_kafka_assign(raw, list), "take partitions over")
        try pause(partitions)
    }

    /// The group's committed offsets. Waits for open transactions of an earlier owner: until they end, the start is
    /// unknown.
    private func starts(of partitions: [TopicPartition]) throws(KafkaFault) -> [TopicPartition: NextOffset] {
        if partitions.isEmpty { return [:] }
        // Longer than a dead owner's transaction lasts (10 s, and as long again until the broker checks), and shorter
        // than the time after which the group removes a silent member.
        return try committed(partitions, by: Deadline(after: .seconds(45)))
    }

    // MARK: Reading

    /// The next record; nil if none arrived within `timeout`. Runs callbacks, including rebalances, so the assignment
    /// may have changed when it returns.
    ///
    /// Call at least once a second, even if everything is paused.
    public func poll(_ timeout: Duration = .zero) throws(KafkaFault) -> ConsumedRecord? {
        guard let message = try message(within: timeout) else { return nil }
        return ConsumedRecord(owning: message)
    }

    /// The next record as librdkafka's message, which the caller destroys; also nil if a rebalance waits for its
    /// answer.
    func message(within timeout: Duration) throws(KafkaFault) -> UnsafeMutablePointer<rd_kafka_message_t>? {
        if timeout <= .zero { return try nextMessage(wait: 0) }
        let deadline = Deadline(after: timeout)
        repeat {
            // An event also ends librdkafka's wait, as a record does.
            if let message = try nextMessage(wait: deadline.remaining.timeoutMilliseconds) { return message }
        } while unanswered == nil && !deadline.hasPassed
        return nil
    }

    /// Returns the next fetched record. If no record is fetched yet, this waits once. It does not read the clock, because with
    /// 500-byte records that costs a tenth of the whole loop.
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

    /// Call this after records were delivered. A thread of 2.0.2 that finds the queue full checks it again after a
    /// second, or when it has other work: so it gets a request before the queued records run out.
    func keepFetching(records: Int, bytes: Int) throws(KafkaFault) {
        if looksAgainForRoom { return }
        given.records += records
        given.bytes += bytes
        guard given.records >= halfQueue.records || given.bytes >= halfQueue.bytes else { return }
        given = (0, 0)
        do throws(KafkaFault) {
            _ = try ends(of: readings.partitions, by: Deadline(after: .milliseconds(200)))
        } catch {
            // The answer is not needed.
            if error.remedy == .stopProcess { throw error }
        }
    }

    /// Handles a message that is an event.
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
                    "there is no longer a record at the position: retention deleted records before they were read, or "
                    + "the topic was created again")
            try noteGone(message, fault)
        default:
            let detail = rd_kafka_message_errstr(message).map { String(cString: $0) } ?? code.explanation
            if code.isAuthorisation {
                throw KafkaFault(.stopProcess, code, operation: "read", detail: detail)
            }
            context.noteError(code, detail)
        }
    }

    /// The owner of a session continues with its other partitions; for all other users it is a fault.
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

    /// The next record to be delivered, for every owned partition that delivered one, reached its end, or got a start.
    public var positions: [TopicPartition: NextOffset] {
        var positions: [TopicPartition: NextOffset] = [:]
        for (partition, slot) in readings.all { positions[partition] = slot.next }
        return positions
    }

    /// The same for one partition; nil if it is not owned.
    func position(of partition: TopicPartition) -> NextOffset? { readings[partition]?.pointee.next }

    func owns(_ partition: TopicPartition) -> Bool { readings[partition] != nil }

    /// Whether every partition that is not paused last reached its end (of committed records). False without
    /// partitions.
    public var isAtEnd: Bool {
        !readings.partitions.isEmpty && readings.all.allSatisfy { $0.slot.isPaused || $0.slot.isAtEnd }
    }

    /// Records below the expected position that librdkafka delivered again, and that were dropped.
    public var droppedRepeats: Int { readings.droppedRepeats }

    /// Stops the records of these partitions until `resume`. A partition stays paused only while it is owned.
    public func pause(_ partitions: [TopicPartition]) throws(KafkaFault) {
        try setPaused(true, partitions)
    }

    /// Only for partitions that are paused: after resuming another one, 2.0.2 reads again from an earlier offset.
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
            // Later records are fetched only now; librdkafka reports the end again.
            if !paused { readings[partition]?.pointee.isAtEnd = false }
        }
    }

    /// Moves to other offsets and drops what was fetched before. Only for partitions owned now; others are ignored.
    public func seek(to positions: [TopicPartition: NextOffset]) throws(KafkaFault) {
        let owned = positions.filter { readings[$0.key] != nil }
        guard !owned.isEmpty else { return }
        let list = TopicPartitionList(capacity: owned.count)
        for (partition, next) in owned { list.append(partition, offset: next.value) }
        // Shortly after an assignment a partition refuses to seek.
        let deadline = Deadline(after: .seconds(5))
        while true {
            // -1: until every partition has answered, which needs no broker. 2.0.2 would make a time-out a thousand
            // times too short.
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

    // MARK: Closing

    /// The latest faults of brokers, oldest first.
    public var recentFaults: [(code: KafkaCode, detail: String)] { context.recentFaults }

    /// Closes the consumer: the hooks are called for the revocation inside this call. A static member keeps its
    /// partitions for the session timeout.
    ///
    /// False if the client was not closed by the deadline; then end the process.
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
                // Runs the rebalance callback. Records that were fetched and not delivered yet arrive here too, and are
                // dropped.
                if let message = rd_kafka_consume_queue(queue, 10) { rd_kafka_message_destroy(message) }
            }
        }
        rd_kafka_queue_destroy(queue)
        isClosed = true
        hooks = nil
        return handle.close(by: deadline)
    }

    /// A static member does not leave the group, so librdkafka is asked to close without a last rebalance.
    ///
    /// That rebalance could follow another one that is not answered yet, and an answer to it blocks forever if
    /// librdkafka has closed its group meanwhile (librdkafka #4884, seen with 2.0.2). So a member that leaves answers
    /// the earlier one first, and leaves on the thread that destroys the client, for which the caller waits at most
    /// until `deadline`.
    private func closeAnsweringNothing(by deadline: Deadline) -> Bool {
        beginClosing(by: deadline).wait(until: deadline)
    }

    /// The same without the wait; only for a consumer that answers later.
    func beginClosing(by deadline: Deadline) -> ClosingClient {
        precondition(answersLater, "the hooks of this consumer are called while it is closed")
        if !isClosed && !isStatic && unanswered != nil { giveBack() }
        isClosed = true
        return handle.beginClosing(by: deadline, leaving: !isStatic)
    }
}
