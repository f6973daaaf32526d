// The contract between the server and what answers.

import Synchronization

/// Answers requests. Both methods are called on the server's few threads, several at once, and must not block.
public protocol HTTPHandler: Sendable {
    /// Asked when the head is there and before the body is read. An answer here is final; nil goes on to the body, whose
    /// size is judged only then: a request to a wrong path is a 404, however large it is.
    func earlyAnswer(to head: HTTPRequest) -> HTTPResponse?

    /// Asked when the body is there too. The answer goes to `responder`, now or later, from any thread.
    func handle(_ request: HTTPRequest, _ responder: Responder)
}

/// The way back for one request. Works once; a responder that is dropped without an answer answers 500, because a client
/// that waits for ever is worse than one that knows.
public final class Responder: Sendable {
    private let connection: Connection
    private let isUsed = Atomic(false)

    init(_ connection: Connection) {
        self.connection = connection
    }

    deinit {
        if !isUsed.load(ordering: .acquiring) { connection.answerDropped() }
    }

    /// false: somebody else was first (another answer, or the end of the server). Never blocks.
    @discardableResult
    public func respond(_ response: HTTPResponse) -> Bool {
        guard !isUsed.exchange(true, ordering: .acquiringAndReleasing) else { return false }
        return connection.answer(response)
    }

    /// Closes the connection without an answer: for servers that play one in trouble. false: somebody else was first.
    @discardableResult
    public func hangUp() -> Bool {
        guard !isUsed.exchange(true, ordering: .acquiringAndReleasing) else { return false }
        return connection.hangUp()
    }
}
