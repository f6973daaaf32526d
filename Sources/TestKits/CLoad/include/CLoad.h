// Load for an HTTP server, from one thread: libcurl's multi interface over epoll.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "CFlood.h"

enum perennial_load_use {
    /// Connections are kept: one handshake for each.
    PERENNIAL_LOAD_KEPT,
    /// A connection and a full handshake for every request.
    PERENNIAL_LOAD_NEW,
    /// A connection for every request; the TLS session is resumed if the server allows it.
    PERENNIAL_LOAD_RESUMED,
};

struct perennial_load {
    const char *url;
    /// NULL: POST.
    const char *method;
    /// An additional header line; NULL: none.
    const char *header;
    /// The local address of connections; NULL: the system chooses.
    const char *source;
    /// A PEM file with the root of the server's certificate; NULL: plaintext.
    const char *authority;
    /// Bodies are consecutive in memory: body n is bytes[offsets[n]] up to bytes[offsets[n + 1]]. They are sent in
    /// turn.
    const uint8_t *bytes;
    const size_t *offsets;
    size_t body_count;
    /// The first body to send.
    size_t first_body;
    int connections;
    /// Makes every connection before the first request and before the clock starts: handshakes are expensive and are
    /// not measured.
    bool connects_first;
    enum perennial_load_use use;
    /// 0: they are as many as fit into `seconds`.
    int64_t requests;
    double seconds;
    /// Requests started per second, whether or not the server keeps up; 0: each connection sends again after its
    /// answer.
    double rate;
    /// The timeout of one request, from its start to its answer.
    long timeout_ms;
};

enum { PERENNIAL_LOAD_STATUSES = 600 };

struct perennial_load_outcome {
    /// Number of answers by status.
    int64_t statuses[PERENNIAL_LOAD_STATUSES];
    /// Connections that the server did not accept.
    int64_t refused;
    int64_t timed_out;
    /// Requests that ended without an answer in any other way.
    int64_t broken;
    /// Requests that were not started in time, because every connection waited for an answer.
    int64_t held_back;
    /// The reason why the last broken request ended; "" if there is none.
    char last_error[256];
    double seconds;
    /// CPU time of this thread: it shows whether the client was the bottleneck.
    double client_cpu_seconds;
    /// Milliseconds from the start of a request to its answer.
    double p50_ms, p99_ms, max_ms;
};

/// Blocks until every request has ended. Returns 0, or -1 if it could not start.
int perennial_load_run(const struct perennial_load *load, struct perennial_load_outcome *outcome);
