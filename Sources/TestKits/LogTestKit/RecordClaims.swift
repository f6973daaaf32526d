// Promises about records, ends and positions.

import Log
import Platform

extension LogClaim {
    static let recordClaims: [LogClaim] = [
        LogClaim("gives the records of a partition in the order in which they were appended") { bench in
            let topic = try bench.topic("order", partitions: 2)
            for first in stride(from: 0, to: 300, by: 100) {
                for partition: Int32 in [0, 1] {
                    let texts = (first..<first + 100).map { "\(partition):\($0)" }
                    try bench.write(texts, to: topic, partition: partition)
                }
            }
            for partition: Int32 in [0, 1] {
                let seen = try bench.read(topic, partition: partition)
                try bench.expect(seen.map(\.text), is: (0..<300).map { "\(partition):\($0)" })
                try bench.expect(zip(seen, seen.dropFirst()).allSatisfy { $0.offset < $1.offset }, "offsets grow")
                try bench.expect(seen.allSatisfy { $0.partition == partition }, "a record is of its partition")
            }
        },
        LogClaim("gives keys, values, headers and timestamps back byte for byte, null and empty apart") { bench in
            let topic = try bench.topic("bytes")
            let shapes: [[UInt8]?] = [nil, [], [0], [0xff, 0, 0xfe], Array("ключ".utf8)]
            var wanted: [(key: [UInt8]?, value: [UInt8]?, headers: [RecordHeader])] = []
            for key in shapes {
                for value in shapes {
                    let headers = [
                        RecordHeader("null", nil), RecordHeader("empty", []), RecordHeader("twice", [1]),
                        RecordHeader("twice", value), RecordHeader("id", key),
                    ]
                    wanted.append((key, value, headers))
                    wanted.append((key, value, []))
                }
            }
            let outputs = OutputBatch()
            for (index, record) in wanted.enumerated() {
                outputs.append(
                    topic: 0, partition: 0, timestamp: Int64(1_700_000_000_000 + index), key: record.key,
                    value: record.value, headers: record.headers)
            }
            try bench.write(outputs, to: topic)
            let seen = try bench.read(topic)
            try bench.expect(seen.count, is: wanted.count)
            for (index, pair) in zip(seen, wanted).enumerated() {
                try bench.expect(pair.0.key, is: pair.1.key)
                try bench.expect(pair.0.value, is: pair.1.value)
                try bench.expect(pair.0.headers, is: pair.1.headers)
                try bench.expect(pair.0.timestamp, is: Int64(1_700_000_000_000 + index))
            }
        },
        LogClaim("finds the last header of a name, and none for another or for null") { bench in
            let topic = try bench.topic("headers")
            let outputs = OutputBatch()
            let headers = [
                RecordHeader("id", "first"), RecordHeader("id", "second"), RecordHeader("empty", []),
                RecordHeader("null", "was"), RecordHeader("null", nil),
            ]
            outputs.append(topic: 0, partition: 0, timestamp: 1, key: [1], value: [2], headers: headers)
            try bench.write(outputs, to: topic)
            let reader = try bench.reader(topic)
            defer { reader.close(by: bench.deadline) }
            try reader.read(from: [TopicPartition(topic, 0): NextOffset(0)])
            let batch = RecordBatch()
            try bench.expect(soon: "a record") {
                try reader.poll(into: batch, limit: 10, wait: bench.under.pollWait)
                return batch.count == 1
            }
            func find(_ name: StaticString) -> [UInt8]? {
                let record = batch[0]
                guard let found = record.header(name) else { return nil }
                return found.withUnsafeBytes { [UInt8]($0) }
            }
            try bench.expect(find("id"), is: Array("second".utf8))
            try bench.expect(find("empty"), is: [])
            try bench.expect(find("null"), is: nil)
            try bench.expect(find("other"), is: nil)
        },
        LogClaim("takes values of nine hundred kilobytes") { bench in
            let topic = try bench.topic("big")
            let value = (0..<900_000).map { UInt8(truncatingIfNeeded: $0 &* 31 >> 3) }
            let outputs = OutputBatch()
            outputs.append(topic: 0, partition: 0, timestamp: 1, key: [1], value: value)
            try bench.write(outputs, to: topic)
            try bench.expect(try bench.read(topic).first?.value == value, "the value is another")
        },
        LogClaim("lends records that stay readable until the next poll") { bench in
            let topic = try bench.topic("lent", isCompacted: true)
            let outputs = OutputBatch()
            for number: UInt8 in 0..<50 {
                outputs.append(topic: 0, partition: 0, timestamp: 1, key: [7], value: [number])
            }
            try bench.write(outputs, to: topic)
            let reader = try bench.reader(topic)
            defer { reader.close(by: bench.deadline) }
            try reader.read(from: [TopicPartition(topic, 0): NextOffset(0)])
            let batch = RecordBatch()
            try bench.expect(soon: "records") {
                try reader.poll(into: batch, limit: 10, wait: bench.under.pollWait)
                return !batch.isEmpty
            }
            let before = bench.copies(batch)
            try bench.write(outputs, to: topic)
            bench.under.compact?()
            try bench.expect(bench.copies(batch), is: before)
        },
        LogClaim("tells a writer the offset of each record, in its order") { bench in
            let topic = try bench.topic("offsets", partitions: 2)
            let outputs = OutputBatch()
            for number in 0..<20 {
                outputs.append(
                    topic: 0, partition: Int32(number % 2), timestamp: 1, key: nil, value: Array("\(number)".utf8))
            }
            try bench.write(["before"], to: topic)
            let offsets = try bench.write(outputs, to: topic)
            try bench.expect(offsets.count, is: 20)
            var seen: [String: Int64] = [:]
            for partition: Int32 in [0, 1] {
                for record in try bench.read(topic, partition: partition) { seen[record.text] = record.offset }
            }
            for number in 0..<20 { try bench.expect(seen["\(number)"], is: offsets[number]) }
        },
        LogClaim("finds the first record at or after a time, and the end when there is none") { bench in
            let topic = try bench.topic("times")
            let outputs = OutputBatch()
            for number in 0..<10 {
                outputs.append(
                    topic: 0, partition: 0, timestamp: Int64(1_000 + 100 * number), key: nil, value: [UInt8(number)])
            }
            let offsets = try bench.write(outputs, to: topic)
            let partition = TopicPartition(topic, 0)
            let reader = try bench.reader(topic)
            defer { reader.close(by: bench.deadline) }
            for (time, wanted) in [(0, offsets[0]), (1_000, offsets[0]), (1_001, offsets[1]), (1_900, offsets[9])] {
                let found = try reader.offsets(at: Int64(time), in: [partition], by: bench.deadline)
                try bench.expect(found[partition], is: NextOffset(wanted))
            }
            let behind = try reader.offsets(at: 1_901, in: [partition], by: bench.deadline)
            try bench.expect(behind[partition], is: try bench.end(.committed, topic))
        },
        LogClaim("refuses a position beyond everything as gone") { bench in
            let topic = try bench.topic("gone")
            try bench.write(["a"], to: topic)
            let reader = try bench.reader(topic)
            defer { reader.close(by: bench.deadline) }
            try reader.read(from: [TopicPartition(topic, 0): NextOffset(1_000)])
            let batch = RecordBatch()
            let deadline = bench.deadline
            let fault = try bench.fault {
                while !deadline.hasPassed { try reader.poll(into: batch, limit: 10, wait: bench.under.pollWait) }
            }
            try bench.expect(fault.cause, is: .positionGone)
        },
        LogClaim("knows which topics there are, and leaves one that is there as it is") { bench in
            let plain = try bench.topic("plain", partitions: 3)
            let compacted = try bench.topic("compacted", partitions: 2, isCompacted: true)
            try bench.log.create([NewTopic(plain, partitions: 5, isCompacted: true)], by: bench.deadline)
            let found = try bench.log.topics([plain, compacted, bench.name("missing")], by: bench.deadline)
            try bench.expect(
                found,
                is: [
                    plain: TopicShape(partitions: 3, isCompacted: false),
                    // A day is the default of Kafka's brokers.
                    compacted: TopicShape(partitions: 2, isCompacted: true, deletionsKept: .seconds(86_400)),
                ])
        },
        LogClaim("appends nothing to a topic that is not there") { bench in
            let missing = bench.name("missing")
            let writer = try bench.log.openWriter(WriterOptions(name: bench.name("writer"), topics: [missing]))
            defer { writer.close(by: bench.deadline) }
            // Kafka's client waits for a topic that may be being created, and may know no more when the timeout is
            // over.
            let fault = try bench.fault {
                _ = try writer.append(bench.outputs(["a"]), by: Deadline(after: .seconds(1)))
            }
            try bench.expect([.unknownTopic, .timedOut].contains(fault.cause), "\(fault)")
            let found = try bench.log.topics([missing], by: bench.deadline)
            try bench.expect(found.isEmpty, "\(missing) was made by the way")
        },
        LogClaim("keeps the last record of each key of a compacted topic", needs: [.compactsOnDemand]) { bench in
            let topic = try bench.topic("compacted", isCompacted: true)
            let outputs = OutputBatch()
            for number in 0..<30 {
                outputs.append(
                    topic: 0, partition: 0, timestamp: 1, key: [UInt8(number % 3)], value: [UInt8(number)])
            }
            outputs.append(topic: 0, partition: 0, timestamp: 1, key: [1], value: nil)
            let offsets = try bench.write(outputs, to: topic)
            bench.under.compact?()
            let seen = try bench.read(topic)
            try bench.expect(seen.map(\.offset), is: [offsets[27], offsets[29], offsets[30]])
            try bench.expect(seen.map(\.value), is: [[27], [29], nil])
            try bench.expect(try bench.end(.all, topic), is: NextOffset(after: offsets[30]))
        },
    ]
}
