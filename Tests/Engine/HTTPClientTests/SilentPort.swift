import Glibc
import KafkaTestKit
import Platform

/// A port where the kernel accepts connections and nobody answers, until a test says so.
final class SilentPort: Sendable {
    private let listener: Listener
    var port: UInt16 { listener.port }

    init() throws { listener = try Loopback.listen() }

    /// A port where nothing listens any more.
    static func closed() throws -> UInt16 { try SilentPort().port }

    /// No client can connect any more.
    func stopListening() { shutdown(listener.descriptor.number, Int32(SHUT_RDWR)) }

    /// Accepts one connection, waits for a request, answers and closes.
    func answerOnce(_ answer: String) async throws {
        var connection: Int32 = -1
        try await waitUntil("somebody connects") {
            connection = accept4(listener.descriptor.number, .init(), nil, Int32(SOCK_CLOEXEC.rawValue))
            return connection >= 0
        }
        let peer = Descriptor(owning: connection)
        var request = [UInt8](repeating: 0, count: 4096)
        // Blocks until everything is read: unread bytes would turn the close into a reset.
        _ = read(peer.number, &request, request.count)
        try peer.sendAll(Array(answer.utf8))
    }

    func accept() async throws -> RawConnection {
        var connection: RawConnection?
        try await waitUntil("somebody connects") {
            guard let peer = Loopback.accept(from: listener.descriptor.number) else { return false }
            connection = RawConnection(peer)
            return true
        }
        return connection!
    }
}

/// A connection whose bytes the test itself reads and writes.
final class RawConnection: Sendable {
    private let peer: Descriptor

    init(_ peer: consuming Descriptor) { self.peer = peer }

    /// Reads up to the empty line, and what has come with it.
    func readHead() async throws {
        var text = ""
        try await waitUntil("a request comes") {
            if let bytes = try readSome() { text += String(decoding: bytes, as: UTF8.self) }
            return text.contains("\r\n\r\n")
        }
    }

    /// Counts the bytes that come until the other side closes the connection.
    func bytesToTheEnd() async throws -> Int {
        var count = 0
        try await waitUntil("the connection ends") {
            guard let bytes = try readSome() else { return false }
            count += bytes.count
            return bytes.isEmpty
        }
        return count
    }

    func answer(_ text: String) throws { try peer.sendAll(Array(text.utf8)) }

    func end() { shutdown(peer.number, Int32(SHUT_RDWR)) }

    /// nil: nothing has come yet. Empty: nothing more will come.
    private func readSome() throws -> [UInt8]? {
        var buffer = [UInt8](repeating: 0, count: 4096)
        let count = read(peer.number, &buffer, buffer.count)
        if count < 0 && (errno == EAGAIN || errno == EINTR) { return nil }
        guard count >= 0 else { throw SystemFailure.last("read") }
        return Array(buffer[..<count])
    }
}
