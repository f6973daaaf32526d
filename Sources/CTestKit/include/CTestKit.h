// Child processes: what has to happen between fork and exec, where only async-signal-safe calls are allowed.
#pragma once

#include <stdbool.h>
#include <sys/types.h>

struct perennial_child {
    /// A path; PATH is not searched.
    const char *program;
    /// Both end with NULL.
    char *const *arguments;
    char *const *environment;
    /// NULL: the parent's.
    const char *working_directory;
    int input, output, errors;
};

/// Starts a program in a process group of its own, with default signals, without the parent's other descriptors, and
/// bound to the parent's life: the kernel kills it when the parent ends, however that happens. -1 and errno on failure,
/// also when the program cannot be executed.
pid_t perennial_start_child(const struct perennial_child *child);

/// Looks after one child: 1 when it has ended (`*code` is its exit code or, if `*signalled`, its signal), 0 when it still
/// runs (never with `wait`), -1 and errno when it is not a child. What is left of its process group is killed first.
int perennial_reap_child(pid_t pid, bool wait, int *code, bool *signalled);

/// A file in memory without a name, closed in children. -1 and errno on failure.
int perennial_anonymous_file(const char *label);

/// Removes a directory with all it contains; does not follow links. 0, or -1 and errno.
int perennial_remove_tree(const char *path);
