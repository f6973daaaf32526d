import Platform
import Roles

// Before anything can start a thread: threads inherit the mask, and one of them waits for signals.
Signals.holdBack()

keepMemoryToOneself()
let arguments = Array(CommandLine.arguments.dropFirst())
// A service drains at a signal. A tool gives up what it is doing, wherever it is.
if Program.standard.takesSignals(arguments) {
    keepFilesToOneself()
} else {
    Signals.endProcessAtFirst(
        with: .gaveUp,
        saying: "perennial: interrupted. What Kafka was asked for before may still be done; running it again is safe")
}

let standard = StandardOutput()
let code = Program.standard.run(arguments, environment: environmentVariables(), output: standard.output)
endProcess(standard.exitCode(after: code))
