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

/// A topic, the header `schema` of its records, and the size of their keys.
typedef struct {
    const char *topic;
    const char *schema;
    int64_t key;
    /// The record goes to any partition, not to that of the input record.
    int32_t is_elsewhere;
} bench_worker_output;

/// Sizes in bytes of a record without headers.
typedef struct {
    int64_t key, value;
} bench_worker_bytes;

enum { BENCH_WORKER_OUTPUTS = 3, BENCH_WORKER_RECORDS = 8 };

/// What input records of one kind cause.
typedef struct {
    /// The indices of the outputs, and the sizes of the values.
    int32_t outputs[BENCH_WORKER_RECORDS];
    int64_t values[BENCH_WORKER_RECORDS];
    int32_t count;
    /// Size of the new state; 0: the state does not change, and nothing is written.
    int64_t state;
} bench_worker_step;

/// What a worker writes, in bytes, and where.
typedef struct {
    const char *bootstrap;
    /// A new group, so that reading starts at the beginning.
    const char *group;
    const char *input;
    bench_worker_output outputs[BENCH_WORKER_OUTPUTS];
    int32_t output_count;
    const bench_worker_step *steps;
    /// The index of the step of each input record, by partition and offset.
    const uint8_t *const *plan;
    /// Each transaction writes this many of this output, each with a state and its changelog record.
    bench_worker_output settled;
    int64_t settled_value;
    bench_worker_bytes settled_state;
    int64_t settled_per_transaction;
    /// A state that each partition changes in each transaction; without a key there is none.
    bench_worker_bytes overview;
    const char *changelog;
    const char *rules;
    int32_t partitions;
    int64_t records;
    int64_t records_per_transaction;
    int64_t note;
    /// One store for each partition is made here.
    const char *directory;
    int64_t block_bytes, write_buffer_bytes;
    /// What the consumer fetches ahead.
    int64_t queued_records, queued_kilobytes;
    /// Called after each commit with the number of records so far.
    void (*committed)(void *context, int64_t records);
    void *context;
} bench_worker_work;

/// The heap allocations of this thread so far.
int64_t bench_allocations(void);

/// A worker without rules and without an engine. It processes exactly once, from a group's input to outputs with headers and to a
/// changelog with a note for each partition and commit. It parses each record, reads its state from RocksDB and writes one of the
/// given size back. Returns the number of outputs that it has written; -1 on failure.
int64_t bench_worker(const bench_worker_work *work);
