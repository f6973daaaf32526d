// One error type for failures of the operating system.

import Glibc

public struct SystemFailure: Error, Equatable, CustomStringConvertible {
    public let operation: String
    public let code: Int32

    public init(operation: String, code: Int32) {
        self.operation = operation
        self.code = code
    }

    /// The error of this thread's last system call.
    public static func last(_ operation: String) -> SystemFailure {
        SystemFailure(operation: operation, code: errno)
    }

    /// The system's own message, such as "No such file or directory".
    public var reason: String { String(cString: strerror(code)) }
    public var description: String { "\(operation): \(reason)" }
}
