// A consumer's position in each partition that it owns.

internal import CRDKafka
internal import Log

/// The owned partitions and their positions. We keep them ourselves: librdkafka's own position is wrong after a seek or
/// a pause, and does not show what the application has processed.
///
/// This is used once per record, so the part that changes is plain memory behind a pointer: no retain, no uniqueness
/// check, no hash.
final class Readings {
    struct Slot {
        /// librdkafka's handle of the topic, once a record has shown it: comparing it is cheaper than comparing names.
        var topic: OpaquePointer?
        let partition: Int32
        /// nil until the partition has delivered a record, reached its end, or got a start.
        var next: NextOffset?
        var isPaused = false
        /// The last event of the partition was its end.
        var isAtEnd = false
    }

    /// Sorted; the slot of each has the same index.
    private(set) var partitions: [TopicPartition] = []
    private var slots: UnsafeMutableBufferPointer<Slot>
    /// Records come in runs of one partition, so the slot of the last record is tried first. Never nil: without
    /// partitions it is a slot that nothing matches.
    private var last: UnsafeMutablePointer<Slot>
    /// Records below the expected position that librdkafka delivered again.
    private(set) var droppedRepeats = 0

    init() {
        (slots, last) = Self.makeSlots([])
    }

    deinit { slots.deallocate() }

    /// One slot more than there are partitions: the first one matches nothing.
    private static func makeSlots(
        _ partitions: [TopicPartition]
    ) -> (UnsafeMutableBufferPointer<Slot>, UnsafeMutablePointer<Slot>) {
        let slots = UnsafeMutableBufferPointer<Slot>.allocate(capacity: partitions.count + 1)
        slots.initializeElement(at: 0, to: Slot(partition: -1))
        for (index, partition) in partitions.enumerated() {
            slots.initializeElement(at: index + 1, to: Slot(partition: partition.partition))
        }
        return (slots, slots.baseAddress!)
    }

    /// Forgets all partitions and starts with these.
    func reset(to owned: [TopicPartition]) {
        slots.deallocate()
        partitions = owned.sorted()
        (slots, last) = Self.makeSlots(partitions)
    }

    /// Continues at these positions, whatever they were before. Partitions that are not owned are ignored.
    func place(at positions: [TopicPartition: NextOffset]) {
        for (partition, next) in positions {
            self[partition]?.pointee.next = next
            self[partition]?.pointee.isAtEnd = false
        }
    }

    subscript(partition: TopicPartition) -> UnsafeMutablePointer<Slot>? {
        partitions.firstIndex(of: partition).map { slots.baseAddress! + $0 + 1 }
    }

    /// Every owned partition with what is known about it.
    var all: [(partition: TopicPartition, slot: Slot)] {
        partitions.indices.map { (partitions[$0], slots[$0 + 1]) }
    }

    /// Moves the position of the message's partition past it. False if the message must be dropped: its partition is no
    /// longer owned, or it is below the position (2.0.2 fetches again from an earlier offset when a partition is
    /// resumed that was not paused).
    func moveOn(past message: UnsafeMutablePointer<rd_kafka_message_t>) -> Bool {
        var slot = last
        if slot.pointee.topic != message.pointee.rkt || slot.pointee.partition != message.pointee.partition {
            guard let found = find(message) else { return false }
            slot = found
            last = found
        }
        let offset = message.pointee.offset
        if let next = slot.pointee.next, offset < next.value {
            droppedRepeats += 1
            return false
        }
        slot.pointee.next = NextOffset(after: offset)
        slot.pointee.isAtEnd = false
        return true
    }

    /// Handles the end of a partition, which lies after the control records of transactions: those use offsets but are
    /// never delivered.
    func reachEnd(_ message: UnsafeMutablePointer<rd_kafka_message_t>) throws(KafkaFault) {
        guard let slot = find(message) else { return }
        let end = NextOffset(message.pointee.offset)
        if let next = slot.pointee.next, end < next {
            let partition = String(cString: rd_kafka_topic_name(message.pointee.rkt))
            throw KafkaFault(
                .stopProcess, .offsetOutOfRange, operation: "read \(partition)[\(slot.pointee.partition)]",
                detail: "the position \(next) lies beyond the end, \(end): was the topic created again?")
        }
        slot.pointee.next = end
        slot.pointee.isAtEnd = true
    }

    private func find(_ message: UnsafeMutablePointer<rd_kafka_message_t>) -> UnsafeMutablePointer<Slot>? {
        let topic = message.pointee.rkt
        let partition = message.pointee.partition
        for index in 1..<max(1, slots.count) where slots[index].partition == partition && slots[index].topic == topic {
            return slots.baseAddress! + index
        }
        let slot = self[TopicPartition(String(cString: rd_kafka_topic_name(topic)), partition)]
        slot?.pointee.topic = topic
        return slot
    }
}
