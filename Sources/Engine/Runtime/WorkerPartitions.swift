// The partitions of one thread of a worker, from assignment to end.

internal import Log
internal import Platform
internal import Store
internal import Telemetry

/// Carries out what `TaskStage` decides, with stores, the restorer and the session. It runs on the worker's thread.
final class WorkerPartitions {
    /// A partition and everything that belongs to it.
    private final class Slot {
        var stage = TaskStage.gone
        /// Set while the worker has the store, and not the restorer.
        var store: (any PartitionStore)?
        var note: Note?
        var task: PartitionTask?
        /// The task from before the current restore. It is valid again if no other process has written meanwhile.
        var lastTask: PartitionTask?
        /// The group's committed offsets by topic, as of the assignment.
        var committed: [String: NextOffset] = [:]
        /// The positions that the restore has found, by the index of the input.
        var next: [NextOffset] = []
        var restoredRecords = 0
        /// Found by the restore.
        var gap: InputGap?
        /// The store was wiped and not restored since: if it is damaged now, another wipe will not help.
        var isWiped = false
        /// Token of the current restore.
        var token: UInt64 = 0
        /// Why the partition is paused, refused, hindered, or not open yet.
        var trouble: String?
        /// Since when another process has had the store open.
        var lockedSince: Duration?
        /// Its store is not in the directory that this machine's replicas share.
        var isAside = false
        var assignedAt: Duration = .zero
    }

    private let processor: any Processor
    private let definition: WorkerDefinition
    private let stores: any PartitionStores
    private let options: WorkerOptions
    private let restorer: Restorer
    private let environment: WorkerEnvironment
    private let logger: Logger
    private let metrics: WorkerMetrics
    private let counts: WorkerCounts
    private let board: PositionBoard
    private let outputs: OutputBatch
    private let inner: InnerOutputs
    private let changes = StoreChanges()

    private var slots: [Int32: Slot] = [:]
    private let replies = Mailbox<RestoreReply>(capacity: .max)
    /// Replies that were received and are not handled yet.
    private var unheard: [RestoreReply] = []
    private var tokens: UInt64 = 0
    private var openingRetry: Duration = .zero
    private var hindrances = Hindrances()
    /// The stores of an assignment, which are opened together: one after the other takes several times as long.
    private var openedAhead: [Int32: Result<any PartitionStore, StoreFault>] = [:]

    init(
        _ processor: any Processor, stores: any PartitionStores, options: WorkerOptions, restorer: Restorer,
        environment: WorkerEnvironment, logger: Logger, metrics: WorkerMetrics, counts: WorkerCounts,
        board: PositionBoard, outputs: OutputBatch, inner: InnerOutputs
    ) {
        self.processor = processor
        definition = processor.definition
        self.stores = stores
        self.options = options
        self.restorer = restorer
        self.environment = environment
        self.logger = logger
        self.metrics = metrics
        self.counts = counts
        self.board = board
        self.outputs = outputs
        self.inner = inner
    }

    // MARK: Reading

    var isEmpty: Bool { slots.isEmpty }

    /// Sorted by number, so that what reaches a log does not depend on hashes. Paused partitions are included.
    private(set) var tasks: [PartitionTask] = []
    /// The partitions whose records may be read.
    private(set) var reading: [PartitionTask] = []

    func task(reading number: Int32) -> PartitionTask? { reading.first { $0.partition == number } }

    /// Call this after every change of a stage or a task.
    private func listTasks() {
        let sorted = slots.sorted { $0.key < $1.key }.map(\.value)
        tasks = sorted.compactMap { $0.stage.isOpen ? $0.task : nil }
        reading = sorted.compactMap { $0.stage.reads ? $0.task : nil }
    }

    /// The restorer will answer soon.
    var awaitsRestorer: Bool {
        slots.values.contains { $0.stage == .restoring || $0.stage == .withdrawing || $0.stage == .returning }
    }

    var troubles: [String] {
        slots.sorted { $0.key < $1.key }.compactMap { number, slot in
            switch slot.stage {
            case .running, .gone: nil
            case .paused, .refused: "partition \(number): \(slot.trouble ?? "")"
            case .hindered: "partition \(number), which is retried: \(slot.trouble ?? "")"
            case .opening where slot.lockedSince != nil:
                "partition \(number) waits for its store: \(slot.trouble ?? "")"
            default: "partition \(number) is being opened"
            }
        }
    }

