// Child processes: the work between fork and exec, where only async-signal-safe calls are allowed.
#pragma once

#include <stdbool.h>
#include <sys/types.h>

struct perennial_child {
    /// A path; PATH is not searched.
    const char *program;
    /// Both end with NULL.
    char *const *arguments;
    char *const *environment;
    /// NULL: the parent's directory.
    const char *working_directory;
    int input, output, errors;
};

/// Starts a program in its own process group, with default signals and without the parent's other descriptors. The
/// kernel kills it when the parent ends, however that happens. Returns -1 and sets errno on failure, also if the
/// program cannot be executed.
pid_t perennial_start_child(const struct perennial_child *child);

/// Checks one child. Returns 1 if it has ended (`*code` is its exit code or, if `*signalled`, its signal), 0 if it is
/// still running (never with `wait`), and -1 with errno if it is not a child. The rest of its process group is killed
/// first.
int perennial_reap_child(pid_t pid, bool wait, int *code, bool *signalled);

/// An unnamed file in memory that children do not inherit. Returns -1 and sets errno on failure.
int perennial_anonymous_file(const char *label);

/// Removes a directory and everything in it; does not follow links. Returns 0, or -1 with errno.
int perennial_remove_tree(const char *path);
