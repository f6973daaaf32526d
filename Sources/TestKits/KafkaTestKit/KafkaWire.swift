// The small part of Kafka's protocol that the kit uses itself: enough to ask a broker whether it is ready.

import Glibc
package import Platform

/// The API key of a request, which is in its first two bytes.
public struct KafkaAPI: Sendable, Hashable, CustomStringConvertible {
    public let key: Int16
    public init(_ key: Int16) { self.key = key }

    public static let produce = KafkaAPI(0)
    public static let fetch = KafkaAPI(1)
    public static let listOffsets = KafkaAPI(2)
    public static let metadata = KafkaAPI(3)
    public static let offsetCommit = KafkaAPI(8)
    public static let offsetFetch = KafkaAPI(9)
    public static let findCoordinator = KafkaAPI(10)
    public static let joinGroup = KafkaAPI(11)
    public static let heartbeat = KafkaAPI(12)
    public static let leaveGroup = KafkaAPI(13)
    public static let syncGroup = KafkaAPI(14)
    public static let saslHandshake = KafkaAPI(17)
    public static let apiVersions = KafkaAPI(18)
    public static let createTopics = KafkaAPI(19)
    public static let initProducerId = KafkaAPI(22)
    public static let addPartitionsToTxn = KafkaAPI(24)
    public static let addOffsetsToTxn = KafkaAPI(25)
    public static let endTxn = KafkaAPI(26)
    public static let txnOffsetCommit = KafkaAPI(28)
    public static let saslAuthenticate = KafkaAPI(36)

    public var description: String { "API key \(key)" }
}

/// A frame starts with its length. A broker rejects longer ones (`socket.request.max.bytes`), so a greater length means
/// that it is not Kafka.
let frameLimitBytes = 104_857_600

/// Writes numbers in network byte order.
package struct WireWriter {
    package private(set) var bytes: [UInt8] = []
    package init() {}

    package mutating func number<Number: FixedWidthInteger>(_ value: Number) {
        withUnsafeBytes(of: value.bigEndian) { bytes.append(contentsOf: $0) }
    }

    package mutating func string(_ value: String) {
        number(Int16(value.utf8.count))
        bytes.append(contentsOf: value.utf8)
    }

    package mutating func block(_ value: [UInt8]) {
        number(Int32(value.count))
        bytes.append(contentsOf: value)
    }
}

package struct WireFault: Error, CustomStringConvertible {
    package let description: String
}

/// Reads what `WireWriter` writes.
package struct WireReader {
    private let bytes: [UInt8]
    private var position = 0
    package init(_ bytes: [UInt8]) { self.bytes = bytes }

    private mutating func take(_ count: Int) throws(WireFault) -> ArraySlice<UInt8> {
        guard count >= 0, position + count <= bytes.count else {
            throw WireFault(description: "a Kafka response is truncated after \(bytes.count) bytes")
        }
        defer { position += count }
        return bytes[position..<position + count]
    }

    package mutating func number<Number: FixedWidthInteger>(_ type: Number.Type = Number.self) throws(WireFault)
        -> Number
    {
        try take(Number.bitWidth / 8).reduce(0) { $0 << 8 | Number(truncatingIfNeeded: $1) }
    }

    package func peekNumber<Number: FixedWidthInteger>(_ type: Number.Type) throws(WireFault) -> Number {
        var copy = self
        return try copy.number(type)
    }

    /// nil if the string is null.
    package mutating func string() throws(WireFault) -> String? {
        let count = Int(try number(Int16.self))
        return count < 0 ? nil : String(decoding: try take(count), as: UTF8.self)
    }

    package mutating func array<Element>(
        of element: (inout WireReader) throws(WireFault) -> Element
    ) throws(WireFault) -> [Element] {
        var elements: [Element] = []
        let count = try number(Int32.self)
        for _ in 0..<max(0, count) { elements.append(try element(&self)) }
        return elements
    }
}

