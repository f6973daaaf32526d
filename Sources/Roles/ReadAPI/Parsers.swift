// JSON parsers, reused from one answer to the next.

internal import JSON
internal import Synchronization

/// Making a parser with its buffers takes half as long as giving an answer.
final class Parsers: Sendable {
    /// Unchecked: only the thread that has taken a parser uses it.
    final class Parser: @unchecked Sendable {
        var json = JSONDocument(limits: PublishedRecord.limits)
    }

    private let free = Mutex<[Parser]>([])

    func take() -> Parser { free.withLock { $0.popLast() } ?? Parser() }
    /// There are at most as many parsers as threads of the server.
    func giveBack(_ parser: Parser) { free.withLock { $0.append(parser) } }
}
