// Runs the sender as a part of a process.

public import Log
public import Platform
public import Service
import Synchronization
public import Telemetry

/// The sender's trouble, for other threads.
private final class Shown: Sendable {
    private let words = Mutex<String?>("it is starting")

    func show(_ trouble: String?) { words.withLock { $0 = trouble } }
    var trouble: String? { words.withLock { $0 } }
}

public final class SenderService: ServicePart {
    /// Pause between two steps that had nothing to do.
    private static let idlePause: Duration = .milliseconds(50)
    /// How long a stopping process waits for attempts in flight. An attempt may take longer than a process has for
    /// stopping.
    private static let settleLimit: Duration = .seconds(10)
    private static let closeLimit: Duration = .seconds(5)

    public let name = "consumption-sender"
    private let thread: ThreadPart

    /// Adds the condition `consumption-sender` to `health`.
    public init(
        _ options: SenderOptions, worker: WorkerView, carrier: any Carrier, log: any RecordLog,
        time: SenderTime = .real(), health: Health, metrics: Metrics, logger: Logger
    ) {
        let counts = SenderMetrics(metrics)
        let troubles = SenderTroubles(counts.troubles, logger: logger)
        let shown = Shown()
        health.condition("consumption-sender") { [troubles.all, shown.trouble].compactMap { $0 }.first }
        thread = ThreadPart(name) { stop in
            let sender = Sender(
                options, worker: worker, carrier: carrier, log: log, time: time, troubles: troubles, metrics: counts,
                logger: logger)
            while !stop.isOpen {
                if !sender.step() { stop.wait(for: Self.idlePause) }
                shown.show(sender.trouble)
            }
            let deadline = Deadline(after: Self.settleLimit)
            // Apple's response is recorded if it arrives in time: otherwise a successor sends the same bytes again.
            while !sender.finishFlights(), !deadline.hasPassed { pause(for: .milliseconds(20)) }
            sender.close(by: Deadline(after: Self.closeLimit))
        }
    }

    public func start(failed: @escaping @Sendable (any Error) -> Void) throws { try thread.start(failed: failed) }
    public func stop(by deadline: Deadline) throws { try thread.stop(by: deadline) }
}
