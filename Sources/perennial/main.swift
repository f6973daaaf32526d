import Glibc
import Platform
import Roles

// Before anything can start a thread: threads inherit the mask, and one of them waits for signals.
Signals.blockAll()

// Every command so far is a tool, and gives up what it is doing.
Signals.endProcess(with: ExitCode.gaveUp.rawValue)

let code = Program.standard.run(
    Array(CommandLine.arguments.dropFirst()), environment: environmentVariables(), output: .standard)
exit(code.rawValue)
