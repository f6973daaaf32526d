// Load for an HTTP server, from one thread: libcurl's multi interface over epoll.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "CFlood.h"

enum perennial_load_use {
    /// Connections are kept: one handshake each.
    PERENNIAL_LOAD_KEPT,
    /// A connection and a full handshake for every request.
    PERENNIAL_LOAD_NEW,
    /// A connection for every request, its TLS session resumed where the server lets it.
    PERENNIAL_LOAD_RESUMED,
};

struct perennial_load {
    const char *url;
    /// NULL: POST.
    const char *method;
    /// A header line of its own; NULL: none.
    const char *header;
    /// From where connections come; NULL: the system's choice.
    const char *source;
    /// PEM file that the server's certificate has to lead to; NULL for plaintext.
    const char *authority;
    /// Bodies lie one after the other; body n is bytes[offsets[n]] up to bytes[offsets[n + 1]]. They are sent in turn.
    const uint8_t *bytes;
    const size_t *offsets;
    size_t body_count;
    /// The first body to send.
    size_t first_body;
    int connections;
    /// Every connection is made before the first request and the clock: handshakes are dear, and no part of what is asked.
    bool connects_first;
    enum perennial_load_use use;
    /// 0: as many as fit into `seconds`.
    int64_t requests;
    double seconds;
    /// Requests started a second, whether or not the server keeps up; 0: each connection sends when it has its answer.
    double rate;
    /// For one request, from its start to its answer.
    long timeout_ms;
};

enum { PERENNIAL_LOAD_STATUSES = 600 };

struct perennial_load_outcome {
    /// Answers by status.
    int64_t statuses[PERENNIAL_LOAD_STATUSES];
    /// Connections that the server did not take.
    int64_t refused;
    int64_t timed_out;
    /// Requests that ended without an answer in any other way.
    int64_t broken;
    /// Requests not started at their time, because every connection waited for an answer.
    int64_t held_back;
    /// What ended the last broken request; "" when there is none.
    char last_error[256];
    double seconds;
    /// CPU time of this thread: says whether the client was the narrow place.
    double client_cpu_seconds;
    /// From a request's start to its answer, in milliseconds.
    double p50_ms, p99_ms, max_ms;
};

/// Blocks until every request is answered or has ended. 0; -1 when it could not begin.
int perennial_load_run(const struct perennial_load *load, struct perennial_load_outcome *outcome);
