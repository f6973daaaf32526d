#include "CFlood.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#ifndef IP_BIND_ADDRESS_NO_PORT
#define IP_BIND_ADDRESS_NO_PORT 24
#endif

// The server under test never sends a larger answer.
enum { EVENTS = 256, ANSWER_BYTES = 2048, NUMBER_DIGITS = sizeof PERENNIAL_FLOOD_NUMBER - 1 };

struct line {
    // Negative: unused.
    int socket;
    struct line *next_free;
    size_t request, sent;
    // The number as it is written into the request.
    char number[NUMBER_DIGITS + 1];
    bool wants_to_write, is_asking;
    size_t received;
    char answer[ANSWER_BYTES + 1];
};

struct flooding {
    const struct perennial_flood *flood;
    struct perennial_flood_outcome *outcome;
    int epoll;
    struct line *lines;
    // Entries without a connection.
    struct line *unused;
    // Connected, and the last request is answered.
    struct line *idle;
    struct sockaddr_in *sources;
    // The place of the number in each request; SIZE_MAX: none.
    size_t *number_places;
    int open;
};

static double clock_seconds(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static double now(void) { return clock_seconds(CLOCK_MONOTONIC); }

static bool begin(struct flooding *run) {
    const struct perennial_flood *flood = run->flood;
    run->epoll = epoll_create1(EPOLL_CLOEXEC);
    run->lines = calloc((size_t)flood->connections, sizeof *run->lines);
    run->sources = calloc((size_t)flood->source_count, sizeof *run->sources);
    run->number_places = calloc(flood->request_count, sizeof *run->number_places);
    if (run->epoll < 0 || !run->lines || !run->sources || !run->number_places) return false;
    for (int n = 0; n < flood->connections; n++) {
        run->lines[n].socket = -1;
        run->lines[n].next_free = run->unused;
        run->unused = &run->lines[n];
    }
    for (int n = 0; n < flood->source_count; n++) {
        run->sources[n].sin_family = AF_INET;
        if (inet_pton(AF_INET, flood->sources[n], &run->sources[n].sin_addr) != 1) return false;
    }
    for (size_t n = 0; n < flood->request_count; n++) {
        const uint8_t *start = flood->bytes + flood->offsets[n];
        size_t count = flood->offsets[n + 1] - flood->offsets[n];
        const uint8_t *place = memmem(start, count, PERENNIAL_FLOOD_NUMBER, NUMBER_DIGITS);
        run->number_places[n] = place ? (size_t)(place - start) : SIZE_MAX;
    }
    return true;
}

static void end(struct flooding *run) {
    for (int n = 0; run->lines && n < run->flood->connections; n++) {
        if (run->lines[n].socket >= 0) close(run->lines[n].socket);
    }
    if (run->epoll >= 0) close(run->epoll);
    free(run->lines);
    free(run->sources);
    free(run->number_places);
}

// MARK: One connection

static void hang_up(struct flooding *run, struct line *line) {
    close(line->socket);
    line->socket = -1;
    line->is_asking = false;
    line->next_free = run->unused;
    run->unused = line;
    run->open--;
}

// A server that refuses or closes a connection has not answered.
static void closed(struct flooding *run, struct line *line) {
    if (line->is_asking) {
        run->outcome->closed++;
    } else {
        // Remove it from the list of idle ones.
        struct line **place = &run->idle;
        while (*place && *place != line) place = &(*place)->next_free;
        if (*place) *place = line->next_free;
    }
    hang_up(run, line);
}

// Returns false if the system has no more sockets.
static bool open_line(struct flooding *run, struct line *line) {
    const struct perennial_flood *flood = run->flood;
    int socket_number = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (socket_number < 0) return false;
    int yes = 1;
    setsockopt(socket_number, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &yes, sizeof yes);
    setsockopt(socket_number, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    // A closed connection must not occupy its port for a minute.
    struct linger at_once = {.l_onoff = 1};
    setsockopt(socket_number, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    struct sockaddr_in *source = &run->sources[run->outcome->sent % flood->source_count];
    struct sockaddr_in server = {.sin_family = AF_INET, .sin_port = htons(flood->port)};
    server.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP, .data.ptr = line};
    bool is_open = bind(socket_number, (struct sockaddr *)source, sizeof *source) == 0 &&
                   (connect(socket_number, (struct sockaddr *)&server, sizeof server) == 0 || errno == EINPROGRESS) &&
                   epoll_ctl(run->epoll, EPOLL_CTL_ADD, socket_number, &event) == 0;
    if (!is_open) {
        close(socket_number);
        return false;
    }
    line->socket = socket_number;
    line->wants_to_write = true;
    run->open++;
    if (run->open > run->outcome->most_open) run->outcome->most_open = run->open;
    return true;
}

static void watch(struct flooding *run, struct line *line, bool writes) {
    if (line->wants_to_write == writes) return;
    line->wants_to_write = writes;
    struct epoll_event event = {.events = EPOLLIN | EPOLLRDHUP | (writes ? EPOLLOUT : 0), .data.ptr = line};
    epoll_ctl(run->epoll, EPOLL_CTL_MOD, line->socket, &event);
}

// The unsent rest of the request, with its number inserted.
static int pieces(const struct flooding *run, struct line *line, struct iovec *vectors) {
    const struct perennial_flood *flood = run->flood;
    uint8_t *start = (uint8_t *)flood->bytes + flood->offsets[line->request];
    size_t count = flood->offsets[line->request + 1] - flood->offsets[line->request];
    size_t place = run->number_places[line->request];
    struct iovec whole[3] = {{start, count}, {NULL, 0}, {NULL, 0}};
    if (place != SIZE_MAX) {
        whole[0].iov_len = place;
        whole[1] = (struct iovec){line->number, NUMBER_DIGITS};
        whole[2] = (struct iovec){start + place + NUMBER_DIGITS, count - place - NUMBER_DIGITS};
    }
    size_t skipped = line->sent;
    int used = 0;
    for (int n = 0; n < 3; n++) {
        size_t cut = skipped < whole[n].iov_len ? skipped : whole[n].iov_len;
        skipped -= cut;
        if (whole[n].iov_len == cut) continue;
        vectors[used++] = (struct iovec){(uint8_t *)whole[n].iov_base + cut, whole[n].iov_len - cut};
    }
    return used;
}

// Returns false if the connection is over.
static bool write_request(struct flooding *run, struct line *line) {
    while (line->is_asking) {
        struct iovec vectors[3];
        struct msghdr message = {.msg_iov = vectors, .msg_iovlen = (size_t)pieces(run, line, vectors)};
        if (message.msg_iovlen == 0) break;
        ssize_t count = sendmsg(line->socket, &message, MSG_NOSIGNAL);
        if (count < 0) {
            watch(run, line, true);
            return errno == EAGAIN || errno == EINTR || errno == ENOTCONN || errno == EINPROGRESS;
        }
        line->sent += (size_t)count;
    }
    watch(run, line, false);
    return true;
}

static void ask(struct flooding *run, struct line *line) {
    line->request = (size_t)run->outcome->sent % run->flood->request_count;
    line->sent = line->received = 0;
    line->is_asking = true;
    snprintf(line->number, sizeof line->number, "%0*llx", NUMBER_DIGITS, (unsigned long long)run->outcome->sent);
    run->outcome->sent++;
}

// MARK: Answers

// The length of the first complete answer in the buffer; 0: it is incomplete.
static size_t complete_answer(const struct line *line, int *status, bool *closes) {
    const char *head_end = strstr(line->answer, "\r\n\r\n");
    if (!head_end || sscanf(line->answer, "HTTP/1.1 %d", status) != 1) return 0;
    size_t head = (size_t)(head_end - line->answer) + 4, body = 0;
    const char *length = strcasestr(line->answer, "\r\nContent-Length:");
    if (length && length < head_end) body = strtoul(length + strlen("\r\nContent-Length:"), NULL, 10);
    const char *word = strcasestr(line->answer, "\r\nConnection: close");
    *closes = word && word < head_end + 2;
    return line->received >= head + body ? head + body : 0;
}

// Returns false if the connection is over, for whatever reason.
static bool read_answer(struct flooding *run, struct line *line) {
    size_t room = ANSWER_BYTES - line->received;
    ssize_t count = recv(line->socket, line->answer + line->received, room, 0);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) return true;
    if (count <= 0) {
        closed(run, line);
        return false;
    }
    line->received += (size_t)count;
    line->answer[line->received] = 0;
    int status = 0;
    bool closes = false;
    size_t bytes;
    while ((bytes = complete_answer(line, &status, &closes)) > 0) {
        line->received -= bytes;
        memmove(line->answer, line->answer + bytes, line->received + 1);
        // "100 Continue" does not count as an answer.
        if (status < 200) continue;
        run->outcome->statuses[status < PERENNIAL_FLOOD_STATUSES ? status : 0]++;
        line->is_asking = false;
        if (closes || !run->flood->keeps) {
            hang_up(run, line);
            return false;
        }
        line->next_free = run->idle;
        run->idle = line;
        return true;
    }
    if (line->received < ANSWER_BYTES) return true;
    closed(run, line);
    return false;
}

// MARK: All of them

static void start_due(struct flooding *run, double since) {
    int64_t due = (int64_t)(since * run->flood->rate) - run->outcome->sent - run->outcome->held_back;
    for (; due > 0; due--) {
        struct line *line = run->idle;
        if (line) {
            run->idle = line->next_free;
        } else if ((line = run->unused)) {
            run->unused = line->next_free;
            if (!open_line(run, line)) {
                line->next_free = run->unused;
                run->unused = line;
                line = NULL;
            }
        }
        if (!line) {
            run->outcome->held_back += due;
            return;
        }
        ask(run, line);
        if (!write_request(run, line)) closed(run, line);
    }
}

static void take_events(struct flooding *run, double until) {
    double wait = (until - now()) * 1e3;
    struct epoll_event events[EVENTS];
    int count = epoll_wait(run->epoll, events, EVENTS, wait > 0 ? (int)wait + 1 : 0);
    for (int n = 0; n < count; n++) {
        struct line *line = events[n].data.ptr;
        if (line->socket < 0) continue;
        bool can_read = events[n].events & (EPOLLIN | EPOLLERR | EPOLLHUP | EPOLLRDHUP);
        if (can_read && !read_answer(run, line)) continue;
        if ((events[n].events & EPOLLOUT) && !write_request(run, line)) closed(run, line);
    }
}

int perennial_flood_run(const struct perennial_flood *flood, struct perennial_flood_outcome *outcome) {
    memset(outcome, 0, sizeof *outcome);
    struct flooding run = {.flood = flood, .outcome = outcome, .epoll = -1};
    bool can_begin = flood->connections > 0 && flood->source_count > 0 && flood->request_count > 0 && flood->rate > 0;
    if (!can_begin || !begin(&run)) {
        end(&run);
        return -1;
    }
    double begun = now(), cpu = clock_seconds(CLOCK_THREAD_CPUTIME_ID), time;
    while ((time = now()) < begun + flood->seconds) {
        start_due(&run, time - begun);
        // Requests that become due meanwhile start a moment later, several at a time.
        take_events(&run, time + 0.002);
    }
    outcome->seconds = now() - begun;
    outcome->client_cpu_seconds = clock_seconds(CLOCK_THREAD_CPUTIME_ID) - cpu;
    end(&run);
    return 0;
}
