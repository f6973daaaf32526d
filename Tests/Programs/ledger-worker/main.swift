// A worker process that the tests start, kill and suspend: the runtime as in the product, over a real Kafka and RocksDB, with a
// processor whose outputs can be predicted.

import Platform

Signals.holdBack()
do {
    endProcess(try runLedger(try LedgerOptions(Array(CommandLine.arguments.dropFirst()))))
} catch {
    printMessage("ledger-worker: \(error)")
    endProcess(.wrongUsage)
}
