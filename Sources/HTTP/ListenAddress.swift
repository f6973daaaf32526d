// Where a server listens.

import Glibc

/// Why a server cannot be started. The text says what to do.
public enum HTTPServerFault: Error, Equatable, CustomStringConvertible {
    case badAddress(text: String, advice: String)
    case cannotListen(address: String, reason: String)
    case badIdentity(reason: String)
    case refused(reason: String)

    public var description: String {
        switch self {
        case .badAddress(let text, let advice): "\"\(text)\" is not an address to listen on: \(advice)"
        case .cannotListen(let address, let reason): "cannot listen on \(address): \(reason)"
        case .badIdentity(let reason): "the TLS certificate or its key cannot be used: \(reason)"
        case .refused(let reason): "cannot start the HTTP server: \(reason)"
        }
    }
}

/// `host:port` with a name, an IPv4 address or an IPv6 address in brackets. Port 0 takes any free port.
public struct ListenAddress: Sendable, Equatable, CustomStringConvertible {
    public let host: String
    public let port: UInt16

    public init(_ text: String) throws(HTTPServerFault) {
        guard let colon = text.lastIndex(of: ":") else {
            throw .badAddress(text: text, advice: "write host:port, such as 127.0.0.1:8080")
        }
        var host = text[..<colon]
        if host.hasPrefix("["), host.hasSuffix("]") {
            host = host.dropFirst().dropLast()
        } else if host.contains(":") {
            throw .badAddress(text: text, advice: "put an IPv6 address in brackets, such as [::1]:8080")
        }
        guard !host.isEmpty, !host.contains(where: { $0.isWhitespace || "[]/@".contains($0) }) else {
            throw .badAddress(
                text: text, advice: "name a host; 0.0.0.0 or [::] stands for all addresses of this machine")
        }
        let digits = text[text.index(after: colon)...]
        guard digits.utf8.allSatisfy({ (0x30...0x39).contains($0) }), let port = UInt16(digits) else {
            throw .badAddress(text: text, advice: "the port is a number up to 65535")
        }
        self.host = String(host)
        self.port = port
    }

    private init(host: String, port: UInt16) {
        self.host = host
        self.port = port
    }

    public var description: String { host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)" }

    /// A socket that listens here, and the address with the port it really has.
    func listen(backlog: Int32) throws(HTTPServerFault) -> (socket: Int32, bound: ListenAddress) {
        var hints = addrinfo()
        hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        var found: UnsafeMutablePointer<addrinfo>?
        let code = getaddrinfo(host, String(port), &hints, &found)
        guard code == 0, let found else {
            throw .cannotListen(address: description, reason: String(cString: gai_strerror(code)))
        }
        defer { freeaddrinfo(found) }
        let flags = Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue) | Int32(SOCK_NONBLOCK.rawValue)
        let descriptor = socket(found.pointee.ai_family, flags, 0)
        guard descriptor >= 0 else { throw .cannotListen(address: description, reason: lastReason()) }
        // A restarted process must not wait until the connections of the one before it are forgotten.
        set(descriptor, SOL_SOCKET, SO_REUSEADDR, 1)
        // [::] means every address of the machine, whatever the system's default is.
        if found.pointee.ai_family == AF_INET6 { set(descriptor, Int32(IPPROTO_IPV6), IPV6_V6ONLY, 0) }
        guard
            bind(descriptor, __CONST_SOCKADDR_ARG(__sockaddr__: found.pointee.ai_addr), found.pointee.ai_addrlen) == 0,
            Glibc.listen(descriptor, backlog) == 0
        else {
            let reason = lastReason()
            close(descriptor)
            throw .cannotListen(address: description, reason: reason)
        }
        return (descriptor, ListenAddress(host: host, port: boundPort(of: descriptor)))
    }

    private func set(_ descriptor: Int32, _ level: Int32, _ option: Int32, _ value: Int32) {
        var value = value
        setsockopt(descriptor, level, option, &value, socklen_t(MemoryLayout<Int32>.size))
    }

    private func boundPort(of descriptor: Int32) -> UInt16 {
        var storage = sockaddr_in6()
        var size = socklen_t(MemoryLayout<sockaddr_in6>.size)
        // The port lies at the same place in both families.
        return withUnsafeMutablePointer(to: &storage) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                _ = getsockname(descriptor, __SOCKADDR_ARG(__sockaddr__: $0), &size)
            }
            return UInt16(bigEndian: pointer.pointee.sin6_port)
        }
    }

    private func lastReason() -> String {
        let code = errno
        let words = String(cString: strerror(code))
        return switch code {
        case EADDRINUSE: "\(words): another process has the port (ss -ltnp shows which); stop it or choose another port"
        case EADDRNOTAVAIL: "\(words): no interface of this machine has it"
        case EACCES: "\(words): ports below 1024 need a privilege; choose a higher one"
        default: words
        }
    }
}
