// One line for many refusals.

import Synchronization
public import Telemetry

/// Whoever sends garbage decides how much of it there is; a log line for each would be his to fill disks with. So refusals
/// are counted, and told now and then.
public final class RefusalLog: Sendable {
    private let logger: Logger
    private let counts = Mutex<[String: Int]>([:])

    public init(_ logger: Logger) {
        self.logger = logger
    }

    func note(_ outcome: String) { counts.withLock { $0[outcome, default: 0] += 1 } }

    /// Writes what has been noted since the last call, if anything.
    public func flush() {
        let noted = counts.withLock { counts in
            defer { counts = [:] }
            return counts
        }
        guard !noted.isEmpty else { return }
        let words = noted.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }.joined(separator: ", ")
        logger.warning("requests were refused", ["outcomes": .string(words)])
    }
}
