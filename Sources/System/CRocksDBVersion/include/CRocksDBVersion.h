// The version of RocksDB, which its C interface does not provide.
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

/// Version of the library with which the process runs, such as "7.8.3". Valid as long as the process.
const char *perennial_rocksdb_runtime_version(void);

/// Version of the headers with which the program was built.
const char *perennial_rocksdb_header_version(void);

#ifdef __cplusplus
}
#endif
