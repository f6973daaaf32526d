// SIGHUP.

import Platform
import Synchronization
import Telemetry

/// Calls a hook on a thread of its own, so that the thread that takes signals stays free for the next one. Requests that
/// come while it runs are answered by one more run: the files may have changed after it read them.
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
            logger.info("SIGHUP: there is nothing to reload here")
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
            logger.error("reload failed; what was loaded before stays", ["reason": .string("\(error)")])
            // The next request tries again.
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
            logger.error("reload failed; what was loaded before stays", ["reason": .string("\(error)")])
        }
    }
}
