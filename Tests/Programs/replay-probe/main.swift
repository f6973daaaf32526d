// Runs a ledger over generated input of one partition, and prints what its readers see: key, value, timestamp and headers of
// every output. Nothing of that may depend on how the work is divided into cycles.
//
// replay-probe <commit interval in ms> <cache bytes> <records of a poll>

import Ledger
import Log
import LogTestKit
import MemoryLog
import Runtime
import WorkerTestKit

/// Most records that a poll returns.
struct SmallPolls: LogFaults {
    let limit: Int

    func fault(at step: LogStep, of identity: String) -> InjectedFault? {
        step == .poll ? InjectedFault(.slow, limit) : nil
    }
}

let arguments = CommandLine.arguments.dropFirst().compactMap { Int($0) }
guard arguments.count == 3 else { fatalError("three numbers are needed") }
let simulation = try WorkerSimulation(
    Ledger(partitions: 1), processes: 1, faults: SmallPolls(limit: arguments[2]))
simulation.commitInterval = .milliseconds(arguments[0])
simulation.cacheBytes = arguments[1]

var dice = SplitMix64(seed: 7)
var timestamp: Int64 = 1_700_000_000_000
for _ in 0..<3000 {
    let key = Array("key-\(dice.next() % 40)".utf8)
    let number = Int(dice.next() % 500) + 1
    let words = ["add", "twice", "wake", "wake", "sleep", "toggle", "add", "add", "add", "add"]
    var text = "\(words[Int(dice.next() % 10)]) \(number)"
    // Rarely enough that the breaker does not stop it.
    if dice.next() % 50 == 0 { text = number % 2 == 0 ? "poison" : "nonsense" }
    timestamp += Int64(dice.next() % 20)
    try simulation.feed(
        partition: 0, key: key, value: Array(text.utf8),
        headers: [RecordHeader("schema", "word/1")], timestamp: timestamp)
}
simulation.start(simulation.processes[0])
guard try simulation.runToEnd() else { fatalError("no progress: \(simulation.processes[0].troubles)") }
let definition = simulation.processor.definition
for topic in [definition.outputs[0].topic, definition.deadLetters] {
    for seen in try simulation.read(topic) {
        let headers = seen.headers.map { "\($0.name)=\(String(decoding: $0.value ?? [], as: UTF8.self))" }
        print(topic, seen.timestamp, seen.keyText, seen.valueText, headers.joined(separator: ","))
    }
}
