// The value types that all logs share.

/// One partition of one topic.
public struct TopicPartition: Sendable, Hashable, Comparable, CustomStringConvertible {
    public var topic: String
    public var partition: Int32

    public init(_ topic: String, _ partition: Int32) {
        self.topic = topic
        self.partition = partition
    }

    public static func < (left: TopicPartition, right: TopicPartition) -> Bool {
        (left.topic, left.partition) < (right.topic, right.partition)
    }

    public var description: String { "\(topic)[\(partition)]" }
}

/// A position in one partition: the offset of the next record to read, never of the last one read.
public struct NextOffset: Sendable, Hashable, Comparable, CustomStringConvertible {
    public var value: Int64

    public init(_ value: Int64) {
        self.value = value
    }

    /// The position of a reader that has processed the record at `offset`.
    public init(after offset: Int64) {
        value = offset + 1
    }

    public static func < (left: NextOffset, right: NextOffset) -> Bool { left.value < right.value }

    public var description: String { String(value) }
}

/// One header of a record. Names may repeat; the order is kept.
public struct RecordHeader: Sendable, Hashable {
    public var name: String
    public var value: [UInt8]?

    public init(_ name: String, _ value: [UInt8]?) {
        self.name = name
        self.value = value
    }

    public init(_ name: String, _ text: String) {
        self.init(name, Array(text.utf8))
    }
}
