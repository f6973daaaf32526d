// The C loops that the Swift layer is compared with: plain C over librdkafka that does the same work.
#pragma once

#include <stdint.h>

/// User and system time of the whole process so far, in microseconds, including librdkafka's own threads.
int64_t bench_cpu_microseconds(void);

/// Writes `records` records to the topic's partitions in turn, each with a 16-byte key, a value of `value_bytes` and a delivery
/// report that is checked. Returns the CPU time of the loop in microseconds; -1 if a record was not delivered.
int64_t bench_produce(const char *bootstrap, const char *topic, int32_t partitions, int64_t records, int64_t value_bytes);

/// Reads `records` records from the beginning of every partition, and reads key, value and offset of each. Returns the CPU time
/// of the loop in microseconds; -1 on failure.
int64_t bench_consume(const char *bootstrap, const char *topic, int32_t partitions, int64_t records);

/// The n-th key: n from 0 up to `keys` gives each key once, in a scattered order.
int64_t bench_store_key(int64_t n, int64_t keys);

/// Puts `keys` values of `value_bytes` into a new store at `path`, `batch_keys` in each write. Returns the CPU time of the loop
/// in microseconds, including RocksDB's own threads; -1 on failure.
int64_t bench_store_put(const char *path, int64_t cache_bytes, int64_t keys, int64_t batch_keys, int64_t value_bytes);

/// Reads every key that `bench_store_put` has put, once, in another order. Returns the CPU time of the loop in microseconds; -1
/// if a value differs from the one that was put.
int64_t bench_store_get(const char *path, int64_t cache_bytes, int64_t keys, int64_t value_bytes);

/// A topic, the header `schema` of its records, and their sizes in bytes.
typedef struct {
    const char *topic;
    const char *schema;
    int64_t key, value;
    /// The record goes to any partition, not to that of the input record.
    int32_t is_elsewhere;
} bench_worker_output;

/// Sizes in bytes of a record without headers.
typedef struct {
    int64_t key, value;
} bench_worker_bytes;

/// What a worker writes, in bytes, and where.
typedef struct {
    const char *bootstrap;
    /// A new group, so that reading starts at the beginning.
    const char *group;
    const char *input;
    /// The outputs of each input record.
    bench_worker_output outputs[3];
    int32_t output_count;
    /// Each transaction writes this many of this output, with a changelog record for each.
    bench_worker_output settled;
    bench_worker_bytes settled_state;
    int64_t settled_per_transaction;
    /// Written to the changelog for each partition and transaction; without a key none is written.
    bench_worker_bytes overview;
    const char *changelog;
    const char *rules;
    int32_t partitions;
    int64_t records;
    int64_t records_per_transaction;
    /// The changelog record of each input record.
    bench_worker_bytes state;
    int64_t note;
} bench_worker_work;

/// The heap allocations of this thread so far.
int64_t bench_allocations(void);

/// Processes exactly once, from a group's input to outputs with headers and a changelog with a note per partition and commit: all
/// that a worker asks of Kafka, without any computing. Returns the CPU time from the first poll to the last commit in
/// microseconds; -1 on failure.
int64_t bench_worker(const bench_worker_work *work, int64_t *transactions);
