// Counts the heap allocations of a thread, so that a row can say how many a notification takes. The memory comes from mimalloc, as in the
// program that is measured: what frees memory is mimalloc's own.

#include "CLoops.h"

#include <mimalloc.h>
#include <stddef.h>

// Of one thread: a shared counter would slow down the threads that other rows measure.
static _Thread_local int64_t allocations;

int64_t bench_allocations(void) { return allocations; }

void *malloc(size_t size) {
    allocations++;
    return mi_malloc(size);
}

void *calloc(size_t count, size_t size) {
    allocations++;
    return mi_calloc(count, size);
}

void *realloc(void *memory, size_t size) {
    allocations++;
    return mi_realloc(memory, size);
}

void *aligned_alloc(size_t alignment, size_t size) {
    allocations++;
    return mi_aligned_alloc(alignment, size);
}

int posix_memalign(void **memory, size_t alignment, size_t size) {
    allocations++;
    return mi_posix_memalign(memory, alignment, size);
}

// `new` and `new[]` of C++, and those that do not throw, by the names that compilers give them.

void *_Znwm(size_t size) {
    allocations++;
    return mi_new(size);
}

void *_Znam(size_t size) {
    allocations++;
    return mi_new(size);
}

void *_ZnwmRKSt9nothrow_t(size_t size, const void *nothrow) {
    (void)nothrow;
    allocations++;
    return mi_new_nothrow(size);
}

void *_ZnamRKSt9nothrow_t(size_t size, const void *nothrow) {
    (void)nothrow;
    allocations++;
    return mi_new_nothrow(size);
}
