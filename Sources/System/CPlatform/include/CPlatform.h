// What the Glibc module does not export to Swift: macros, variadic functions, global FILE pointers.
#pragma once

#include "CrashNotes.h"

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/// Makes every output stream write whole lines, so that a killed process loses at most its current line.
void perennial_line_buffer_standard_streams(void);

/// Blocks SIGINT, SIGTERM and SIGHUP for the calling thread and the threads it starts; ignores SIGPIPE.
void perennial_hold_back_signals(void);

/// Waits for one of SIGINT, SIGTERM, SIGHUP (blocked before) and returns its number; 0 after `timeout_ms`.
int perennial_wait_for_signal(int64_t timeout_ms);

/// Whether the process was started with SIGHUP ignored.
bool perennial_hang_up_is_ignored(void);

/// The number of environment variables, and the text `NAME=value` of one of them.
size_t perennial_environment_count(void);
const char *perennial_environment_entry(size_t index);

/// Opens a file for reading without blocking (as on a FIFO without a writer). -1 and errno on failure.
int perennial_open_for_reading(const char *path);

/// Names the calling thread (at most 15 bytes are kept).
void perennial_name_thread(const char *name);

/// How many bytes a TCP socket has received since it was opened, without its end; -1 if the system does not report it.
int64_t perennial_received_bytes(int socket);

/// Returns unused memory of the allocator to the system.
void perennial_trim_memory(void);