    var holding: WorkerService.Holding {
        var holding = WorkerService.Holding()
        for (number, slot) in slots where slot.stage != .gone {
            holding.partitions.insert(number)
            if slot.stage == .paused || slot.stage == .refused { holding.stuck[number] = slot.trouble ?? "" }
        }
        return holding
    }

    // MARK: Events

    func assigned(
        _ numbers: Set<Int32>, _ committed: [TopicPartition: NextOffset], _ session: any LogSession
    ) throws {
        for number in numbers where slots[number] == nil { slots[number] = Slot() }
        hindrances.keep(numbers)
        openedAhead = stores.open(all: numbers.filter { slots[$0]?.stage == .gone }.sorted())
        defer { closeOpenedAhead() }
        for (number, slot) in slots.sorted(by: { $0.key < $1.key }) {
            guard numbers.contains(number) else {
                try tell(slot, number, .notAssigned, session)
                continue
            }
            // The restorer continues from the note. This comes before the change of stage: if it fails, the slot still
            // has the store.
            try watching(number) { () throws(StoreFault) in try slot.task?.writeStore() }
            slot.assignedAt = environment.elapsed()
            slot.committed = [:]
            for input in definition.inputs {
                slot.committed[input.topic] = committed[TopicPartition(input.topic, number)]
            }
            try tell(slot, number, .assigned, session)
        }
        forgetGone()
    }

    /// Ends all partitions, because of an orderly revocation or a loss.
    func leave(_ event: TaskEvent, _ session: any LogSession) throws {
        for (number, slot) in slots.sorted(by: { $0.key < $1.key }) where slot.stage != .gone {
            // Suspended partitions already wait for the next assignment.
            if slot.stage.after(event) != nil { try tell(slot, number, event, session) }
        }
    }

    func pause(_ number: Int32, _ reason: PartitionTask.PauseReason, _ session: any LogSession) throws {
        guard let slot = slots[number] else { return }
        switch reason {
        case .newerSchema(let words), .tooManyLetters(let words), .unreadableState(let words), .refused(let words),
            .gap(let words):
            slot.trouble = words
        }
        try tell(slot, number, .pause, session)
    }

    /// A partition that is being restored is checked when the restore is complete.
    func positionGone(_ partition: TopicPartition, _ session: any LogSession) throws {
        guard let slot = slots[partition.partition], slot.stage == .running, let task = slot.task,
            let position = task.positions[partition]
        else { return }
        // Without an answer the message says less. The partition stops in any case.
        let beginning: NextOffset?
        do throws(LogFault) {
            beginning = try session.beginnings(of: [partition], by: Deadline(after: .seconds(5)))[partition]
        } catch {
            beginning = nil
        }
        let gap = InputGap(
            partition: partition, position: position, beginning: beginning, end: nil)
        try pause(for: gap, session)
    }

    private func pause(for gap: InputGap, _ session: any LogSession) throws {
        metrics.gaps.add()
        try pause(gap.partition.partition, .gap(gap.words(definition)), session)
    }

    /// Handles the restorer's replies, and retries stores that were locked or could not be used.
    func goOn(_ session: any LogSession, _ now: Duration) throws {
        try takeReplies(session)
        try openAgain(session, now)
    }

    /// Why this process must give its partitions to another one. nil: it need not.
    func hopeless(_ now: Duration) -> String? {
        let patience = options.openingPatience
        for (number, slot) in slots.sorted(by: { $0.key < $1.key }) where slot.stage == .hindered {
            guard let words = hindrances.words(of: number, lasting: patience, at: now) else { continue }
            return
                "partition \(number) could not be opened here for \(patience.wholeMilliseconds / 1000) s, so this "
                + "process ends and another one gets the partition: \(words)"
        }
        return options.storeFaults.hopeless(patience: patience).map { number, words in
            "the store of partition \(number) has failed here again and again for \(patience.wholeMilliseconds / 1000) s, "
                + "so this process ends and another one gets the partition: \(words)"
        }
    }

    /// The store of the partition has failed while its task was used. The fault ends the session.
    func failed(_ number: Int32, _ fault: StoreFault) {
        guard let slot = slots[number] else { return }
        options.storeFaults.note(
            number, fault, isAside: slot.isAside, patience: options.openingPatience, at: environment.elapsed())
    }

    /// Notes which partition's store has failed, because a fault does not say it.
    func watching(_ number: Int32, _ body: () throws(StoreFault) -> Void) throws(StoreFault) {
        do throws(StoreFault) { try body() } catch {
            failed(number, error)
            throw error
        }
    }

