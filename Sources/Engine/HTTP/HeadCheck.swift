// Whether libmicrohttpd leaves a head in its buffer as `Connection` and `ReceivedHeaders` read it.

// Brings the socket constants into view as well, in release builds.
import CMicroHTTPD
import Glibc
import Platform
import Synchronization
import Telemetry

/// They find hidden bytes and folded lines between the texts that the library hands over, so they depend on how its parser works.
/// A distribution can change the library under this program. Therefore every process tries the parser once, before its first
/// server listens: where one of these requests were accepted, others could be hidden in it from a proxy.
enum HeadCheck {
    /// nil: the parser works as expected.
    static let fault: String? = run()

    private static let plain = "GET /a?b=c HTTP/1.1\r\nHost: t\r\nX: \t y\r\nZ:\r\nConnection: close\r\n\r\n"
    private static let plainReading = "/a?b=c Host=t X=y Z= Connection=close"

    /// Each hides something from whoever reads a text up to its first zero byte, or takes a folded line for two.
    private static let hiding: [(what: String, text: String)] = [
        ("a folded line", "GET / HTTP/1.1\r\nHost: t\r\nX:\r\n y\r\n\r\n"),
        ("a zero byte in a value", "GET / HTTP/1.1\r\nHost: t\r\nX: a\0b\r\n\r\n"),
        ("a zero byte in the last value", "GET / HTTP/1.1\r\nX: y\r\nHost: t\0b\r\n\r\n"),
        ("a zero byte at the end of a value", "GET / HTTP/1.1\r\nX: y\0\r\nHost: t\r\n\r\n"),
        ("a line that begins with a zero byte", "GET / HTTP/1.1\r\nHost: t\r\n\0X: y\r\n\r\n"),
        ("an empty name", "GET / HTTP/1.1\r\nHost: t\n:\r\nX: y\r\n\r\n"),
        ("a line before the request", "\0X: y\r\nGET / HTTP/1.1\r\nHost: t\r\n\r\n"),
        ("a zero byte in the target", "GET /\0a HTTP/1.1\r\nHost: t\r\n\r\n"),
        ("a zero byte in the method", "GET\0X / HTTP/1.1\r\nHost: t\r\n\r\n"),
    ]

    private static func run() -> String? {
        var configuration = HTTPServer.Configuration(name: "check", address: ListenAddress("127.0.0.1:0")!)
        configuration.threads = 1
        configuration.drainGrace = .zero
        let server: HTTPServer
        do throws(HTTPServerFault) {
            server = try HTTPServer(
                unchecked: configuration, handler: HeadEcho(), metrics: Metrics(), logger: Logger { _ in })
        } catch {
            return "\(error)"
        }
        defer { server.stop(by: Deadline(after: .seconds(1))) }
        return fault(at: server.address.port)
    }

    /// - Parameter port: of a server on 127.0.0.1 with a `HeadEcho`.
    private static func fault(at port: UInt16) -> String? {
        let version = Libmicrohttpd.version
        guard let reading = answer(to: plain, at: port) else { return "127.0.0.1 cannot be reached from this process" }
        guard reading.hasPrefix("HTTP/1.1 200 "), reading.hasSuffix("\r\n\r\n\(plainReading)\n") else {
            return "libmicrohttpd \(version) does not read a plain request as it was sent"
        }
        for (what, text) in hiding where answer(to: text, at: port)?.hasPrefix("HTTP/1.1 200 ") == true {
            return "libmicrohttpd \(version) accepts \(what); install a version that supported-versions.md names"
        }
        return nil
    }

    /// All that the server says until it closes. nil: it accepts no connection.
    private static func answer(to text: String, at port: UInt16) -> String? {
        let socket = Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        guard socket >= 0 else { return nil }
        defer { close(socket) }
        let connected = IPAddress("127.0.0.1")!.withSocketAddress(port: port) {
            connect(socket, __CONST_SOCKADDR_ARG(__sockaddr__: $0), $1)
        }
        guard connected == 0 else { return nil }
        var patience = timeval(tv_sec: 5, tv_usec: 0)
        setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &patience, socklen_t(MemoryLayout<timeval>.size))
        let bytes = Array(text.utf8)
        guard send(socket, bytes, bytes.count, Int32(MSG_NOSIGNAL)) == bytes.count else { return nil }
        shutdown(socket, Int32(SHUT_WR))
        var said: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 4096)
        while true {
            let count = recv(socket, &buffer, buffer.count, 0)
            guard count > 0 else { return String(decoding: said, as: UTF8.self) }
            said += buffer[..<count]
        }
    }
}

/// Answers 200 with what it was given.
private struct HeadEcho: HTTPHandler {
    func earlyAnswer(to head: HTTPRequest) -> HTTPResponse? { nil }

    func handle(_ request: HTTPRequest, _ responder: Responder) {
        let target = request.path + (request.query.map { "?\($0)" } ?? "")
        let fields = request.headers.fields.map { "\($0.name)=\($0.value)" }
        responder.respond(.text(200, ([target] + fields).joined(separator: " ")))
    }
}
