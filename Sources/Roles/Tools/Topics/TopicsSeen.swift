// Waits until created topics and settings are visible.

import Contract
import Kafka

/// Each broker applies the controller's changes a moment later, a busy one after many seconds. So the brokers are asked until
/// they show the changes.
struct TopicsSeen {
    /// The names of topics that the cluster refused to create or change. There is no reason to wait for them.
    let refused: [String]
    let pause: () -> Void

    /// Returns the remaining findings of the last request.
    /// - Parameters:
    ///   - look: asks the brokers; nil: they do not answer now.
    ///   - isOver: the time is up; one more request follows.
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

    /// If a controller is slow, librdkafka repeats the request, and the answer is that the topic already exists. A controller that has
    /// not answered in time still creates the topic.
    static func isRefusal(_ fault: KafkaFault) -> Bool {
        fault.code != .topicAlreadyExists && fault.remedy != .retrySameCall
    }
}
