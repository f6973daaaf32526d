// Rebalances as values: the callback notes the event of the group, and the owner answers when it is ready.

internal import CRDKafka
internal import Log

extension Consumer {
    /// Joins the group. A rebalance stays in `unanswered` until `take` or `giveBack`; the group waits until then.
    func subscribe(answeringLater topics: [String]) throws(KafkaFault) {
        answersLater = true
        try subscribe(to: topics)
    }

    /// librdkafka calls this inside any call that runs its callbacks.
    func note(_ code: rd_kafka_resp_err_t, _ partitions: [TopicPartition]) {
        // Only here does librdkafka know whether the partitions may already have another owner.
        unanswered =
            if code == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS {
                .assigned(partitions)
            } else if rd_kafka_assignment_lost(raw) != 0 {
                .lost(partitions)
            } else {
                .revoked(partitions)
            }
        // Otherwise the poll that runs the callback would continue to wait for a record from partitions that deliver
        // none.
        rd_kafka_yield(raw)
    }

    /// Takes the assigned partitions, each from its start.
    func take(_ starts: [TopicPartition: NextOffset], paused: Set<TopicPartition>) throws(KafkaFault) {
        try assign(starts)
        unanswered = nil
        gone = []
        // Records that librdkafka fetches before the pause takes effect are outdated, and librdkafka drops them.
        try pause(paused.sorted())
    }

    /// After this no record of the old partitions is delivered, whatever librdkafka has fetched.
    func giveBack() {
        unanswered = nil
        gone = []
        readings.reset(to: [])
        // This fails only for a client that has ended, which owns nothing.
        rd_kafka_assign(raw, nil)
    }
}
