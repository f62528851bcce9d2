#include "signals.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { GRACE_NS = 400 * 1000 * 1000, PATH_ROOM = 4096 };

/* Those that end a command in order; the last two because they too would leave an unfinished file behind. */
static const int stopping[] = {SIGINT, SIGTERM, SIGHUP, SIGXCPU};
enum { N_STOPPING = sizeof stopping / sizeof *stopping };

static volatile sig_atomic_t caught;
static volatile int stop;
static volatile sig_atomic_t guarded;
static char guarded_path[PATH_ROOM];
static timer_t timer;
static int has_timer;

static void on_stop(int number) {
    if (caught) return; /* the first one decides the exit status */
    caught = number;
    __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
    struct itimerspec when = {.it_value = {.tv_nsec = GRACE_NS}};
    if (has_timer)
        timer_settime(timer, 0, &when, NULL);
    else
        alarm(1); /* not the half second that was promised, but an end */
}

/* Only calls that POSIX allows in a handler. */
static void on_time_up(int number) {
    (void)number;
    if (guarded) unlink(guarded_path);
    _exit(128 + caught);
}

static void fill_standard_descriptors(void) {
    for (int fd = 0; fd <= 2; fd++) {
        if (fcntl(fd, F_GETFD) != -1) continue;
        /* The lowest free number is fd. Opened the wrong way round: using a closed one is still an error. */
        if (open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) < 0) return;
    }
}

static void handle(int number, void (*handler)(int)) {
    struct sigaction action = {.sa_handler = handler}; /* no SA_RESTART: blocked reads and writes come back */
    sigemptyset(&action.sa_mask);
    sigaction(number, &action, NULL);
}

/* nohup has it ignored, and means it. */
static int is_ignored(int number) {
    struct sigaction action;
    return sigaction(number, NULL, &action) == 0 && action.sa_handler == SIG_IGN;
}

void signals_open(void) {
    fill_standard_descriptors();
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM};
    handle(SIGALRM, on_time_up);
    has_timer = timer_create(CLOCK_MONOTONIC, &event, &timer) == 0;
    for (int i = 0; i < N_STOPPING; i++)
        if (stopping[i] != SIGHUP || !is_ignored(SIGHUP)) handle(stopping[i], on_stop);
    /* Writes answer EPIPE and EFBIG instead. */
    handle(SIGPIPE, SIG_IGN);
    handle(SIGXFSZ, SIG_IGN);
}

const volatile int *signals_flag(void) {
    return &stop;
}

int signals_caught(void) {
    return caught != 0;
}

int signals_status(void) {
    return 128 + (int)caught;
}

void signals_guard_file(const char *path) {
    guarded = 0;
    if (!path) return;
    size_t length = strlen(path);
    if (length >= PATH_ROOM) return;
    memcpy(guarded_path, path, length + 1);
    guarded = 1;
}

int signals_wait_readable(int fd, int forever) {
    /* A signal between the look at the flag and the wait must not be lost: it stays blocked until ppoll lets it in. */
    sigset_t all, before;
    sigemptyset(&all);
    for (int i = 0; i < N_STOPPING; i++) sigaddset(&all, stopping[i]);
    sigprocmask(SIG_BLOCK, &all, &before);
    struct pollfd one = {.fd = fd, .events = POLLIN};
    static const struct timespec now = {0};
    int ready = __atomic_load_n(&stop, __ATOMIC_RELAXED) ? 0 : ppoll(&one, 1, forever ? NULL : &now, &before);
    sigprocmask(SIG_SETMASK, &before, NULL);
    return ready > 0;
}
