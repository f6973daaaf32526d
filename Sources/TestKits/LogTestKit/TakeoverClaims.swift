// Promises about groups that are taken over, and about positions that are gone.

import Log
import Platform

extension LogClaim {
    static let takeoverClaims: [LogClaim] = [
        LogClaim("shows records and positions of a takeover together, and only after the commit") { bench in
            let input = try bench.topic("input")
            let output = try bench.topic("output")
            let partition = TopicPartition(input, 0)
            let group = bench.name("group")
            let takeover = try bench.takeover(group, [output])
            defer { takeover.close(by: bench.deadline) }
            try bench.expect(try takeover.committed([partition], by: bench.deadline), is: [:])
            try takeover.append(bench.outputs(["a"]))
            try bench.expect(try bench.read(output).map(\.text), is: [])
            try takeover.commit([partition: NextOffset(7)])
            // A commit may be answered before every broker has written its marker.
            try bench.expect(soon: "the first record") { try bench.read(output).map(\.text) == ["a"] }
            try takeover.append(bench.outputs(["b"]))
            try takeover.commit([partition: NextOffset(9)])
            try bench.expect(soon: "both records") { try bench.read(output).map(\.text) == ["a", "b"] }
            try bench.expect(
                try takeover.committed([partition], by: bench.deadline), is: [partition: NextOffset(9)])
            let member = try bench.member(group, bench.name("m"), inputs: [input])
            defer { member.close() }
            try member.own(1)
            try bench.expect(member.committedAtTake, is: [partition: NextOffset(9)])
        },
        LogClaim("shows nothing of a takeover that is closed before its commit") { bench in
            let output = try bench.topic("output")
            let takeover = try bench.takeover(bench.name("group"), [output])
            try takeover.append(bench.outputs(["a"]))
            try bench.expect(takeover.close(by: bench.deadline), is: true)
            try bench.expect(try bench.read(output).map(\.text), is: [])
            // A marker may be written after the answer, but long before the transaction would time out.
            let limit = Deadline(after: .seconds(5))
            while try bench.end(.committed, output) != bench.end(.all, output), !limit.hasPassed {
                pause(for: .milliseconds(20))
            }
            try bench.expect(try bench.end(.committed, output), is: try bench.end(.all, output))
        },
        LogClaim("refuses to take over a group with members, and to commit when one has joined") { bench in
            let input = try bench.topic("input")
            let output = try bench.topic("output")
            let partition = TopicPartition(input, 0)
            let group = bench.name("group")
            let takeover = try bench.takeover(group, [output])
            try takeover.append(bench.outputs(["a"]))
            var options = bench.options(group, bench.name("m"), inputs: [input], outputs: [])
            options.keepsPlace = false
            let member = try Member(bench, options)
            try member.own(1)
            let late = try bench.fault { try takeover.commit([partition: NextOffset(5)]) }
            try bench.expect(late.cause, is: .generation)
            takeover.close(by: bench.deadline)
            let early = try bench.fault { _ = try bench.takeover(group, [output]) }
            try bench.expect(early.cause, is: .generation)
            try bench.expect(early.remedy, is: .stop)
            try bench.expect(try bench.read(output).map(\.text), is: [])
            try bench.expect(try member.session.committed([partition], by: bench.deadline), is: [:])
            try bench.expect(member.close(), is: true)
        },
        LogClaim("tells a session of a position that is gone, and goes on with the other partitions") { bench in
            let input = try bench.topic("input", partitions: 2)
            for number in 0..<2 { try bench.write(["\(number)"], to: input, partition: Int32(number)) }
            let group = bench.name("group")
            let takeover = try bench.takeover(group, [input])
            try takeover.commit([TopicPartition(input, 0): NextOffset(1_000)])
            takeover.close(by: bench.deadline)
            let member = try bench.member(group, bench.name("m"), inputs: [input])
            defer { member.close() }
            let gone = SessionEvent.positionGone(TopicPartition(input, 0))
            try bench.expect(soon: "the position is gone") {
                try member.step()
                return member.events.contains(gone)
            }
            try member.see(1)
            try bench.write(["2"], to: input, partition: 1)
            try member.see(2)
            try bench.expect(member.texts, is: ["1", "2"])
            try member.session.commit([TopicPartition(input, 1): NextOffset(2)])
            // One event is enough.
            try bench.expect(member.events.count { $0 == gone }, is: 1)
        },
    ]
}

extension Bench {
    fileprivate func takeover(_ group: String, _ topics: [String]) throws -> any GroupTakeover {
        try log.openTakeover(
            TakeoverOptions(group: group, identity: "\(group).takeover", topics: topics), by: deadline)
    }
}
