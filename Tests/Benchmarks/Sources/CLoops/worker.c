#include <librdkafka/rdkafka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "CLoops.h"

// What a worker does on Kafka, without what it computes: the settings are those of Sources/Engine/Kafka, the calls are those of a cycle
// in Sources/Engine/Runtime/Worker.swift.

static void set(rd_kafka_conf_t *conf, const char *name, const char *value) {
    char error[256];
    if (rd_kafka_conf_set(conf, name, value, error, sizeof error) != RD_KAFKA_CONF_OK) {
        fprintf(stderr, "bench: %s\n", error);
        abort();
    }
}

static void count_delivery(rd_kafka_t *rk, const rd_kafka_message_t *message, void *opaque) {
    (void)rk;
    if (message->err) ++*(int64_t *)opaque;
}

static int complain(rd_kafka_error_t *error) {
    if (!error) return 0;
    fprintf(stderr, "bench: %s\n", rd_kafka_error_string(error));
    rd_kafka_error_destroy(error);
    return 1;
}

static rd_kafka_t *make_producer(const bench_worker_work *work, int64_t *failed) {
    char error[256];
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    set(conf, "bootstrap.servers", work->bootstrap);
    set(conf, "client.id", work->group);
    set(conf, "socket.nagle.disable", "true");
    set(conf, "linger.ms", "20");
    set(conf, "retry.backoff.ms", "100");
    set(conf, "queue.buffering.max.messages", "100000");
    set(conf, "queue.buffering.max.kbytes", "131072");
    set(conf, "transactional.id", work->group);
    set(conf, "transaction.timeout.ms", "10000");
    set(conf, "message.timeout.ms", "10000");
    rd_kafka_conf_set_dr_msg_cb(conf, count_delivery);
    rd_kafka_conf_set_opaque(conf, failed);
    rd_kafka_t *rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, error, sizeof error);
    return complain(rd_kafka_init_transactions(rk, 30000)) ? NULL : rk;
}

static rd_kafka_t *make_consumer(const bench_worker_work *work) {
    char error[256];
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    set(conf, "bootstrap.servers", work->bootstrap);
    set(conf, "client.id", work->group);
    set(conf, "socket.nagle.disable", "true");
    set(conf, "session.timeout.ms", "30000");
    set(conf, "max.poll.interval.ms", "120000");
    set(conf, "fetch.wait.max.ms", "50");
    set(conf, "queued.min.messages", "10000");
    set(conf, "queued.max.messages.kbytes", "16384");
    set(conf, "group.id", work->group);
    set(conf, "group.instance.id", work->group);
    set(conf, "enable.auto.commit", "false");
    set(conf, "enable.auto.offset.store", "false");
    set(conf, "isolation.level", "read_committed");
    set(conf, "auto.offset.reset", "earliest");
    set(conf, "enable.partition.eof", "true");
    rd_kafka_t *rk = rd_kafka_new(RD_KAFKA_CONSUMER, conf, error, sizeof error);
    rd_kafka_poll_set_consumer(rk);
    rd_kafka_topic_partition_list_t *topics = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(topics, work->input, RD_KAFKA_PARTITION_UA);
    rd_kafka_subscribe(rk, topics);
    rd_kafka_topic_partition_list_destroy(topics);
    return rk;
}

struct sender {
    const bench_worker_work *work;
    rd_kafka_t *producer;
    rd_kafka_topic_t *outputs[3];
    rd_kafka_topic_t *settled;
    rd_kafka_topic_t *changelog;
    char *bytes;
};

