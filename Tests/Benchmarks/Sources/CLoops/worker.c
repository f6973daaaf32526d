#include <librdkafka/rdkafka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "CLoops.h"
#include "CSIMDJSON.h"
#include "store.h"

// What every worker must do that processes exactly once and keeps its states on disk: no rules, no timers, no engine. The settings are
// those of Sources/Engine/Kafka, the calls those of a cycle in Sources/Engine/Runtime/Worker.swift.

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
    set(conf, "linger.ms", "500");
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
    // Only versions from 2.2 on have it.
    size_t size = 0;
    if (rd_kafka_conf_get(conf, "fetch.queue.backoff.ms", NULL, &size) == RD_KAFKA_CONF_OK) set(conf, "fetch.queue.backoff.ms", "10");
    char number[32];
    snprintf(number, sizeof number, "%lld", (long long)work->queued_records);
    set(conf, "queued.min.messages", number);
    snprintf(number, sizeof number, "%lld", (long long)work->queued_kilobytes);
    set(conf, "queued.max.messages.kbytes", number);
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

struct worker {
    const bench_worker_work *work;
    rd_kafka_t *producer;
    rd_kafka_topic_t *outputs[BENCH_WORKER_OUTPUTS];
    rd_kafka_topic_t *settled;
    rd_kafka_topic_t *changelog;
    /// What all records and states consist of.
    char *bytes;
    perennial_json_parser *parser;
    rocksdb_cache_t *cache;
    rocksdb_t **stores;
    /// The changes of the open transaction, by partition.
    rocksdb_writebatch_t **changes;
    rocksdb_readoptions_t *reading;
    rocksdb_writeoptions_t *writing;
    /// The state that was read last.
    char *state;
    int64_t written;
};

enum { LONGEST_VALUE = 65536, LONGEST_KEY = 256 };

static int send_bytes(
    struct worker *worker, rd_kafka_topic_t *topic, int32_t partition, int64_t timestamp, int64_t key, int64_t value,
    rd_kafka_headers_t *headers) {
    for (;;) {
        rd_kafka_vu_t parts[7] = {
            {.vtype = RD_KAFKA_VTYPE_RKT, .u.rkt = topic},
            {.vtype = RD_KAFKA_VTYPE_PARTITION, .u.i32 = partition},
            {.vtype = RD_KAFKA_VTYPE_MSGFLAGS, .u.i = RD_KAFKA_MSG_F_COPY},
            {.vtype = RD_KAFKA_VTYPE_KEY, .u.mem = {worker->bytes, (size_t)key}},
            {.vtype = RD_KAFKA_VTYPE_VALUE, .u.mem = {worker->bytes, (size_t)value}},
            {.vtype = RD_KAFKA_VTYPE_TIMESTAMP, .u.i64 = timestamp},
            {.vtype = RD_KAFKA_VTYPE_HEADERS, .u.headers = headers},
        };
        rd_kafka_error_t *error = rd_kafka_produceva(worker->producer, parts, headers ? 7 : 6);
        if (!error) return 0;
        if (rd_kafka_error_code(error) != RD_KAFKA_RESP_ERR__QUEUE_FULL) return complain(error);
        rd_kafka_error_destroy(error);
        rd_kafka_poll(worker->producer, 10);
    }
}

