// Binds the address that a server listens on.

// Brings the socket constants into view as well, in release builds.
import CMicroHTTPD
import Glibc
public import Platform
import Synchronization

/// Why a server cannot be started. The text says what to do.
public enum HTTPServerFault: Error, Equatable, CustomStringConvertible {
    case cannotListen(address: String, reason: String)
    case badIdentity(reason: String)
    case refused(reason: String)

    public var description: String {
        switch self {
        case .cannotListen(let address, let reason): "cannot listen on \(address): \(reason)"
        case .badIdentity(let reason): "the TLS certificate or its key cannot be used: \(reason)"
        case .refused(let reason): "cannot start the HTTP server: \(reason)"
        }
    }
}

/// An address that is bound, but not served yet: connections are refused. It becomes free again if this object is
/// released before a server takes it.
public final class ReservedAddress: Sendable {
    let address: ListenAddress
    /// nil: a server has taken it.
    private let socket: Mutex<Int32?>

    public init(_ address: ListenAddress) throws(HTTPServerFault) {
        let (socket, bound) = try address.bound()
        self.address = bound
        self.socket = Mutex(socket)
    }

    deinit {
        if let socket = socket.withLock({ $0.take() }) { close(socket) }
    }

    /// The socket, which now listens and belongs to the caller. Works once.
    func listen(backlog: Int32) throws(HTTPServerFault) -> Int32 {
        guard let socket = socket.withLock({ $0.take() }) else {
            throw .cannotListen(address: address.description, reason: "another server already uses this socket")
        }
        guard Glibc.listen(socket, backlog) == 0 else {
            let reason = ListenAddress.lastReason()
            close(socket)
            throw .cannotListen(address: address.description, reason: reason)
        }
        return socket
    }
}

extension ListenAddress {
    /// A socket bound to this address, and the address with its real port.
    fileprivate func bound() throws(HTTPServerFault) -> (socket: Int32, bound: ListenAddress) {
        let flags = Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue) | Int32(SOCK_NONBLOCK.rawValue)
        let descriptor = socket(address.isIPv4 ? AF_INET : AF_INET6, flags, 0)
        guard descriptor >= 0 else { throw .cannotListen(address: description, reason: Self.lastReason()) }
        // A restarted process must not wait until the kernel forgets the connections of the one before.
        set(descriptor, SOL_SOCKET, SO_REUSEADDR, 1)
        // [::] means every address of the machine, whatever the system's default is.
        if !address.isIPv4 { set(descriptor, Int32(IPPROTO_IPV6), IPV6_V6ONLY, 0) }
        let bound = address.withSocketAddress(port: port) {
            bind(descriptor, __CONST_SOCKADDR_ARG(__sockaddr__: $0), $1)
        }
        guard bound == 0 else {
            let reason = Self.lastReason()
            close(descriptor)
            throw .cannotListen(address: description, reason: reason)
        }
        return (descriptor, ListenAddress(address, port: boundPort(of: descriptor)))
    }

    private func set(_ descriptor: Int32, _ level: Int32, _ option: Int32, _ value: Int32) {
        var value = value
        setsockopt(descriptor, level, option, &value, socklen_t(MemoryLayout<Int32>.size))
    }

    private func boundPort(of descriptor: Int32) -> UInt16 {
        var storage = sockaddr_in6()
        var size = socklen_t(MemoryLayout<sockaddr_in6>.size)
        // The port is at the same place in both address families.
        return withUnsafeMutablePointer(to: &storage) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                _ = getsockname(descriptor, __SOCKADDR_ARG(__sockaddr__: $0), &size)
            }
            return UInt16(bigEndian: pointer.pointee.sin6_port)
        }
    }

    fileprivate static func lastReason() -> String {
        let code = errno
        let words = String(cString: strerror(code))
        return switch code {
        case EADDRINUSE: "\(words): another process has the port (ss -ltnp shows which); stop it or choose another port"
        case EADDRNOTAVAIL: "\(words): no interface of this machine has this address"
        case EACCES: "\(words): ports below 1024 need a privilege; choose a higher port"
        default: words
        }
    }
}
