// `bench [ROW …]`: measures the cost of the layers, each against a limit of the same run. Exit code 1: a limit is not met.

import KafkaTestKit
import Platform

Signals.holdBack()
let arguments = Array(CommandLine.arguments.dropFirst())
if arguments.first == "run" {
    runOne(Array(arguments.dropFirst()))
} else {
    let chosen = choose(arguments)
    var report = Report()
    for row in chosen {
        printData("\n\(row.name): \(row.summary)")
        do {
            try await row.measure(&report)
        } catch {
            report.fail("\(row.name) could not be measured: \(error)")
        }
    }
    exitProcess(report.isAllMet ? 0 : 1)
}
