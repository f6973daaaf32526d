import CommandLine
import Platform
import Roles

// Must come before the first thread: threads inherit the signal mask, and one of them waits for signals.
Signals.holdBack()

keepMemoryToOneself()
let arguments = Array(CommandLine.arguments.dropFirst())
// On a signal a service drains. A tool stops at once.
if Program.standard.takesSignals(arguments) {
    keepFilesToOneself()
} else {
    Signals.endProcessAtFirst(
        with: .gaveUp,
        saying: "perennial: interrupted. Kafka may still complete earlier requests; it is safe to run it again")
}

let standard = StandardOutput()
let code = Program.standard.run(arguments, environment: environmentVariables(), output: standard.output)
endProcess(standard.exitCode(after: code))
