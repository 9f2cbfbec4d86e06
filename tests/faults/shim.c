// Preloaded into a command: calls on files under FAULT_PREFIX fail from the FAULT_AFTER-th on (FAULT_CALL is write or
// read), and the clock jumps by FAULT_SHIFT seconds, FAULT_SHIFT_AFTER seconds after the start of the process.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static atomic_long calls;

static int fails(int fd, const char *call) {
    const char *kind = getenv("FAULT_CALL"), *prefix = getenv("FAULT_PREFIX"), *after = getenv("FAULT_AFTER");
    if (!kind || !prefix || !after || strcmp(kind, call)) return 0;
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t size = readlink(link, path, sizeof path - 1);
    if (size < 0) return 0;
    path[size] = 0;
    if (strncmp(path, prefix, strlen(prefix))) return 0;
    return atomic_fetch_add(&calls, 1) >= atol(after);
}

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

ssize_t write(int fd, const void *data, size_t size) {
    if (fails(fd, "write")) { errno = ENOSPC; return -1; }
    return NEXT(write)(fd, data, size);
}

ssize_t pwrite64(int fd, const void *data, size_t size, off64_t at) {
    if (fails(fd, "write")) { errno = ENOSPC; return -1; }
    return NEXT(pwrite64)(fd, data, size, at);
}

ssize_t read(int fd, void *data, size_t size) {
    if (fails(fd, "read")) { errno = EIO; return -1; }
    return NEXT(read)(fd, data, size);
}

ssize_t pread64(int fd, void *data, size_t size, off64_t at) {
    if (fails(fd, "read")) { errno = EIO; return -1; }
    return NEXT(pread64)(fd, data, size, at);
}

static time_t shift(void) {
    static time_t start;
    const char *by = getenv("FAULT_SHIFT"), *after = getenv("FAULT_SHIFT_AFTER");
    if (!by || !after) return 0;
    struct timespec now;
    NEXT(clock_gettime)(CLOCK_MONOTONIC, &now);
    if (!start) start = now.tv_sec;
    return now.tv_sec - start >= atol(after) ? atol(by) : 0;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    int result = NEXT(clock_gettime)(clock, now);
    if (!result && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) now->tv_sec += shift();
    return result;
}

int gettimeofday(struct timeval *now, void *zone) {
    int result = NEXT(gettimeofday)(now, zone);
    if (!result && now) now->tv_sec += shift();
    return result;
}

time_t time(time_t *out) {
    time_t now = NEXT(time)(NULL) + shift();
    if (out) *out = now;
    return now;
}
