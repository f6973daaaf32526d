// Owners of file descriptors, and sockets on loopback.

import Glibc
package import Platform

/// Owns a file descriptor and closes it in its deinit.
package struct Descriptor: ~Copyable, Sendable {
    package let number: Int32
    package init(owning number: Int32) { self.number = number }
    deinit { close(number) }

    /// For sockets: sends all bytes. If the peer has gone, it throws and causes no SIGPIPE.
    package func sendAll(_ bytes: [UInt8]) throws(SystemFailure) {
        var sent = 0
        while sent < bytes.count {
            let count = bytes.withUnsafeBytes {
                send(number, $0.baseAddress! + sent, $0.count - sent, Int32(MSG_NOSIGNAL))
            }
            if count < 0 && errno == EINTR { continue }
            guard count > 0 else { throw .last("send") }
            sent += count
        }
    }
}

/// A listening socket on loopback.
package struct Listener: ~Copyable, Sendable {
    package let descriptor: Descriptor
    package let port: UInt16
}

package enum Loopback {
    package static let address = "127.0.0.1"
    /// The backlog: more connections than a test opens at once.
    private static let backlog: Int32 = 128

    /// With `port` 0 the system chooses.
    package static func listen(port: UInt16 = 0) throws(SystemFailure) -> Listener {
        let descriptor = try streamSocket(flags: Int32(SOCK_NONBLOCK.rawValue))
        setOption(descriptor.number, SOL_SOCKET, SO_REUSEADDR, Int32(1))
        guard withAddress(port, { bind(descriptor.number, $0, $1) }) == 0 else { throw .last("bind port \(port)") }
        guard Glibc.listen(descriptor.number, backlog) == 0 else { throw .last("listen on port \(port)") }
        var address = sockaddr_in()
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let code = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                getsockname(descriptor.number, __SOCKADDR_ARG(__sockaddr__: $0), &size)
            }
        }
        guard code == 0 else { throw .last("get the port number") }
        return Listener(descriptor: descriptor, port: UInt16(bigEndian: address.sin_port))
    }

    /// A connection whose calls block at most `limit`.
    /// - Parameter host: an IPv4 address; others than loopback are for hosts of a test.
    package static func connect(
        address host: String = address, port: UInt16, limit: Duration
    ) throws(SystemFailure) -> Descriptor {
        let descriptor = try streamSocket(flags: 0)
        let seconds = Int(limit.wholeMilliseconds / 1000)
        let time = timeval(tv_sec: seconds, tv_usec: Int(limit.wholeMilliseconds % 1000) * 1000)
        setOption(descriptor.number, SOL_SOCKET, SO_RCVTIMEO, time)
        setOption(descriptor.number, SOL_SOCKET, SO_SNDTIMEO, time)
        guard withAddress(at: host, port, { Glibc.connect(descriptor.number, $0, $1) }) == 0 else {
            throw .last("connect to port \(port) of \(host)")
        }
        return descriptor
    }

    /// A non-blocking connection; a refusal shows at the first read or write.
    static func beginConnect(port: UInt16) throws(SystemFailure) -> Descriptor {
        let descriptor = try streamSocket(flags: Int32(SOCK_NONBLOCK.rawValue))
        guard withAddress(port, { Glibc.connect(descriptor.number, $0, $1) }) == 0 || errno == EINPROGRESS else {
            throw .last("connect to port \(port)")
        }
        sendAtOnce(descriptor.number)
        return descriptor
    }

    /// nil if no connection is waiting.
    package static func accept(from listener: Int32) -> Descriptor? {
        let number = Glibc.accept4(listener, .init(), nil, Int32(SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue))
        guard number >= 0 else { return nil }
        sendAtOnce(number)
        return Descriptor(owning: number)
    }

    /// Whether the port is free now.
    package static func isFree(_ port: UInt16) -> Bool {
        do throws(SystemFailure) {
            _ = try listen(port: port)
            return true
        } catch { return false }
    }

    private static func streamSocket(flags: Int32) throws(SystemFailure) -> Descriptor {
        let number = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue) | flags, 0)
        guard number >= 0 else { throw .last("create a socket") }
        return Descriptor(owning: number)
    }

    /// Otherwise small frames would wait until the ones before are acknowledged.
    private static func sendAtOnce(_ descriptor: Int32) {
        setOption(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, Int32(1))
    }

    private static func setOption<Value: BitwiseCopyable>(
        _ descriptor: Int32, _ level: Int32, _ name: Int32, _ value: Value
    ) {
        var value = value
        setsockopt(descriptor, level, name, &value, socklen_t(MemoryLayout<Value>.size))
    }

    private static func withAddress(
        at host: String = address, _ port: UInt16, _ body: (__CONST_SOCKADDR_ARG, socklen_t) -> Int32
    ) -> Int32 {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        precondition(inet_pton(AF_INET, host, &address.sin_addr) == 1, "\(host) is an IPv4 address")
        return withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                body(__CONST_SOCKADDR_ARG(__sockaddr__: $0), socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
    }
}
