// Blocking calls in asynchronous tests.

import Platform

/// Runs blocking calls on a thread of their own. The test's task goes with them, so that an expectation that
/// fails there is the test's.
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
