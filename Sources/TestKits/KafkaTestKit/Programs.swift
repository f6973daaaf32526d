// Programs that run to their end, and the programs of this package.

import Glibc
public import Platform

/// The output of a program and how it ended.
public struct ProgramResult: Sendable {
    public let ending: ProcessEnding
    public let standardOutput: String
    public let standardError: String

    /// Both outputs, for callers that need not tell them apart.
    public var words: String { standardOutput + standardError }

    /// The exit code; for a killed program 128 plus the signal, as in shells.
    public var code: Int32 {
        switch ending {
        case .exited(let code): code
        case .killed(let signal): 128 + signal
        }
    }
}

/// Runs a program to its end. Kills it and throws `NotInTime` if that takes longer than `timeout`.
public func run(
    _ program: String, _ arguments: [String] = [], environment: ProcessEnvironment = .inherited(),
    workingDirectory: String? = nil, stdin: String = "", timeout: Duration = patience * 3
) async throws -> ProgramResult {
    let child = try ChildProcess(
        program, arguments, environment: environment, workingDirectory: workingDirectory, input: stdin)
    let ending = try await child.wait(within: timeout)
    return ProgramResult(
        ending: ending, standardOutput: child.standardOutput, standardError: child.standardError)
}

/// The path of an executable of this package, built next to the running tests.
public func productPath(_ name: String) throws(SystemFailure) -> String {
    // The longest path in Linux.
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