static rd_kafka_headers_t *make_headers(
    const struct worker *worker, const char *schema, const char *id, int32_t partition, int64_t offset) {
    const bench_worker_work *work = worker->work;
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

static int store_failed(char *error) {
    if (!error) return 0;
    fprintf(stderr, "bench: %s\n", error);
    free(error);
    return 1;
}

/// Copies the state of the key, if there is one.
static int read_state(struct worker *worker, int32_t partition, const char *key, size_t key_count) {
    char *error = NULL;
    rocksdb_pinnableslice_t *pinned =
        rocksdb_get_pinned(worker->stores[partition], worker->reading, key, key_count, &error);
    if (store_failed(error)) return 1;
    if (!pinned) return 0;
    size_t count;
    const char *bytes = rocksdb_pinnableslice_value(pinned, &count);
    memcpy(worker->state, bytes, count < LONGEST_VALUE ? count : LONGEST_VALUE);
    rocksdb_pinnableslice_destroy(pinned);
    return 0;
}

/// Reads the input and its state, and writes what it causes.
static int process(struct worker *worker, const rd_kafka_message_t *message) {
    const bench_worker_work *work = worker->work;
    const bench_worker_step *step = &work->steps[work->plan[message->partition][message->offset]];
    if (perennial_json_parse(worker->parser, message->payload, message->len) != PERENNIAL_JSON_OK) return 1;
    char key[LONGEST_KEY] = {1};
    if (message->key_len >= sizeof key) return 1;
    memcpy(key + 1, message->key, message->key_len);
    size_t key_count = message->key_len + 1;
    if (read_state(worker, message->partition, key, key_count)) return 1;
    if (step->state == 0) return 0;

    rd_kafka_timestamp_type_t type;
    int64_t timestamp = rd_kafka_message_timestamp(message, &type);
    for (int index = 0; index < step->count; index++) {
        const bench_worker_output *output = &work->outputs[step->outputs[index]];
        char id[48];
        snprintf(id, sizeof id, "%d-%lld-%d", (int)message->partition, (long long)message->offset, index);
        rd_kafka_headers_t *headers = make_headers(worker, output->schema, id, message->partition, message->offset);
        int32_t partition = output->is_elsewhere ? (int32_t)(message->offset % work->partitions) : message->partition;
        rd_kafka_topic_t *topic = worker->outputs[step->outputs[index]];
        if (send_bytes(worker, topic, partition, timestamp, output->key, step->values[index], headers)) return 1;
        worker->written++;
    }
    rocksdb_writebatch_put(worker->changes[message->partition], key, key_count, worker->bytes, (size_t)step->state);
    return send_bytes(
        worker, worker->changelog, message->partition, timestamp, (int64_t)key_count, step->state, NULL);
}

/// Writes what comes once per transaction, for its partitions in turn.
static int settle(struct worker *worker, const int64_t *next, const char *touched) {
    const bench_worker_work *work = worker->work;
    const bench_worker_output *output = &work->settled;
    const bench_worker_bytes *state = &work->settled_state;
    int32_t p = 0;
    for (int64_t n = 0; n < work->settled_per_transaction; n++) {
        do p = (p + 1) % work->partitions;
        while (!touched[p]);
        char id[64], key[LONGEST_KEY] = {0};
        snprintf(id, sizeof id, "%d-%lld-%016llx", (int)p, (long long)next[p], (unsigned long long)n);
        rd_kafka_headers_t *headers = make_headers(worker, output->schema, id, p, next[p]);
        if (send_bytes(worker, worker->settled, p, 0, output->key, work->settled_value, headers)) return 1;
        if (send_bytes(worker, worker->changelog, p, 0, state->key, state->value, NULL)) return 1;
        snprintf(key, sizeof key, "cell %lld", (long long)n);
        rocksdb_writebatch_put(worker->changes[p], key, (size_t)state->key, worker->bytes, (size_t)state->value);
    }
    if (work->overview.key == 0) return 0;
    for (p = 0; p < work->partitions; p++) {
        if (!touched[p]) continue;
        const bench_worker_bytes *overview = &work->overview;
        if (send_bytes(worker, worker->changelog, p, 0, overview->key, overview->value, NULL)) return 1;
        rocksdb_writebatch_put(
            worker->changes[p], worker->bytes, (size_t)overview->key, worker->bytes, (size_t)overview->value);
    }
    return 0;
}

/// Writes a note for each partition with records, adds the offsets, commits, and writes the stores.
static int commit(struct worker *worker, rd_kafka_t *consumer, const int64_t *next, char *touched) {
    const bench_worker_work *work = worker->work;
    if (settle(worker, next, touched)) return 1;
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(work->partitions);
    for (int32_t p = 0; p < work->partitions; p++) {
        if (!touched[p]) continue;
        if (send_bytes(worker, worker->changelog, p, 0, 1, work->note, NULL)) return 1;
        rd_kafka_topic_partition_list_add(list, work->input, p)->offset = next[p];
    }
    rd_kafka_flush(worker->producer, 10000);
    rd_kafka_consumer_group_metadata_t *group = rd_kafka_consumer_group_metadata(consumer);
    int failed = complain(rd_kafka_send_offsets_to_transaction(worker->producer, list, group, 10000)) ||
                 complain(rd_kafka_commit_transaction(worker->producer, 10000));
    rd_kafka_consumer_group_metadata_destroy(group);
    rd_kafka_topic_partition_list_destroy(list);
    for (int32_t p = 0; p < work->partitions && !failed; p++) {
        if (!touched[p]) continue;
        touched[p] = 0;
        char *error = NULL;
        rocksdb_writebatch_put(worker->changes[p], "", 1, worker->bytes, (size_t)work->note);
        rocksdb_write(worker->stores[p], worker->writing, worker->changes[p], &error);
        rocksdb_writebatch_clear(worker->changes[p]);
        failed = store_failed(error);
    }
    return failed;
}

static int open_stores(struct worker *worker) {
    const bench_worker_work *work = worker->work;
    worker->cache = bench_make_cache((size_t)work->block_bytes);
    worker->reading = rocksdb_readoptions_create();
    worker->writing = rocksdb_writeoptions_create();
    // As workers write: the changelog is the log.
    rocksdb_writeoptions_disable_WAL(worker->writing, 1);
    worker->stores = calloc((size_t)work->partitions, sizeof *worker->stores);
    worker->changes = calloc((size_t)work->partitions, sizeof *worker->changes);
    for (int32_t p = 0; p < work->partitions; p++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%d", work->directory, (int)p);
        worker->stores[p] = bench_open_store(path, worker->cache, (size_t)work->write_buffer_bytes);
        worker->changes[p] = rocksdb_writebatch_create();
        if (!worker->stores[p]) return 1;
    }
    return 0;
}

int64_t bench_worker(const bench_worker_work *work) {
    int64_t failed = 0;
    struct worker worker = {.work = work, .producer = make_producer(work, &failed)};
    worker.parser = perennial_json_parser_create(64, true);
    if (!worker.producer || !worker.parser || open_stores(&worker)) return -1;
    for (int index = 0; index < work->output_count; index++)
        worker.outputs[index] = rd_kafka_topic_new(worker.producer, work->outputs[index].topic, NULL);
    if (work->settled.topic) worker.settled = rd_kafka_topic_new(worker.producer, work->settled.topic, NULL);
    worker.changelog = rd_kafka_topic_new(worker.producer, work->changelog, NULL);
    worker.bytes = calloc(1, LONGEST_VALUE);
    worker.state = calloc(1, LONGEST_VALUE);
    rd_kafka_t *consumer = make_consumer(work);
    int64_t *next = calloc((size_t)work->partitions, sizeof *next);
    char *touched = calloc((size_t)work->partitions, 1);

    int64_t seen = 0, in_transaction = 0;
    int broken = 0;
    while (seen < work->records && !broken) {
        rd_kafka_message_t *message = rd_kafka_consumer_poll(consumer, 100);
        int polled = 0;
        while (message) {
            if (!message->err) {
                if (in_transaction == 0) broken |= complain(rd_kafka_begin_transaction(worker.producer));
                broken |= process(&worker, message);
                next[message->partition] = message->offset + 1;
                touched[message->partition] = 1;
                seen++;
                in_transaction++;
                polled++;
            }
            rd_kafka_message_destroy(message);
            // A worker takes as many records at a time, and then the delivery reports, too.
            message = in_transaction < work->records_per_transaction && polled < 250 ? rd_kafka_consumer_poll(consumer, 0)
                                                                                     : NULL;
        }
        if (in_transaction > 0) rd_kafka_poll(worker.producer, 0);
        if (in_transaction >= work->records_per_transaction || (seen == work->records && in_transaction > 0)) {
            broken |= commit(&worker, consumer, next, touched);
            in_transaction = 0;
            if (!broken) work->committed(work->context, seen);
        }
    }
    int64_t end = 0;
    for (int32_t p = 0; p < work->partitions; p++) end += next[p];
    for (int index = 0; index < work->output_count; index++) rd_kafka_topic_destroy(worker.outputs[index]);
    if (worker.settled) rd_kafka_topic_destroy(worker.settled);
    rd_kafka_topic_destroy(worker.changelog);
    rd_kafka_consumer_close(consumer);
    rd_kafka_destroy(consumer);
    rd_kafka_destroy(worker.producer);
    for (int32_t p = 0; p < work->partitions; p++) rocksdb_close(worker.stores[p]);
    perennial_json_parser_destroy(worker.parser);
    free(worker.bytes);
    free(worker.state);
    free(next);
    free(touched);
    return !broken && failed == 0 && end == work->records ? worker.written : -1;
}
