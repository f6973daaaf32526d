// Free ports for programs that need their port before they start.

import Glibc
import Synchronization

package enum Ports {
    /// Below the range from which Linux takes ports of outgoing connections (32768 and up), so that a restarted broker
    /// finds its port free. Above the usual ports of services.
    private static let range: ClosedRange<UInt16> = 20000...32000
    /// If all of these are taken, something else is wrong.
    private static let attempts = 1000
    private static let given = Mutex<Set<UInt16>>([])

    /// A port that is free now and that this process has not returned before. Another process may still take it first,
    /// so callers that start a broker retry with other ports.
    package static func free() throws -> UInt16 {
        for _ in 0..<attempts {
            let port = UInt16.random(in: range)
            if given.withLock({ $0.insert(port).inserted }) && Loopback.isFree(port) { return port }
        }
        throw KafkaTestFault("no free port between \(range.lowerBound) and \(range.upperBound)")
    }
}
