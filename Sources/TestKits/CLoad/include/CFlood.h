// An attacker's requests: raw bytes over many connections, from given addresses, at a given rate, from one thread.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/// A placeholder for the number of a request, with as many hexadecimal digits.
#define PERENNIAL_FLOOD_NUMBER "################"

struct perennial_flood {
    /// IPv4 addresses of this machine as text; connections come from them in turn.
    const char *const *sources;
    int source_count;
    /// The port on 127.0.0.1.
    uint16_t port;
    /// Requests are consecutive in memory: request n is bytes[offsets[n]] up to bytes[offsets[n + 1]]. They are sent in
    /// turn. An empty request opens a connection and sends nothing.
    const uint8_t *bytes;
    const size_t *offsets;
    size_t request_count;
    /// The maximum number of open connections.
    int connections;
    /// Whether a connection is reused after an answer.
    bool keeps;
    /// Requests started per second, as far as a connection is free.
    double rate;
    double seconds;
};

enum { PERENNIAL_FLOOD_STATUSES = 600 };

struct perennial_flood_outcome {
    /// Requests that were started.
    int64_t sent;
    /// Number of answers by status.
    int64_t statuses[PERENNIAL_FLOOD_STATUSES];
    /// Requests whose connection the server closed without an answer, or never accepted.
    int64_t closed;
    /// The maximum number of open connections as the client counts them, including those that wait to be accepted.
    int most_open;
    /// Requests that were not started in time, because every connection was in use.
    int64_t held_back;
    double seconds;
    /// CPU time of this thread.
    double client_cpu_seconds;
};

/// Blocks until `seconds` are over, and then closes everything. Returns 0, or -1 if it could not start.
int perennial_flood_run(const struct perennial_flood *flood, struct perennial_flood_outcome *outcome);
