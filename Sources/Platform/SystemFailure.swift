// One error type for what the operating system refuses.

import Glibc

public struct SystemFailure: Error, Equatable, CustomStringConvertible {
    public let operation: String
    public let code: Int32

    public init(operation: String, code: Int32) {
        self.operation = operation
        self.code = code
    }

    /// What the last system call of this thread said.
    public static func last(_ operation: String) -> SystemFailure {
        SystemFailure(operation: operation, code: errno)
    }

    /// The system's own words, such as "No such file or directory".
    public var reason: String { String(cString: strerror(code)) }
    public var description: String { "\(operation): \(reason)" }
}
