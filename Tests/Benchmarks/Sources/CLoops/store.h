// Stores with the options of the product.
#pragma once

#include <rocksdb/c.h>
#include <stddef.h>

/// Opens a store at `path`, and makes it if there is none. NULL on failure, which is reported.
rocksdb_t *bench_open_store(const char *path, rocksdb_cache_t *cache, size_t write_buffer_bytes);
