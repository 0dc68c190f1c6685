/* SPDX-License-Identifier: Apache-2.0 */
/* kiln-bench-memory: how low the planner places buffers, and how soon.
 *
 * Reads problems in the CSV format of the MiniMalloc benchmarks: a line a buffer, columns named in
 * the first line, of which `id`, `size` and a life are needed: `lower,upper`, or `begin,end` with
 * the end included. Or makes problems whose optimum is known. Checks each plan for overlaps by
 * itself. Seconds are those of the processor: other processes on it do not count. */
#include "bench/bench_generate.h"
#include "bench/bench_problem.h"
#include "bench/bench_stats.h"
#include "graph/base/write_file.h"
#include "ir/life.h"
#include "ir/plan/place.h"

#include <glib/gstdio.h>
#include <locale.h>
#include <stdio.h>

/* Of exact search: less than five seconds, where a program gets a fiftieth of one. */
static const int64_t WORK = INT64_C(1800000000);

/* Of a search below a capacity that is met. */
static const int64_t LOWER_WORK = INT64_C(50000000);

typedef struct {
    gint64 capacity;
    char *out, *problems, *generate;
    gboolean gaps;
    guint64 first_seed, last_seed; /* of @generate */
} Options;

/* --- planning --- */

static int64_t
height_of(const KilnLife *lives, uint32_t n)
{
    int64_t height = 0;
    for (uint32_t i = 0; i < n; i++)
        height = MAX(height, lives[i].offset + lives[i].size);
    return height;
}

/* Halves the range between bound and height; what is not decided soon counts as too low. */
static void
go_lower(Problem *problem)
{
    KilnLife *lives = (KilnLife *)(void *)problem->lives->data;
    for (int64_t low = problem->bound; low < problem->height;) {
        int64_t capacity = low + (problem->height - low) / 2, work = LOWER_WORK;
        KilnPlacement found = kiln_place_within(lives, problem->lives->len, capacity, &work);
        if (found == KILN_PLACED)
            problem->height = height_of(lives, problem->lives->len);
        else
            low = capacity + 1;
        if (found == KILN_PLACEMENT_IMPOSSIBLE)
            problem->bound = capacity + 1;
    }
}

/* As a program is planned; where that is too high, on to the capacity and a little below it, or as
 * low as can be. */
static void
solve(Problem *problem)
{
    KilnLife *lives = (KilnLife *)(void *)problem->lives->data;
    uint32_t n = problem->lives->len;
    int64_t work = WORK;
    double begin = bench_cpu_now();
    problem->height = kiln_place(lives, n, KILN_PLACE_WORK, &problem->bound);
    if (!problem->capacity && problem->height > problem->bound)
        problem->height = kiln_place(lives, n, WORK, &problem->bound);
    else if (problem->capacity >= problem->bound && problem->capacity < problem->height) {
        KilnPlacement found = kiln_place_within(lives, n, problem->capacity, &work);
        if (found == KILN_PLACED)
            problem->height = height_of(lives, n);
        else if (found == KILN_PLACEMENT_IMPOSSIBLE)
            problem->bound = problem->capacity + 1;
    }
    if (problem->capacity && problem->height <= problem->capacity)
        go_lower(problem);
    problem->seconds = bench_cpu_now() - begin;
}

/* --- the plan, checked by what knows nothing of how it was made --- */

static gboolean
check(const Problem *problem, GError **error)
{
    for (guint i = 0; i < problem->lives->len; i++) {
        const KilnLife *a = &g_array_index(problem->lives, KilnLife, i);
        if (a->offset < 0 || a->offset > problem->height - a->size)
            return kiln_throw(error, KILN_ERROR_MISMATCH, "%s: buffer %s lies outside the plan",
                              problem->name, (char *)g_ptr_array_index(problem->ids, i));
        for (guint k = 0; k < i; k++) {
            const KilnLife *b = &g_array_index(problem->lives, KilnLife, k);
            bool apart = a->last < b->first || b->last < a->first ||
                         a->offset + a->size <= b->offset || b->offset + b->size <= a->offset;
            if (!apart)
                return kiln_throw(error, KILN_ERROR_MISMATCH, "%s: buffers %s and %s overlap",
                                  problem->name, (char *)g_ptr_array_index(problem->ids, k),
                                  (char *)g_ptr_array_index(problem->ids, i));
        }
    }
    return TRUE;
}

static gboolean
write_problem(const Problem *problem, const char *folder, bool with_plan, GError **error)
{
    g_autoptr(GString) out = g_string_new("id,lower,upper,size");
    g_string_append(out, with_plan ? ",offset\n" : "\n");
    for (guint i = 0; i < problem->lives->len; i++) {
        const KilnLife *life = &g_array_index(problem->lives, KilnLife, i);
        g_string_append_printf(
            out, "%s,%" G_GINT64_FORMAT ",%" G_GINT64_FORMAT ",%" G_GINT64_FORMAT,
            (char *)g_ptr_array_index(problem->ids, i), life->first, life->last + 1, life->size);
        if (with_plan)
            g_string_append_printf(out, ",%" G_GINT64_FORMAT, life->offset);
        g_string_append_c(out, '\n');
    }
    if (!kiln_folder_make(folder, 0777, error))
        return FALSE;
    g_autofree char *path = g_build_filename(folder, problem->name, NULL);
    return kiln_file_write(path, out->str, out->len, error);
}

