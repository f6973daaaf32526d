// Which record a thread worked on when the process trapped, kept in a file that outlives it.
#pragma once

#include <stdint.h>

/// The contents of a file. If they do not match `check` the file counts as empty: an older format, a torn write, a
/// foreign file.
struct perennial_crash_page {
    uint64_t check;
    int64_t offset;
    uint32_t topic;
    uint32_t traps;
};

/// Maps the file; creates it if it is missing, or anew if it has another size. NULL and errno on failure.
struct perennial_crash_page *perennial_crash_open(const char *path);
/// If the calling thread works for the page, it stops to do so.
void perennial_crash_close(struct perennial_crash_page *page);

/// The calling thread works on this record from now on.
void perennial_crash_working(struct perennial_crash_page *page, uint32_t topic, int64_t offset);
/// The calling thread works on no record.
void perennial_crash_idle(void);

/// How often the process has trapped at this record, if it is the last one at which it trapped.
uint32_t perennial_crash_traps(const struct perennial_crash_page *page, uint32_t topic, int64_t offset);

/// Handles SIGILL, SIGTRAP, SIGSEGV, SIGBUS, SIGFPE and SIGABRT for the life of the process. After the note it calls
/// the previous handler, if there is one, and then the signal ends the process. 0, or -1 and errno.
int perennial_crash_install(void);
/// Call this after installing: gives the calling thread a separate stack for the note, without which it cannot note an
/// overflow of its own stack. 0, or -1 and errno.
int perennial_crash_arm_thread(void);
