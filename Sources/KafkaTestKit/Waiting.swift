// Waiting for a condition instead of sleeping and hoping.

import Platform

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
    _ what: String, within limit: Duration = .seconds(10), isolation: isolated (any Actor)? = #isolation,
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
