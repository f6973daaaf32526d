// The contract between the server and the code that answers requests.

import Synchronization

/// Answers requests. Both methods are called on the few threads of the server, several at once, and must not block.
public protocol HTTPHandler: Sendable {
    /// Called when the head is complete, before the body is read. A returned answer is final. After nil the server
    /// reads the body and only then checks its size, so a request to a wrong path gets 404, however large it is.
    func earlyAnswer(to head: HTTPRequest) -> HTTPResponse?

    /// Called when the body is complete too. The answer goes to `responder`, now or later, from any thread.
    func handle(_ request: HTTPRequest, _ responder: Responder)
}

/// Sends the answer of one request, once. A responder that is dropped without an answer answers 500, because otherwise
/// the client would wait for ever.
public final class Responder: Sendable {
    private let connection: Connection
    private let isUsed = Atomic(false)

    init(_ connection: Connection) {
        self.connection = connection
    }

    deinit {
        if !isUsed.load(ordering: .acquiring) { connection.answerDropped() }
    }

    /// false: another answer, or the end of the server, came first. Never blocks.
    @discardableResult
    public func respond(_ response: HTTPResponse) -> Bool {
        guard !isUsed.exchange(true, ordering: .acquiringAndReleasing) else { return false }
        return connection.answer(response)
    }

    /// Closes the connection without an answer: for test servers that simulate trouble. false: another answer came
    /// first.
    @discardableResult
    public func hangUp() -> Bool {
        guard !isUsed.exchange(true, ordering: .acquiringAndReleasing) else { return false }
        return connection.hangUp()
    }
}
