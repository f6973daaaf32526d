// How a process ends.

import Glibc

/// What a process tells its caller; scripts and supervisors read it.
public enum ExitCode: Int32, Sendable {
    case done = 0
    /// The question was understood, and the answer is no.
    case no = 1
    /// Wrong usage or configuration.
    case wrongUsage = 2
    /// Gave up at run time.
    case gaveUp = 3
}

/// Ends the process without running what C libraries have registered for the end: their threads may still be running, and
/// a crash in there would replace the exit code.
public func endProcess(_ code: ExitCode) -> Never { _exit(code.rawValue) }
