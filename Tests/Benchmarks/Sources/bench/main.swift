// Times the layer against the same loop in C, one process a run, the two sides alternating.

import KafkaTestKit
import Platform

Signals.holdBack()
let arguments = Array(CommandLine.arguments.dropFirst())
if arguments.first == "run" {
    runOne(Array(arguments.dropFirst()))
} else {
    let isMet = try await runAll(arguments)
    exitProcess(isMet ? 0 : 1)
}
