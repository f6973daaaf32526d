// Simulates a host with a wrong wall clock for one process. When it is preloaded (LD_PRELOAD), it shifts the C library's time by
// the seconds in the file that CLOCK_SHIFT_FILE names, a 64-bit number. The file may change at any time.

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static int64_t shift(void) {
    static _Atomic(const volatile int64_t *) seconds;
    const volatile int64_t *known = atomic_load(&seconds);
    if (!known) {
        const char *path = getenv("CLOCK_SHIFT_FILE");
        int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
        // Without the file the test would prove nothing, so the process must not run with the right clock.
        if (file < 0) abort();
        void *memory = mmap(NULL, sizeof(int64_t), PROT_READ, MAP_SHARED, file, 0);
        close(file);
        if (memory == MAP_FAILED) abort();
        known = memory;
        atomic_store(&seconds, known);
    }
    return *known;
}

// Uses the system call itself: looking up the C library's function would need the time before it is known.
int clock_gettime(clockid_t clock, struct timespec *time) {
    long result = syscall(SYS_clock_gettime, clock, time);
    if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) time->tv_sec += shift();
    return (int)result;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    (void)zone;
    struct timespec time;
    if (clock_gettime(CLOCK_REALTIME, &time) != 0) return -1;
    now->tv_sec = time.tv_sec;
    now->tv_usec = time.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *result) {
    struct timespec now;
    if (clock_gettime(CLOCK_REALTIME, &now) != 0) return -1;
    if (result) *result = now.tv_sec;
    return now.tv_sec;
}
