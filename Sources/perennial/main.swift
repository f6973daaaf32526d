import Platform
import Roles

// Before anything can start a thread: threads inherit the mask, and one of them waits for signals.
Signals.holdBack()

// Every command so far is a tool, and gives up what it is doing.
Signals.endProcessAtFirst(
    with: .gaveUp,
    saying: "perennial: interrupted. What Kafka was asked for before may still be done; running it again is safe")

let standard = StandardOutput()
let code = Program.standard.run(
    Array(CommandLine.arguments.dropFirst()), environment: environmentVariables(), output: standard.output)
endProcess(standard.exitCode(after: code))
