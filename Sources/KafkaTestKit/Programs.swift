// Programs that are run to their end, and the programs of the package.

import Glibc
public import Platform

/// What a program said and how it ended.
public struct ProgramResult: Sendable {
    public let ending: ProcessEnding
    public let standardOutput: String
    public let standardError: String

    /// What it wrote on either way, when it does not matter which.
    public var words: String { standardOutput + standardError }

    /// The exit code; for a killed program 128 plus the signal, as shells say it.
    public var code: Int32 {
        switch ending {
        case .exited(let code): code
        case .killed(let signal): 128 + signal
        }
    }
}

/// Runs a program to its end. It is killed and `NotInTime` is thrown when that takes longer than `timeout`.
public func run(
    _ program: String, _ arguments: [String] = [], environment: ProcessEnvironment = .inherited(),
    workingDirectory: String? = nil, stdin: String = "", timeout: Duration = patience
) async throws -> ProgramResult {
    let child = try ChildProcess(
        program, arguments, environment: environment, workingDirectory: workingDirectory, input: stdin)
    let ending = try await child.wait(within: timeout)
    return ProgramResult(
        ending: ending, standardOutput: child.standardOutput, standardError: child.standardError)
}

/// The path of an executable of the package, built next to the tests that run.
public func productPath(_ name: String) throws(SystemFailure) -> String {
    // The longest path that Linux knows.
    var buffer = [CChar](repeating: 0, count: Int(PATH_MAX))
    let count = readlink("/proc/self/exe", &buffer, buffer.count)
    guard count > 0 else { throw .last("find the running program") }
    let running = String(decoding: buffer.prefix(count).map { UInt8(bitPattern: $0) }, as: UTF8.self)
    let folder = running.prefix(upTo: running.lastIndex(of: "/") ?? running.endIndex)
    let path = "\(folder)/\(name)"
    guard access(path, X_OK) == 0 else {
        throw .last("find the program \(path) (build it first: swift build --product \(name))")
    }
    return path
}
