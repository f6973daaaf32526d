#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "CLoops.h"
#include "store.h"

// The options, the keys and the batches are those of Sources/Engine/RocksStore/RocksStores.swift, so that only the wrapping differs.

rocksdb_cache_t *bench_make_cache(size_t bytes) {
    rocksdb_lru_cache_options_t *options = rocksdb_lru_cache_options_create();
    rocksdb_lru_cache_options_set_capacity(options, bytes);
    rocksdb_lru_cache_options_set_num_shard_bits(options, bytes < (16 << 20) ? 0 : bytes < (32 << 20) ? 1 : 2);
    rocksdb_cache_t *cache = rocksdb_cache_create_lru_opts(options);
    rocksdb_lru_cache_options_destroy(options);
    return cache;
}

rocksdb_t *bench_open_store(const char *path, rocksdb_cache_t *cache, size_t write_buffer_bytes) {
    rocksdb_options_t *options = rocksdb_options_create();
    rocksdb_options_set_create_if_missing(options, 1);
    rocksdb_options_set_write_buffer_size(options, write_buffer_bytes);
    rocksdb_options_set_max_write_buffer_number(options, 2);
    rocksdb_block_based_table_options_t *tables = rocksdb_block_based_options_create();
    rocksdb_block_based_options_set_block_cache(tables, cache);
    rocksdb_block_based_options_set_block_size(tables, 8 << 10);
    rocksdb_block_based_options_set_cache_index_and_filter_blocks(tables, 1);
    rocksdb_block_based_options_set_cache_index_and_filter_blocks_with_high_priority(tables, 1);
    rocksdb_block_based_options_set_pin_top_level_index_and_filter(tables, 1);
    rocksdb_block_based_options_set_pin_l0_filter_and_index_blocks_in_cache(tables, 1);
    rocksdb_block_based_options_set_filter_policy(tables, rocksdb_filterpolicy_create_bloom_full(10));
    rocksdb_options_set_block_based_table_factory(options, tables);
    rocksdb_options_set_memtable_prefix_bloom_size_ratio(options, 0.02);
    rocksdb_options_set_memtable_whole_key_filtering(options, 1);
    rocksdb_options_set_max_open_files(options, 256);
    rocksdb_options_set_level0_file_num_compaction_trigger(options, 8);
    rocksdb_options_set_max_bytes_for_level_base(options, 64 << 20);
    rocksdb_options_compaction_readahead_size(options, 256 << 10);
    rocksdb_options_set_compression(options, rocksdb_no_compression);
    rocksdb_options_set_max_background_jobs(options, 2);
    rocksdb_options_set_skip_stats_update_on_db_open(options, 1);
    rocksdb_options_set_stats_dump_period_sec(options, 0);
    rocksdb_options_set_stats_persist_period_sec(options, 0);
    rocksdb_options_add_compact_on_deletion_collector_factory(options, 1024, 512);
    rocksdb_options_set_info_log_level(options, 2);
    char *error = NULL;
    rocksdb_t *store = rocksdb_open(options, path, &error);
    if (error) fprintf(stderr, "bench: %s\n", error);
    return error ? NULL : store;
}

static rocksdb_t *open_store(const char *path, int64_t cache_bytes) {
    return bench_open_store(path, bench_make_cache((size_t)cache_bytes), 8 << 20);
}

// The beginning of every key of values, before sixteen digits.
static void write_key(char *key, int64_t number) {
    key[0] = 1;
    for (int place = 16; place > 0; place--) {
        key[place] = (char)('0' + number % 10);
        number /= 10;
    }
}

int64_t bench_store_put(const char *path, int64_t cache_bytes, int64_t keys, int64_t batch_keys, int64_t value_bytes) {
    rocksdb_t *store = open_store(path, cache_bytes);
    if (!store) return -1;
    rocksdb_writeoptions_t *logged = rocksdb_writeoptions_create();
    rocksdb_writebatch_t *batch = rocksdb_writebatch_create();
    char *value = malloc((size_t)value_bytes);
    memset(value, 'v', (size_t)value_bytes);
    char key[17];
    char *error = NULL;
    int64_t start = bench_cpu_microseconds();
    for (int64_t n = 0; n < keys && !error; n++) {
        write_key(key, bench_store_key(n, keys));
        rocksdb_writebatch_put(batch, key, sizeof key, value, (size_t)value_bytes);
        if (n % batch_keys == batch_keys - 1) {
            rocksdb_writebatch_put(batch, "", 1, (const char *)&n, sizeof n);
            rocksdb_write(store, logged, batch, &error);
            rocksdb_writebatch_clear(batch);
        }
    }
    int64_t spent = bench_cpu_microseconds() - start;
    if (error) fprintf(stderr, "bench: %s\n", error);
    free(value);
    rocksdb_close(store);
    return error ? -1 : spent;
}

int64_t bench_store_get(const char *path, int64_t cache_bytes, int64_t keys, int64_t value_bytes) {
    rocksdb_t *store = open_store(path, cache_bytes);
    if (!store) return -1;
    rocksdb_readoptions_t *reading = rocksdb_readoptions_create();
    char *value = malloc((size_t)value_bytes);
    char key[17];
    int64_t found = 0;
    int64_t start = bench_cpu_microseconds();
    for (int64_t n = 0; n < keys; n++) {
        write_key(key, bench_store_key(n * 7, keys));
        char *error = NULL;
        rocksdb_pinnableslice_t *pinned = rocksdb_get_pinned(store, reading, key, sizeof key, &error);
        if (!pinned) break;
        size_t count;
        const char *bytes = rocksdb_pinnableslice_value(pinned, &count);
        if (count == (size_t)value_bytes) {
            memcpy(value, bytes, count);
            found += value[count - 1] == 'v';
        }
        rocksdb_pinnableslice_destroy(pinned);
    }
    int64_t spent = bench_cpu_microseconds() - start;
    free(value);
    rocksdb_close(store);
    return found == keys ? spent : -1;
}

int64_t bench_store_key(int64_t n, int64_t keys) {
    // A prime that divides no round number: each key comes once, far from the one before.
    return 2000000000000000 + n % keys * 611953 % keys;
}
