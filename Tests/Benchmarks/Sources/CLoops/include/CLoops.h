// The loops that the layer is measured against: plain C over librdkafka, doing the same work.
#pragma once

#include <stdint.h>

/// User and system time of the whole process so far, in microseconds: librdkafka's own threads count too.
int64_t bench_cpu_microseconds(void);

/// Writes `records` records to the topic's partitions in turn, each with a 16-byte key, a value of `value_bytes` and a delivery
/// report that is checked. The CPU time of the loop in microseconds; -1 when a record was not delivered.
int64_t bench_produce(const char *bootstrap, const char *topic, int32_t partitions, int64_t records, int64_t value_bytes);

/// Reads `records` records from the beginning of every partition, looking at key, value and offset of each. The CPU time of the
/// loop in microseconds; -1 on failure.
int64_t bench_consume(const char *bootstrap, const char *topic, int32_t partitions, int64_t records);
