// Stores with the options of the product.
#pragma once

#include <rocksdb/c.h>
#include <stddef.h>

/// A cache for blocks of files, divided like that of the product.
rocksdb_cache_t *bench_make_cache(size_t bytes);

/// Opens a store at `path`, and makes it if there is none. NULL on failure, which is reported.
rocksdb_t *bench_open_store(const char *path, rocksdb_cache_t *cache, size_t write_buffer_bytes);
