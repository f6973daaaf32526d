import Kafka
import Log
import Platform
import Synchronization

/// Runs the worker on a thread of its own until a signal comes or it gives up; returns the exit code.
func runUntilSignal(_ options: WorkerOptions) -> ExitCode {
    let stop = Stop()
    let thread = WorkerThread.start("worker") {
        // A fenced or broken client is rebuilt, as in a worker of the product; if it is fenced again and again, the process ends.
        var rebuilds = 0
        while !stop.isAsked {
            let worker = try Worker(options)
            do {
                try worker.run(until: stop)
                worker.close()
                return
            } catch let fault as KafkaFault {
                worker.close()
                printMessage("worker: \(fault)")
                rebuilds += 1
                if fault.remedy == .stopProcess || rebuilds > 20 { throw fault }
            }
        }
    }
    while !thread.isFinished {
        if Signals.wait(for: .milliseconds(50)) != nil { stop.ask() }
    }
    if case .failure(let error) = thread.result {
        printMessage("worker: gave up: \(error)")
        return .gaveUp
    }
    return .done
}

final class Stop: Sendable {
    private let asked = Atomic(false)
    var isAsked: Bool { asked.load(ordering: .relaxed) }
    func ask() { asked.store(true, ordering: .relaxed) }
}

/// One thread, one consumer, one transactional producer.
final class Worker: RebalanceHooks {
    private let options: WorkerOptions
    private let consumer: Consumer
    private let producer: TransactionalProducer
    private let output: ProducerTopic
    /// The first offset of the open transaction in each partition that it has read from: an abort rewinds to it.
    private var starts: [TopicPartition: NextOffset] = [:]
    private var isOpen = false
    private var pending: KafkaFault?

    init(_ options: WorkerOptions) throws {
        self.options = options
        let identity = "\(options.group).\(options.slot)-0"
        var properties = ClientProperties(bootstrapServers: options.bootstrap)
        properties.set("reconnect.backoff.max.ms", "500")
        var consumerOptions = Consumer.Configuration(
            clientID: identity, groupID: options.group, instanceID: options.hasInstance ? identity : nil,
            properties: properties)
        consumerOptions.sessionTimeout = .seconds(6)
        consumer = try Consumer(consumerOptions)
        var producerOptions = TransactionalProducer.Configuration(transactionalID: identity, properties: properties)
        // Long enough that only a successor ends it soon.
        if options.leavesOpen { producerOptions.transactionTimeout = .seconds(60) }
        producerOptions.onEvent = { event in
            if case .producerReplaced(let reason) = event { printMessage("replaced: \(reason)") }
        }
        producer = try TransactionalProducer(producerOptions)
        output = try producer.topic(options.output)
    }

    func run(until stop: Stop) throws {
        while producer.state != .idle {
            do throws(KafkaFault) {
                try producer.start(by: Deadline(after: .seconds(10)))
            } catch {
                if error.remedy != .retrySameCall || stop.isAsked { throw error }
            }
        }
        try consumer.subscribe(to: options.inputs, hooks: self)
        printData("started")
        while !stop.isAsked {
            try cycle()
        }
    }

    func close() {
        consumer.close(by: Deadline(after: .seconds(10)))
        producer.close(by: Deadline(after: .seconds(10)))
    }

    private func cycle() throws {
        do {
            if let record = try consumer.poll(.milliseconds(100)) { try copy(record) }
            var count = 0
            while count < options.recordsPerCommit, let record = try consumer.poll() {
                count += 1
                try copy(record)
            }
            if let fault = pending { throw fault }
            if options.leavesOpen && isOpen { waitToBeKilled() }
            try commit()
        } catch let fault as KafkaFault {
            // A record that was read but not sent is already before the position: the transaction must not commit.
            guard isOpen, fault.remedy == .abortTransaction || fault.remedy == .retrySameCall else { throw fault }
            try abortAndRewind()
        }
    }

    private func copy(_ record: borrowing ConsumedRecord) throws(KafkaFault) {
        // After a revocation whose transaction could be neither committed nor aborted, nothing more is read into a transaction.
        if let fault = pending { throw fault }
        if !isOpen {
            try producer.begin()
            isOpen = true
        }
        let partition = record.topicPartition
        if starts[partition] == nil { starts[partition] = NextOffset(record.offset) }
        let source = "\(partition.topic):\(partition.partition):\(record.offset)"
        while true {
            do throws(KafkaFault) {
                return try producer.send(
                    to: output, partition: record.partition, key: record.key, value: record.value,
                    headers: [RecordHeader("source", source), RecordHeader("slot", options.slot)],
                    timestamp: record.timestamp)
            } catch {
                if error.code != .queueFull { throw error }
                producer.poll(.milliseconds(10))
            }
        }
    }

    private func waitToBeKilled() -> Never {
        while producer.outstanding > 0 { producer.poll(.milliseconds(10)) }
        printData("open")
        while true { pause(for: .seconds(1)) }
    }

    private func commit() throws(KafkaFault) {
        guard isOpen else { return }
        let positions = consumer.positions.filter { starts[$0.key] != nil }
        try producer.sendOffsets(positions, of: consumer.groupMetadata())
        try producer.commit()
        isOpen = false
        starts = [:]
    }

    private func abortAndRewind() throws(KafkaFault) {
        try producer.abort()
        isOpen = false
        try consumer.seek(to: starts)
        starts = [:]
        printMessage("aborted")
    }

    // MARK: Rebalance, on the worker's thread inside poll

    func assigned(_ partitions: [TopicPartition], by consumer: Consumer) -> AssignmentPlan {
        printData("assigned \(partitions.map(\.description).joined(separator: " "))")
        return AssignmentPlan()
    }

    func revoked(_ partitions: [TopicPartition], by consumer: Consumer) {
        // Inside poll, between two records, the open transaction holds only whole records. Inside close there is no transaction
        // any more if the producer has failed.
        do {
            if producer.state == .inTransaction { try commit() }
        } catch {
            drop(error)
        }
        printData("revoked")
    }

    func lost(_ partitions: [TopicPartition], by consumer: Consumer) {
        if producer.state == .inTransaction {
            do { try producer.abort() } catch { pending = error }
        }
        isOpen = false
        starts = [:]
        printData("lost")
    }

    private func drop(_ fault: KafkaFault) {
        guard fault.remedy == .abortTransaction || fault.remedy == .retrySameCall else {
            pending = fault
            return
        }
        do { try producer.abort() } catch { pending = error }
        isOpen = false
        starts = [:]
    }
}