    // MARK: One partition

    private func tell(_ slot: Slot, _ number: Int32, _ event: TaskEvent, _ session: (any LogSession)?) throws {
        guard let (stage, actions) = slot.stage.after(event) else {
            preconditionFailure("partition \(number) is \(slot.stage), where the event \(event) cannot happen")
        }
        let wasOpen = slot.stage.isOpen
        slot.stage = stage
        if wasOpen, !stage.isOpen { processor.closed(number) }
        defer { listTasks() }
        // An action that fails may itself have changed the stage: the remaining actions were for the old one.
        for action in actions where slot.stage == stage { try perform(action, slot, number, session) }
        for stage in TaskStage.allCases where stage != .gone {
            metrics.partitions(options.thread, in: stage, slots.values.count { $0.stage == stage })
        }
    }

    private func perform(
        _ action: TaskAction, _ slot: Slot, _ number: Int32, _ session: (any LogSession)?
    ) throws {
        switch action {
        case .open: try openStore(slot, number, session)
        case .restore: restore(slot, number)
        case .cancelRestore: restorer.cancel(slot.token)
        case .resume:
            do {
                try resume(slot, number, session)
            } catch let fault as LogFault {
                // Reading the cycle again would leave the partition paused forever.
                throw LogFault(fault.remedy == .stop ? .stop : .rebuild, fault.cause, fault.words)
            }
        case .pauseReading: try session?.pause(definition.inputs.map { TopicPartition($0.topic, number) })
        case .rollBack: slot.task?.rollBack()
        case .closeStore: closeStore(slot)
        case .wipe: try wipe(slot, number, session)
        case .tell:
            if slot.stage == .hindered, !hindrances.mustTell(number, at: environment.elapsed()) { break }
            say(.error, "partition \(number) stopped and needs help", slot.trouble ?? "")
        }
    }

    /// Handles a fault of this machine. The other partitions continue.
    private func hinder(_ slot: Slot, _ number: Int32, _ words: String, _ session: (any LogSession)?) throws {
        slot.trouble = words
        hindrances.note(number, words, at: environment.elapsed())
        try tell(slot, number, .hindered, session)
    }

    private func wipe(_ slot: Slot, _ number: Int32, _ session: (any LogSession)?) throws {
        do throws(StoreFault) {
            try (slot.isAside ? options.aside ?? stores : stores).wipe(number)
            slot.isWiped = true
            options.storeFaults.wiped(number, isAside: slot.isAside)
            metrics.wipes.add()
        } catch {
            // The next owner of the partition checks its store anew.
            if slot.stage == .gone { return say(.warning, "a local store could not be removed", error.words) }
            try hinder(slot, number, error.words, session)
        }
    }

    private func openStore(_ slot: Slot, _ number: Int32, _ session: (any LogSession)?) throws {
        do throws(StoreFault) {
            let store = try openSomewhere(slot, number)
            slot.store = store
            guard let bytes = try store.note() else {
                slot.note = nil
                return try tellStore(slot, number, .opened, session)
            }
            slot.note = Note(decoding: bytes)
            if slot.note == nil {
                closeStore(slot)
                slot.trouble =
                    "the local state was written by a build that this build cannot read: start the later build again, "
                    + "or delete the directory to restore what this build can read"
                return try tellStore(slot, number, .refuse, session)
            }
            try tellStore(slot, number, .opened, session)
        } catch {
            switch error.cause {
            case .locked: try tell(slot, number, .locked, session)
            case .corrupt:
                closeStore(slot)
                try unopenable(slot, number, error.words, session)
            case .format:
                slot.trouble = error.words
                try tell(slot, number, .refuse, session)
            case .system:
                closeStore(slot)
                try hinder(slot, number, error.words, session)
            }
        }
    }

    /// Opens the store in the directory that all replicas on this machine share, or beside it if another replica keeps
    /// the store locked. That replica may be frozen, and would block the partition for as long as it is. Whatever it
    /// writes when it wakes up affects only its own copy: the group has given the partition to another member.
    private func openSomewhere(_ slot: Slot, _ number: Int32) throws(StoreFault) -> any PartitionStore {
        let wasAside = slot.isAside
        slot.isAside = false
        do throws(StoreFault) {
            let store =
                if let ahead = openedAhead.removeValue(forKey: number) {
                    try ahead.get()
                } else {
                    try stores.open(number)
                }
            slot.lockedSince = nil
            // Left from an earlier run. If removing fails, it only takes disk space until the next opening.
            try? options.aside?.wipe(number)
            return store
        } catch {
            guard error.cause == .locked else { throw error }
            let (now, since) = (environment.elapsed(), slot.lockedSince ?? environment.elapsed())
            slot.lockedSince = since
            slot.trouble = error.words
            guard let aside = options.aside, now - since >= options.lockPatience else { throw error }
            // Before the opening: if that fails, this is the store to wipe.
            slot.isAside = true
            let store = try aside.open(number)
            if !wasAside { say(.warning, "partition \(number) is restored into its own directory", error.words) }
            return store
        }
    }

