#include "CTestKit.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef CLOSE_RANGE_CLOEXEC
#define CLOSE_RANGE_CLOEXEC 4
#endif

// Runs in the child. Other threads of the parent may have held any lock at the fork, so only system calls are allowed.
static _Noreturn void become(const struct perennial_child *child, pid_t parent, int report) {
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    // The parent may have ended before prctl: then the signal would never be sent.
    if (getppid() != parent) _exit(127);
    struct sigaction standard = {.sa_handler = SIG_DFL};
    for (int number = 1; number < NSIG; number++) sigaction(number, &standard, NULL);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    // Moved out of the way first, because a source may itself be 0, 1 or 2.
    int streams[3] = {child->input, child->output, child->errors};
    for (int number = 0; number < 3; number++) {
        streams[number] = fcntl(streams[number], F_DUPFD_CLOEXEC, 3);
        if (streams[number] < 0) goto failed;
    }
    for (int number = 0; number < 3; number++) {
        if (dup2(streams[number], number) < 0) goto failed;
    }
    // Best effort: our own descriptors close at exec anyway; this is for descriptors of other libraries.
    close_range(3, ~0U, CLOSE_RANGE_CLOEXEC);
    if (child->working_directory && chdir(child->working_directory) != 0) goto failed;
    execve(child->program, child->arguments, child->environment);
failed:;
    int code = errno;
    ssize_t written = write(report, &code, sizeof code);
    _exit(written == sizeof code ? 127 : 126);
}

// The pipe closes at exec; if it contains bytes, they are the errno of a child that failed before exec.
static pid_t fork_and_exec(const struct perennial_child *child, int *error) {
    int report[2];
    if (pipe2(report, O_CLOEXEC) != 0) {
        *error = errno;
        return -1;
    }
    pid_t parent = getpid();
    pid_t pid = fork();
    if (pid == 0) become(child, parent, report[1]);
    *error = errno;
    close(report[1]);
    int code = 0;
    ssize_t count = 0;
    if (pid > 0) {
        do count = read(report[0], &code, sizeof code);
        while (count < 0 && errno == EINTR);
    }
    close(report[0]);
    if (count == sizeof code) {
        waitpid(pid, NULL, 0);
        *error = code;
        return -1;
    }
    return pid;
}

// PR_SET_PDEATHSIG fires when the *thread* that forked ends, not the process. So one thread, which never ends, does all
// forking; callers give it one order at a time.
struct order {
    const struct perennial_child *child;
    pid_t pid;
    int error;
    bool done;
};

static pthread_mutex_t one_order = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t desk = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t desk_changed = PTHREAD_COND_INITIALIZER;
static struct order *on_desk;
static bool forker_runs;

static void *fork_for_ever(void *unused) {
    (void)unused;
    pthread_setname_np(pthread_self(), "forker");
    pthread_mutex_lock(&desk);
    for (;;) {
        while (!on_desk) pthread_cond_wait(&desk_changed, &desk);
        struct order *order = on_desk;
        on_desk = NULL;
        order->pid = fork_and_exec(order->child, &order->error);
        order->done = true;
        pthread_cond_broadcast(&desk_changed);
    }
    return NULL;
}

// Called with `one_order` held.
static int start_forker(void) {
    if (forker_runs) return 0;
    // Signals to the process must go to the threads that expect them.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_t thread;
    int code = pthread_create(&thread, NULL, fork_for_ever, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (code != 0) return code;
    pthread_detach(thread);
    forker_runs = true;
    return 0;
}

pid_t perennial_start_child(const struct perennial_child *child) {
    struct order order = {.child = child, .pid = -1};
    pthread_mutex_lock(&one_order);
    order.error = start_forker();
    if (order.error == 0) {
        pthread_mutex_lock(&desk);
        on_desk = &order;
        pthread_cond_broadcast(&desk_changed);
        while (!order.done) pthread_cond_wait(&desk_changed, &desk);
        pthread_mutex_unlock(&desk);
    }
    pthread_mutex_unlock(&one_order);
    if (order.pid < 0) errno = order.error;
    return order.pid;
}

int perennial_reap_child(pid_t pid, bool wait, int *code, bool *signalled) {
    siginfo_t info = {0};
    int result;
    // Checked without reaping: as long as the zombie keeps its number, no other process group can get it.
    do result = waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT | (wait ? 0 : WNOHANG));
    while (result != 0 && errno == EINTR);
    if (result != 0) return -1;
    if (info.si_pid == 0) return 0;
    kill(-pid, SIGKILL);
    do result = waitid(P_PID, (id_t)pid, &info, WEXITED);
    while (result != 0 && errno == EINTR);
    if (result != 0) return -1;
    *code = info.si_status;
    *signalled = info.si_code != CLD_EXITED;
    return 1;
}

int perennial_anonymous_file(const char *label) { return memfd_create(label, MFD_CLOEXEC); }

static int remove_entry(const char *path, const struct stat *status, int kind, struct FTW *place) {
    (void)status;
    (void)kind;
    (void)place;
    return remove(path);
}

int perennial_remove_tree(const char *path) {
    // 16 descriptors: deeper trees work too, but more slowly.
    return nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}
