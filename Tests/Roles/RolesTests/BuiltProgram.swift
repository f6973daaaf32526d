import KafkaTestKit

/// Runs the built program as its users do, in an empty directory, so that there is no settings file.
func perennial(
    _ arguments: [String], environment: [String: String] = [:], closesOutput: Bool = false
) async throws -> ProgramResult {
    let directory = try ScratchDirectory("perennial-roles")
    let program = try productPath("perennial")
    guard closesOutput else {
        return try await run(
            program, arguments, environment: .only(environment), workingDirectory: directory.path)
    }
    // A pipe without a reader from the first byte on. It is first opened for reading and writing, because opening a FIFO waits
    // for the other end.
    let script = #"mkfifo pipe && exec 3<>pipe 4>pipe 3<&- && exec "$0" "$@" >&4 4>&-"#
    return try await run(
        "/bin/sh", ["-c", script, program] + arguments,
        environment: .only(environment.merging(["PATH": "/usr/bin:/bin"]) { own, _ in own }),
        workingDirectory: directory.path)
}
