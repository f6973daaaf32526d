import Kafka
import KafkaTestKit
import Log
import Platform
import Testing

extension RealBroker {
    /// librdkafka's mock cluster sometimes never completes a rebalance of a group of two.
    @Suite struct `Members of a group` {
        @Test func `own equal partitions of two topics together`() async throws {
            let broker = try await Broker.shared()
            // An odd number: assigning partitions one by one in turn would not keep equal numbers together.
            let left = try await broker.makeTopic("own-left", partitions: 3)
            let right = try await broker.makeTopic("own-right", partitions: 3)
            try await blocking {
                let members = try (0..<2).map {
                    try Consumer(.init(clientID: "c\($0)", groupID: left, properties: broker.properties))
                }
                for member in members { try member.subscribe(to: [left, right]) }
                try members[0].poll(until: {
                    _ = try members[1].poll(.milliseconds(20))
                    let counts = members.map(\.assignment.count)
                    return !counts.contains(0) && counts.reduce(0, +) == 6
                })
                for member in members {
                    func numbers(_ topic: String) -> [Int32] {
                        member.assignment.filter { $0.topic == topic }.map(\.partition)
                    }
                    #expect(numbers(left) == numbers(right), "\(member.assignment)")
                    member.close(by: Deadline(after: patience))
                }
            }
        }
    }
}
