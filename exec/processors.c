/* SPDX-License-Identifier: Apache-2.0 */
/* How many processors this process may use. A control group limits the time on processors, not
 * their number: a team that is larger than its quota is stopped for the rest of each period. */
#include "exec/team.h"

#include <glib.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int
affinity(void)
{
#ifdef __linux__
    /* The kernel refuses a set that is smaller than its own. */
    for (int n = 1024; n <= 1 << 20; n *= 2) {
        cpu_set_t *set = CPU_ALLOC(n);
        size_t size = CPU_ALLOC_SIZE(n);
        int found = set && sched_getaffinity(0, size, set) == 0 ? CPU_COUNT_S(size, set) : 0;
        CPU_FREE(set);
        if (found > 0)
            return found;
    }
#endif
    return (int)MAX(sysconf(_SC_NPROCESSORS_ONLN), 1);
}

/* --- control groups --- */

static char *
read_text(const char *root, const char *path)
{
    g_autofree char *whole = g_strconcat(root, path, NULL);
    char *text = NULL;
    return g_file_get_contents(whole, &text, NULL, NULL) ? text : NULL;
}

/* Processors that @quota microseconds of each @period are; @most where there is no limit. */
static int
of_quota(const char *quota, const char *period, int most)
{
    double time = g_ascii_strtod(quota, NULL), of = g_ascii_strtod(period, NULL);
    return time > 0 && of > 0 ? (int)CLAMP(time / of, 1, most) : most;
}

/* "max 100000" or "150000 100000" of version 2. */
static int
limit_of_v2(const char *root, const char *dir, int most)
{
    g_autofree char *path = g_strconcat("/sys/fs/cgroup", dir, "/cpu.max", NULL);
    g_autofree char *text = read_text(root, path);
    char *space = text ? strchr(text, ' ') : NULL;
    return space ? of_quota(text, space, most) : most; /* "max" is no number */
}

static int
limit_of_v1(const char *root, const char *dir, int most)
{
    static const char *const mounts[] = { "/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct" };
    for (size_t i = 0; i < G_N_ELEMENTS(mounts); i++) {
        g_autofree char *of_quota_us = g_strconcat(mounts[i], dir, "/cpu.cfs_quota_us", NULL);
        g_autofree char *of_period_us = g_strconcat(mounts[i], dir, "/cpu.cfs_period_us", NULL);
        g_autofree char *quota = read_text(root, of_quota_us);
        g_autofree char *period = read_text(root, of_period_us);
        if (quota && period)
            return of_quota(quota, period, most);
    }
    return most;
}

/* A group is limited by those above it, too. In a container its own path may not exist: the root of
 * what is mounted is the group then. */
static int
limit_of_group(const char *root, const char *group, int (*limit)(const char *, const char *, int),
               int most)
{
    g_autofree char *dir = g_strdup(group);
    for (;;) {
        most = limit(root, dir, most);
        char *slash = strrchr(dir, '/');
        if (!slash)
            return most;
        *slash = '\0';
    }
}

static bool
has_cpu(const char *controllers)
{
    g_auto(GStrv) names = g_strsplit(controllers, ",", 0);
    return g_strv_contains((const char *const *)names, "cpu");
}

/* Lines of /proc/self/cgroup: "0::/a/b" of version 2, "4:cpu,cpuacct:/a/b" of version 1. */
static int
quota(const char *root, int most)
{
    g_autofree char *text = read_text(root, "/proc/self/cgroup");
    g_auto(GStrv) lines = g_strsplit(text ? text : "", "\n", 0);
    for (char **line = lines; *line; line++) {
        g_auto(GStrv) fields = g_strsplit(*line, ":", 3);
        if (g_strv_length(fields) < 3)
            continue;
        const char *group = strcmp(fields[2], "/") == 0 ? "" : fields[2];
        if (!*fields[1])
            most = limit_of_group(root, group, limit_of_v2, most);
        else if (has_cpu(fields[1]))
            most = limit_of_group(root, group, limit_of_v1, most);
    }
    return most;
}

int
kiln_processors_below(const char *root)
{
    return quota(root, affinity());
}

static atomic_int found, set_by_test;

int
kiln_processors(void)
{
    int n = atomic_load_explicit(&set_by_test, memory_order_relaxed);
    if (n == 0)
        n = atomic_load_explicit(&found, memory_order_relaxed);
    if (n == 0) {
        n = kiln_processors_below("");
        atomic_store_explicit(&found, n, memory_order_relaxed);
    }
    return n;
}

void
kiln_processors_set(int n)
{
    atomic_store(&set_by_test, n);
}

/* A list of numbers is for nested teams: the first counts. */
int
kiln_default_threads(const char *omp_num_threads)
{
    int most = kiln_processors();
    long wanted = omp_num_threads ? strtol(omp_num_threads, NULL, 10) : 0;
    return wanted > 0 && wanted < most ? (int)wanted : most;
}
