// Blocking calls in asynchronous tests.

import Platform

/// Runs blocking calls on their own thread. The task-local test context goes along, so that a failing expectation
/// belongs to the right test.
public func blocking<T: Sendable>(_ body: @escaping @Sendable () async throws -> T) async throws -> T {
    try await withTaskExecutorPreference(OwnThread.shared) { try await body() }
}

private final class OwnThread: TaskExecutor {
    static let shared = OwnThread()

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        WorkerThread.start("test") { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
    }
}
