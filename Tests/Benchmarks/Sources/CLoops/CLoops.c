#include "CLoops.h"

#include <librdkafka/rdkafka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

int64_t bench_cpu_microseconds(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (int64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000 + usage.ru_utime.tv_usec +
           usage.ru_stime.tv_usec;
}

static void set(rd_kafka_conf_t *conf, const char *name, const char *value) {
    char error[256];
    if (rd_kafka_conf_set(conf, name, value, error, sizeof error) != RD_KAFKA_CONF_OK) {
        fprintf(stderr, "bench: %s\n", error);
        abort();
    }
}

struct deliveries {
    int64_t delivered;
    int64_t failed;
    int64_t last_offset;
};

static void on_delivery(rd_kafka_t *rk, const rd_kafka_message_t *message, void *opaque) {
    (void)rk;
    struct deliveries *deliveries = opaque;
    if (message->err) {
        deliveries->failed++;
    } else {
        deliveries->delivered++;
        deliveries->last_offset = message->offset;
    }
}

int64_t bench_produce(const char *bootstrap, const char *topic, int32_t partitions, int64_t records, int64_t value_bytes) {
    struct deliveries deliveries = {0, 0, -1};
    char error[256];
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    set(conf, "bootstrap.servers", bootstrap);
    set(conf, "enable.idempotence", "true");
    set(conf, "acks", "all");
    set(conf, "linger.ms", "5");
    set(conf, "message.timeout.ms", "30000");
    set(conf, "queue.buffering.max.messages", "20000");
    set(conf, "queue.buffering.max.kbytes", "65536");
    set(conf, "socket.nagle.disable", "true");
    rd_kafka_conf_set_dr_msg_cb(conf, on_delivery);
    rd_kafka_conf_set_opaque(conf, &deliveries);
    rd_kafka_t *rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, error, sizeof error);
    rd_kafka_topic_t *rkt = rd_kafka_topic_new(rk, topic, NULL);
    const struct rd_kafka_metadata *metadata;
    if (rd_kafka_metadata(rk, 0, rkt, &metadata, 10000) != RD_KAFKA_RESP_ERR_NO_ERROR) return -1;
    rd_kafka_metadata_destroy(metadata);

    char *value = malloc((size_t)value_bytes);
    memset(value, 'v', (size_t)value_bytes);
    char key[16] = "2000000123456789";
    int64_t start = bench_cpu_microseconds();
    for (int64_t n = 0; n < records; n++) {
        while (1) {
            rd_kafka_resp_err_t code = rd_kafka_producev(
                rk, RD_KAFKA_V_RKT(rkt), RD_KAFKA_V_PARTITION((int32_t)(n % partitions)),
                RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_VALUE(value, (size_t)value_bytes),
                RD_KAFKA_V_KEY(key, sizeof key), RD_KAFKA_V_OPAQUE((void *)(intptr_t)n),
                RD_KAFKA_V_TIMESTAMP(1771000000000 + n), RD_KAFKA_V_END);
            if (code == RD_KAFKA_RESP_ERR_NO_ERROR) break;
            if (code != RD_KAFKA_RESP_ERR__QUEUE_FULL) return -1;
            rd_kafka_poll(rk, 10);
        }
        if (n % 100 == 0) rd_kafka_poll(rk, 0);
    }
    rd_kafka_flush(rk, 60000);
    int64_t spent = bench_cpu_microseconds() - start;
    free(value);
    rd_kafka_topic_destroy(rkt);
    rd_kafka_destroy(rk);
    return deliveries.delivered == records && deliveries.failed == 0 ? spent : -1;
}

int64_t bench_consume(const char *bootstrap, const char *topic, int32_t partitions, int64_t records) {
    char error[256];
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    set(conf, "bootstrap.servers", bootstrap);
    set(conf, "group.id", "bench-c");
    set(conf, "enable.auto.commit", "false");
    set(conf, "enable.auto.offset.store", "false");
    set(conf, "isolation.level", "read_committed");
    set(conf, "auto.offset.reset", "earliest");
    set(conf, "enable.partition.eof", "true");
    set(conf, "fetch.wait.max.ms", "50");
    set(conf, "queued.min.messages", "100000");
    set(conf, "queued.max.messages.kbytes", "65536");
    set(conf, "socket.nagle.disable", "true");
    rd_kafka_t *rk = rd_kafka_new(RD_KAFKA_CONSUMER, conf, error, sizeof error);
    rd_kafka_poll_set_consumer(rk);
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(partitions);
    for (int32_t p = 0; p < partitions; p++) rd_kafka_topic_partition_list_add(list, topic, p)->offset = 0;
    int64_t *next = calloc((size_t)partitions, sizeof *next);

    int64_t start = bench_cpu_microseconds();
    rd_kafka_assign(rk, list);
    int64_t seen = 0;
    uint64_t sum = 0;
    int idle = 0;
    while (seen < records && idle < 100) {
        rd_kafka_message_t *message = rd_kafka_consumer_poll(rk, 100);
        idle = message ? 0 : idle + 1;
        while (message) {
            if (!message->err) {
                next[message->partition] = message->offset + 1;
                sum += ((const unsigned char *)message->payload)[message->len - 1] + message->key_len;
                seen++;
            } else if (message->err != RD_KAFKA_RESP_ERR__PARTITION_EOF) {
                fprintf(stderr, "bench: %s\n", rd_kafka_message_errstr(message));
            }
            rd_kafka_message_destroy(message);
            message = rd_kafka_consumer_poll(rk, 0);
        }
    }
    int64_t spent = bench_cpu_microseconds() - start;
    int64_t end = 0;
    for (int32_t p = 0; p < partitions; p++) end += next[p];
    rd_kafka_topic_partition_list_destroy(list);
    free(next);
    rd_kafka_consumer_close(rk);
    rd_kafka_destroy(rk);
    return seen == records && end == records && sum > 0 ? spent : -1;
}
