// The parts of a service.

public import Platform

/// Something that runs as long as the service: a server, a worker, a follower of a topic.
///
/// `start` and `stop` are called once each, from one thread, and may block.
public protocol ServicePart: Sendable {
    /// The name in logs: "ingest", "worker-0".
    var name: String { get }

    /// Takes resources that another process may have, such as a port, before any part starts: a process that cannot run
    /// must not join a group first, which would cause a rebalance.
    func prepare() throws

    /// Returns when the part works; throws if it cannot. It runs on its own threads. If the part later ends
    /// unexpectedly, it calls `failed`, from any thread: the whole service then stops, so that a supervisor restarts
    /// it.
    func start(failed: @escaping @Sendable (any Error) -> Void) throws

    /// Called on every started part before the first one is stopped, and does not block: a part that no other part
    /// needs begins to end, so that the others do not wait for it.
    func stopIsNear()

    /// Ends the part and returns when it has ended, before `deadline` if it can. Throws if the end was not clean. Not
    /// called for a part whose start threw.
    func stop(by deadline: Deadline) throws
}

extension ServicePart {
    /// Most parts need no preparation.
    public func prepare() throws {}
    /// Other parts may need it until it is stopped.
    public func stopIsNear() {}
}

public enum ServicePartFault: Error, Equatable, CustomStringConvertible {
    case endedByItself
    case stillRunning

    public var description: String {
        switch self {
        case .endedByItself: "stopped unexpectedly"
        case .stillRunning: "did not stop in time"
        }
    }
}

/// A part that is one blocking function on its own thread.
public final class ThreadPart: ServicePart {
    public let name: String
    private let body: @Sendable (_ stop: Latch) throws -> Void
    private let isAlone: Bool
    private let stopRequested = Latch()
    private let ended = Latch()

    /// `body` must return soon after `stop` opens. If it returns earlier, or throws, the part has failed.
    ///
    /// - Parameter isAlone: no other part needs it, so it ends beside those that are stopped before it.
    public init(_ name: String, isAlone: Bool = false, _ body: @escaping @Sendable (_ stop: Latch) throws -> Void) {
        self.name = name
        self.isAlone = isAlone
        self.body = body
    }

    public func start(failed: @escaping @Sendable (any Error) -> Void) throws {
        let (body, stop, ended) = (body, stopRequested, ended)
        let worker = WorkerThread.start(name) {
            defer { ended.open() }
            do {
                try body(stop)
                if !stop.isOpen { failed(ServicePartFault.endedByItself) }
            } catch {
                failed(error)
            }
        }
        // A thread that could not be created has its result already, and its body never runs.
        if case .failure(let error) = worker.result { throw error }
    }

    public func stopIsNear() { if isAlone { stopRequested.open() } }

    public func stop(by deadline: Deadline) throws {
        stopRequested.open()
        guard ended.wait(until: deadline) else { throw ServicePartFault.stillRunning }
    }
}