    /// A store that cannot be opened is kept unless its changelog is known to be whole.
    private func unopenable(_ slot: Slot, _ number: Int32, _ words: String, _ session: (any LogSession)?) throws {
        if slot.isWiped { return try damaged(slot, number, words, session) }
        let changelog = TopicPartition(definition.changelog, number)
        let beginning: NextOffset?
        do throws(LogFault) {
            beginning = try session?.beginnings(of: [changelog], by: Deadline(after: .seconds(2)))[changelog]
        } catch {
            return try hinder(slot, number, "\(words). \(error.words)", session)
        }
        guard let beginning else {
            return try hinder(slot, number, "\(words). Kafka does not say where \(changelog) begins", session)
        }
        if beginning.value == 0 { return try damaged(slot, number, words, session) }
        slot.trouble = definition.irreplaceable(words, number, beginning)
        try tell(slot, number, .refuse, session)
    }

    /// Wiped only once: if the disk damages a new store as well, another machine must help.
    private func damaged(_ slot: Slot, _ number: Int32, _ words: String, _ session: (any LogSession)?) throws {
        if slot.isWiped { return try hinder(slot, number, words, session) }
        say(.warning, "the local state of partition \(number) is damaged; restoring it from the changelog", words)
        try tell(slot, number, .useless, session)
    }

    /// Only once: otherwise a changelog that does not fit its own sum would lead to endless wiping.
    private func useless(_ slot: Slot, _ words: String) -> TaskEvent {
        guard slot.isWiped else { return .useless }
        slot.trouble = "the local state is unusable again after it was deleted and restored: \(words)"
        return .refuse
    }

    /// Events that follow from opening. They are separate, so that what they throw is not mistaken for a fault of the
    /// opening.
    private func tellStore(
        _ slot: Slot, _ number: Int32, _ event: TaskEvent, _ session: (any LogSession)?
    ) throws(StoreFault) {
        do { try tell(slot, number, event, session) } catch let fault as StoreFault { throw fault } catch {
            preconditionFailure("opening a store sends no request to the log: \(error)")
        }
    }

    /// Retries stores that an earlier owner in this process had not closed yet, and stores that could not be used on
    /// this machine.
    private func openAgain(_ session: any LogSession, _ now: Duration) throws {
        guard now >= openingRetry else { return }
        openingRetry = now + .milliseconds(100)
        for (number, slot) in slots.sorted(by: { $0.key < $1.key }) {
            switch slot.stage {
            case .opening: try openStore(slot, number, session)
            case .hindered where hindrances.isDue(number, at: now): try tell(slot, number, .retry, session)
            default: break
            }
        }
    }

    /// A fault when closing a store stops nothing: its lock is released anyway, and what was not written is in the
    /// changelog.
    private func closeStore(_ slot: Slot) {
        let task = slot.task.take()
        slot.lastTask = nil
        guard let store = slot.store.take() else { return }
        defer {
            do throws(StoreFault) { try store.close() } catch { sayUnclean(error) }
        }
        do throws(StoreFault) {
            try task?.writeStore()
        } catch {
            sayUnclean(error)
        }
    }

    /// What a fault in the middle of an assignment has left.
    private func closeOpenedAhead() {
        for case .success(let store) in openedAhead.values {
            do throws(StoreFault) { try store.close() } catch { sayUnclean(error) }
        }
        openedAhead = [:]
    }

    private func sayUnclean(_ fault: StoreFault) { say(.warning, "a local store was not closed cleanly", fault.words) }

    private func restore(_ slot: Slot, _ number: Int32) {
        guard let store = slot.store.take() else { preconditionFailure("a restore needs the store") }
        tokens += 1
        slot.token = tokens
        slot.lastTask = slot.task.take()
        // Kept in case this restore is cancelled and another follows.
        if let task = slot.lastTask { slot.note = task.note }
        let replies = replies
        restorer.restore(
            RestoreOrder(
                store: store, partition: number, token: slot.token, note: slot.note, committed: slot.committed,
                damage: options.storeFaults.damage(of: number, isAside: slot.isAside, at: environment.elapsed()),
                reply: { _ = replies.post($0) }))
    }

