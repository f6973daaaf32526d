// Log lines: one object per line for machines, or a readable line for people.

public import Platform
import Synchronization

/// A value of a log field.
public enum LogValue: Sendable, Equatable {
    case string(String)
    case integer(Int64)
    case double(Double)
    case bool(Bool)
}

extension LogValue: ExpressibleByStringLiteral, ExpressibleByStringInterpolation {
    public init(stringLiteral value: String) { self = .string(value) }
}

extension LogValue: ExpressibleByIntegerLiteral {
    public init(integerLiteral value: Int64) { self = .integer(value) }
}

extension LogValue: ExpressibleByFloatLiteral {
    public init(floatLiteral value: Double) { self = .double(value) }
}

extension LogValue: ExpressibleByBooleanLiteral {
    public init(booleanLiteral value: Bool) { self = .bool(value) }
}

extension LogValue {
    public static func integer(_ value: some BinaryInteger) -> LogValue { .integer(Int64(clamping: value)) }
}

public enum LogLevel: String, Sendable, CaseIterable, Comparable {
    case trace, debug, info, warning, error

    private var rank: Int {
        switch self {
        case .trace: 0
        case .debug: 1
        case .info: 2
        case .warning: 3
        case .error: 4
        }
    }

    public static func < (left: LogLevel, right: LogLevel) -> Bool { left.rank < right.rank }
}

public enum LogFormat: String, Sendable, CaseIterable {
    case json, text
}

/// Writes log lines, each with one call of the sink. Any thread may call it; lines are never mixed.
///
/// Blocks while nothing reads the descriptor.
public final class Logger: Sendable {
    /// Bytes of a line, including its end. A pipe passes up to 4,096 bytes (PIPE_BUF) in one piece, so lines of several
    /// processes that share a pipe stay whole.
    public static let maxLineBytes = 4096

    public let level: LogLevel
    private let format: LogFormat
    private let now: @Sendable () -> Int64
    private let sink: Mutex<@Sendable ([UInt8]) -> Void>

    /// Lines go to standard error by default: standard output is for data.
    public convenience init(level: LogLevel = .info, format: LogFormat = .json, descriptor: Int32 = 2) {
        self.init(level: level, format: format) { writeAll($0, to: descriptor) }
    }

    /// `now` is in milliseconds since 1970. `sink` gets whole lines, one at a time.
    public init(
        level: LogLevel = .info, format: LogFormat = .json,
        now: @escaping @Sendable () -> Int64 = WallClock.milliseconds,
        sink: @escaping @Sendable ([UInt8]) -> Void
    ) {
        self.level = level
        self.format = format
        self.now = now
        self.sink = Mutex(sink)
    }

    public func debug(_ message: @autoclosure () -> String, _ fields: KeyValuePairs<String, LogValue> = [:]) {
        log(.debug, message(), fields)
    }

    public func info(_ message: @autoclosure () -> String, _ fields: KeyValuePairs<String, LogValue> = [:]) {
        log(.info, message(), fields)
    }

    public func warning(_ message: @autoclosure () -> String, _ fields: KeyValuePairs<String, LogValue> = [:]) {
        log(.warning, message(), fields)
    }

    public func error(_ message: @autoclosure () -> String, _ fields: KeyValuePairs<String, LogValue> = [:]) {
        log(.error, message(), fields)
    }

    public func log(
        _ level: LogLevel, _ message: @autoclosure () -> String, _ fields: KeyValuePairs<String, LogValue> = [:]
    ) {
        guard level >= self.level else { return }
        let time = rfc3339(milliseconds: now())
        let line: [UInt8] =
            switch format {
            case .json: LogLine.json(time: time, level: level, message: message(), fields: fields)
            case .text: LogLine.text(time: time, level: level, message: message(), fields: fields)
            }
        sink.withLock { $0(line) }
    }
}
