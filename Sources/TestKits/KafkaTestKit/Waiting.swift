// Waiting for a condition instead of sleeping.

import Platform

/// How long tests wait for something that takes moments on an idle machine and is not a promise about time. A long
/// limit costs nothing when all is well: on a busy machine any program may be delayed by ten seconds and more.
public let patience: Duration = .seconds(60)

/// A condition that did not become true in time.
public struct NotInTime: Error, CustomStringConvertible {
    public let what: String
    public let limit: Duration
    public let detail: String

    public init(_ what: String, limit: Duration, detail: String = "") {
        self.what = what
        self.limit = limit
        self.detail = detail
    }

    public var description: String {
        "timed out after \(limit): \(what)" + (detail.isEmpty ? "" : "\n\(detail)")
    }
}

/// Short enough that nobody notices, long enough that a hundred waiters cost nothing.
private let pollInterval: Duration = .milliseconds(10)

/// Checks repeatedly until the condition is true; throws `NotInTime` after `limit`. No pool thread is blocked between
/// checks.
/// - Parameter what: the condition in words, for the message.
public func waitUntil(
    _ what: String, within limit: Duration = patience, isolation: isolated (any Actor)? = #isolation,
    _ condition: () async throws -> Bool
) async throws {
    let deadline = Deadline(after: limit)
    while try await !condition() {
        if deadline.hasPassed { throw NotInTime(what, limit: limit) }
        try await Task.sleep(for: pollInterval)
    }
}

/// Runs blocking work on its own thread and waits for its value without blocking a pool thread.
package func onOwnThread<Value: Sendable>(
    _ name: String, _ body: @escaping @Sendable () throws -> Value
) async throws -> Value {
    let box = Box<Value>()
    try await WorkerThread.start(name) { box.put(try body()) }.join()
    return box.take()
}
