// Waiting for a condition instead of sleeping and hoping.

import Platform

/// How long tests wait for what takes moments on an idle machine and is no promise about time. Long, because it costs nothing
/// where all is well: a machine that is busy with other things makes any program wait for ten seconds and more.
public let patience: Duration = .seconds(60)

/// What did not come about in time.
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
        "not within \(limit): \(what)" + (detail.isEmpty ? "" : "\n\(detail)")
    }
}

/// Often enough that nobody waits noticeably, seldom enough that a hundred waiters cost nothing.
private let pollInterval: Duration = .milliseconds(10)

/// Asks until the answer is yes; throws `NotInTime` after `limit`. No pool thread is held between two questions.
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

/// Runs work that blocks on a thread of its own and waits for its value without holding a pool thread.
package func onOwnThread<Value: Sendable>(
    _ name: String, _ body: @escaping @Sendable () throws -> Value
) async throws -> Value {
    let box = Box<Value>()
    try await WorkerThread.start(name) { box.put(try body()) }.join()
    return box.take()
}
