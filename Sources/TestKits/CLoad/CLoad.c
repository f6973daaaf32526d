#include "CLoad.h"

#include <curl/curl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

// Latencies are counted in tenths of a millisecond up to ten seconds; slower requests count as ten seconds. The limit
// on simultaneous handshakes keeps each connection from waiting long.
enum { LATENCY_STEPS = 100000, EVENTS = 256, HANDSHAKES = 64 };

struct slot {
    CURL *easy;
    struct slot *next_free;
    char error[CURL_ERROR_SIZE];
};

struct run {
    const struct perennial_load *load;
    struct perennial_load_outcome *outcome;
    CURLM *multi;
    int epoll;
    // When the library wants to be called even if no socket is ready, in seconds; negative: never.
    double timer;
    struct slot *slots;
    struct slot *free;
    struct curl_slist *headers;
    int64_t started;
    int in_flight;
    uint32_t *latencies;
};

static double clock_seconds(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static double now(void) { return clock_seconds(CLOCK_MONOTONIC); }

// MARK: Callbacks of the library

static size_t discard(char *bytes, size_t one, size_t count, void *context) {
    (void)bytes, (void)context;
    return one * count;
}

static int on_timer(CURLM *multi, long timeout_ms, void *context) {
    (void)multi;
    struct run *run = context;
    run->timer = timeout_ms < 0 ? -1 : now() + (double)timeout_ms / 1e3;
    return 0;
}

static int on_socket(CURL *easy, curl_socket_t socket, int what, void *context, void *known) {
    (void)easy;
    struct run *run = context;
    if (what == CURL_POLL_REMOVE) {
        epoll_ctl(run->epoll, EPOLL_CTL_DEL, socket, NULL);
        return 0;
    }
    struct epoll_event event = {.data.fd = socket};
    if (what & CURL_POLL_IN) event.events |= EPOLLIN;
    if (what & CURL_POLL_OUT) event.events |= EPOLLOUT;
    epoll_ctl(run->epoll, known ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, socket, &event);
    // Any value but NULL means that this socket is already watched.
    curl_multi_assign(run->multi, socket, run);
    return 0;
}

// MARK: Before and after

static bool prepare(struct run *run, struct slot *slot) {
    const struct perennial_load *load = run->load;
    slot->easy = curl_easy_init();
    if (!slot->easy) return false;
    curl_easy_setopt(slot->easy, CURLOPT_URL, load->url);
    curl_easy_setopt(slot->easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(slot->easy, CURLOPT_PROXY, "");
    curl_easy_setopt(slot->easy, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(slot->easy, CURLOPT_POST, 1L);
    if (load->method) curl_easy_setopt(slot->easy, CURLOPT_CUSTOMREQUEST, load->method);
    if (load->source) curl_easy_setopt(slot->easy, CURLOPT_INTERFACE, load->source);
    curl_easy_setopt(slot->easy, CURLOPT_HTTPHEADER, run->headers);
    curl_easy_setopt(slot->easy, CURLOPT_WRITEFUNCTION, discard);
    curl_easy_setopt(slot->easy, CURLOPT_TIMEOUT_MS, load->timeout_ms);
    curl_easy_setopt(slot->easy, CURLOPT_ERRORBUFFER, slot->error);
    curl_easy_setopt(slot->easy, CURLOPT_PRIVATE, slot);
    if (load->authority) {
        curl_easy_setopt(slot->easy, CURLOPT_CAINFO, load->authority);
        // Reading the system's certificate authorities for every connection would cost more than everything else here.
        curl_easy_setopt(slot->easy, CURLOPT_CAPATH, NULL);
    }
    if (load->use != PERENNIAL_LOAD_KEPT) {
        curl_easy_setopt(slot->easy, CURLOPT_FRESH_CONNECT, 1L);
        curl_easy_setopt(slot->easy, CURLOPT_FORBID_REUSE, 1L);
    }
    curl_easy_setopt(slot->easy, CURLOPT_SSL_SESSIONID_CACHE, load->use == PERENNIAL_LOAD_RESUMED ? 1L : 0L);
    return true;
}

static bool begin(struct run *run) {
    const struct perennial_load *load = run->load;
    run->epoll = epoll_create1(EPOLL_CLOEXEC);
    run->multi = curl_multi_init();
    run->slots = calloc((size_t)load->connections, sizeof *run->slots);
    run->latencies = calloc(LATENCY_STEPS + 1, sizeof *run->latencies);
    run->headers = curl_slist_append(run->headers, "Content-Type: application/json");
    if (load->header) run->headers = curl_slist_append(run->headers, load->header);
    // No Expect header: it would cost a round trip for each body.
    run->headers = curl_slist_append(run->headers, "Expect:");
    if (run->epoll < 0 || !run->multi || !run->slots || !run->latencies || !run->headers) return false;
    curl_multi_setopt(run->multi, CURLMOPT_MAXCONNECTS, (long)load->connections);
    curl_multi_setopt(run->multi, CURLMOPT_SOCKETFUNCTION, on_socket);
    curl_multi_setopt(run->multi, CURLMOPT_SOCKETDATA, run);
    curl_multi_setopt(run->multi, CURLMOPT_TIMERFUNCTION, on_timer);
    curl_multi_setopt(run->multi, CURLMOPT_TIMERDATA, run);
    for (int n = 0; n < load->connections; n++) {
        if (!prepare(run, &run->slots[n])) return false;
        run->slots[n].next_free = run->free;
        run->free = &run->slots[n];
    }
    return true;
}

static void end(struct run *run) {
    for (int n = 0; run->slots && n < run->load->connections; n++) curl_easy_cleanup(run->slots[n].easy);
    if (run->multi) curl_multi_cleanup(run->multi);
    curl_slist_free_all(run->headers);
    if (run->epoll >= 0) close(run->epoll);
    free(run->slots);
    free(run->latencies);
}

// MARK: Requests

static void start_one(struct run *run) {
    const struct perennial_load *load = run->load;
    struct slot *slot = run->free;
    run->free = slot->next_free;
    size_t body = (load->first_body + (size_t)run->started) % load->body_count;
    // Not copied: the bodies live as long as the run.
    curl_easy_setopt(slot->easy, CURLOPT_POSTFIELDS, load->bytes + load->offsets[body]);
    curl_easy_setopt(
        slot->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)(load->offsets[body + 1] - load->offsets[body]));
    slot->error[0] = 0;
    curl_multi_add_handle(run->multi, slot->easy);
    run->started++;
    run->in_flight++;
}

// Starts what is due at `time`. Returns false if nothing more is to be started. `*next` is when the next request is
// due, if there is one.
static bool start_due(struct run *run, double begun, double time, double *next) {
    const struct perennial_load *load = run->load;
    bool has_ended = load->requests == 0 && time >= begun + load->seconds;
    int64_t due = load->requests ? load->requests : INT64_MAX;
    if (load->rate > 0 && !has_ended) {
        int64_t by_now = (int64_t)((time - begun) * load->rate);
        if (by_now < due) due = by_now;
        *next = begun + (double)(due + 1) / load->rate;
    }
    if (has_ended) return false;
    while (run->free && run->started + run->outcome->held_back < due) start_one(run);
    // A request that is due but finds no connection is not delayed: otherwise the load would adapt to the server.
    if (load->rate > 0 && run->started + run->outcome->held_back < due) run->outcome->held_back = due - run->started;
    return !(load->requests && run->started + run->outcome->held_back >= load->requests);
}

static void count(struct run *run, struct slot *slot, CURLcode code) {
    struct perennial_load_outcome *outcome = run->outcome;
    if (code == CURLE_OK) {
        long status = 0;
        curl_off_t microseconds = 0;
        curl_easy_getinfo(slot->easy, CURLINFO_RESPONSE_CODE, &status);
        curl_easy_getinfo(slot->easy, CURLINFO_TOTAL_TIME_T, &microseconds);
        outcome->statuses[status >= 0 && status < PERENNIAL_LOAD_STATUSES ? status : 0]++;
        int64_t step = microseconds / 100;
        run->latencies[step < LATENCY_STEPS ? step : LATENCY_STEPS]++;
        return;
    }
    if (code == CURLE_COULDNT_CONNECT) {
        outcome->refused++;
    } else if (code == CURLE_OPERATION_TIMEDOUT) {
        outcome->timed_out++;
    } else {
        outcome->broken++;
        const char *words = slot->error[0] ? slot->error : curl_easy_strerror(code);
        snprintf(outcome->last_error, sizeof outcome->last_error, "%s", words);
    }
}

static void take_ended(struct run *run) {
    CURLMsg *message;
    int left;
    while ((message = curl_multi_info_read(run->multi, &left))) {
        if (message->msg != CURLMSG_DONE) continue;
        CURLcode code = message->data.result;
        CURL *easy = message->easy_handle;
        struct slot *slot = NULL;
        curl_easy_getinfo(easy, CURLINFO_PRIVATE, (char **)&slot);
        curl_multi_remove_handle(run->multi, easy);
        count(run, slot, code);
        slot->next_free = run->free;
        run->free = slot;
        run->in_flight--;
    }
}

static void wait_and_act(struct run *run, double next) {
    double time = now();
    // A tenth of a second is only a safety net; the next request or the library's timer comes earlier.
    double until = time + 0.1;
    if (next > 0 && next < until) until = next;
    if (run->timer >= 0 && run->timer < until) until = run->timer;
    int timeout = until <= time ? 0 : (int)((until - time) * 1e3) + 1;
    struct epoll_event events[EVENTS];
    int count = epoll_wait(run->epoll, events, EVENTS, timeout);
    int running;
    for (int n = 0; n < count; n++) {
        int what = 0;
        if (events[n].events & EPOLLIN) what |= CURL_CSELECT_IN;
        if (events[n].events & EPOLLOUT) what |= CURL_CSELECT_OUT;
        if (events[n].events & (EPOLLERR | EPOLLHUP)) what |= CURL_CSELECT_ERR;
        curl_multi_socket_action(run->multi, events[n].data.fd, what, &running);
    }
    if (run->timer >= 0 && now() >= run->timer) {
        run->timer = -1;
        curl_multi_socket_action(run->multi, CURL_SOCKET_TIMEOUT, 0, &running);
    }
}

static double percentile(const struct run *run, int64_t total, double share) {
    int64_t wanted = (int64_t)((double)total * share), seen = 0;
    for (int step = 0; step <= LATENCY_STEPS; step++) {
        seen += run->latencies[step];
        if (seen > wanted) return (double)(step + 1) / 10;
    }
    return 0;
}

// Opens every connection with a request that is rejected because of its head, and leaves it open. Returns false if some
// could not be opened.
static bool connect_all(struct run *run) {
    int begun = 0, failed = 0, running = 0;
    while (begun < run->load->connections || run->in_flight > 0) {
        while (begun < run->load->connections && run->in_flight < HANDSHAKES) {
            CURL *easy = run->slots[begun++].easy;
            curl_easy_setopt(easy, CURLOPT_HTTPGET, 1L);
            curl_easy_setopt(easy, CURLOPT_FRESH_CONNECT, 1L);
            curl_multi_add_handle(run->multi, easy);
            run->in_flight++;
        }
        wait_and_act(run, 0);
        CURLMsg *message;
        while ((message = curl_multi_info_read(run->multi, &running))) {
            if (message->msg != CURLMSG_DONE) continue;
            if (message->data.result != CURLE_OK) failed++;
            CURL *easy = message->easy_handle;
            curl_multi_remove_handle(run->multi, easy);
            curl_easy_setopt(easy, CURLOPT_FRESH_CONNECT, 0L);
            curl_easy_setopt(easy, CURLOPT_POST, 1L);
            run->in_flight--;
        }
    }
    return failed == 0;
}

static void sum_up(struct run *run) {
    int64_t total = 0;
    for (int step = 0; step <= LATENCY_STEPS; step++) {
        total += run->latencies[step];
        if (run->latencies[step]) run->outcome->max_ms = (double)(step + 1) / 10;
    }
    if (total == 0) return;
    run->outcome->p50_ms = percentile(run, total, 0.5);
    run->outcome->p99_ms = percentile(run, total, 0.99);
}

int perennial_load_run(const struct perennial_load *load, struct perennial_load_outcome *outcome) {
    memset(outcome, 0, sizeof *outcome);
    struct run run = {.load = load, .outcome = outcome, .epoll = -1, .timer = -1};
    if (load->connections < 1 || load->body_count < 1 || !begin(&run) ||
        (load->connects_first && !connect_all(&run))) {
        end(&run);
        return -1;
    }
    double begun = now(), cpu = clock_seconds(CLOCK_THREAD_CPUTIME_ID);
    while (1) {
        double next = 0;
        bool has_more = start_due(&run, begun, now(), &next);
        if (!has_more && run.in_flight == 0) break;
        wait_and_act(&run, next);
        take_ended(&run);
    }
    outcome->seconds = now() - begun;
    outcome->client_cpu_seconds = clock_seconds(CLOCK_THREAD_CPUTIME_ID) - cpu;
    sum_up(&run);
    end(&run);
    return 0;
}
