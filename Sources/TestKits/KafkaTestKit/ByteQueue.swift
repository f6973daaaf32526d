// Bytes on their way through the proxy.

/// A first-in, first-out queue. Taking from the front does not move the rest.
package struct ByteQueue {
    private var storage: [UInt8] = []
    private var head = 0

    package init() {}

    package var count: Int { storage.count - head }
    package var isEmpty: Bool { count == 0 }

    package mutating func append(_ bytes: some Collection<UInt8>) { storage.append(contentsOf: bytes) }

    mutating func removeAll() {
        storage.removeAll()
        head = 0
    }

    package mutating func removeFirst(_ count: Int) {
        head += count
        // Each byte is moved at most once per doubling, so this is cheap, and memory of bytes that have passed is
        // freed.
        if head == storage.count {
            removeAll()
        } else if head > storage.count / 2 {
            storage.removeFirst(head)
            head = 0
        }
    }

    package func withFront<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
        storage.withUnsafeBytes { body(UnsafeRawBufferPointer(rebasing: $0[head...])) }
    }

    /// The next complete frame without its length; nil: it has not arrived yet.
    package mutating func takeFrame() throws(NotKafka) -> [UInt8]? {
        guard count >= 4 else { return nil }
        let size = storage[head..<head + 4].reduce(0) { $0 << 8 | Int($1) }
        guard size <= frameLimitBytes else { throw NotKafka(claimedBytes: size) }
        guard count >= 4 + size else { return nil }
        defer { removeFirst(4 + size) }
        return Array(storage[head + 4..<head + 4 + size])
    }

    package mutating func append(frame: [UInt8]) {
        var writer = WireWriter()
        writer.number(Int32(frame.count))
        append(writer.bytes)
        append(frame)
    }
}

/// For example the start of a TLS handshake.
package struct NotKafka: Error, CustomStringConvertible {
    let claimedBytes: Int
    package var description: String {
        "a frame claims \(claimedBytes) bytes: this is not Kafka's plaintext protocol; closing the connection"
    }
}
