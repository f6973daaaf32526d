// The output streams of the process, and whether the data could be written.

package import Platform
import Synchronization

/// Remembers that data was lost: a report that could not be written to a full disk is no success.
package final class StandardOutput: Sendable {
    private let hasLostData = Mutex(false)

    package init() {}

    package var output: Output { Output(data: write, message: printMessage) }

    /// The exit code of the process, if the command ended with `code`.
    package func exitCode(after code: ExitCode) -> ExitCode { hasLostData.withLock { $0 } ? .gaveUp : code }

    private func write(_ text: String) {
        guard let failure = printData(text) else { return }
        let isFirst = hasLostData.withLock { hasLost in
            defer { hasLost = true }
            return !hasLost
        }
        // Later losses have the same reason.
        if isFirst { printMessage("perennial: cannot write to standard output: \(failure.reason)") }
    }
}
