/* Threads worth starting: the affinity mask of this process against /proc and /sys laid out in a folder. */
#include "sanitizers.h"
#include "scratch.h"

#include <sched.h>

#include "base/cpu.h"

static void put(scratch *s, const char *name, const char *text) {
    scratch_write(s, name, text, strlen(text));
}

static int affinity(void) {
    cpu_set_t set;
    cr_assert_eq(sched_getaffinity(0, sizeof set, &set), 0);
    return CPU_COUNT(&set);
}

/* Quotas are laid out in tenths of the CPUs that this machine has, so that the test means the same everywhere. */
static int at_most(int cpus) {
    const int have = affinity();
    return cpus < have ? cpus : have;
}

static void expect_threads(scratch *s, int cpus, const char *what) {
    const int found = bert_cpu_threads(s->dir);
    cr_expect_eq(found, at_most(cpus), "%s: %d threads, expected %d", what, found, at_most(cpus));
}

Test(cpu, version_2) {
    scratch s;
    scratch_open(&s);
    expect_threads(&s, 1 << 20, "no /proc at all");
    put(&s, "proc/self/cgroup", "0::/a/b\n");
    expect_threads(&s, 1 << 20, "no quota anywhere");
    put(&s, "sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
    expect_threads(&s, 1 << 20, "max");
    put(&s, "sys/fs/cgroup/a/b/cpu.max", "50000 100000\n");
    expect_threads(&s, 1, "half a CPU");
    put(&s, "sys/fs/cgroup/a/b/cpu.max", "100001 100000\n");
    expect_threads(&s, 2, "a little more than one");
    put(&s, "sys/fs/cgroup/a/cpu.max", "100000 100000\n");
    expect_threads(&s, 1, "the parent allows one");
    put(&s, "sys/fs/cgroup/a/cpu.max", "max 100000\n");
    put(&s, "sys/fs/cgroup/cpu.max", "20000 100000\n");
    expect_threads(&s, 1, "the mount itself allows one");
    scratch_close(&s);
}

Test(cpu, version_1) {
    scratch s;
    scratch_open(&s);
    put(&s, "proc/self/cgroup", "9:name=systemd:/\n5:cpuset:/x\n4:cpu,cpuacct:/docker/7\n0::/\n");
    put(&s, "sys/fs/cgroup/cpuset/x/cpu.cfs_quota_us", "1000\n");
    put(&s, "sys/fs/cgroup/cpuset/x/cpu.cfs_period_us", "100000\n");
    expect_threads(&s, 1 << 20, "cpuset is not cpu");
    put(&s, "sys/fs/cgroup/cpu,cpuacct/docker/7/cpu.cfs_quota_us", "-1\n");
    put(&s, "sys/fs/cgroup/cpu,cpuacct/docker/7/cpu.cfs_period_us", "100000\n");
    expect_threads(&s, 1 << 20, "-1");
    put(&s, "sys/fs/cgroup/cpu,cpuacct/docker/7/cpu.cfs_quota_us", "150000\n");
    expect_threads(&s, 2, "one and a half");
    put(&s, "sys/fs/cgroup/cpu/cpu.cfs_quota_us", "100000\n");
    put(&s, "sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
    expect_threads(&s, 1, "the container's own mount, where the host's path does not exist");
    scratch_close(&s);
}

Test(cpu, hybrid_mount) {
    scratch s;
    scratch_open(&s);
    put(&s, "proc/self/cgroup", "1:cpu:/\n0::/u\n");
    put(&s, "sys/fs/cgroup/unified/u/cpu.max", "1000 100000\n");
    expect_threads(&s, 1, "version 2 beside version 1");
    scratch_close(&s);
}

Test(cpu, nonsense_is_no_limit) {
    static const char *const groups[] = {"", "\n\n", "0", "0:", "0::", "::::", "0::/../../etc\n", "0::relative\n"};
    static const char *const quotas[] = {"", "x y\n", "0 0\n", "-5 100000\n", "100000\n", "100000 0\n",
                                         "99999999999999999999 1\n", "9223372036854775807 1\n"};
    scratch s;
    scratch_open(&s);
    for (size_t i = 0; i < sizeof groups / sizeof groups[0]; i++) {
        put(&s, "proc/self/cgroup", groups[i]);
        expect_threads(&s, 1 << 20, groups[i]);
    }
    put(&s, "proc/self/cgroup", "0::/q\n");
    for (size_t i = 0; i < sizeof quotas / sizeof quotas[0]; i++) {
        put(&s, "sys/fs/cgroup/q/cpu.max", quotas[i]);
        expect_threads(&s, 1 << 20, quotas[i]);
    }
    scratch_close(&s);
}

Test(cpu, affinity_mask_counts) {
    cpu_set_t all, one;
    cr_assert_eq(sched_getaffinity(0, sizeof all, &all), 0);
    CPU_ZERO(&one);
    for (size_t i = 0; i < CPU_SETSIZE && CPU_COUNT(&one) == 0; i++) {
        if (CPU_ISSET(i, &all)) CPU_SET(i, &one);
    }
    cr_assert_eq(sched_setaffinity(0, sizeof one, &one), 0);
    cr_expect_eq(bert_cpu_threads("/nowhere"), 1);
    cr_assert_eq(sched_setaffinity(0, sizeof all, &all), 0);
    cr_expect_eq(bert_cpu_threads("/nowhere"), CPU_COUNT(&all));
}

/* The kernel's own list of flags has the same opinion: it leaves out what it does not save either. */
Test(cpu, detected_as_the_kernel_says) {
    char line[16384] = "";
    FILE *file = fopen("/proc/cpuinfo", "r");
    if (file == NULL || under_valgrind()) cr_skip_test("no /proc/cpuinfo of the processor that we see");
    while (fgets(line, sizeof line, file) != NULL && strncmp(line, "flags", 5) != 0) continue;
    fclose(file);
    const bert_cpu cpu = bert_cpu_detect();
#if defined(__x86_64__)
    const int avx2 = strstr(line, " avx2 ") && strstr(line, " fma ") && strstr(line, " f16c ");
    const int avx512 = strstr(line, " avx512f ") && strstr(line, " avx512dq ") && strstr(line, " avx512bw ") &&
                       strstr(line, " avx512vl ");
    cr_expect_eq(cpu.avx2_fma, avx2 != 0);
    cr_expect_eq(cpu.avx512, avx512 != 0);
    cr_expect_not(cpu.neon);
#else
    cr_expect_not(cpu.avx2_fma || cpu.avx512);
#endif
}
