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
}
