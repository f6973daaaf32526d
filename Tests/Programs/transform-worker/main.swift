// A consume-transform-produce worker that the tests start, kill and suspend: the Kafka layer's own commit cycle, without anything
// around it. It copies every record of its inputs to the same partition of the output, in transactions.

import Platform

Signals.holdBack()
guard let options = WorkerOptions(arguments: Array(CommandLine.arguments.dropFirst())) else {
    printMessage("usage: transform-worker --bootstrap S --group G --slot N --input A,B --output T [--instance yes]")
    endProcess(.wrongUsage)
}
endProcess(runUntilSignal(options))