/// One connection for requests and responses. Blocks, so it needs its own thread.
package struct WireConnection: ~Copyable {
    private let descriptor: Descriptor
    private var correlationID: Int32 = 0

    /// `limit` applies to the connect and to each read and write.
    package init(
        address: String = Loopback.address, port: UInt16, limit: Duration = .seconds(2)
    ) throws(SystemFailure) {
        descriptor = try Loopback.connect(address: address, port: port, limit: limit)
    }

    /// Sends a request with header version 1 and returns the body of the response (without the correlation id).
    package mutating func exchange(_ api: KafkaAPI, version: Int16, body: [UInt8]) throws -> [UInt8] {
        try send(api, version: version, body: body)
        let response = try receive()
        let answered = try WireReader(response).peekNumber(Int32.self)
        guard answered == correlationID else {
            throw WireFault(description: "the answer belongs to request \(answered), not to \(correlationID)")
        }
        return Array(response.dropFirst(4))
    }

    package mutating func send(_ api: KafkaAPI, version: Int16, body: [UInt8]) throws {
        correlationID += 1
        var request = WireWriter()
        request.number(api.key)
        request.number(version)
        request.number(correlationID)
        request.string("kafka-test-kit")
        var frame = WireWriter()
        frame.block(request.bytes + body)
        try descriptor.sendAll(frame.bytes)
    }

    /// The next response: correlation id and body.
    package func receive() throws -> [UInt8] {
        var head = WireReader(try receive(4))
        let size = Int(try head.number(Int32.self))
        guard size >= 4 && size <= frameLimitBytes else {
            throw WireFault(description: "a frame of \(size) bytes: the server does not use Kafka's protocol")
        }
        return try receive(size)
    }

    private func receive(_ count: Int) throws -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: count)
        var filled = 0
        while filled < count {
            let got = bytes.withUnsafeMutableBytes {
                recv(descriptor.number, $0.baseAddress! + filled, count - filled, 0)
            }
            if got < 0 && errno == EINTR { continue }
            guard got != 0 else { throw WireFault(description: "the connection was closed") }
            guard got > 0 else { throw SystemFailure.last("receive a response") }
            filled += got
        }
        return bytes
    }
}

/// A broker's metadata about its cluster.
package struct ClusterMetadata {
    package struct Partition {
        package let topic: String
        package let leader: Int32
        package let replicas: [Int32]
    }
    package var brokers: Set<Int32>
    package var partitions: [Partition]

    /// Metadata version 4: the oldest version in Kafka 4 and the newest in librdkafka 2.0.2.
    package static func ask(
        address: String = Loopback.address, port: UInt16, limit: Duration = .seconds(2)
    ) throws -> ClusterMetadata {
        var connection = try WireConnection(address: address, port: port, limit: limit)
        var body = WireWriter()
        // -1: all topics; 0: do not create any.
        body.number(Int32(-1))
        body.number(UInt8(0))
        var reader = WireReader(try connection.exchange(.metadata, version: 4, body: body.bytes))
        _ = try reader.number(Int32.self)
        let brokers = try reader.array { (reader) throws(WireFault) in
            let id = try reader.number(Int32.self)
            _ = (try reader.string(), try reader.number(Int32.self), try reader.string())
            return id
        }
        _ = (try reader.string(), try reader.number(Int32.self))
        let partitions = try reader.array { (reader) throws(WireFault) in
            _ = try reader.number(Int16.self)
            let topic = try reader.string() ?? ""
            _ = try reader.number(UInt8.self)
            return try reader.array { (reader) throws(WireFault) in
                _ = (try reader.number(Int16.self), try reader.number(Int32.self))
                let leader = try reader.number(Int32.self)
                let replicas = try reader.array { (reader) throws(WireFault) in try reader.number(Int32.self) }
                _ = try reader.array { (reader) throws(WireFault) in try reader.number(Int32.self) }
                return Partition(topic: topic, leader: leader, replicas: replicas)
            }
        }
        return ClusterMetadata(brokers: Set(brokers), partitions: partitions.flatMap { $0 })
    }

    /// Whether clients can work: these brokers have joined, and every partition that can have a leader has one.
    package func serves(with expected: Set<Int32>) -> Bool {
        brokers.isSuperset(of: expected)
            && partitions.allSatisfy { $0.leader >= 0 || !brokers.isSuperset(of: $0.replicas) }
    }
}
