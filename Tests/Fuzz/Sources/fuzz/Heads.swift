// Requests over a socket: the server must find exactly what a strict reader finds in the same bytes.

import Glibc
import HTTP
import Platform
import Synchronization
import Telemetry

/// If two readers read the same bytes differently, a request can be hidden from a proxy.
let heads: Target = { bytes, count in
    let text = input(bytes, count)
    let (given, said) = FuzzedServer.shared.given(text)
    let found = StrictReader.requests(in: text)
    let answers = FuzzedServer.finalAnswers(in: said)
    // For a length that is not a number the library sends a page of its own, with its head twice (0.9.75).
    let limitAnswers = given.count + (said.suffix(7) == Array("</html>".utf8)[...] ? 2 : 1)
    guard given.count <= found.count, zip(given, found).allSatisfy({ $1.isRead(as: $0) }), answers <= limitAnswers
    else {
        // Not a precondition, because an optimised program does not print its message.
        fatalError("read otherwise: \(given), answered \(answers) times: \(String(decoding: said, as: UTF8.self))")
    }
    return 0
}

let headSeeds: [(String, String)] = [
    ("get", "GET /a?b=c HTTP/1.1\r\nHost: t\r\nAuthorization: Bearer 0123456789abcdef\r\n\r\n"),
    ("old", "GET http://t/a HTTP/1.0\r\nConnection: keep-alive\r\n\r\nGET / HTTP/1.1\r\nHost: t\r\n\r\n"),
    (
        "two",
        "POST /a HTTP/1.1\r\nHost: t\r\nContent-Type: application/json\r\nContent-Length: 4\r\n\r\n{\r\n}"
            + "PUT /b HTTP/1.1\r\nHost: t\r\nExpect: 100-continue\r\nContent-Length: 1\r\nConnection: close\r\n\r\nx"
    ),
    ("chunked", "POST /a HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n1;a=b\r\nx\r\n0\r\nX: y\r\n\r\n"),
    ("folded", "GET / HTTP/1.1\r\nHost: t\r\nX-Forwarded-For: 1.2.3.4,\r\n 5.6.7.8\r\nCookie: a=b; c=d\r\n\r\n"),
    ("name", "GET / HTTP/1.1\r\nHost: t\n:\r\nX: y\r\n\r\nGET /b HTTP/1.1\r\nHost: t\n: \r\n\r\n"),
    ("lines", "\r\nGET / HTTP/1.1\nHost: t\nX:\t y \n\n"),
]

/// Refuses chunked bodies, as behind a proxy. Lives as long as the process.
final class FuzzedServer: HTTPHandler {
    static let shared = FuzzedServer()

    private static let token = "0123456789abcdef"
    private let requests = Mutex<[HTTPRequest]>([])
    private let server = Mutex<HTTPServer?>(nil)
    private let connections = Atomic(0)

    private init() {
        var configuration = HTTPServer.Configuration(name: "fuzz", address: ListenAddress("127.0.0.1:0")!)
        configuration.takesChunks = false
        configuration.threads = 1
        do {
            let started = try HTTPServer(configuration, handler: self, metrics: Metrics(), logger: Logger { _ in })
            server.withLock { $0 = started }
        } catch {
            fatalError("the server does not start: \(error)")
        }
    }

    func earlyAnswer(to head: HTTPRequest) -> HTTPResponse? { nil }

    func handle(_ request: HTTPRequest, _ responder: Responder) {
        if request.headers.bear(anyOf: [Self.token]) {
            precondition(request.headers["Authorization"]?.contains(Self.token) == true, "a token was made up")
        }
        requests.withLock { $0.append(request) }
        responder.respond(.text(200, "taken"))
    }

    /// What the server reads from `text` on a connection of its own, and what it answers.
    func given(_ text: [UInt8]) -> (requests: [HTTPRequest], said: [UInt8]) {
        requests.withLock { $0 = [] }
        let number = connections.add(1, ordering: .relaxed).newValue
        let address = 0x7F01_0000 + UInt32(number % 0x80_0000)
        let socket = connected(from: address)
        defer { close(socket) }
        var sent = 0
        while sent < text.count {
            let count = uninterrupted {
                text[sent...].withUnsafeBytes { send(socket, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
            }
            guard count > 0 else { break }
            sent += count
        }
        shutdown(socket, Int32(SHUT_WR))
        var said: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 65536)
        while true {
            let count = uninterrupted { recv(socket, &buffer, buffer.count, 0) }
            guard count > 0 else { break }
            said += buffer[..<count]
        }
        let own = [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: address >> $0) }
        return (requests.withLock { $0 }.filter { $0.peer?.bytes == own }, said)
    }

    /// `100 Continue` does not count as an answer.
    static func finalAnswers(in said: [UInt8]) -> Int {
        let start = Array("HTTP/1.1 ".utf8)
        return said.indices.count { index in
            said[index...].starts(with: start) && said.count > index + start.count
                && (0x32...0x35).contains(said[index + start.count])
        }
    }

    /// Each request comes from an address of its own: that identifies it, and a closed connection keeps its port for a minute.
    private func connected(from own: UInt32) -> Int32 {
        let port = server.withLock { $0?.address.port } ?? 0
        let socket = Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        for (isOwn, address, port) in [(true, own, 0), (false, 0x7F00_0001, port)]
            as [(Bool, UInt32, UInt16)]
        {
            var name = sockaddr_in()
            name.sin_family = sa_family_t(AF_INET)
            name.sin_port = port.bigEndian
            name.sin_addr.s_addr = address.bigEndian
            let size = socklen_t(MemoryLayout<sockaddr_in>.size)
            let code = withUnsafePointer(to: &name) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    // After an interruption Linux continues with the same connection.
                    let address = $0
                    return uninterrupted { isOwn ? bind(socket, address, size) : connect(socket, address, size) }
                }
            }
            guard code == 0 else { fatalError("no connection: \(String(cString: strerror(errno)))") }
        }
        return socket
    }
}

/// libFuzzer's alarm, every three seconds, interrupts any waiting call.
private func uninterrupted<Result: SignedInteger>(_ call: () -> Result) -> Result {
    while true {
        let result = call()
        if result >= 0 || errno != EINTR { return result }
    }
}
