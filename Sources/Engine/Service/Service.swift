// The life of a long-running process.

public import Platform
import Synchronization
public import Telemetry

/// Prepares all parts, starts them in order, keeps them running, stops them in reverse.
///
/// - The first SIGTERM or SIGINT stops the service: it is no longer ready, then each part stops, all within one
///   deadline; exit code 0.
/// - A second one ends the process at once with 3.
/// - A part that cannot start, stops unexpectedly or does not stop cleanly: the others are stopped; exit code 3.
/// - The deadline passes: the parts that did not stop are logged; exit code 3.
/// - SIGHUP calls the reload hook, on its own thread.
///
/// `Signals.holdBack` must have been called first thing in `main`.
public final class Service: Sendable {
    public struct Configuration: Sendable {
        /// From the signal to the end of the process; less than the 30 s after which Kubernetes and systemd setups
        /// kill.
        public var stopDeadline: Duration = .seconds(25)

        public init() {}

        /// Parts get a little less, so that one that uses it up can still stop cleanly.
        var partDeadline: Duration { stopDeadline - min(.seconds(1), stopDeadline / 5) }
    }

    private struct State {
        var hasFailed = false
        var signals = 0
        /// The parts that must still be stopped; the last one is next.
        var running: [String] = []
        /// The part whose `start` has not returned.
        var starting: String?
        var processDeadline: Deadline?
        var partDeadline: Deadline?
    }

    private let parts: [any ServicePart]
    private let condition: Health.Condition
    private let logger: Logger
    private let configuration: Configuration
    private let reload: Reload
    private let state = Mutex(State())
    private let stopRequested = Latch()
    private let ended = Latch()

    /// Adds the condition `service` to `health`. `reload` reads the files again that may change while the service runs.
    public init(
        _ parts: [any ServicePart], health: Health, logger: Logger, configuration: Configuration = Configuration(),
        reload: (@Sendable () throws -> Void)? = nil
    ) {
        self.parts = parts
        self.logger = logger
        self.configuration = configuration
        self.reload = Reload(reload, logger: logger)
        condition = health.condition("service", failing: "starting")
    }

    /// Runs the service to its end and returns the exit code. Blocks; call it once, on the main thread. With a code
    /// other than `done` parts may still be running: exit with `endProcess`.
    public func run() -> ExitCode {
        let life = WorkerThread.start("service") { self.live() }
        if case .failure(let error)? = life.result {
            say { $0.error("cannot start", ["reason": .string("\(error)")]) }
            return .gaveUp
        }
        // A signal is noticed at once; everything else within this time.
        let interval = Duration.milliseconds(50)
        while !ended.isOpen {
            if let signal = Signals.wait(for: interval) { take(signal) }
            if let deadline = state.withLock({ $0.processDeadline }), deadline.hasPassed, !ended.isOpen {
                reportUnstopped()
                return .gaveUp
            }
        }
        let hasFailed = state.withLock { $0.hasFailed }
        say { $0.info("stopped", ["clean": .bool(!hasFailed)]) }
        return hasFailed ? .gaveUp : .done
    }

    /// Stops as after the first signal. For a process that ends by itself; any thread may call it.
    public func stop() { requestStop() }

    private func take(_ signal: Signal) {
        guard signal != .hangUp else { return say { _ in self.reload.request() } }
        let count = state.withLock { state in
            state.signals += 1
            return state.signals
        }
        guard count == 1 else {
            say { $0.error("second signal: ending at once", ["signal": .integer(signal.rawValue)]) }
            endProcess(.gaveUp)
        }
        say { $0.info("signal: stopping; a second one ends at once", ["signal": .integer(signal.rawValue)]) }
        requestStop()
    }

    /// Logs, and waits for that only a moment: if nothing reads standard error, writing a log line never ends, and the
    /// thread that receives signals and keeps the deadline must not hang on it.
    private func say(_ words: @escaping @Sendable (Logger) -> Void) {
        let (logger, said) = (logger, Latch())
        WorkerThread.start("service-log") {
            words(logger)
            said.open()
        }
        said.wait(for: .milliseconds(500))
    }

    /// Later calls have no effect: the deadline counts from the first.
    private func requestStop() {
        condition.fail("stopping")
        state.withLock { state in
            guard state.processDeadline == nil else { return }
            state.processDeadline = Deadline(after: configuration.stopDeadline)
            state.partDeadline = Deadline(after: configuration.partDeadline)
        }
        stopRequested.open()
    }

    private func fail(_ part: String, _ message: String, _ error: any Error) {
        logger.error(message, ["part": .string(part), "reason": .string("\(error)")])
        state.withLock { $0.hasFailed = true }
        requestStop()
    }

    private func reportUnstopped() {
        let (starting, running) = state.withLock { ($0.starting, $0.running) }
        let seconds = configuration.stopDeadline.fractionalSeconds
        say {
            $0.error(
                "the deadline for stopping has passed; ending with parts still running",
                [
                    "waited_for": .string(starting ?? running.last ?? "none"),
                    "not_stopped": .string(running.reversed().joined(separator: ", ")),
                    "seconds": .double(seconds),
                ])
        }
    }

    // MARK: On the thread of the service

    private func live() {
        let started = startParts()
        if started.count == parts.count, !stopRequested.isOpen {
            condition.pass()
            // The stop may have come between the two lines above, and must have the last word.
            if stopRequested.isOpen { condition.fail("stopping") }
            logger.info("started", ["parts": .string(parts.map(\.name).joined(separator: ", "))])
        }
        stopRequested.wait()
        stopParts(started)
        ended.open()
    }

    /// Nothing starts if one of them fails.
    private func prepareParts() {
        for part in parts where !stopRequested.isOpen {
            do {
                try part.prepare()
            } catch {
                fail(part.name, "a part of the service cannot start; stopping", error)
            }
        }
    }

    private func startParts() -> [any ServicePart] {
        prepareParts()
        var started: [any ServicePart] = []
        for part in parts where !stopRequested.isOpen {
            let name = part.name
            state.withLock { $0.starting = name }
            do {
                try part.start { error in self.fail(name, "a part of the service failed; stopping", error) }
                started.append(part)
                state.withLock { $0.running.append(name) }
            } catch {
                fail(name, "a part of the service cannot start; stopping", error)
            }
            state.withLock { $0.starting = nil }
        }
        return started
    }

    private func stopParts(_ started: [any ServicePart]) {
        let deadline = state.withLock { $0.partDeadline } ?? Deadline(after: .zero)
        for part in started { part.stopIsNear() }
        for part in started.reversed() {
            let begin = ContinuousClock.now
            do {
                try part.stop(by: deadline)
            } catch {
                fail(part.name, "a part of the service did not stop cleanly", error)
            }
            state.withLock { _ = $0.running.popLast() }
            let seconds = begin.duration(to: .now).fractionalSeconds
            logger.debug("part stopped", ["part": .string(part.name), "seconds": .double(seconds)])
        }
    }
}
