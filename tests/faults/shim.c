// Preloaded into a command: disturbs calls on files under a prefix, and shifts the clock. What to do is in a page of
// memory that all processes of the command and the driver share: the file FAULT_PLAN (class Plan in plan.py).
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { NOTHING, FAIL_WRITES, FAIL_READS, KILL_AT_WRITE };

struct plan {
    _Atomic int64_t action, calls;  // calls so far that the action is about
    int64_t after, shift, shift_at; // the first call to disturb; seconds; CLOCK_MONOTONIC, 0 for no shift
    char prefix[4096];
};
static struct plan *plan;

// Looked up once: Java asks for the time again and again.
#define NEXT(name) ({ static __typeof__(&name) next; if (!next) next = (__typeof__(&name))dlsym(RTLD_NEXT, #name); next; })

__attribute__((constructor)) static void map_plan(void) {
    const char *path = getenv("FAULT_PLAN");
    int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (fd < 0) return;
    void *page = mmap(NULL, sizeof *plan, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (page != MAP_FAILED) plan = page;
    close(fd);
}

static int disturbs(const char *path, int is_write) {
    int64_t action = plan->action;
    if (is_write ? action != FAIL_WRITES && action != KILL_AT_WRITE : action != FAIL_READS) return 0;
    if (strncmp(path, plan->prefix, strlen(plan->prefix))) return 0;
    if (atomic_fetch_add(&plan->calls, 1) < plan->after) return 0;
    if (action == KILL_AT_WRITE) kill(0, SIGKILL); // the whole group: Python, Java and its workers
    errno = is_write ? ENOSPC : EIO;
    return 1;
}

static int disturbs_file(int fd, int is_write) {
    if (!plan || !plan->action) return 0;
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t size = readlink(link, path, sizeof path - 1);
    if (size < 0) return 0;
    path[size] = 0;
    return disturbs(path, is_write);
}

static int disturbs_path(const char *path) { return plan && plan->action && disturbs(path, 1); }

#define DISTURB(is_write, name, parameters, arguments) \
    ssize_t name parameters { return disturbs_file(fd, is_write) ? -1 : NEXT(name) arguments; }

DISTURB(1, write, (int fd, const void *data, size_t size), (fd, data, size))
DISTURB(1, pwrite, (int fd, const void *data, size_t size, off_t at), (fd, data, size, at))
DISTURB(1, pwrite64, (int fd, const void *data, size_t size, off64_t at), (fd, data, size, at))
DISTURB(1, writev, (int fd, const struct iovec *parts, int count), (fd, parts, count))
DISTURB(0, read, (int fd, void *data, size_t size), (fd, data, size))
DISTURB(0, pread, (int fd, void *data, size_t size, off_t at), (fd, data, size, at))
DISTURB(0, pread64, (int fd, void *data, size_t size, off64_t at), (fd, data, size, at))

int fsync(int fd) { return disturbs_file(fd, 1) ? -1 : NEXT(fsync)(fd); }
int mkdir(const char *path, mode_t mode) { return disturbs_path(path) ? -1 : NEXT(mkdir)(path, mode); }
int rename(const char *from, const char *to) { return disturbs_path(to) ? -1 : NEXT(rename)(from, to); }

static time_t shift(void) {
    if (!plan || !plan->shift_at) return 0;
    struct timespec now;
    NEXT(clock_gettime)(CLOCK_MONOTONIC, &now);
    return now.tv_sec >= plan->shift_at ? plan->shift : 0;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    int result = NEXT(clock_gettime)(clock, now);
    if (!result && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) now->tv_sec += shift();
    return result;
}

int gettimeofday(struct timeval *now, void *zone) {
    int result = NEXT(gettimeofday)(now, zone);
    if (!result) now->tv_sec += shift();
    return result;
}

time_t time(time_t *out) {
    time_t now = NEXT(time)(NULL) + shift();
    if (out) *out = now;
    return now;
}
