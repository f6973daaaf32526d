// Converts IP addresses from and to those of sockets.

// Both modules declare the socket types. Debug and release builds differ in which of the two the compiler asks for.
import CMicroHTTPD
import Glibc
import Platform

extension IPAddress {
    /// nil: the peer has no IP address.
    init?(_ address: UnsafePointer<sockaddr>) {
        switch Int32(address.pointee.sa_family) {
        case AF_INET:
            self.init(
                bytes: UnsafeRawPointer(address).withMemoryRebound(to: sockaddr_in.self, capacity: 1) { pointer in
                    withUnsafeBytes(of: pointer.pointee.sin_addr) { Array($0) }
                })
        case AF_INET6:
            self.init(
                bytes: UnsafeRawPointer(address).withMemoryRebound(to: sockaddr_in6.self, capacity: 1) { pointer in
                    withUnsafeBytes(of: pointer.pointee.sin6_addr) { Array($0) }
                })
        default: return nil
        }
    }

    /// Calls `body` with the address and the port in the form that `bind` takes.
    func withSocketAddress<R>(port: UInt16, _ body: (UnsafePointer<sockaddr>, socklen_t) -> R) -> R {
        if isIPv4 {
            var address = sockaddr_in()
            address.sin_family = sa_family_t(AF_INET)
            address.sin_port = port.bigEndian
            withUnsafeMutableBytes(of: &address.sin_addr) { $0.copyBytes(from: bytes) }
            return asSocketAddress(&address, body)
        }
        var address = sockaddr_in6()
        address.sin6_family = sa_family_t(AF_INET6)
        address.sin6_port = port.bigEndian
        withUnsafeMutableBytes(of: &address.sin6_addr) { $0.copyBytes(from: bytes) }
        return asSocketAddress(&address, body)
    }
}

private func asSocketAddress<Address, R>(
    _ address: inout Address, _ body: (UnsafePointer<sockaddr>, socklen_t) -> R
) -> R {
    withUnsafePointer(to: &address) { pointer in
        pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { body($0, socklen_t(MemoryLayout<Address>.size)) }
    }
}
