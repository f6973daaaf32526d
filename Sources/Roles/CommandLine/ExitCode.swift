// What a command tells its caller.

public enum ExitCode: Int32, Sendable {
    case done = 0
    /// The question was understood, and the answer is no.
    case no = 1
    case wrongUsage = 2
    case gaveUp = 3
}
