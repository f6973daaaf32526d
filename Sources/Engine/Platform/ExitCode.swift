// How a process exits.

import Glibc

/// The exit code, which scripts and supervisors read.
public enum ExitCode: Int32, Sendable {
    case done = 0
    /// The command worked, and its answer is no.
    case no = 1
    /// Wrong usage or configuration.
    case wrongUsage = 2
    /// The process gave up at run time.
    case gaveUp = 3
}

/// Exits without the exit handlers of C libraries: their threads may still be running, and a crash in a handler would
/// replace the exit code.
public func endProcess(_ code: ExitCode) -> Never { _exit(code.rawValue) }