static int send_bytes(
    struct sender *sender, rd_kafka_topic_t *topic, int32_t partition, int64_t timestamp, int64_t key, int64_t value,
    rd_kafka_headers_t *headers) {
    for (;;) {
        rd_kafka_vu_t parts[7] = {
            {.vtype = RD_KAFKA_VTYPE_RKT, .u.rkt = topic},
            {.vtype = RD_KAFKA_VTYPE_PARTITION, .u.i32 = partition},
            {.vtype = RD_KAFKA_VTYPE_MSGFLAGS, .u.i = RD_KAFKA_MSG_F_COPY},
            {.vtype = RD_KAFKA_VTYPE_KEY, .u.mem = {sender->bytes, (size_t)key}},
            {.vtype = RD_KAFKA_VTYPE_VALUE, .u.mem = {sender->bytes, (size_t)value}},
            {.vtype = RD_KAFKA_VTYPE_TIMESTAMP, .u.i64 = timestamp},
            {.vtype = RD_KAFKA_VTYPE_HEADERS, .u.headers = headers},
        };
        rd_kafka_error_t *error = rd_kafka_produceva(sender->producer, parts, headers ? 7 : 6);
        if (!error) return 0;
        if (rd_kafka_error_code(error) != RD_KAFKA_RESP_ERR__QUEUE_FULL) return complain(error);
        rd_kafka_error_destroy(error);
        rd_kafka_poll(sender->producer, 10);
    }
}

static rd_kafka_headers_t *make_headers(
    const struct sender *sender, const char *schema, const char *id, int32_t partition, int64_t offset) {
    const bench_worker_work *work = sender->work;
    char source[160], app[64];
    int source_count = snprintf(source, sizeof source, "%s:%d:%lld", work->input, (int)partition, (long long)offset);
    int app_count = snprintf(app, sizeof app, "perennial/1.0.0+%s", work->rules);
    rd_kafka_headers_t *headers = rd_kafka_headers_new(8);
    rd_kafka_header_add(headers, "id", 2, id, -1);
    rd_kafka_header_add(headers, "schema", 6, schema, -1);
    rd_kafka_header_add(headers, "app", 3, app, app_count);
    rd_kafka_header_add(headers, "source", 6, source, source_count);
    return headers;
}

/// The outputs and the changelog record that one input causes.
static int send_all(struct sender *sender, const rd_kafka_message_t *message) {
    const bench_worker_work *work = sender->work;
    rd_kafka_timestamp_type_t type;
    int64_t timestamp = rd_kafka_message_timestamp(message, &type);
    for (int index = 0; index < work->output_count; index++) {
        const bench_worker_output *output = &work->outputs[index];
        char id[48];
        snprintf(id, sizeof id, "%d-%lld-%d", (int)message->partition, (long long)message->offset, index);
        rd_kafka_headers_t *headers = make_headers(sender, output->schema, id, message->partition, message->offset);
        int32_t partition = output->is_elsewhere ? (int32_t)(message->offset % work->partitions) : message->partition;
        if (send_bytes(sender, sender->outputs[index], partition, timestamp, output->key, output->value, headers)) return 1;
    }
    return send_bytes(
        sender, sender->changelog, message->partition, timestamp, work->state.key, work->state.value, NULL);
}

/// Writes the outputs that come once per transaction, for its partitions in turn.
static int settle(struct sender *sender, const int64_t *next, const char *touched) {
    const bench_worker_work *work = sender->work;
    const bench_worker_output *output = &work->settled;
    int32_t p = 0;
    for (int64_t n = 0; n < work->settled_per_transaction; n++) {
        do p = (p + 1) % work->partitions;
        while (!touched[p]);
        char id[64];
        snprintf(id, sizeof id, "%d-%lld-%016llx", (int)p, (long long)next[p], (unsigned long long)n);
        rd_kafka_headers_t *headers = make_headers(sender, output->schema, id, p, next[p]);
        if (send_bytes(sender, sender->settled, p, 0, output->key, output->value, headers)) return 1;
        if (send_bytes(sender, sender->changelog, p, 0, work->settled_state.key, work->settled_state.value, NULL)) return 1;
    }
    if (work->overview.key == 0) return 0;
    for (p = 0; p < work->partitions; p++) {
        if (touched[p] && send_bytes(sender, sender->changelog, p, 0, work->overview.key, work->overview.value, NULL)) return 1;
    }
    return 0;
}

