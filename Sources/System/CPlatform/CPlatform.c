#include "CPlatform.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/tcp.h>
#include <malloc.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

void perennial_line_buffer_standard_streams(void) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    setvbuf(stderr, NULL, _IOLBF, 0);
}

static sigset_t signals_we_take(void) {
    sigset_t taken;
    sigemptyset(&taken);
    sigaddset(&taken, SIGINT);
    sigaddset(&taken, SIGTERM);
    sigaddset(&taken, SIGHUP);
    return taken;
}

void perennial_hold_back_signals(void) {
    sigset_t taken = signals_we_take();
    // Only these signals: nothing would receive others. SIGQUIT shows where a process hangs, SIGTSTP is for the user of
    // the terminal, SIGCHLD for libraries that start programs, and faults must reach the thread that caused them.
    pthread_sigmask(SIG_BLOCK, &taken, NULL);
    // If the reader ends, the write must fail, and not end the process.
    signal(SIGPIPE, SIG_IGN);
}

int perennial_wait_for_signal(int64_t timeout_ms) {
    sigset_t taken = signals_we_take();
    struct timespec timeout = {.tv_sec = timeout_ms / 1000, .tv_nsec = (timeout_ms % 1000) * 1000000};
    int number = sigtimedwait(&taken, NULL, &timeout);
    return number > 0 ? number : 0;
}

bool perennial_hang_up_is_ignored(void) {
    struct sigaction action;
    return sigaction(SIGHUP, NULL, &action) == 0 && action.sa_handler == SIG_IGN;
}

size_t perennial_environment_count(void) {
    size_t count = 0;
    while (environ && environ[count]) count++;
    return count;
}

const char *perennial_environment_entry(size_t index) { return environ[index]; }

int perennial_open_for_reading(const char *path) { return open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); }

void perennial_name_thread(const char *name) {
    char shortened[16];
    strncpy(shortened, name, sizeof shortened - 1);
    shortened[sizeof shortened - 1] = 0;
    pthread_setname_np(pthread_self(), shortened);
}

// The states in which the other side has ended its stream. <netinet/tcp.h> has names for them, but cannot be included
// together with <linux/tcp.h>, whose tcp_info is longer.
enum { STATE_CLOSE = 7, STATE_CLOSE_WAIT = 8, STATE_LAST_ACK = 9, STATE_CLOSING = 11 };

int64_t perennial_received_bytes(int socket) {
    struct tcp_info info;
    socklen_t size = sizeof info;
    if (getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return -1;
    // Kernels fill in the members that they know; an old one leaves this one out.
    if (size < offsetof(struct tcp_info, tcpi_bytes_received) + sizeof info.tcpi_bytes_received) return -1;
    int64_t bytes = (int64_t)info.tcpi_bytes_received;
    // The end of the other side's stream uses a sequence number, which the kernel counts as a byte.
    switch (info.tcpi_state) {
    case STATE_CLOSE:
    case STATE_CLOSE_WAIT:
    case STATE_LAST_ACK:
    case STATE_CLOSING:
        return bytes > 0 ? bytes - 1 : 0;
    default:
        return bytes;
    }
}

// The program is linked with jemalloc, programs of the tests are not.
extern int mallctl(const char *name, void *old, size_t *old_size, void *new, size_t new_size) __attribute__((weak));

// jemalloc reads this when a process starts. By itself it makes four arenas for each core of the machine. Each arena keeps memory, so
// a process would take more memory on a larger machine.
const char *malloc_conf = "narenas:8";

void perennial_trim_memory(void) {
    if (mallctl) {
        mallctl("thread.tcache.flush", NULL, NULL, NULL, 0);
        // 4096 stands for all arenas.
        mallctl("arena.4096.purge", NULL, NULL, NULL, 0);
    } else {
        malloc_trim(0);
    }
}
