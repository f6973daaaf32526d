// Free ports for programs that have to be told theirs before they start.

import Glibc
import Synchronization

package enum Ports {
    /// Below the range from which Linux takes the ports of outgoing connections (32768 and up): a broker that is down for a
    /// moment finds its port again. Above what services usually have.
    private static let range: ClosedRange<UInt16> = 20000...32000
    /// All of them taken means that something else is wrong.
    private static let attempts = 1000
    private static let given = Mutex<Set<UInt16>>([])

    /// A port that nobody listens on now, and that this process has not given out before. Another process may still be
    /// quicker: who starts a broker tries again with others.
    package static func free() throws -> UInt16 {
        for _ in 0..<attempts {
            let port = UInt16.random(in: range)
            if given.withLock({ $0.insert(port).inserted }) && Loopback.isFree(port) { return port }
        }
        throw KafkaTestFault("no free port between \(range.lowerBound) and \(range.upperBound)")
    }
}
