// The streams of the process, and whether its data arrived.

public import Platform
import Synchronization

/// Remembers that data was lost: a report that a full disk swallowed is no success.
public final class StandardOutput: Sendable {
    private let hasLostData = Mutex(false)

    public init() {}

    public var output: Output { Output(data: write, message: printMessage) }

    /// How the process ends after a command that would end with `code`.
    public func exitCode(after code: ExitCode) -> ExitCode { hasLostData.withLock { $0 } ? .gaveUp : code }

    private func write(_ text: String) {
        guard let failure = printData(text) else { return }
        let isFirst = hasLostData.withLock { hasLost in
            defer { hasLost = true }
            return !hasLost
        }
        // What is lost after it is lost for the same reason.
        if isFirst { printMessage("perennial: standard output cannot be written: \(failure.reason)") }
    }
}
