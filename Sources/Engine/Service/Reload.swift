// SIGHUP.

import Platform
import Synchronization
import Telemetry

/// Calls a hook on its own thread, so that the thread that receives signals stays free for the next one. Signals that
/// arrive while it runs cause one more run: the files may have changed after it read them.
final class Reload: Sendable {
    private struct State {
        var isRunning = false
        var isWanted = false
    }

    private let hook: (@Sendable () throws -> Void)?
    private let logger: Logger
    private let state = Mutex(State())

    init(_ hook: (@Sendable () throws -> Void)?, logger: Logger) {
        self.hook = hook
        self.logger = logger
    }

    func request() {
        guard let hook else {
            logger.info("SIGHUP: this process has nothing to reload")
            return
        }
        let mayStart = state.withLock { state in
            state.isWanted = true
            defer { state.isRunning = true }
            return !state.isRunning
        }
        guard mayStart else { return }
        let thread = WorkerThread.start("reload") {
            while self.takeRequest() { self.run(hook) }
        }
        if case .failure(let error)? = thread.result {
            logger.error("reload failed; the previous contents stay in use", ["reason": .string("\(error)")])
            // The next signal retries.
            state.withLock { $0.isRunning = false }
        }
    }

    private func takeRequest() -> Bool {
        state.withLock { state in
            defer { state.isWanted = false }
            state.isRunning = state.isWanted
            return state.isWanted
        }
    }

    private func run(_ hook: @Sendable () throws -> Void) {
        do {
            try hook()
            logger.info("reloaded")
        } catch {
            logger.error("reload failed; the previous contents stay in use", ["reason": .string("\(error)")])
        }
    }
}