/// Writes a note for each partition with records, adds the offsets, and commits.
static int commit(struct sender *sender, rd_kafka_t *consumer, const int64_t *next, char *touched) {
    const bench_worker_work *work = sender->work;
    if (settle(sender, next, touched)) return 1;
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(work->partitions);
    for (int32_t p = 0; p < work->partitions; p++) {
        if (!touched[p]) continue;
        touched[p] = 0;
        if (send_bytes(sender, sender->changelog, p, 0, 1, work->note, NULL)) return 1;
        rd_kafka_topic_partition_list_add(list, work->input, p)->offset = next[p];
    }
    rd_kafka_flush(sender->producer, 10000);
    rd_kafka_consumer_group_metadata_t *group = rd_kafka_consumer_group_metadata(consumer);
    int failed = complain(rd_kafka_send_offsets_to_transaction(sender->producer, list, group, 10000)) ||
                 complain(rd_kafka_commit_transaction(sender->producer, 10000));
    rd_kafka_consumer_group_metadata_destroy(group);
    rd_kafka_topic_partition_list_destroy(list);
    return failed;
}

int64_t bench_worker(const bench_worker_work *work, int64_t *transactions) {
    int64_t failed = 0;
    struct sender sender = {.work = work, .producer = make_producer(work, &failed)};
    if (!sender.producer) return -1;
    for (int index = 0; index < work->output_count; index++)
        sender.outputs[index] = rd_kafka_topic_new(sender.producer, work->outputs[index].topic, NULL);
    if (work->settled.topic) sender.settled = rd_kafka_topic_new(sender.producer, work->settled.topic, NULL);
    sender.changelog = rd_kafka_topic_new(sender.producer, work->changelog, NULL);
    sender.bytes = calloc(1, 4096);
    rd_kafka_t *consumer = make_consumer(work);
    int64_t *next = calloc((size_t)work->partitions, sizeof *next);
    char *touched = calloc((size_t)work->partitions, 1);

    int64_t seen = 0, in_transaction = 0, start = 0;
    int broken = 0;
    *transactions = 0;
    while (seen < work->records && !broken) {
        rd_kafka_message_t *message = rd_kafka_consumer_poll(consumer, 100);
        if (start == 0) start = bench_cpu_microseconds();
        int polled = 0;
        while (message) {
            if (!message->err) {
                if (in_transaction == 0) broken |= complain(rd_kafka_begin_transaction(sender.producer));
                broken |= send_all(&sender, message);
                next[message->partition] = message->offset + 1;
                touched[message->partition] = 1;
                seen++;
                in_transaction++;
                polled++;
            }
            rd_kafka_message_destroy(message);
            // A worker takes as many records at a time, and then the delivery reports, too.
            message = in_transaction < work->records_per_transaction && polled < 500 ? rd_kafka_consumer_poll(consumer, 0)
                                                                                     : NULL;
        }
        if (in_transaction > 0) rd_kafka_poll(sender.producer, 0);
        if (in_transaction >= work->records_per_transaction || (seen == work->records && in_transaction > 0)) {
            broken |= commit(&sender, consumer, next, touched);
            in_transaction = 0;
            ++*transactions;
        }
    }
    int64_t spent = bench_cpu_microseconds() - start;
    int64_t end = 0;
    for (int32_t p = 0; p < work->partitions; p++) end += next[p];
    for (int index = 0; index < work->output_count; index++) rd_kafka_topic_destroy(sender.outputs[index]);
    if (sender.settled) rd_kafka_topic_destroy(sender.settled);
    rd_kafka_topic_destroy(sender.changelog);
    rd_kafka_consumer_close(consumer);
    rd_kafka_destroy(consumer);
    rd_kafka_destroy(sender.producer);
    free(sender.bytes);
    free(next);
    free(touched);
    return !broken && failed == 0 && end == work->records ? spent : -1;
}
