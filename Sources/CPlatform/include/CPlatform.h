// What the Glibc module does not show to Swift: macros, variadic functions, global FILE pointers.
#pragma once

#include "CrashNotes.h"

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/// Every output stream hands on whole lines, so that a killed process loses at most the line it was writing.
void perennial_line_buffer_standard_streams(void);

/// Blocks SIGINT, SIGTERM and SIGHUP for the calling thread and the threads it starts; ignores SIGPIPE.
void perennial_hold_back_signals(void);

/// Waits for one of SIGINT, SIGTERM, SIGHUP (blocked before) and returns its number; 0 when `timeout_ms` went by.
int perennial_wait_for_signal(int64_t timeout_ms);

/// Whether the process was started with SIGHUP ignored.
bool perennial_hang_up_is_ignored(void);

/// The number of environment variables, and the text `NAME=value` of one of them.
size_t perennial_environment_count(void);
const char *perennial_environment_entry(size_t index);

/// Opens a file for reading without following what blocks (a FIFO without a writer). -1 and errno on failure.
int perennial_open_for_reading(const char *path);

/// Names the calling thread (at most 15 bytes are kept).
void perennial_name_thread(const char *name);

/// How many bytes a TCP socket has received since it was opened, its end not counted; -1 when the system does not say.
int64_t perennial_received_bytes(int socket);

/// Gives the system back what the allocator holds and nobody uses.
void perennial_trim_memory(void);
