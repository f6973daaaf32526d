import Contract
import Kafka
import Testing

@testable import Tools

@Suite struct `What perennial topics apply has made` {
    private final class Clock {
        var milliseconds = 0
        var looks: [Bool] = []
    }

    private let topics = TopicPlan(
        prefix: TopicPrefix("p")!, partitions: 3, replicationFactor: 1, minimumInSyncReplicas: 1
    ).topics(in: .production)

    /// Waits as the command does, for at most 26 s, by a clock that only the pauses move.
    private func left(refused: [String] = [], _ look: (Int) -> [TopicFinding]?) throws -> (left: [TopicFinding], Clock)
    {
        let clock = Clock()
        let left = try TopicsSeen(refused: refused, pause: { clock.milliseconds += 100 }).wait { isLast in
            clock.looks.append(isLast)
            return look(clock.milliseconds)
        } isOver: {
            clock.milliseconds >= 26_000
        }
        return (left, clock)
    }

    @Test func `is waited for until a busy broker shows it, and no longer`() throws {
        let (seen, clock) = try left { $0 < 12_000 ? $0 < 6_000 ? [.missing(topics[0])] : nil : [] }
        #expect(seen.isEmpty && clock.milliseconds == 12_000)
    }

    @Test func `is told as still to do when the limit has passed`() throws {
        let (unseen, clock) = try left { _ in [.missing(topics[0])] }
        #expect(unseen == [.missing(topics[0])] && clock.milliseconds == 26_000)
        #expect(clock.looks.last == true && clock.looks.filter { $0 }.count == 1)
    }

    @Test func `is not waited for when it was refused, or is for people`() throws {
        let (refused, clock) = try left(refused: [topics[0].name]) { _ in
            [.missing(topics[0]), .wrongPartitions(topics[1], has: 1)]
        }
        #expect(refused.count == 2 && clock.milliseconds == 0)
    }

    @Test func `is not refused when the controller only took long, or was asked twice`() {
        func fault(_ code: KafkaCode) -> KafkaFault {
            KafkaFault(code.remedyOutsideTransactions, code, operation: "create topic a")
        }
        #expect(!TopicsSeen.isRefusal(fault(.topicAlreadyExists)))
        #expect(!TopicsSeen.isRefusal(fault(.timedOut)))
        #expect(TopicsSeen.isRefusal(fault(.invalidConfiguration)))
    }
}
