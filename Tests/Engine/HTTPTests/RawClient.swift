import Glibc

/// A client that sends exactly the given bytes. Every wait has a deadline.
final class RawClient {
    struct Answer: Equatable {
        var status: Int
        var head: String
        var body: [UInt8]
        var text: String { String(decoding: body, as: UTF8.self) }
        func has(_ line: String) -> Bool { head.lowercased().contains("\r\n" + line.lowercased() + "\r\n") }
    }

    struct Failure: Error {
        let reason: String
    }

    private let socket: Int32
    private var received: [UInt8] = []

    init(port: UInt16, timeoutSeconds: Int = 20) throws {
        socket = Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var timeout = timeval(tv_sec: timeoutSeconds, tv_usec: 0)
        setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &timeout, socklen_t(MemoryLayout<timeval>.size))
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        let size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let code = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(socket, __CONST_SOCKADDR_ARG(__sockaddr__: $0), size)
            }
        }
        guard code == 0 else { throw Failure(reason: String(cString: strerror(errno))) }
    }

    deinit { close(socket) }

    /// false: the other side does not accept the bytes any more.
    @discardableResult
    func send(_ bytes: [UInt8]) -> Bool {
        var sent = 0
        while sent < bytes.count {
            let count = bytes.withUnsafeBytes {
                Glibc.send(socket, $0.baseAddress! + sent, $0.count - sent, Int32(MSG_NOSIGNAL))
            }
            if count <= 0 { return false }
            sent += count
        }
        return true
    }

    @discardableResult
    func send(_ text: String) -> Bool { send(Array(text.utf8)) }

    /// Sends a request and does not wait for the answer.
    func sendGet(_ path: String = "/") { send("GET \(path) HTTP/1.1\r\nHost: t\r\n\r\n") }

    func get(_ path: String, _ extra: String = "") throws -> Answer {
        send("GET \(path) HTTP/1.1\r\nHost: test\r\n\(extra)\r\n")
        return try answer()
    }

    func post(_ path: String, _ body: [UInt8], _ extra: String = "") throws -> Answer {
        send("POST \(path) HTTP/1.1\r\nHost: test\r\nContent-Length: \(body.count)\r\n\(extra)\r\n")
        send(body)
        return try answer()
    }

    /// The next answer of the connection.
    func answer(hasBody: Bool = true) throws -> Answer {
        let end = Array("\r\n\r\n".utf8)
        while true {
            if let start = firstIndex(of: end) {
                let head = String(decoding: received[..<(start + 2)], as: UTF8.self)
                let words = head.split(separator: " ", maxSplits: 2)
                guard words.count > 1, let status = Int(words[1]) else { throw Failure(reason: "no answer: \(head)") }
                let bytes = hasBody ? length(in: head) : 0
                while received.count < start + 4 + bytes { try fill() }
                let body = Array(received[(start + 4)..<(start + 4 + bytes)])
                received.removeFirst(start + 4 + bytes)
                return Answer(status: status, head: head, body: body)
            }
            try fill()
        }
    }

    /// Waits until the server has closed the connection; returns what came before that.
    func readToEnd() throws -> String {
        while true {
            do {
                try fill()
            } catch is Closed {
                return String(decoding: received, as: UTF8.self)
            }
        }
    }

    struct Closed: Error {}

    private func fill() throws {
        var buffer = [UInt8](repeating: 0, count: 65536)
        let count = recv(socket, &buffer, buffer.count, 0)
        if count > 0 { received += buffer[..<count] }
        if count == 0 || (count < 0 && errno == ECONNRESET) { throw Closed() }
        if count < 0 { throw Failure(reason: "nothing came: \(String(cString: strerror(errno)))") }
    }

    private func firstIndex(of pattern: [UInt8]) -> Int? {
        guard received.count >= pattern.count else { return nil }
        return (0...(received.count - pattern.count)).first {
            received[$0..<($0 + pattern.count)].elementsEqual(pattern)
        }
    }

    private func length(in head: String) -> Int {
        for line in head.lowercased().split(separator: "\r\n") where line.hasPrefix("content-length: ") {
            return Int(line.dropFirst(16)) ?? 0
        }
        return 0
    }
}
