// The version of RocksDB, which its C face does not tell.
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

/// Of the library that the process runs with, such as "7.8.3". Lives as long as the process.
const char *perennial_rocksdb_runtime_version(void);

/// Of the headers that the program was built with.
const char *perennial_rocksdb_header_version(void);

#ifdef __cplusplus
}
#endif
