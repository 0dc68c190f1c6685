/* SPDX-License-Identifier: Apache-2.0 */
/* How many threads a process may have: affinity, quotas of control groups, OMP_NUM_THREADS. */
#include "exec/team.h"

#include <criterion/criterion.h>
#include <glib.h>
#include <glib/gstdio.h>
#include <sched.h>

typedef struct {
    const char *path, *text;
} File;

static void
remove_tree(const char *path)
{
    g_autoptr(GDir) dir = g_dir_open(path, 0, NULL);
    for (const char *name = dir ? g_dir_read_name(dir) : NULL; name; name = g_dir_read_name(dir)) {
        g_autofree char *child = g_build_filename(path, name, NULL);
        remove_tree(child);
    }
    g_remove(path);
}

/* Processors below a root that has these files, on a machine that has @all. */
static void
expect_processors(int want, const File *files, const char *what)
{
    g_autofree char *root = g_dir_make_tmp("kiln-processors-XXXXXX", NULL);
    for (; files->path; files++) {
        g_autofree char *path = g_strconcat(root, files->path, NULL);
        g_autofree char *dir = g_path_get_dirname(path);
        cr_assert_eq(g_mkdir_with_parents(dir, 0700), 0);
        cr_assert(g_file_set_contents(path, files->text, -1, NULL));
    }
    cr_expect_eq(kiln_processors_below(root), want, "%s: expected %d, found %d", what, want,
                 kiln_processors_below(root));
    remove_tree(root);
}

static int
all(void)
{
    cpu_set_t set;
    cr_assert_eq(sched_getaffinity(0, sizeof set, &set), 0);
    return CPU_COUNT(&set);
}

#define FILES(...)                                                                                 \
    (const File[])                                                                                 \
    {                                                                                              \
        __VA_ARGS__,                                                                               \
        {                                                                                          \
            NULL, NULL                                                                             \
        }                                                                                          \
    }
#define CG "/sys/fs/cgroup"

Test(processors, version_2)
{
    const File self = { "/proc/self/cgroup", "0::/a/b\n" };
    expect_processors(all(), FILES(self), "no limit is there");
    expect_processors(all(), FILES(self, { CG "/a/b/cpu.max", "max 100000\n" }), "max");
    expect_processors(1, FILES(self, { CG "/a/b/cpu.max", "150000 100000\n" }), "rounded down");
    expect_processors(1, FILES(self, { CG "/a/b/cpu.max", "5000 100000\n" }), "at least one");
    expect_processors(MIN(2, all()), FILES(self, { CG "/a/b/cpu.max", "200000 100000\n" }), "two");
    expect_processors(
        1,
        FILES(self, { CG "/a/b/cpu.max", "max 100000\n" }, { CG "/a/cpu.max", "100000 100000\n" }),
        "of the group above");
    expect_processors(
        1, FILES({ "/proc/self/cgroup", "0::/\n" }, { CG "/cpu.max", "100000 100000\n" }),
        "of a container's root");
    expect_processors(
        1, FILES({ "/proc/self/cgroup", "0::/of/the/host\n" }, { CG "/cpu.max", "50000 50000\n" }),
        "a path that is not mounted");
    expect_processors(all(), FILES(self, { CG "/a/b/cpu.max", "nonsense" }), "no number");
}

Test(processors, version_1)
{
    const File self = { "/proc/self/cgroup", "5:memory:/a\n4:cpu,cpuacct:/a\n1:name=systemd:/\n" };
    const File period = { CG "/cpu/a/cpu.cfs_period_us", "100000\n" };
    expect_processors(all(), FILES(self, period, { CG "/cpu/a/cpu.cfs_quota_us", "-1\n" }), "-1");
    expect_processors(1, FILES(self, period, { CG "/cpu/a/cpu.cfs_quota_us", "100000\n" }), "one");
    expect_processors(1,
                      FILES(self, { CG "/cpu,cpuacct/a/cpu.cfs_period_us", "100000\n" },
                            { CG "/cpu,cpuacct/a/cpu.cfs_quota_us", "120000\n" }),
                      "both");
    expect_processors(all(),
                      FILES({ "/proc/self/cgroup", "3:cpuset:/a\n" }, period,
                            { CG "/cpu/a/cpu.cfs_quota_us", "100000\n" }),
                      "another's");
}

Test(processors, affinity)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    cr_assert_eq(sched_setaffinity(0, sizeof one, &one), 0);
    cr_expect_eq(kiln_processors_below("/nowhere"), 1);
    cr_expect_eq(kiln_processors(), 1);
}

Test(processors, omp_num_threads_asks_for_fewer)
{
    kiln_processors_set(8);
    cr_expect_eq(kiln_default_threads(NULL), 8);
    cr_expect_eq(kiln_default_threads(""), 8);
    cr_expect_eq(kiln_default_threads("3"), 3);
    cr_expect_eq(kiln_default_threads("4,2"), 4);
    cr_expect_eq(kiln_default_threads("100"), 8);
    cr_expect_eq(kiln_default_threads("-1"), 8);
    cr_expect_eq(kiln_default_threads("many"), 8);
}