static gboolean
bench(Problem *problem, const Options *options, bool *out_met, GError **error)
{
    if (options->problems)
        return write_problem(problem, options->problems, false, error);
    solve(problem);
    printf("%-24s %8u %14" G_GINT64_FORMAT " %14" G_GINT64_FORMAT " %9.3f  %s\n", problem->name,
           problem->lives->len, problem->bound, problem->height, problem->seconds,
           problem->height == problem->bound ? "yes" : "no");
    fflush(stdout);
    *out_met = !problem->capacity || problem->height <= problem->capacity;
    if (!*out_met)
        fprintf(stderr,
                "kiln-bench-memory: %s: expected a height of at most %" G_GINT64_FORMAT
                ", found %" G_GINT64_FORMAT "\n",
                problem->name, problem->capacity, problem->height);
    return check(problem, error) &&
           (!options->out || write_problem(problem, options->out, true, error));
}

/* False where an error was, or a plan is too high. */
static bool
bench_or_say(Problem *problem, const Options *options, GError *error)
{
    bool met = options->problems;
    if (!problem || !bench(problem, options, &met, &error))
        fprintf(stderr, "kiln-bench-memory: %s\n", error->message);
    met = met && !error;
    g_clear_error(&error);
    return met;
}

static int
bench_all(const Options *options, char **paths)
{
    int status = 0;
    if (!options->problems)
        printf("%-24s %8s %14s %14s %9s  %s\n", "name", "buffers", "lower bound", "height",
               "seconds", "proven");
    for (char **path = paths; *path; path++) {
        GError *error = NULL;
        g_autoptr(Problem) problem = problem_load(*path, options->capacity, &error);
        if (!bench_or_say(problem, options, error))
            status = 1;
    }
    guint64 n = options->generate ? options->last_seed - options->first_seed + 1 : 0;
    for (guint64 k = 0; k < n; k++) {
        g_autoptr(Problem) problem = problem_generate(options->first_seed + k, options->gaps);
        if (options->capacity >= 0)
            problem->capacity = options->capacity;
        if (!bench_or_say(problem, options, NULL))
            status = 1;
    }
    return status;
}

/* N or N-M. */
static gboolean
parse_seeds(Options *options, GError **error)
{
    if (!options->generate)
        return TRUE;
    g_auto(GStrv) parts = g_strsplit(options->generate, "-", 2);
    const char *last = parts[0] && parts[1] ? parts[1] : parts[0];
    if (last &&
        g_ascii_string_to_unsigned(parts[0], 10, 0, UINT32_MAX, &options->first_seed, NULL) &&
        g_ascii_string_to_unsigned(last, 10, options->first_seed, UINT32_MAX, &options->last_seed,
                                   NULL))
        return TRUE;
    return kiln_throw(error, KILN_ERROR_INVALID,
                      "--generate: expected N or N-M, N not above M, found \"%s\"",
                      options->generate);
}

int
main(int argc, char **argv)
{
    Options options = { .capacity = -1 };
    const GOptionEntry entries[] = {
        { "capacity", 0, 0, G_OPTION_ARG_INT64, &options.capacity,
          "Fail if a plan is higher than N; 0 asks for the lowest plan (default: the number in the "
          "file name, such as A.1048576.csv, or 0)",
          "N" },
        { "out", 0, 0, G_OPTION_ARG_FILENAME, &options.out,
          "Write the plans to DIR as CSV, with a column `offset`", "DIR" },
        { "generate", 0, 0, G_OPTION_ARG_STRING, &options.generate,
          "Make hard problems from the seeds N to M; their optimum is 1048576", "N[-M]" },
        { "gaps", 0, 0, G_OPTION_ARG_NONE, &options.gaps,
          "With --generate, leave a few percent empty", NULL },
        { "problems", 0, 0, G_OPTION_ARG_FILENAME, &options.problems,
          "Write the problems to DIR and plan none", "DIR" },
        G_OPTION_ENTRY_NULL,
    };
    setlocale(LC_CTYPE, ""); /* what --help is written in */
    g_autoptr(GOptionContext) context = g_option_context_new("[FILE.csv…]");
    g_option_context_set_summary(
        context,
        "Plans the memory of problems in MiniMalloc's CSV format: id,lower,upper,size. Prints "
        "seconds of processor time.");
    g_option_context_add_main_entries(context, entries, NULL);
    g_autoptr(GError) error = NULL;
    int status = 2;
    if (!g_option_context_parse(context, &argc, &argv, &error))
        fprintf(stderr, "kiln-bench-memory: %s\n", error->message);
    else if (!parse_seeds(&options, &error))
        fprintf(stderr, "kiln-bench-memory: %s\n", error->message);
    else if (argc < 2 && !options.generate)
        fprintf(stderr, "kiln-bench-memory: expected a file\n");
    else if (options.capacity < -1)
        fprintf(stderr,
                "kiln-bench-memory: --capacity: expected a number, found %" G_GINT64_FORMAT "\n",
                options.capacity);
    else
        status = bench_all(&options, argv + 1);
    g_free(options.out);
    g_free(options.problems);
    g_free(options.generate);
    return status;
}
