#pragma once
#include <gnutls/abstract.h>
#include <gnutls/gnutls.h>
#include <microhttpd.h>
#include <string.h>

// Sources/Engine/HTTP finds hidden bytes by where the parser of this version leaves a head. HeadCheck.swift tries that when a process starts.
#if MHD_VERSION != 0x00097500 && MHD_VERSION != 0x01000100
#error "libmicrohttpd is neither 0.9.75 nor 1.0.1: run the tests of HTTP and `make fuzz TARGET=heads` with it, then name its version here"
#endif

// Swift does not import variadic functions, so these wrap the ones that are needed, with fixed arguments.

struct perennial_httpd_settings {
    int listen_socket;
    unsigned int connection_limit;
    size_t connection_memory;
    unsigned int threads;
    // Called in every handshake; NULL: plaintext.
    gnutls_certificate_retrieve_function3 *certificate;
    // Must stay valid as long as the daemon runs.
    const char *priorities;
};

struct perennial_httpd_callbacks {
    void *context;
    MHD_AccessHandlerCallback request;
    void *(*request_line)(void *context, const char *target, struct MHD_Connection *connection);
    MHD_RequestCompletedCallback completed;
    MHD_NotifyConnectionCallback connection;
    MHD_AcceptPolicyCallback accept;
};

/// `MHD_start_daemon`. NULL when the library refuses.
static inline struct MHD_Daemon *perennial_httpd_start(
    const struct perennial_httpd_settings *settings, const struct perennial_httpd_callbacks *callbacks) {
    struct MHD_OptionItem options[16];
    int count = 0;
#define PERENNIAL_OPTION(name, number, pointer) \
    options[count++] = (struct MHD_OptionItem) { name, (intptr_t)(number), (void *)(pointer) }
    PERENNIAL_OPTION(MHD_OPTION_LISTEN_SOCKET, settings->listen_socket, NULL);
    PERENNIAL_OPTION(MHD_OPTION_CONNECTION_LIMIT, settings->connection_limit, NULL);
    PERENNIAL_OPTION(MHD_OPTION_CONNECTION_MEMORY_LIMIT, settings->connection_memory, NULL);
    // Refuses what the standard forbids. Not used before 1.0: version 0.9.75 then answers an HTTP/1.1 request without
    // Host twice. The other checks of the head refuse what this option would refuse.
    PERENNIAL_OPTION(MHD_OPTION_STRICT_FOR_CLIENT, MHD_get_version()[0] != '0', NULL);
    PERENNIAL_OPTION(MHD_OPTION_URI_LOG_CALLBACK, callbacks->request_line, callbacks->context);
    PERENNIAL_OPTION(MHD_OPTION_NOTIFY_COMPLETED, callbacks->completed, callbacks->context);
    PERENNIAL_OPTION(MHD_OPTION_NOTIFY_CONNECTION, callbacks->connection, callbacks->context);
    // The library refuses a pool of one; without the option there is one thread.
    if (settings->threads > 1) PERENNIAL_OPTION(MHD_OPTION_THREAD_POOL_SIZE, settings->threads, NULL);
    // Not epoll: with it both MHD_quiesce_daemon and the daemon's own thread may remove the listening socket from the
    // epoll set, and the second one aborts the process (seen with 0.9.75). With poll a thread checks all of its
    // connections when one of them is ready: a thousand idle connections made a small request three times as expensive
    // (25 to 60 us), which is a quarter of what it costs to verify a notification. MHD_USE_ITC wakes the threads for
    // MHD_quiesce_daemon.
    unsigned int flags = MHD_USE_POLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ITC;
    if (settings->certificate) {
        flags |= MHD_USE_TLS;
        PERENNIAL_OPTION(MHD_OPTION_HTTPS_CERT_CALLBACK2, 0, settings->certificate);
        PERENNIAL_OPTION(MHD_OPTION_HTTPS_PRIORITIES, 0, settings->priorities);
    }
    PERENNIAL_OPTION(MHD_OPTION_END, 0, NULL);
#undef PERENNIAL_OPTION
    return MHD_start_daemon(
        flags, 0, callbacks->accept, callbacks->context, callbacks->request, callbacks->context, MHD_OPTION_ARRAY, options, MHD_OPTION_END);
}

static inline int perennial_httpd_socket(struct MHD_Connection *connection) {
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    return info ? info->connect_fd : -1;
}

static inline const struct sockaddr *perennial_httpd_peer(struct MHD_Connection *connection) {
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    return info ? info->client_addr : NULL;
}

/// What the connection callback stored when the connection was accepted.
static inline void *perennial_httpd_context(struct MHD_Connection *connection) {
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return info ? info->socket_context : NULL;
}

/// Turns on TLS session tickets for a new connection. Call it before the handshake begins. The key is copied.
static inline int perennial_httpd_offer_tickets(struct MHD_Connection *connection, const gnutls_datum_t *key) {
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_GNUTLS_SESSION);
    return info && info->tls_session ? gnutls_session_ticket_enable_server(info->tls_session, key) : -1;
}

/// Swift imports `gnutls_free` as a mutable variable.
static inline void perennial_tls_free(void *memory) { gnutls_free(memory); }

/// Copies bytes into memory that GnuTLS will free. Returns an error of GnuTLS, or 0.
static inline int perennial_tls_copy(const unsigned char *bytes, size_t count, gnutls_datum_t *out) {
    out->data = gnutls_malloc(count);
    if (!out->data) return GNUTLS_E_MEMORY_ERROR;
    memcpy(out->data, bytes, count);
    out->size = (unsigned int)count;
    return 0;
}

static inline size_t perennial_httpd_head_bytes(struct MHD_Connection *connection) {
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
    return info ? info->header_size : 0;
}

/// The status of the answer that is being sent, 0 when there is none.
static inline unsigned int perennial_httpd_status(struct MHD_Connection *connection) {
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_HTTP_STATUS);
    return info ? info->http_status : 0;
}
