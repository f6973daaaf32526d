// Rebalances as values: the callback notes what the group has said, and the owner answers when it is ready.

internal import CRDKafka
internal import Log

extension Consumer {
    /// Joins the group. What it says stays in `unanswered` until `take` or `giveBack`; the group waits as long.
    func subscribe(answeringLater topics: [String]) throws(KafkaFault) {
        answersLater = true
        try subscribe(to: topics)
    }

    /// Called by the library, inside whatever call serves its callbacks.
    func note(_ code: rd_kafka_resp_err_t, _ partitions: [TopicPartition]) {
        // Only here does the library know whether the partitions may have another owner already.
        unanswered =
            if code == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS {
                .assigned(partitions)
            } else if rd_kafka_assignment_lost(raw) != 0 {
                .lost(partitions)
            } else {
                .revoked(partitions)
            }
        // Else the poll that serves the callback would go on waiting for a record: of partitions that have none to give.
        rd_kafka_yield(raw)
    }

    /// Takes the assigned partitions over, each from its start.
    func take(_ starts: [TopicPartition: NextOffset], paused: Set<TopicPartition>) throws(KafkaFault) {
        try assign(starts)
        unanswered = nil
        gone = []
        // What the library fetches before the pause is in force is older than it, and dropped by the library.
        try pause(paused.sorted())
    }

    /// From here on no record of the old partitions is given, whatever the library has fetched.
    func giveBack() {
        unanswered = nil
        gone = []
        readings.reset(to: [])
        // Fails only for a client that has ended, which owns nothing.
        rd_kafka_assign(raw, nil)
    }
}
