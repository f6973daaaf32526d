// What a service is made of.

public import Platform

/// Something that runs as long as the service: a server, a worker, a follower of a topic.
///
/// `start` and `stop` are called once each, from one thread, and may block.
public protocol ServicePart: Sendable {
    /// For logs: "ingest", "worker-0".
    var name: String { get }

    /// Takes what another process may have, such as a port, before any part starts: what cannot run must not join a group
    /// first, where others would make room for it.
    func prepare() throws

    /// Returns when the part works; throws when it cannot. What it starts runs on threads of its own. If the part ends by
    /// itself later, it calls `failed`, from any thread: the whole service then stops, so that somebody starts it anew.
    func start(failed: @escaping @Sendable (any Error) -> Void) throws

    /// Ends the part and returns when it has ended, before `deadline` if it can. Throws when the end was not clean. Not
    /// called for a part whose start threw.
    func stop(by deadline: Deadline) throws
}

extension ServicePart {
    /// Most need nothing.
    public func prepare() throws {}
}

public enum ServicePartFault: Error, Equatable, CustomStringConvertible {
    case endedByItself
    case stillRunning

    public var description: String {
        switch self {
        case .endedByItself: "it ended though nobody asked it to"
        case .stillRunning: "it did not end in time"
        }
    }
}

/// A part that is one blocking function on a thread of its own.
public final class ThreadPart: ServicePart {
    public let name: String
    private let body: @Sendable (_ stop: Latch) throws -> Void
    private let stopRequested = Latch()
    private let ended = Latch()

    /// `body` returns soon after `stop` opens. Returning earlier, or throwing, is a failure of the part.
    public init(_ name: String, _ body: @escaping @Sendable (_ stop: Latch) throws -> Void) {
        self.name = name
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
        // A thread that could not be made has its result already, and its body never runs.
        if case .failure(let error) = worker.result { throw error }
    }

    public func stop(by deadline: Deadline) throws {
        stopRequested.open()
        guard ended.wait(until: deadline) else { throw ServicePartFault.stillRunning }
    }
}
