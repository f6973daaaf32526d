import Synchronization
import Telemetry

/// Collects a logger's output; each element is one call of the sink.
final class Lines: Sendable {
    private let calls = Mutex<[[UInt8]]>([])

    var bytes: [[UInt8]] { calls.withLock { $0 } }
    var texts: [String] { bytes.map { String(decoding: $0, as: UTF8.self) } }

    /// A logger whose clock stands still at 2026-03-01T09:30:00.125Z.
    func logger(level: LogLevel = .debug, format: LogFormat = .json) -> Logger {
        Logger(level: level, format: format, now: { 1_772_357_400_125 }) { line in
            self.calls.withLock { $0.append(line) }
        }
    }
}
