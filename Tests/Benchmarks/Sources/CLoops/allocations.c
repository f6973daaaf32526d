// Counts the heap allocations of a thread, so that a row can say how many a notification takes. The memory comes from the allocator of the
// process, which is the next library that has these functions.

#include "CLoops.h"

#include <dlfcn.h>
#include <stddef.h>

// Of one thread: a shared counter would slow down the threads that other rows measure.
static _Thread_local int64_t allocations;

int64_t bench_allocations(void) { return allocations; }

// Finds the function only once. Threads that do so at the same time find the same one.
#define NEXT(name)                                                                                                                        \
    static __typeof__(&name) next;                                                                                                        \
    if (!next) next = (__typeof__(next))dlsym(RTLD_NEXT, #name);                                                                          \
    allocations++

void *malloc(size_t size) {
    NEXT(malloc);
    return next(size);
}

void *calloc(size_t count, size_t size) {
    NEXT(calloc);
    return next(count, size);
}

void *realloc(void *memory, size_t size) {
    NEXT(realloc);
    return next(memory, size);
}

void *aligned_alloc(size_t alignment, size_t size) {
    NEXT(aligned_alloc);
    return next(alignment, size);
}

int posix_memalign(void **memory, size_t alignment, size_t size) {
    NEXT(posix_memalign);
    return next(memory, alignment, size);
}

// `new` and `new[]` of C++, and those that do not throw, by the names that compilers give them.

void *_Znwm(size_t size) {
    NEXT(_Znwm);
    return next(size);
}

void *_Znam(size_t size) {
    NEXT(_Znam);
    return next(size);
}

void *_ZnwmRKSt9nothrow_t(size_t size, const void *nothrow) {
    NEXT(_ZnwmRKSt9nothrow_t);
    return next(size, nothrow);
}

void *_ZnamRKSt9nothrow_t(size_t size, const void *nothrow) {
    NEXT(_ZnamRKSt9nothrow_t);
    return next(size, nothrow);
}
