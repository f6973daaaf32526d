// The same loops, written with the Swift layer.

import CLoops
import Kafka
import Log
import Platform

/// The settings of the C loop, so that only the wrapping differs.
private func producerOptions(_ bootstrap: String) -> Producer.Configuration {
    var options = Producer.Configuration(clientID: "bench", properties: ClientProperties(bootstrapServers: bootstrap))
    options.lingerMilliseconds = 5
    return options
}

func produce(_ bootstrap: String, _ name: String, partitions: Int32, records: Int64, valueBytes: Int) throws -> Int64 {
    var delivered: Int64 = 0
    var failed: Int64 = 0
    var lastOffset: Int64 = -1
    let producer = try Producer(producerOptions(bootstrap)) { report in
        if report.failure != nil {
            failed += 1
        } else {
            delivered += 1
            lastOffset = report.offset
        }
    }
    let topic = try producer.topic(name)
    _ = try producer.partitionCounts(by: Deadline(after: .seconds(10)))
    let value = [UInt8](repeating: UInt8(ascii: "v"), count: valueBytes)
    let key = Array("2000000123456789".utf8)
    let start = bench_cpu_microseconds()
    for n in 0..<records {
        while true {
            do throws(KafkaFault) {
                try producer.send(
                    to: topic, partition: Int32(truncatingIfNeeded: n % Int64(partitions)), key: key.span,
                    value: value.span,
                    timestamp: 1_771_000_000_000 + n, token: UInt(n))
                break
            } catch {
                if error.code != .queueFull { throw error }
                producer.poll(.milliseconds(10))
            }
        }
        if n % 100 == 0 { producer.poll() }
    }
    try producer.flush(by: Deadline(after: .seconds(60)))
    let spent = bench_cpu_microseconds() - start
    producer.close(by: Deadline(after: .seconds(10)))
    return delivered == records && failed == 0 && lastOffset >= 0 ? spent : -1
}

func consume(_ bootstrap: String, _ name: String, partitions: Int32, records: Int64) throws -> Int64 {
    var options = Consumer.Configuration(
        clientID: "bench", groupID: "bench-swift", properties: ClientProperties(bootstrapServers: bootstrap))
    options.queuedRecords = 100_000
    options.queuedKilobytes = 64 * 1024
    let consumer = try Consumer(options)
    var starts: [TopicPartition: NextOffset] = [:]
    for partition in 0..<partitions { starts[TopicPartition(name, partition)] = NextOffset(0) }
    var sum: UInt64 = 0
    func look(_ record: borrowing ConsumedRecord) {
        if let value = record.value, let key = record.key {
            sum &+= UInt64(value[value.count - 1]) &+ UInt64(key.count)
        }
    }
    let start = bench_cpu_microseconds()
    try consumer.assign(starts)
    var seen: Int64 = 0
    var idle = 0
    while seen < records && idle < 100 {
        guard let first = try consumer.poll(.milliseconds(100)) else {
            idle += 1
            continue
        }
        idle = 0
        look(first)
        seen += 1
        while let record = try consumer.poll() {
            seen += 1
            look(record)
        }
    }
    let spent = bench_cpu_microseconds() - start
    let end = consumer.positions.values.reduce(0) { $0 + $1.value }
    consumer.close(by: Deadline(after: .seconds(10)))
    return seen == records && end == records && sum > 0 ? spent : -1
}
