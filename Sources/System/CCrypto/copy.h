// For this module only: copies bytes to a caller who asks for their number first.
#pragma once

#include <stdint.h>
#include <string.h>

/// Writes at most `capacity` bytes and returns the total number. `out` is NULL if the caller asks only for the number;
/// then not even zero bytes may be copied to it (C11 7.24.1).
static inline size_t perennial_copy(const uint8_t *bytes, size_t count, uint8_t *out, size_t capacity) {
    if (count > 0 && capacity > 0) memcpy(out, bytes, count < capacity ? count : capacity);
    return count;
}
