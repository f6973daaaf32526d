// Parsers, kept from one answer to the next.

internal import JSON
internal import Synchronization

/// A parser with its buffers costs half as much to make as an answer to give.
final class Parsers: Sendable {
    /// Unchecked: who has taken one is the only one that has it.
    final class Parser: @unchecked Sendable {
        var json = JSONDocument(limits: PublishedRecord.limits)
    }

    private let free = Mutex<[Parser]>([])

    func take() -> Parser { free.withLock { $0.popLast() } ?? Parser() }
    /// As many come to be as there are threads of the server.
    func giveBack(_ parser: Parser) { free.withLock { $0.append(parser) } }
}
