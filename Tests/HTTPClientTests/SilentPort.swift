import Glibc
import KafkaTestKit
import Platform
import Synchronization

/// A port where connections are taken by the kernel, and where a test says by itself what is answered.
final class SilentPort: Sendable {
    let port: UInt16
    private let listener: Mutex<Int32?>

    init() throws {
        let socket = Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        guard socket >= 0 else { throw SystemFailure.last("socket") }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isReady = withUnsafeMutableBytes(of: &address) { bytes in
            let address = bytes.assumingMemoryBound(to: sockaddr.self).baseAddress!
            return bind(socket, address, size) == 0 && listen(socket, 16) == 0
                && getsockname(socket, address, &size) == 0
        }
        guard isReady else { throw SystemFailure.last("listen") }
        port = UInt16(bigEndian: address.sin_port)
        listener = Mutex(socket)
    }

    deinit { close() }

    func close() {
        listener.withLock { socket in
            if let socket { _ = Glibc.close(socket) }
            socket = nil
        }
    }

    /// Takes one connection, reads what fits in one piece, answers and closes. Blocks until somebody connects.
    func answerOnce(_ answer: String) {
        guard let socket = listener.withLock({ $0 }) else { return }
        let connection = accept(socket, nil, nil)
        guard connection >= 0 else { return }
        var request = [UInt8](repeating: 0, count: 4096)
        _ = read(connection, &request, request.count)
        writeAll(Array(answer.utf8), to: connection)
        shutdown(connection, Int32(SHUT_WR))
        _ = Glibc.close(connection)
    }
}
