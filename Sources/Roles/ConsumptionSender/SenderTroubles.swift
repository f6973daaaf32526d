// Reasons why answers do not reach Apple, in words.

internal import Notices
import Synchronization
internal import Telemetry

/// The sender reports troubles, and health reads them. Each trouble is logged once.
final class SenderTroubles: Sendable {
    /// A closed set: these become labels.
    enum Cause: String, CaseIterable {
        case unauthorized, clock, unreachable
    }

    private struct Key: Hashable, Comparable {
        let cause: Cause
        let app: String

        static func < (left: Key, right: Key) -> Bool {
            (left.cause.rawValue, left.app) < (right.cause.rawValue, right.app)
        }
    }

    private let words = Mutex<[Key: String]>([:])
    private let gauges: [Cause: Gauge]
    private let logger: Logger

    init(_ gauges: [Cause: Gauge], logger: Logger) {
        self.gauges = gauges
        self.logger = logger
    }

    /// nil: there is no trouble.
    func tell(_ cause: Cause, app: String = "", _ trouble: String?) {
        let key = Key(cause: cause, app: app)
        let (before, count) = words.withLock { words in
            let before = words[key]
            words[key] = trouble
            return (before, words.keys.count { $0.cause == cause })
        }
        gauges[cause]?.set(Double(count))
        if let trouble, before == nil {
            logger.error("answers to refund requests do not reach Apple", ["reason": .string(trouble)])
        } else if trouble == nil, before != nil {
            logger.info("answers to refund requests reach Apple again", ["cause": .string(cause.rawValue)])
        }
    }

    /// Nothing is left to send, so these causes no longer matter.
    func forget(_ causes: [Cause]) {
        let known = words.withLock { $0.keys.filter { causes.contains($0.cause) } }
        for key in known { tell(key.cause, app: key.app, nil) }
    }

    var all: String? {
        let words = words.withLock { words in words.sorted { $0.key < $1.key }.map(\.value) }
        return words.isEmpty ? nil : words.joined(separator: "; ")
    }
}
