import Foundation
import Testing

/// Runs the built program as its users do.
struct ProgramBinary {
    struct Outcome {
        let code: Int32
        let wasKilled: Bool
        let data: String
        let messages: String
    }

    /// Far above the milliseconds these commands take; a hanging one is killed rather than waited for.
    private static let limit: TimeInterval = 30

    /// Next to the program that runs the tests.
    private static let url = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath()
        .deletingLastPathComponent().appendingPathComponent("perennial")

    /// Starts in an empty directory, so that no settings file lies there.
    static func run(
        _ arguments: [String], environment: [String: String] = [:], closesOutput: Bool = false,
        settingsFile: String? = nil
    ) throws -> Outcome {
        let directory = FileManager.default.temporaryDirectory.appendingPathComponent("roles-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: directory) }
        if let settingsFile {
            try settingsFile.write(
                to: directory.appendingPathComponent("perennial.conf"), atomically: true, encoding: .utf8)
        }
        // Files, not pipes: nothing here can block on a full one.
        let data = directory.appendingPathComponent("data")
        let messages = directory.appendingPathComponent("messages")
        for url in [data, messages] { _ = FileManager.default.createFile(atPath: url.path, contents: nil) }
        let process = Process()
        process.executableURL = url
        process.arguments = arguments
        process.environment = environment
        process.currentDirectoryURL = directory
        process.standardInput = FileHandle.nullDevice
        process.standardError = try FileHandle(forWritingTo: messages)
        if closesOutput {
            let pipe = Pipe()
            process.standardOutput = pipe.fileHandleForWriting
            try pipe.fileHandleForReading.close()
        } else {
            process.standardOutput = try FileHandle(forWritingTo: data)
        }
        try process.run()
        let watchdog = DispatchWorkItem { process.terminate() }
        DispatchQueue.global().asyncAfter(deadline: .now() + limit, execute: watchdog)
        process.waitUntilExit()
        watchdog.cancel()
        return Outcome(
            code: process.terminationStatus, wasKilled: process.terminationReason == .uncaughtSignal,
            data: try String(contentsOf: data, encoding: .utf8),
            messages: try String(contentsOf: messages, encoding: .utf8))
    }
}
