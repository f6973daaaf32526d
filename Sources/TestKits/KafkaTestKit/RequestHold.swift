// One request that the proxy holds.

import Synchronization

/// A rule that waits for one request and then holds it until it is released or discarded.
///
/// A broker processes the requests of a connection in order. So while a request is held, nothing after it is forwarded
/// on its connection; other connections continue. When the client disconnects, what it sent after the held request is
/// lost. The held request itself is not lost: its connection to the broker stays open until `release()`.
public final class RequestHold: Sendable {
    /// What the client observes.
    public enum ClientSide: Sendable {
        /// Silence: the client's own timeout decides.
        case keepOpen
        /// A lost connection, at once.
        case cut
    }

    enum State {
        /// The number of matching requests to let pass first.
        case waiting(passing: Int)
        case held(KafkaRequest)
        case released
        case answered(KafkaResponse)
        case over(String)
    }

    let api: KafkaAPI
    let clientSide: ClientSide
    private let matches: @Sendable (KafkaRequest) -> Bool
    private let state: Mutex<State>
    private let order: @Sendable (FrameProxy.Order) -> Void

    init(
        _ api: KafkaAPI, occurrence: Int, clientSide: ClientSide, matches: @escaping @Sendable (KafkaRequest) -> Bool,
        order: @escaping @Sendable (FrameProxy.Order) -> Void
    ) {
        precondition(occurrence >= 1, "the first matching request is number 1")
        self.api = api
        self.clientSide = clientSide
        self.matches = matches
        self.order = order
        state = Mutex(.waiting(passing: occurrence - 1))
    }

    // MARK: For tests

    /// The request, once it is held.
    public var request: KafkaRequest? {
        state.withLock { if case .held(let request) = $0 { request } else { nil } }
    }

    /// Waits until the request has arrived and is held.
    @discardableResult
    public func waitUntilHeld(within limit: Duration = patience) async throws -> KafkaRequest {
        var held: KafkaRequest?
        try await waitUntil("a request with \(api) is held", within: limit) {
            held = try state.withLock { state in
                switch state {
                case .held(let request): return request
                case .waiting: return nil
                case .released, .answered: throw KafkaTestFault("the held request (\(api)) was released already")
                case .over(let reason): throw KafkaTestFault("no request (\(api)) is held: \(reason)")
                }
            }
            return held != nil
        }
        return held!
    }

    /// Sends the held request to the broker on its original connection, and returns the broker's response. A client
    /// that is still connected receives the response too. For a request without a response (Produce with acks=0) it
    /// throws `NotInTime`.
    @discardableResult
    public func release(within limit: Duration = patience) async throws -> KafkaResponse {
        try state.withLock { state in
            guard case .held = state else { throw KafkaTestFault("nothing is held (\(api)): \(state)") }
            state = .released
        }
        order(.release(self))
        var response: KafkaResponse?
        try await waitUntil("the broker answers the released request (\(api))", within: limit) {
            response = try state.withLock { state in
                switch state {
                case .answered(let response): return response
                case .over(let reason): throw KafkaTestFault("the released request (\(api)) got no answer: \(reason)")
                case .waiting, .held, .released: return nil
                }
            }
            return response != nil
        }
        return response!
    }

    /// Ends the rule. A held request is lost, and both sides of its connection are closed.
    public func discard() {
        end("it was discarded")
        order(.discard(self))
    }

    // MARK: For the proxy's thread

    /// Whether this rule takes the request; if so, the request is held from now on.
    func takes(_ request: KafkaRequest) -> Bool {
        // Called outside the lock: the predicate is test code and may call this object.
        guard request.api == api, matches(request) else { return false }
        return state.withLock { state in
            switch state {
            case .waiting(0):
                state = .held(request)
                return true
            case .waiting(let passing):
                state = .waiting(passing: passing - 1)
                return false
            case .held, .released, .answered, .over: return false
            }
        }
    }

    var isWaiting: Bool { state.withLock { if case .waiting = $0 { true } else { false } } }

    func answer(_ response: KafkaResponse) { state.withLock { $0 = .answered(response) } }

    /// A request that has been answered stays answered.
    func end(_ reason: String) {
        state.withLock { state in
            if case .answered = state { return }
            state = .over(reason)
        }
    }
}
