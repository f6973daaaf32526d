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

/// The n-th key: for n from 0 up to `keys` every one of them once, in a scattered order.
int64_t bench_store_key(int64_t n, int64_t keys);

/// Puts `keys` values of `value_bytes` into a new store at `path`, `batch_keys` in each write. The CPU time of the loop in
/// microseconds, RocksDB's own threads included; -1 on failure.
int64_t bench_store_put(const char *path, int64_t cache_bytes, int64_t keys, int64_t batch_keys, int64_t value_bytes);

/// Reads every key that `bench_store_put` has put, once, in another order. The CPU time of the loop in microseconds; -1 when one
/// is not as it was put.
int64_t bench_store_get(const char *path, int64_t cache_bytes, int64_t keys, int64_t value_bytes);

/// A topic, the header `type` of its records, and their bytes.
typedef struct {
    const char *topic;
    const char *type;
    int64_t key, value;
    /// It goes to any partition, not to that of the record.
    int32_t is_elsewhere;
} bench_worker_output;

/// Byte counts of a record without headers.
typedef struct {
    int64_t key, value;
} bench_worker_bytes;

/// What a worker writes, as byte counts, and where.
typedef struct {
    const char *bootstrap;
    /// A new one: reading begins at the beginning.
    const char *group;
    const char *input;
    /// For each record.
    bench_worker_output outputs[3];
    int32_t output_count;
    /// For each transaction so many of this one, with a record of the changelog for each.
    bench_worker_output settled;
    bench_worker_bytes settled_state;
    int64_t settled_per_transaction;
    /// In the changelog, for each partition and transaction; no key: none.
    bench_worker_bytes overview;
    const char *changelog;
    const char *rules;
    int32_t partitions;
    int64_t records;
    int64_t records_per_transaction;
    /// Of the changelog's record for each record.
    bench_worker_bytes state;
    int64_t note;
} bench_worker_work;

/// Exactly once, from a group's input to outputs with headers and a changelog with a note per partition and commit: all that
/// a worker asks of Kafka, and no computing. The CPU time from the first poll to the last commit in microseconds; -1 on failure.
int64_t bench_worker(const bench_worker_work *work, int64_t *transactions);
