// Worker processes that copy two co-partitioned inputs into one output, and the oracle that judges the output.

import Kafka
import KafkaTestKit
import Log
import Platform
import Synchronization
import Testing

/// A group of `transform-worker` processes on topics of its own.
struct WorkerGroup: Sendable {
    let broker: Broker
    let inputs: [String]
    let output: String
    let partitions: Int32
    let group: String

    static func make(_ label: String, _ broker: Broker, partitions: Int32, replicationFactor: Int32 = 1) async throws
        -> WorkerGroup
    {
        func topic(_ name: String) async throws -> String {
            try await broker.makeTopic(
                "\(label)-\(name)", partitions: partitions, replicationFactor: replicationFactor,
                settings: replicationFactor == 3 ? [("min.insync.replicas", "2")] : [])
        }
        let output = try await topic("out")
        return WorkerGroup(
            broker: broker, inputs: [try await topic("a"), try await topic("b")], output: output,
            partitions: partitions, group: "\(output).worker")
    }

    func startWorker(slot: Int, isStatic: Bool = false) throws -> ChildProcess {
        try ChildProcess(
            productPath("transform-worker"),
            [
                "--bootstrap", broker.bootstrap, "--group", group, "--slot", "\(slot)", "--input",
                inputs.joined(separator: ","), "--output", output, "--instance", isStatic ? "yes" : "no",
            ])
    }

    /// The partitions a worker was last assigned; empty if it has none.
    static func assignment(of worker: ChildProcess) -> [String] {
        let last = worker.standardOutput.split(separator: "\n").last {
            $0.hasPrefix("assigned") || $0 == "revoked" || $0 == "lost"
        }
        guard let last, last.hasPrefix("assigned") else { return [] }
        return last.split(separator: " ").dropFirst().map(String.init)
    }

    /// Waits until these workers share all partitions of both inputs, and checks that equal numbers have one owner.
    func waitUntilShared(by workers: [ChildProcess]) async throws {
        try await waitUntil("\(workers.count) workers share the partitions", within: patience) {
            let owned = workers.map { Self.assignment(of: $0) }
            return owned.allSatisfy { !$0.isEmpty } && owned.joined().count == Int(partitions) * inputs.count
        }
    }

    /// In every assignment that a worker ever got, both inputs have equal partition numbers.
    func expectCoPartitioned(_ workers: [ChildProcess]) {
        for worker in workers {
            for line in worker.standardOutput.split(separator: "\n") where line.hasPrefix("assigned") {
                let given = line.split(separator: " ").dropFirst()
                let numbers = inputs.map { input in
                    Set(given.filter { $0.hasPrefix("\(input)[") }.map { $0.dropFirst(input.utf8.count) })
                }
                #expect(numbers[0] == numbers[1], "\(line)")
            }
        }
    }

    /// The oracle knows only what was written to the inputs: `count` numbered records in each partition of both. Each must be in
    /// the output once, in the partition of the same number, in order.
    func expectExactCopy(count: Int) async throws {
        let wanted = count * Int(partitions) * inputs.count
        var copies = try await broker.read(output)
        // The open transaction of a killed worker hides later committed records from readers until it times out.
        let deadline = Deadline(after: patience * 2)
        while copies.count < wanted, !deadline.hasPassed {
            try await Task.sleep(for: .seconds(1))
            copies = try await broker.read(output)
        }
        #expect(copies.count == wanted)
        for input in inputs {
            for partition in 0..<partitions {
                let prefix = "\(input):\(partition):"
                let mine = copies.filter { $0.header("source")?.hasPrefix(prefix) == true }
                #expect(mine.allSatisfy { $0.partition == partition })
                #expect(mine.map(\.text) == (0..<count).map(String.init), "\(prefix) lost, repeated or out of order")
            }
        }
    }

    /// - Parameter workers: workers whose last log lines show why, if the condition is not reached.
    func waitUntilCopied(count: Int, by workers: [ChildProcess]) async throws {
        let wanted = Int64(count)
        let seen = Mutex("")
        do {
            try await waitUntil("every input is processed", within: patience * 4) {
                try await blocking {
                    let admin = try Admin(clientID: "watch", properties: broker.properties)
                    defer { admin.close(by: Deadline(after: patience)) }
                    // A broker may be down for a moment, so it is asked again.
                    guard let offsets = try? admin.offsets(ofGroup: group, by: Deadline(after: .seconds(5))) else {
                        return false
                    }
                    seen.withLock { $0 = "\(offsets)" }
                    return offsets.count == Int(partitions) * inputs.count
                        && offsets.values.allSatisfy { $0.value >= wanted }
                }
            }
        } catch {
            print("the group is at \(seen.withLock { $0 })")
            for worker in workers { print(worker.standardError.suffix(5000), worker.standardOutput.suffix(3000)) }
            throw error
        }
    }

    /// Writes numbers into all partitions of both inputs, a few at a time, until each has `count`.
    func feed(count: Int, chunk: Int = 50, every interval: Duration = .milliseconds(50)) async throws {
        try await blocking {
            var failure: KafkaCode?
            // A record may take minutes, because brokers die and come back meanwhile.
            var options = Producer.Configuration(clientID: "feeder", properties: broker.properties)
            options.deliveryTimeout = patience * 3
            let producer = try Producer(options) { failure = $0.failure ?? failure }
            let targets = try inputs.map { try producer.topic($0) }
            for number in 0..<count {
                let value = Array(String(number).utf8)
                for target in targets {
                    for partition in 0..<partitions {
                        try producer.send(to: target, partition: partition, key: nil, value: value.span)
                    }
                }
                if number % chunk == chunk - 1 { pause(for: interval); producer.poll() }
            }
            try producer.flush(by: Deadline(after: patience * 4))
            producer.close(by: Deadline(after: patience))
            if let failure { throw KafkaFault(.stopProcess, failure, operation: "feed the workers") }
        }
    }
}
