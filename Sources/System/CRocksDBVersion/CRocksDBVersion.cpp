#include "CRocksDBVersion.h"

#include <rocksdb/version.h>

#define TEXT_OF(number) #number
#define DOTTED(major, minor, patch) TEXT_OF(major) "." TEXT_OF(minor) "." TEXT_OF(patch)

const char *perennial_rocksdb_runtime_version(void) {
    // No exception may reach C; the only possible one is for missing memory.
    try {
        static const std::string version = rocksdb::GetRocksVersionAsString(true);
        return version.c_str();
    } catch (...) {
        return "unknown";
    }
}

const char *perennial_rocksdb_header_version(void) { return DOTTED(ROCKSDB_MAJOR, ROCKSDB_MINOR, ROCKSDB_PATCH); }
