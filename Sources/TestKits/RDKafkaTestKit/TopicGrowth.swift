// What somebody may do to a topic beside us, and the product never does.

internal import CRDKafka
public import Kafka

/// Raises the number of partitions of a topic. Keys then change their partition.
public func growTopic(
    _ topic: String, to partitions: Int, at bootstrapServers: String, within limit: Duration
) throws(KafkaFault) {
    let operation = "grow topic \(topic)"
    let client = try quietClient("operator", ["bootstrap.servers": bootstrapServers])
    defer { rd_kafka_destroy(client) }
    let options = rd_kafka_AdminOptions_new(client, RD_KAFKA_ADMIN_OP_CREATEPARTITIONS)
    defer { rd_kafka_AdminOptions_destroy(options) }
    let queue = rd_kafka_queue_new(client)
    defer { rd_kafka_queue_destroy(queue) }
    var message = [CChar](repeating: 0, count: 256)
    var request = rd_kafka_NewPartitions_new(topic, partitions, &message, message.count)
    defer { rd_kafka_NewPartitions_destroy(request) }
    rd_kafka_CreatePartitions(client, &request, 1, options, queue)
    guard let event = rd_kafka_queue_poll(queue, Int32(limit / .milliseconds(1))) else {
        throw KafkaFault(.retrySameCall, .timedOut, operation: operation)
    }
    defer { rd_kafka_event_destroy(event) }
    var code = rd_kafka_event_error(event)
    var count = 0
    let results = rd_kafka_CreatePartitions_result_topics(rd_kafka_event_CreatePartitions_result(event), &count)
    if code == RD_KAFKA_RESP_ERR_NO_ERROR, count == 1 { code = rd_kafka_topic_result_error(results![0]) }
    guard code == RD_KAFKA_RESP_ERR_NO_ERROR, count == 1 else {
        throw KafkaFault(.stopProcess, KafkaCode(rawValue: code.rawValue), operation: operation)
    }
}

/// A client that logs nothing.
func quietClient(_ name: String, _ properties: [String: String]) throws(KafkaFault) -> OpaquePointer {
    let conf = rd_kafka_conf_new()
    rd_kafka_conf_set_log_cb(conf, nil)
    var message = [CChar](repeating: 0, count: 256)
    for (property, value) in properties.merging(["client.id": name], uniquingKeysWith: { given, _ in given }) {
        guard rd_kafka_conf_set(conf, property, value, &message, message.count) == RD_KAFKA_CONF_OK else {
            rd_kafka_conf_destroy(conf)
            throw KafkaFault(.stopProcess, .invalidConfiguration, operation: "set \(property) of the client \(name)")
        }
    }
    guard let client = rd_kafka_new(RD_KAFKA_PRODUCER, conf, &message, message.count) else {
        rd_kafka_conf_destroy(conf)
        throw KafkaFault(.stopProcess, .invalidConfiguration, operation: "create the client \(name)")
    }
    return client
}
