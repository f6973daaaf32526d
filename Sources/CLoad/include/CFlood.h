// What an attacker sends: raw bytes over many connections, from addresses of his choice, at a stated rate, from one thread.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/// Stands in a request where its number is to be written, in as many hexadecimal digits.
#define PERENNIAL_FLOOD_NUMBER "################"

struct perennial_flood {
    /// IPv4 addresses of this machine, in text; connections come from them in turn.
    const char *const *sources;
    int source_count;
    /// Of 127.0.0.1.
    uint16_t port;
    /// Requests lie one after the other; request n is bytes[offsets[n]] up to bytes[offsets[n + 1]]. They are sent in turn. One of
    /// no bytes is a connection that says nothing.
    const uint8_t *bytes;
    const size_t *offsets;
    size_t request_count;
    /// Open at a time, at the most.
    int connections;
    /// Whether a connection is used again after an answer.
    bool keeps;
    /// Requests begun a second, as far as a connection is free for them.
    double rate;
    double seconds;
};

enum { PERENNIAL_FLOOD_STATUSES = 600 };

struct perennial_flood_outcome {
    /// Requests that were begun.
    int64_t sent;
    /// Answers by status.
    int64_t statuses[PERENNIAL_FLOOD_STATUSES];
    /// Requests whose connection the server closed without an answer, or never took.
    int64_t closed;
    /// Open at a time, as the client counts them: also those that wait to be accepted.
    int most_open;
    /// Requests not begun at their time, because every connection was in use.
    int64_t held_back;
    double seconds;
    /// CPU time of this thread.
    double client_cpu_seconds;
};

/// Blocks until `seconds` are over; what is open then is closed. 0; -1 when it could not begin.
int perennial_flood_run(const struct perennial_flood *flood, struct perennial_flood_outcome *outcome);
