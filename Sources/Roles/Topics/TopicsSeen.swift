// Waiting for what was made.

import Contract
import Kafka

/// Brokers take over what the controller has agreed to, each a moment later, and a busy one after many seconds: what counts is
/// what they show.
struct TopicsSeen {
    /// The names of topics that the cluster will not make or change: no wait helps them.
    let refused: [String]
    let pause: () -> Void

    /// What is left to do, as of the last look.
    /// - Parameters:
    ///   - look: nil when the brokers have no answer now.
    ///   - isOver: the time is up; one more look follows.
    func wait(
        look: (_ isLast: Bool) throws(KafkaFault) -> [TopicFinding]?, isOver: () -> Bool
    ) throws(KafkaFault) -> [TopicFinding] {
        while true {
            let isLast = isOver()
            let left = try look(isLast)
            if let left, isLast || left.allSatisfy({ $0.isForPeople || refused.contains($0.topic.name) }) {
                return left
            }
            pause()
        }
    }

    /// The library asks again when a controller takes long: the answer to the second question is that the topic is there. And a
    /// controller that has not said yes in time goes on all the same.
    static func isRefusal(_ fault: KafkaFault) -> Bool {
        fault.code != .topicAlreadyExists && fault.remedy != .retrySameCall
    }
}
