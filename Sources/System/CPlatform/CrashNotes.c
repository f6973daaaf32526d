#include "CrashNotes.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

// ---- The page

static uint64_t check_of(const struct perennial_crash_page *page) {
    // FNV-1a: detects torn writes and foreign files; no attacker is expected.
    uint64_t hash = 0xcbf29ce484222325;
    const uint64_t words[] = {(uint64_t)page->offset, page->topic, page->traps};
    for (size_t index = 0; index < sizeof words / sizeof *words; index++) {
        hash = (hash ^ words[index]) * 0x100000001b3;
        hash ^= hash >> 32;
    }
    return hash;
}

static void write_page(struct perennial_crash_page *page, uint32_t topic, int64_t offset, uint32_t traps) {
    page->offset = offset;
    page->topic = topic;
    page->traps = traps;
    page->check = check_of(page);
}

struct perennial_crash_page *perennial_crash_open(const char *path) {
    int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (file < 0) return NULL;
    struct perennial_crash_page *page = MAP_FAILED;
    struct stat status;
    int code = fstat(file, &status) == 0 ? 0 : errno;
    if (code == 0 && status.st_size != sizeof *page && ftruncate(file, 0) != 0) code = errno;
    // The space is allocated now: on a full disk the write in the handler would cause another fault.
    if (code == 0) code = posix_fallocate(file, 0, sizeof *page);
    if (code == 0) {
        page = mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        if (page == MAP_FAILED) code = errno;
    }
    close(file);
    errno = code;
    if (page == MAP_FAILED) return NULL;
    if (page->check != check_of(page)) write_page(page, 0, 0, 0);
    return page;
}

uint32_t perennial_crash_traps(const struct perennial_crash_page *page, uint32_t topic, int64_t offset) {
    return page->topic == topic && page->offset == offset ? page->traps : 0;
}

// ---- What a thread works on

// Volatile: only the handler reads these, and no compiler knows when it runs. In the program itself, not in a library
// that is loaded later: the first access to such a variable may allocate memory, which a signal handler must not do.
static _Thread_local __attribute__((tls_model("initial-exec"))) struct {
    struct perennial_crash_page *volatile page;
    volatile uint32_t topic;
    volatile int64_t offset;
} work;

void perennial_crash_working(struct perennial_crash_page *page, uint32_t topic, int64_t offset) {
    work.topic = topic;
    work.offset = offset;
    work.page = page;
}

void perennial_crash_idle(void) { work.page = NULL; }

void perennial_crash_close(struct perennial_crash_page *page) {
    if (work.page == page) perennial_crash_idle();
    munmap(page, sizeof *page);
}

// ---- The handler

static const int trapping[] = {SIGILL, SIGTRAP, SIGSEGV, SIGBUS, SIGFPE, SIGABRT};
enum { TRAPPING = sizeof trapping / sizeof *trapping };
static struct sigaction before[TRAPPING];
static atomic_bool installed;

// For example Swift's handler, which prints a backtrace. It is called instead of restored: it returns, and a signal
// that no instruction will raise again would be lost.
static void call_the_one_before(int number, siginfo_t *info, void *context) {
    for (int index = 0; index < TRAPPING; index++) {
        if (trapping[index] != number) continue;
        const struct sigaction *handler = &before[index];
        if (handler->sa_flags & SA_NODEFER) {
            // It must be able to get the same signal while it runs. Swift's handler reads memory that may not exist,
            // and a blocked SIGSEGV would end the process in the middle of the backtrace.
            sigaction(number, handler, NULL);
            sigset_t own;
            sigemptyset(&own);
            sigaddset(&own, number);
            pthread_sigmask(SIG_UNBLOCK, &own, NULL);
        }
        if (handler->sa_flags & SA_SIGINFO) {
            handler->sa_sigaction(number, info, context);
        } else if (handler->sa_handler != SIG_DFL && handler->sa_handler != SIG_IGN) {
            handler->sa_handler(number);
        }
    }
}

// Async-signal-safe: loads, stores, sigaction, pthread_sigmask, raise, getpid.
static void note_the_trap(int number, siginfo_t *info, void *context) {
    (void)context;
    int code = errno;
    // `kill -ABRT` by a person or a watchdog does not concern the record; abort() is a signal of the process to itself.
    bool is_from_outside = (info->si_code == SI_USER || info->si_code == SI_TKILL) && info->si_pid != getpid();
    struct perennial_crash_page *page = work.page;
    if (page && !is_from_outside) {
        uint32_t traps = perennial_crash_traps(page, work.topic, work.offset);
        write_page(page, work.topic, work.offset, traps < UINT32_MAX ? traps + 1 : traps);
    }
    call_the_one_before(number, info, context);
    // Ends the process with a core dump: now, or when this handler returns, if the signal is blocked in it.
    struct sigaction standard = {.sa_handler = SIG_DFL};
    sigaction(number, &standard, NULL);
    raise(number);
    errno = code;
}

int perennial_crash_install(void) {
    if (atomic_exchange(&installed, true)) return 0;
    struct sigaction action = {.sa_sigaction = note_the_trap, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    sigemptyset(&action.sa_mask);
    for (int index = 0; index < TRAPPING; index++) {
        if (sigaction(trapping[index], NULL, &before[index]) != 0) return -1;
        if (sigaction(trapping[index], &action, NULL) != 0) return -1;
    }
    return perennial_crash_arm_thread();
}

// ---- Stacks

// The kernel puts the processor state there, with AVX-512 and AMX about 11 KiB; the rest is for the previous handlers.
enum { ALTERNATE_STACK_BYTES = 64 << 10 };

static pthread_once_t key_once = PTHREAD_ONCE_INIT;
static pthread_key_t stack_key;
static int key_code;

static void drop_stack(void *stack) {
    stack_t none = {.ss_flags = SS_DISABLE};
    sigaltstack(&none, NULL);
    munmap(stack, ALTERNATE_STACK_BYTES);
}

static void make_key(void) { key_code = pthread_key_create(&stack_key, drop_stack); }

int perennial_crash_arm_thread(void) {
    if (!atomic_load(&installed)) return 0;
    stack_t current;
    // The thread already has one.
    if (sigaltstack(NULL, &current) == 0 && !(current.ss_flags & SS_DISABLE)) return 0;
    pthread_once(&key_once, make_key);
    if (key_code != 0) {
        errno = key_code;
        return -1;
    }
    void *stack = mmap(NULL, ALTERNATE_STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (stack == MAP_FAILED) return -1;
    stack_t alternate = {.ss_sp = stack, .ss_size = ALTERNATE_STACK_BYTES};
    int code = sigaltstack(&alternate, NULL) == 0 ? pthread_setspecific(stack_key, stack) : errno;
    if (code == 0) return 0;
    drop_stack(stack);
    errno = code;
    return -1;
}
