// Whether this process is alive and ready, and if not, why.

import Synchronization

/// The named conditions of a process. A condition fails until it is set to hold.
public final class Health: Sendable {
    public enum Scope: Sendable {
        /// Failing means that only a restart helps. Nothing outside the process belongs here: if a broker is down,
        /// restarting every worker does not help.
        case liveness
        /// Failing means: send no requests here now.
        case readiness
    }

    /// One named condition. Any thread may set it.
    public final class Condition: Sendable {
        public let name: String
        let scope: Scope
        private let failure: Mutex<String?>
        private let check: (@Sendable () -> String?)?

        fileprivate init(name: String, scope: Scope, failure: String?, check: (@Sendable () -> String?)?) {
            self.name = name
            self.scope = scope
            self.failure = Mutex(failure)
            self.check = check
        }

        public func pass() { failure.withLock { $0 = nil } }
        /// Operators read `reason`, such as "no broker answers".
        public func fail(_ reason: String) { failure.withLock { $0 = reason } }
        var reason: String? { check?() ?? failure.withLock { $0 } }
    }

    public struct Reason: Sendable, Equatable, CustomStringConvertible {
        public let condition: String
        public let reason: String
        public var description: String { "\(condition): \(reason)" }
    }

    /// The failing conditions, in the order in which they were added. Empty: all conditions hold.
    public struct Report: Sendable, Equatable {
        public let reasons: [Reason]
        public var isHealthy: Bool { reasons.isEmpty }

        /// `{"status":"ok"}`, or `{"status":"unavailable","reasons":[{"condition":"kafka","reason":"..."}]}`.
        public var json: [UInt8] {
            guard !isHealthy else { return Array(#"{"status":"ok"}"#.utf8) }
            var text = Array(#"{"status":"unavailable","reasons":["#.utf8)
            for (index, entry) in reasons.enumerated() {
                text.append(contentsOf: (index == 0 ? #"{"condition":"# : #",{"condition":"#).utf8)
                JSONText.append(entry.condition, to: &text)
                text.append(contentsOf: #","reason":"#.utf8)
                JSONText.append(entry.reason, to: &text)
                text.append(UInt8(ascii: "}"))
            }
            text.append(contentsOf: "]}".utf8)
            return text
        }
    }

    private let conditions = Mutex<[Condition]>([])

    public init() {}

    /// Adds a condition that is set by a caller. It fails until then, with `reason`.
    public func condition(_ name: String, _ scope: Scope = .readiness, failing reason: String = "starting") -> Condition
    {
        add(Condition(name: name, scope: scope, failure: reason, check: nil))
    }

    /// Adds a condition that is checked at each report, on the reporting thread; nil means that it holds. For
    /// watchdogs, which must notice that something reports nothing.
    @discardableResult
    public func condition(
        _ name: String, _ scope: Scope = .readiness, check: @escaping @Sendable () -> String?
    ) -> Condition {
        add(Condition(name: name, scope: scope, failure: nil, check: check))
    }

    public var liveness: Report { report { $0.scope == .liveness } }
    /// A process that is not alive is not ready either.
    public var readiness: Report { report { _ in true } }

    private func report(_ belongs: (Condition) -> Bool) -> Report {
        // The checks run outside the lock: they are other modules' code and may take locks of their own.
        let asked = conditions.withLock { $0 }.filter(belongs)
        return Report(reasons: asked.compactMap { one in one.reason.map { Reason(condition: one.name, reason: $0) } })
    }

    private func add(_ condition: Condition) -> Condition {
        conditions.withLock { conditions in
            precondition(
                !conditions.contains { $0.name == condition.name },
                "there already is a health condition named \(condition.name)")
            conditions.append(condition)
        }
        return condition
    }
}
