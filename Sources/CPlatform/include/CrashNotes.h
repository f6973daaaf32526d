// Which record a thread worked on when the process trapped, kept in a file that outlives it.
#pragma once

#include <stdint.h>

/// The content of a file. One that does not fit its `check` counts as empty: an older form, a torn write, somebody else's file.
struct perennial_crash_page {
    uint64_t check;
    int64_t offset;
    uint32_t topic;
    uint32_t traps;
};

/// Maps the file, which is made, or made anew when it has another size. NULL and errno on failure.
struct perennial_crash_page *perennial_crash_open(const char *path);
/// The calling thread stops to work for the page, if it does.
void perennial_crash_close(struct perennial_crash_page *page);

/// The calling thread works on this record from now on.
void perennial_crash_working(struct perennial_crash_page *page, uint32_t topic, int64_t offset);
/// The calling thread works on no record.
void perennial_crash_idle(void);

/// How often the process has trapped at this record, if it is the last one at which it has.
uint32_t perennial_crash_traps(const struct perennial_crash_page *page, uint32_t topic, int64_t offset);
void perennial_crash_clear(struct perennial_crash_page *page);

/// Takes SIGILL, SIGTRAP, SIGSEGV, SIGBUS, SIGFPE and SIGABRT, for the life of the process. After the note the handler before
/// this one is called, if there is one, and then the signal ends the process. 0, or -1 and errno.
int perennial_crash_install(void);
/// Once installed: gives the calling thread a stack of its own for the note, without which it cannot note that its stack has
/// overflowed. 0, or -1 and errno.
int perennial_crash_arm_thread(void);
