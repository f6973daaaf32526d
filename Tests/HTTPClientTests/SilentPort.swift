import Glibc
import KafkaTestKit
import Platform

/// A port where the kernel takes connections and nobody speaks, until a test says what.
final class SilentPort: Sendable {
    private let listener: Listener
    var port: UInt16 { listener.port }

    init() throws { listener = try Loopback.listen() }

    /// A port where nobody listens any more.
    static func closed() throws -> UInt16 { try SilentPort().port }

    /// Nobody can connect any more.
    func stopListening() { shutdown(listener.descriptor.number, Int32(SHUT_RDWR)) }

    /// Takes one connection, waits for a request, answers and closes.
    func answerOnce(_ answer: String) async throws {
        var connection: Int32 = -1
        try await waitUntil("somebody connects") {
            connection = accept4(listener.descriptor.number, .init(), nil, Int32(SOCK_CLOEXEC.rawValue))
            return connection >= 0
        }
        let peer = Descriptor(owning: connection)
        var request = [UInt8](repeating: 0, count: 4096)
        // Blocks: what is left unread would turn the end of the connection into a reset.
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

/// A connection whose bytes the test reads and writes by itself.
final class RawConnection: Sendable {
    private let peer: Descriptor

    init(_ peer: consuming Descriptor) { self.peer = peer }

    /// Up to the empty line, and what has come with it.
    func readHead() async throws {
        var text = ""
        try await waitUntil("a request comes") {
            if let bytes = try readSome() { text += String(decoding: bytes, as: UTF8.self) }
            return text.contains("\r\n\r\n")
        }
    }

    /// Counts what comes until the other side ends the connection.
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

    /// nil: nothing is there yet. Empty: nothing will come any more.
    private func readSome() throws -> [UInt8]? {
        var buffer = [UInt8](repeating: 0, count: 4096)
        let count = read(peer.number, &buffer, buffer.count)
        if count < 0 && (errno == EAGAIN || errno == EINTR) { return nil }
        guard count >= 0 else { throw SystemFailure.last("read") }
        return Array(buffer[..<count])
    }
}
