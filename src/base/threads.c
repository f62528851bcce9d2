/* base/threads.c: how many threads are worth starting: the affinity mask, cut by the cgroup CPU quota.
 *
 * A quota can sit on any group between ours and the root, so all of them are read; the smallest counts. Inside a
 * container /proc/self/cgroup may name the host's path, which is not there below the container's own mount: then
 * every level but the mount itself is simply missing.
 */
#include "base/cpu.h"

#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* CPUs in the affinity mask. The kernel refuses a set that is smaller than its own, so try bigger ones. */
static int affinity_count(void) {
    enum { SMALLEST = 1024, LARGEST = 1 << 16 };
    for (size_t cpus = SMALLEST; cpus <= LARGEST; cpus *= 2) {
        cpu_set_t *set = CPU_ALLOC(cpus);
        if (set == NULL) return 1;
        const int failed = sched_getaffinity(0, CPU_ALLOC_SIZE(cpus), set);
        const int count = failed ? 0 : CPU_COUNT_S(CPU_ALLOC_SIZE(cpus), set);
        CPU_FREE(set);
        if (count > 0) return count;
    }
    return 1;
}

/* The beginning of a small file as a string; "" if it cannot be read. */
static void read_small(char *text, size_t room, const char *path) {
    size_t n = 0;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = 0;
    while (fd >= 0 && n + 1 < room && (got = read(fd, text + n, room - 1 - n)) > 0) n += (size_t)got;
    if (fd >= 0) close(fd);
    text[n] = '\0';
}

/* quota / period, rounded up; INT_MAX if there is no limit ("max", -1, or no such file). */
static int cpus_of(const char *quota, const char *period) {
    const long long q = strtoll(quota, NULL, 10), p = strtoll(period, NULL, 10);
    if (q <= 0 || p <= 0 || q / p >= INT_MAX - 1) return INT_MAX;
    return (int)(q / p + (q % p != 0));
}

static int read_quota_v2(const char *folder) {
    char path[PATH_MAX], text[64];
    if (snprintf(path, sizeof path, "%s/cpu.max", folder) >= (int)sizeof path) return INT_MAX;
    read_small(text, sizeof text, path);
    const char *space = strchr(text, ' ');
    return space != NULL ? cpus_of(text, space) : INT_MAX;
}

static int read_quota_v1(const char *folder) {
    char path[PATH_MAX], quota[32], period[32];
    if (snprintf(path, sizeof path, "%s/cpu.cfs_period_us", folder) >= (int)sizeof path) return INT_MAX;
    read_small(period, sizeof period, path);
    if (snprintf(path, sizeof path, "%s/cpu.cfs_quota_us", folder) >= (int)sizeof path) return INT_MAX;
    read_small(quota, sizeof quota, path);
    return cpus_of(quota, period);
}

/* Reads the quota of mount/path and of every group above it, up to the mount. */
static int walk_up(const char *mount, const char *path, int (*read_quota)(const char *folder)) {
    char folder[PATH_MAX];
    const size_t top = strlen(mount);
    if (strstr(path, "..") != NULL) path = ""; /* our group lies outside of what is mounted here */
    if (snprintf(folder, sizeof folder, "%s%s", mount, path) >= (int)sizeof folder) return INT_MAX;
    int least = INT_MAX;
    for (;;) {
        const int cpus = read_quota(folder);
        if (cpus < least) least = cpus;
        char *slash = strrchr(folder, '/');
        if (slash == NULL || slash < folder + top) return least;
        *slash = '\0';
    }
}

static int has_cpu_controller(const char *controllers) {
    const char *at = strstr(controllers, "cpu");
    for (; at != NULL; at = strstr(at + 1, "cpu")) {
        const int begins = at == controllers || at[-1] == ',', ends = at[3] == ',' || at[3] == '\0';
        if (begins && ends) return 1;
    }
    return 0;
}

/* One line of /proc/self/cgroup: "0::/path" for version 2, "4:cpu,cpuacct:/path" for version 1. */
static int quota_of_line(const char *root, char *line) {
    char mount[PATH_MAX];
    char *controllers = strchr(line, ':');
    char *path = controllers != NULL ? strchr(controllers + 1, ':') : NULL;
    if (path == NULL) return INT_MAX;
    *controllers++ = *path++ = '\0';
    int least = INT_MAX;
    const int v2 = controllers[0] == '\0';
    if (!v2 && !has_cpu_controller(controllers)) return INT_MAX;
    /* Where distributions mount them: version 2 alone or beside version 1; version 1 under one or all its names. */
    const char *const places[] = {v2 ? "" : "/cpu", v2 ? "/unified" : "/cpu,cpuacct"};
    for (int i = 0; i < 2; i++) {
        if (snprintf(mount, sizeof mount, "%s/sys/fs/cgroup%s", root, places[i]) >= (int)sizeof mount) break;
        const int cpus = walk_up(mount, path, v2 ? read_quota_v2 : read_quota_v1);
        if (cpus < least) least = cpus;
    }
    return least;
}

int bert_cpu_threads(const char *root) {
    char path[PATH_MAX], groups[8192];
    int threads = affinity_count();
    if (snprintf(path, sizeof path, "%s/proc/self/cgroup", root) >= (int)sizeof path) return threads;
    read_small(groups, sizeof groups, path);
    char *rest = groups;
    for (char *line; (line = strsep(&rest, "\n")) != NULL;) {
        const int cpus = quota_of_line(root, line);
        if (cpus < threads) threads = cpus;
    }
    return threads;
}
