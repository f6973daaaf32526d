// Threads of our own for calls that block.

internal import CPlatform
import Glibc
import Synchronization

/// Runs blocking work on its own named thread, so that no pool thread ever waits inside a C call.
public final class WorkerThread: Sendable {
    private struct Ending {
        var result: Result<Void, any Error>?
        var waiters: [CheckedContinuation<Void, any Error>] = []
    }

    private let ending = Mutex(Ending())
    private let name: String
    private let body: @Sendable () throws -> Void

    private init(_ name: String, _ body: @escaping @Sendable () throws -> Void) {
        self.name = name
        self.body = body
    }

    /// Starts at once. `top -H` shows `name` (15 bytes). The stack is 1 MiB: deep recursion is refused elsewhere.
    @discardableResult
    public static func start(_ name: String, _ body: @escaping @Sendable () throws -> Void) -> WorkerThread {
        let worker = WorkerThread(name, body)
        var attributes = pthread_attr_t()
        pthread_attr_init(&attributes)
        defer { pthread_attr_destroy(&attributes) }
        pthread_attr_setstacksize(&attributes, 1 << 20)
        pthread_attr_setdetachstate(&attributes, Int32(PTHREAD_CREATE_DETACHED))
        var thread = pthread_t()
        let context = Unmanaged.passRetained(worker).toOpaque()
        let code = pthread_create(&thread, &attributes, runWorkerThread, context)
        guard code == 0 else {
            Unmanaged<WorkerThread>.fromOpaque(context).release()
            worker.finish(.failure(SystemFailure(operation: "start thread \(name)", code: code)))
            return worker
        }
        return worker
    }

    fileprivate func run() {
        perennial_name_thread(name)
        // Works if `CrashNotes` are installed. Without this the thread works too, but an overflow of its stack leaves
        // no note.
        perennial_crash_arm_thread()
        finish(Result { try body() })
    }

    private func finish(_ result: Result<Void, any Error>) {
        let waiters = ending.withLock { ending in
            ending.result = result
            defer { ending.waiters = [] }
            return ending.waiters
        }
        for waiter in waiters { waiter.resume(with: result) }
    }

    public var isFinished: Bool { ending.withLock { $0.result != nil } }

    /// nil while it runs. Does not block.
    public var result: Result<Void, any Error>? { ending.withLock { $0.result } }

    /// Waits for the end of the work and rethrows its error.
    public func join() async throws {
        try await withCheckedThrowingContinuation { (waiter: CheckedContinuation<Void, any Error>) in
            let result = ending.withLock { ending in
                if ending.result == nil { ending.waiters.append(waiter) }
                return ending.result
            }
            if let result { waiter.resume(with: result) }
        }
    }
}

// A top-level function: a closure could inherit an actor's isolation, and would trap when C calls it on its thread.
private func runWorkerThread(_ context: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
    Unmanaged<WorkerThread>.fromOpaque(context!).takeRetainedValue().run()
    return nil
}
