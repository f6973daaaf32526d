// Promises about sessions that end for good.

import Log
import Platform

extension LogClaim {
    static let departureClaims: [LogClaim] = [
        LogClaim("gives the partitions of a closed member that keeps no place to others at once") { bench in
            let input = try bench.topic("input", partitions: 2)
            let group = bench.name("group")
            var leaving = bench.options(group, bench.name("a"), inputs: [input], outputs: [])
            leaving.keepsPlace = false
            // Longer than any wait in this check.
            leaving.sessionTimeout = bench.under.patience * 4
            let first = try Member(bench, leaving)
            let other = try bench.member(group, bench.name("b"), inputs: [input])
            defer { other.close() }
            try bench.expect(soon: "one partition each") {
                try first.step()
                try other.step()
                return first.owned.count == 1 && other.owned.count == 1
            }
            try bench.expect(first.close(), is: true)
            try other.own(2)
        },
        LogClaim("lets a member that keeps no place go while the group waits for its answer") { bench in
            let input = try bench.topic("input", partitions: 2)
            let group = bench.name("group")
            var leaving = bench.options(group, bench.name("a"), inputs: [input], outputs: [])
            leaving.keepsPlace = false
            leaving.sessionTimeout = bench.under.patience * 4
            let first = try Member(bench, leaving)
            try first.own(2)
            let other = try bench.member(group, bench.name("b"), inputs: [input])
            defer { other.close() }
            let batch = RecordBatch()
            try bench.expect(soon: "revoked") {
                try other.step()
                let event = try first.session.poll(into: batch, limit: 1, wait: bench.under.pollWait)
                if case .revoked = event { return true } else { return false }
            }
            try bench.expect(first.close(), is: true)
            try other.own(2)
        },
        LogClaim("ends what an identity has left open when it is settled", needs: [.holdsPositions]) { bench in
            let input = try bench.topic("input")
            let partition = TopicPartition(input, 0)
            let group = bench.name("group")
            let identity = bench.name("gone")
            try bench.under.holdPositions?(group, identity, [partition: NextOffset(1)])
            let member = try bench.log.openSession(
                bench.options(group, bench.name("m"), inputs: [input], outputs: []), by: bench.deadline)
            defer { member.close(by: bench.deadline) }
            let fault = try bench.fault {
                _ = try member.committed([partition], by: Deadline(after: .milliseconds(500)))
            }
            try bench.expect(fault.cause, is: .timedOut)
            try bench.log.settle(identity, by: bench.deadline)
            // Earlier than it would end by its timeout.
            let committed = try member.committed([partition], by: Deadline(after: .seconds(5)))
            try bench.expect(committed, is: [:])
            // An identity that never existed is no error.
            try bench.log.settle(bench.name("nobody"), by: bench.deadline)
        },
    ]
}
