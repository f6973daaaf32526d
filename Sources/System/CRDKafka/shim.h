// librdkafka for Swift: wraps variadic functions and unions, without logic.
#pragma once

#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

/// librdkafka's table of its properties as text, which the caller frees; NULL if memory is short.
static inline char *perennial_rdkafka_properties(void) {
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    if (!stream) return NULL;
    rd_kafka_conf_properties_show(stream);
    fclose(stream);
    return text;
}

/// One record for `rd_kafka_produceva`, which takes an array of unions that Swift would copy member by member. Only on
/// success `headers` belong to librdkafka; otherwise the caller must destroy them (rd_kafka_headers_destroy). Unless
/// `copies_value`, the value must stay as it is until its delivery report.
static inline rd_kafka_error_t *perennial_rdkafka_produce(
    rd_kafka_t *handle, rd_kafka_topic_t *topic, int32_t partition, const void *key, size_t key_bytes, const void *value,
    size_t value_bytes, bool copies_value, rd_kafka_headers_t *headers, int64_t timestamp_ms, void *token) {
    rd_kafka_vu_t fields[8];
    size_t count = 0;
    fields[count].vtype = RD_KAFKA_VTYPE_RKT;
    fields[count++].u.rkt = topic;
    fields[count].vtype = RD_KAFKA_VTYPE_PARTITION;
    fields[count++].u.i32 = partition;
    fields[count].vtype = RD_KAFKA_VTYPE_MSGFLAGS;
    fields[count++].u.i = copies_value ? RD_KAFKA_MSG_F_COPY : 0;
    fields[count].vtype = RD_KAFKA_VTYPE_VALUE;
    fields[count].u.mem.ptr = (void *)value;
    fields[count++].u.mem.size = value_bytes;
    if (key) {
        fields[count].vtype = RD_KAFKA_VTYPE_KEY;
        fields[count].u.mem.ptr = (void *)key;
        fields[count++].u.mem.size = key_bytes;
    }
    fields[count].vtype = RD_KAFKA_VTYPE_OPAQUE;
    fields[count++].u.ptr = token;
    if (timestamp_ms >= 0) {
        fields[count].vtype = RD_KAFKA_VTYPE_TIMESTAMP;
        fields[count++].u.i64 = timestamp_ms;
    }
    if (headers) {
        fields[count].vtype = RD_KAFKA_VTYPE_HEADERS;
        fields[count++].u.headers = headers;
    }
    return rd_kafka_produceva(handle, fields, count);
}
