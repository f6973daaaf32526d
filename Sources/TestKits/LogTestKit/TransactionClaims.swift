// Promises about transactions and positions.

import Log
import Platform

extension LogClaim {
    static let transactionClaims: [LogClaim] = [
        LogClaim("shows nothing of an open transaction, nor of what was appended behind it") { bench in
            let topic = try bench.topic("open")
            try bench.write(["before"], to: topic)
            let member = try bench.writer(to: topic)
            defer { member.close() }
            try member.session.append(bench.outputs(["a", "b"]))
            // An append may still be in flight when the call returns.
            try bench.expect(soon: "both") { try bench.end(.all, topic).value == 3 }
            try bench.write(["behind"], to: topic)
            try bench.expect(try bench.read(topic).map(\.text), is: ["before"])
            try member.session.commit([:])
            try bench.expect(try bench.readEnded(topic).map(\.text), is: ["before", "a", "b", "behind"])
        },
        LogClaim("shows nothing of an aborted transaction, ever") { bench in
            let topic = try bench.topic("aborted")
            let member = try bench.writer(to: topic)
            defer { member.close() }
            try member.session.append(bench.outputs(["a", "b"]))
            try member.session.abort()
            try member.session.append(bench.outputs(["c"]))
            try member.session.commit([:])
            try member.session.abort()
            try bench.expect(try bench.readEnded(topic).map(\.text), is: ["c"])
        },
        LogClaim("appends the outputs of one transaction to all of its partitions together") { bench in
            let topic = try bench.topic("together", partitions: 3)
            let member = try bench.writer(to: topic)
            defer { member.close() }
            for partition: Int32 in 0..<3 {
                try member.session.append(bench.outputs(["\(partition)"], partition: partition))
            }
            for partition: Int32 in 0..<3 { try bench.expect(try bench.read(topic, partition: partition), is: []) }
            try member.session.commit([:])
            for partition: Int32 in 0..<3 {
                try bench.expect(try bench.readEnded(topic, partition: partition).map(\.text), is: ["\(partition)"])
            }
        },
        LogClaim("commits positions with the outputs, and neither after an abort") { bench in
            let input = try bench.topic("input")
            let output = try bench.topic("output")
            let partition = TopicPartition(input, 0)
            try bench.write(["a", "b", "c"], to: input)
            let group = bench.name("group")
            let member = try bench.member(group, bench.name("m"), inputs: [input], outputs: [output])
            defer { member.close() }
            try member.see(3)
            try member.session.append(bench.outputs(["dropped"]))
            try member.session.abort()
            try bench.expect(try bench.committed(member, [partition]), is: [:])
            try member.session.append(bench.outputs(["kept"]))
            try member.session.commit([partition: NextOffset(2)])
            try bench.expect(try bench.committed(member, [partition]), is: [partition: NextOffset(2)])
            try bench.expect(try bench.readEnded(output).map(\.text), is: ["kept"])
            // A timer may write nothing, and yet the position may move.
            try member.session.commit([partition: NextOffset(3)])
            try bench.expect(try bench.committed(member, [partition]), is: [partition: NextOffset(3)])
        },
        LogClaim("lets its owner seek back after an abort, and gives the same records again") { bench in
            let input = try bench.topic("input", partitions: 2)
            try bench.write(["a", "b", "c"], to: input, partition: 0)
            try bench.write(["d"], to: input, partition: 1)
            let member = try bench.member(bench.name("group"), bench.name("m"), inputs: [input])
            defer { member.close() }
            try member.see(4)
            let before = member.seen.filter { $0.partition == 0 }
            try member.session.abort()
            member.forgetSeen()
            try member.session.seek(to: [
                TopicPartition(input, 0): NextOffset(0), TopicPartition("not-owned", 0): NextOffset(0),
            ])
            try member.see(3)
            try bench.expect(member.seen, is: before)
        },
        LogClaim("gives a position beyond what takes an offset without being a record") { bench in
            let topic = try bench.topic("markers")
            let member = try bench.writer(to: topic)
            defer { member.close() }
            for text in ["a", "b"] {
                try member.session.append(bench.outputs([text]))
                try member.session.commit([:])
            }
            try member.session.append(bench.outputs(["aborted"]))
            try member.session.abort()
            let partition = TopicPartition(topic, 0)
            try bench.waitForEnd(of: topic)
            let end = try bench.end(.committed, topic)
            let reader = try bench.reader(topic)
            defer { reader.close(by: bench.deadline) }
            try reader.read(from: [partition: NextOffset(0)])
            let seen = try bench.readOn(reader, partition)
            try bench.expect(seen.map(\.text), is: ["a", "b"])
            try bench.expect(reader.position(of: partition), is: end)
            let inGroup = try bench.member(bench.name("group"), bench.name("m"), inputs: [topic])
            defer { inGroup.close() }
            try bench.expect(soon: "position \(end)") {
                try inGroup.step()
                return inGroup.session.position(of: partition) == end
            }
            try bench.expect(inGroup.texts, is: ["a", "b"])
        },
        LogClaim("counts an open transaction into the end of all, and not into the committed one") { bench in
            let topic = try bench.topic("ends")
            let offsets = try bench.write(["a"], to: topic)
            let first = NextOffset(after: offsets[0])
            let member = try bench.writer(to: topic)
            defer { member.close() }
            try member.session.append(bench.outputs(["b", "c"]))
            try bench.expect(soon: "both") { try bench.end(.all, topic) == NextOffset(first.value + 2) }
            try bench.expect(try bench.end(.committed, topic), is: first)
            try member.session.commit([:])
            try bench.waitForEnd(of: topic)
            try bench.expect(try bench.end(.committed, topic).value >= first.value + 2, "the committed end moved")
        },
        LogClaim("tells where a partition goes on behind the last record of a commit") { bench in
            let topic = try bench.topic("appended", partitions: 3)
            let member = try bench.writer(to: topic)
            defer { member.close() }
            try bench.expect(member.session.appendedEnd(topic: 0, partition: 0), is: nil)
            try member.session.append(bench.outputs(["a", "b"], partition: 0))
            try member.session.append(bench.outputs(["c"], partition: 2))
            try member.session.commit([:])
            for partition: Int32 in [0, 2] {
                let last = try bench.readEnded(topic, partition: partition).last?.offset
                try bench.expect(
                    member.session.appendedEnd(topic: 0, partition: partition),
                    is: last.map { NextOffset(after: $0) })
            }
            try bench.expect(member.session.appendedEnd(topic: 0, partition: 1), is: nil)
            try member.session.append(bench.outputs(["d"], partition: 1))
            try member.session.commit([:])
            try bench.expect(member.session.appendedEnd(topic: 0, partition: 0), is: nil)
            let last = try bench.readEnded(topic, partition: 1).last?.offset
            try bench.expect(
                member.session.appendedEnd(topic: 0, partition: 1), is: last.map { NextOffset(after: $0) })
        },
        LogClaim("fences an older session of the same identity, and ends what it left open") { bench in
            let topic = try bench.topic("fenced")
            let group = bench.name("group")
            let identity = bench.name("m")
            let input = try bench.topic("input")
            let old = try bench.member(group, identity, inputs: [input], outputs: [topic])
            defer { old.close() }
            try old.own(1)
            try old.session.append(bench.outputs(["of the old"]))
            try bench.expect(soon: "it is there") { try bench.end(.all, topic).value == 1 }
            let new = try bench.member(group, identity, inputs: [input], outputs: [topic])
            defer { new.close() }
            try new.session.append(bench.outputs(["of the new"]))
            try new.session.commit([:])
            let fault = try bench.fault {
                try old.session.append(bench.outputs(["late"]))
                try old.session.commit([TopicPartition(input, 0): NextOffset(0)])
            }
            try bench.expect(fault.remedy, is: .rebuild)
            try bench.expect(fault.cause, is: .fenced)
            try bench.expect(try bench.readEnded(topic).map(\.text), is: ["of the new"])
        },
        LogClaim("ends an open transaction of a session that is closed, without showing it") { bench in
            let topic = try bench.topic("closed")
            let member = try bench.writer(to: topic)
            try member.session.append(bench.outputs(["a"]))
            try bench.expect(soon: "it is there") { try bench.end(.all, topic).value == 1 }
            try bench.expect(member.close(), is: true)
            try bench.write(["b"], to: topic)
            try bench.waitForEnd(of: topic)
            try bench.expect(try bench.readEnded(topic).map(\.text), is: ["b"])
        },
        LogClaim("tells no committed positions while an open transaction holds some", needs: [.holdsPositions]) {
            bench in
            let input = try bench.topic("input")
            let partition = TopicPartition(input, 0)
            let group = bench.name("group")
            let identity = bench.name("held")
            try bench.write(["a", "b"], to: input)
            try bench.under.holdPositions?(group, identity, [partition: NextOffset(1)])
            // Another member that gets the partition when the dead one has left the group.
            let member = try bench.log.openSession(
                bench.options(group, bench.name("m"), inputs: [input], outputs: []), by: bench.deadline)
            defer { member.close(by: bench.deadline) }
            let fault = try bench.fault {
                _ = try member.committed([partition], by: Deadline(after: .milliseconds(500)))
            }
            try bench.expect(fault.cause, is: .timedOut)
            try bench.expect(fault.remedy, is: .retrySameCall)
            // The identity returns, which ends the transaction: the positions were never committed.
            let back = try bench.log.openSession(
                bench.options(group, identity, inputs: [input], outputs: []), by: bench.deadline)
            defer { back.close(by: bench.deadline) }
            let committed = try bench.patiently { try member.committed([partition], by: bench.deadline) }
            try bench.expect(committed, is: [:])
        },
    ]
}

extension Bench {
    /// A session that only writes; its input topic stays empty.
    fileprivate func writer(to topic: String) throws -> Member {
        try member(name("group"), name("w"), inputs: [try self.topic("none")], outputs: [topic])
    }

    fileprivate func committed(_ member: Member, _ partitions: [TopicPartition]) throws -> [TopicPartition: NextOffset]
    {
        try patiently { try member.session.committed(partitions, by: deadline) }
    }
}
