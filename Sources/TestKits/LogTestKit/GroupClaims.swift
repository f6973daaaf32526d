// Promises about members and partitions.

import Log
import Platform

extension LogClaim {
    static let groupClaims: [LogClaim] = [
        LogClaim("assigns everything to the only member, which reads on where the group has committed") { bench in
            let input = try bench.topic("input", partitions: 2)
            let group = bench.name("group")
            let identity = bench.name("m")
            for partition: Int32 in [0, 1] { try bench.write(["a", "b", "c"], to: input, partition: partition) }
            let first = try bench.member(group, identity, inputs: [input])
            try first.see(6)
            try bench.expect(first.committedAtTake, is: [:])
            try first.session.commit([TopicPartition(input, 0): NextOffset(2), TopicPartition(input, 1): NextOffset(1)])
            first.close()
            let second = try bench.member(group, identity, inputs: [input])
            defer { second.close() }
            try second.see(3)
            try bench.expect(second.seen.filter { $0.partition == 0 }.map(\.text), is: ["c"])
            try bench.expect(second.seen.filter { $0.partition == 1 }.map(\.text), is: ["b", "c"])
        },
        LogClaim("gives partition p of all inputs to one owner, and each partition to one only") { bench in
            let inputs = [try bench.topic("left", partitions: 3), try bench.topic("right", partitions: 3)]
            let group = bench.name("group")
            let members = try (0..<2).map { try bench.member(group, bench.name("m\($0)"), inputs: inputs) }
            defer { for member in members { member.close() } }
            try bench.expect(soon: "six partitions over two members") {
                for member in members { try member.step() }
                return members.allSatisfy { !$0.owned.isEmpty } && members.reduce(0) { $0 + $1.owned.count } == 6
            }
            try bench.expect(members[0].owned.isDisjoint(with: members[1].owned), "one owner each")
            for member in members {
                let left = Set(member.owned.filter { $0.topic == inputs[0] }.map(\.partition))
                let right = Set(member.owned.filter { $0.topic == inputs[1] }.map(\.partition))
                try bench.expect(left, is: right)
            }
        },
        LogClaim("asks for partitions before it gives them to others, and takes a commit until they are given back") {
            bench in
            let input = try bench.topic("input", partitions: 2)
            let output = try bench.topic("output")
            let partitions = [TopicPartition(input, 0), TopicPartition(input, 1)]
            let group = bench.name("group")
            let first = try bench.member(group, bench.name("a"), inputs: [input], outputs: [output])
            defer { first.close() }
            try first.own(2)
            let second = try bench.member(group, bench.name("b"), inputs: [input], outputs: [output])
            defer { second.close() }
            let batch = RecordBatch()
            var event = SessionEvent.nothing
            try bench.expect(soon: "revoked") {
                try second.step()
                event = try first.session.poll(into: batch, limit: 10, wait: bench.under.pollWait)
                return event != .nothing
            }
            guard case .revoked(let revoked) = event else { throw BrokenPromise(description: "\(event)") }
            try bench.expect(Set(revoked), is: Set(partitions))
            try second.step()
            try bench.expect(second.owned, is: [])
            try first.session.append(bench.outputs(["the last"]))
            try first.session.commit([partitions[0]: NextOffset(0), partitions[1]: NextOffset(0)])
            try first.session.giveBack()
            try bench.expect(soon: "one partition each") {
                try first.step()
                try second.step()
                return first.owned.count == 1 && second.owned.count == 1
            }
            try bench.expect(try bench.readEnded(output).map(\.text), is: ["the last"])
            try bench.expect(second.committedAtTake.values.allSatisfy { $0 == NextOffset(0) }, "it was committed")
            try bench.expect(second.committedAtTake.count, is: 1)
        },
        LogClaim("opens no session where a topic has fewer partitions than its owner places keys by") { bench in
            let two = try bench.topic("two", partitions: 2)
            let three = try bench.topic("three", partitions: 3)
            for (inputs, outputs) in [([two, three], [three]), ([three], [three, two])] {
                var options = bench.options(bench.name("group"), bench.name("m"), inputs: inputs, outputs: outputs)
                options.partitions = 3
                let fault = try bench.fault { _ = try bench.log.openSession(options, by: bench.deadline) }
                try bench.expect(fault, is: .partitions(of: two, are: 2, not: 3))
            }
            var options = bench.options(bench.name("group"), bench.name("m"), inputs: [two], outputs: [two])
            options.partitions = 2
            let session = try bench.log.openSession(options, by: bench.deadline)
            try bench.expect(session.grown, is: [:])
            session.close(by: bench.deadline)
        },
        LogClaim("opens a session where some topics have more partitions than that, and says which; not where all have")
        {
            bench in
            let two = try bench.topic("two", partitions: 2)
            let three = try bench.topic("three", partitions: 3)
            for (inputs, outputs) in [([two, three], [two]), ([two], [two, three])] {
                var options = bench.options(bench.name("group"), bench.name("m"), inputs: inputs, outputs: outputs)
                options.partitions = 2
                let session = try bench.log.openSession(options, by: bench.deadline)
                try bench.expect(session.grown, is: [three: 3])
                session.close(by: bench.deadline)
            }
            var options = bench.options(bench.name("group"), bench.name("m"), inputs: [three], outputs: [three])
            options.partitions = 2
            let fault = try bench.fault { _ = try bench.log.openSession(options, by: bench.deadline) }
            try bench.expect(fault, is: .partitions(of: three, are: 3, not: 2))
        },
        LogClaim("gives a member that comes back in time its partitions at once, and asks nobody else") { bench in
            let input = try bench.topic("input", partitions: 2)
            let group = bench.name("group")
            let identity = bench.name("a")
            let first = try bench.member(group, identity, inputs: [input])
            let other = try bench.member(group, bench.name("b"), inputs: [input])
            defer { other.close() }
            try bench.expect(soon: "one partition each") {
                try first.step()
                try other.step()
                return first.owned.count == 1 && other.owned.count == 1
            }
            let had = first.owned
            let told = other.events.count
            try bench.expect(first.close(), is: true)
            let back = try bench.member(group, identity, inputs: [input])
            defer { back.close() }
            try bench.expect(soon: "its partition") {
                try back.step()
                try other.step()
                return !back.owned.isEmpty
            }
            try bench.expect(back.owned, is: had)
            try other.step()
            try bench.expect(other.events.count, is: told)
        },
        LogClaim("gives the partitions of a closed member to others when its session's time is over") { bench in
            let input = try bench.topic("input", partitions: 2)
            let group = bench.name("group")
            let first = try bench.member(group, bench.name("a"), inputs: [input])
            let other = try bench.member(group, bench.name("b"), inputs: [input])
            defer { other.close() }
            try bench.expect(soon: "one partition each") {
                try first.step()
                try other.step()
                return first.owned.count == 1 && other.owned.count == 1
            }
            first.close()
            try bench.pass(bench.under.sessionTimeout, polling: other)
            try bench.expect(soon: "both partitions") {
                try other.step()
                return other.owned.count == 2
            }
        },
        LogClaim("throws out a silent member, which hears of the loss and can commit no more", needs: [.noticesSilence])
        {
            bench in
            let input = try bench.topic("input", partitions: 2)
            let output = try bench.topic("output")
            let group = bench.name("group")
            let silent = try bench.member(group, bench.name("a"), inputs: [input], outputs: [output])
            defer { silent.close() }
            try silent.own(2)
            try silent.session.append(bench.outputs(["late"]))
            bench.under.passTime(bench.under.sessionTimeout)
            let other = try bench.member(group, bench.name("b"), inputs: [input], outputs: [output])
            defer { other.close() }
            try other.own(2)
            let fault = try bench.fault { try silent.session.commit([TopicPartition(input, 0): NextOffset(0)]) }
            try bench.expect(fault.remedy, is: .rewind)
            try bench.expect(fault.cause, is: .generation)
            try silent.session.abort()
            let batch = RecordBatch()
            guard case .lost(let lost) = try silent.session.poll(into: batch, limit: 10, wait: bench.under.pollWait)
            else { throw BrokenPromise(description: "it was not told of the loss") }
            try bench.expect(Set(lost), is: [TopicPartition(input, 0), TopicPartition(input, 1)])
            try silent.session.giveBack()
            try bench.expect(soon: "one partition each") {
                try silent.step()
                try other.step()
                return silent.owned.count == 1 && other.owned.count == 1
            }
            try bench.expect(try bench.readEnded(output), is: [])
        },
        LogClaim("gives no records of a paused partition until it is resumed, and all of them then") { bench in
            let input = try bench.topic("input", partitions: 2)
            let member = try bench.member(bench.name("group"), bench.name("m"), inputs: [input])
            defer { member.close() }
            try member.own(2)
            try bench.write(["before"], to: input, partition: 0)
            try member.see(1)
            try member.session.pause([TopicPartition(input, 0)])
            member.forgetSeen()
            try bench.write(["a", "b"], to: input, partition: 0)
            try bench.write(["c"], to: input, partition: 1)
            try member.see(1)
            for _ in 0..<5 { try member.step() }
            try bench.expect(member.texts, is: ["c"])
            member.forgetSeen()
            try member.session.resume([TopicPartition(input, 0)])
            try member.see(2)
            try bench.expect(member.texts, is: ["a", "b"])
        },
        LogClaim("starts where take says, with what take pauses paused") { bench in
            let input = try bench.topic("input", partitions: 2)
            for partition: Int32 in [0, 1] { try bench.write(["a", "b", "c"], to: input, partition: partition) }
            let session = try bench.log.openSession(
                bench.options(bench.name("group"), bench.name("m"), inputs: [input], outputs: []), by: bench.deadline)
            defer { session.close(by: bench.deadline) }
            let partitions = [TopicPartition(input, 0), TopicPartition(input, 1)]
            let batch = RecordBatch()
            var event = SessionEvent.nothing
            try bench.expect(soon: "an assignment") {
                event = try session.poll(into: batch, limit: 10, wait: bench.under.pollWait)
                return event != .nothing
            }
            guard case .assigned(let assigned) = event else { throw BrokenPromise(description: "\(event)") }
            try bench.expect(Set(assigned), is: Set(partitions))
            try session.take([partitions[0]: NextOffset(1), partitions[1]: NextOffset(2)], paused: [partitions[0]])
            try bench.expect(session.position(of: partitions[0]), is: NextOffset(1))
            var seen: [Seen] = []
            func poll() throws {
                _ = try session.poll(into: batch, limit: 10, wait: bench.under.pollWait)
                seen += bench.copies(batch)
            }
            try bench.expect(soon: "a record") {
                try poll()
                return !seen.isEmpty
            }
            for _ in 0..<5 { try poll() }
            try bench.expect(seen.map(\.description), is: ["1/2 c"])
            try session.resume([partitions[0]])
            try bench.expect(soon: "two records") {
                try poll()
                return seen.count >= 3
            }
            try bench.expect(seen.dropFirst().map(\.description), is: ["0/1 b", "0/2 c"])
        },
        LogClaim("gives at most as many records as were asked for, and tells which input they are of") { bench in
            let inputs = [try bench.topic("left"), try bench.topic("right")]
            for input in inputs { try bench.write((0..<20).map { "\($0)" }, to: input) }
            let member = try bench.member(bench.name("group"), bench.name("m"), inputs: inputs)
            defer { member.close() }
            try bench.expect(soon: "all") {
                let before = member.seen.count
                try member.step(limit: 7)
                try bench.expect(member.seen.count - before <= 7, "more records than were asked for")
                return member.seen.count == 40
            }
            for topic in 0..<2 {
                try bench.expect(
                    member.seen.filter { $0.topic == topic }.map(\.text), is: (0..<20).map { "\($0)" })
            }
        },
    ]
}

extension Bench {
    /// Lets time pass while a member keeps polling.
    fileprivate func pass(_ duration: Duration, polling member: Member) throws {
        let parts = 10
        for _ in 0..<parts {
            under.passTime(duration / parts)
            try member.step()
        }
    }
}