    private func takeReplies(_ session: any LogSession) throws {
        unheard += replies.take(waiting: .zero)
        // One by one: handling a reply may throw, and the remaining ones are handled at the next look.
        while !unheard.isEmpty {
            let reply = unheard.removeFirst()
            let number = reply.order.partition
            guard let slot = slots[number], slot.token == reply.order.token else {
                preconditionFailure("the restorer answers each order once")
            }
            slot.store = reply.order.store
            if let warning = reply.warning { say(.warning, "the changelog is not complete", warning) }
            switch reply.outcome {
            case .restored(let note, let next, let records):
                metrics.restoredRecords.add(UInt64(records))
                slot.note = note
                slot.next = next
                slot.restoredRecords = records
                slot.gap = reply.gap
                slot.isWiped = false
                hindrances.end(number)
                options.storeFaults.restored(number, at: environment.elapsed())
                try tell(slot, number, .restored, session)
            case .useless(let words):
                say(.warning, "the local state is unusable; restoring it from the changelog", words)
                try tell(slot, number, useless(slot, words), session)
            case .damaged(let words): try damaged(slot, number, words, session)
            case .refused(let words):
                slot.trouble = words
                try tell(slot, number, .refuse, session)
            case .hindered(let words): try hinder(slot, number, words, session)
            case .withdrawn: try tell(slot, number, .withdrawn, session)
            }
        }
        forgetGone()
    }

    /// Without a session nobody needs the stores: those that the restorer returns are closed.
    func comeHome() {
        unheard += replies.take(waiting: .zero)
        while !unheard.isEmpty {
            let reply = unheard.removeFirst()
            guard let slot = slots[reply.order.partition] else { continue }
            slot.store = reply.order.store
            do {
                try tell(slot, reply.order.partition, .withdrawn, nil)
            } catch {
                say(.warning, "a local store was not closed cleanly", "\(error)")
            }
        }
        forgetGone()
    }

    private func resume(_ slot: Slot, _ number: Int32, _ session: (any LogSession)?) throws {
        guard let session, let store = slot.store, let note = slot.note else { return }
        let task: PartitionTask
        if let last = slot.lastTask.take(), slot.restoredRecords == 0, last.isAt(note, slot.next) {
            // No other process has written: what is in memory is still valid.
            task = last
        } else {
            task = PartitionTask(
                processor, partition: number, store: store, note: note, next: slot.next, outputs: outputs, inner: inner,
                changes: changes, cacheBytes: options.cacheBytes / max(1, slots.count), counts: counts,
                crashes: options.crashNotes?.notes(number), newLife: environment.newLife)
        }
        slot.task = task
        var refusal: PartitionTask.PauseReason?
        try watching(number) { () throws(StoreFault) in refusal = try task.open() }
        // All partitions share the memory of the setting.
        for other in slots.values { other.task?.cacheLimit = options.cacheBytes / slots.count }
        board.set(.init(next: task.next, clock: task.note.clock), of: number)
        let partitions = definition.inputs.map { TopicPartition($0.topic, number) }
        metrics.restoreSeconds.observe(environment.elapsed() - slot.assignedAt)
        // The log refuses to seek to an offset that it does not have.
        if let gap = slot.gap { return try pause(for: gap, session) }
        try session.seek(to: task.positions)
        if let refusal { return try pause(number, refusal, session) }
        try session.resume(partitions)
        say(.info, "partition \(number) runs", "\(slot.restoredRecords) records restored")
    }

    /// The session has ended: closes what is open. Stores that the restorer has are returned later.
    func end() {
        for (number, slot) in slots.sorted(by: { $0.key < $1.key }) {
            do {
                try tell(slot, number, .sessionEnded, nil)
            } catch {
                say(.warning, "a local store was not closed cleanly", "\(error)")
            }
        }
        forgetGone()
    }

    private func forgetGone() {
        for (number, slot) in slots where slot.stage == .gone { board.remove(number) }
        slots = slots.filter { $0.value.stage != .gone }
    }

    private func say(_ level: LogLevel, _ words: String, _ detail: String) {
        logger.log(level, words, ["worker": .string(options.identity), "detail": .string(detail)])
    }
}
