/* SPDX-License-Identifier: Apache-2.0 */
/* kiln-fit-costs: fits the model by which choose-algorithms picks the algorithm of a convolution.
 *
 * Measures 3×3 convolutions of many shapes in each algorithm, or reads what was measured before;
 * fits the cost of each term by least squares of relative errors, none below zero; says how far the
 * model is off and what its choices lose; writes the header that the cpu backend is built with. */
#include "backends/cpu/conv_winograd.h"
#include "bench/bench_case.h"
#include "bench/bench_side.h"
#include "bench/bench_stats.h"
#include "graph/error.h"
#include "runtime/file.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct {
    char *from, *to, *header;
    double min_time;
} Options;

enum {
    MAX_TERMS = KILN_WINOGRAD_TERMS,
    MIN_ROUNDS = 7,
};

typedef enum {
    DIRECT,
    WINOGRAD,
    N_ALGORITHMS,
} Algorithm;

static const struct {
    const char *name, *macro;
    int n_terms;
} algorithms[N_ALGORITHMS] = {
    { "direct", "KILN_DIRECT_COSTS", KILN_DIRECT_TERMS },
    { "winograd", "KILN_WINOGRAD_COSTS", KILN_WINOGRAD_TERMS },
};

/* A convolution 3×3 of stride 1 that keeps the extent of its square pictures. */
typedef struct {
    int in, out, extent;
    double us[N_ALGORITHMS]; /* measured */
    double model[N_ALGORITHMS];
} Shape;

/* --- measuring --- */

/* The least time of a run: what else the machine does makes runs longer, never shorter. */
static gboolean
measure(Shape *shape, Algorithm algorithm, double min_time, GError **error)
{
    g_autofree char *line = g_strdup_printf(
        "conv @out @y: f32[1,%d,%d,%d], @in @x: f32[1,%d,%d,%d], @in @w: f32[%d,%d,3,3] const "
        "{pads=[1,1,1,1], algorithm=\"%s\"}",
        shape->out, shape->extent, shape->extent, shape->in, shape->extent, shape->extent,
        shape->out, shape->in, algorithms[algorithm].name);
    g_autoptr(BenchCase) one = bench_case_new(line, error);
    BenchSide side = { .program = NULL };
    gboolean good = one && bench_side_open(&side, one->model, "cpu", 1, error);
    double best = INFINITY, end = bench_now() + min_time;
    for (int n = 0; good && (n < MIN_ROUNDS || bench_now() < end); n++) {
        double begin = bench_now();
        good = kiln_session_run(side.session, error);
        best = MIN(best, bench_now() - begin);
    }
    shape->us[algorithm] = round(best * 1e8) / 100; /* as written to disk */
    bench_side_clear(&side);
    return good;
}

static gboolean
measure_all(const Options *options, GArray *shapes, GError **error)
{
    static const int channels[][2] = { { 16, 16 },   { 32, 32 },   { 64, 64 },  { 128, 128 },
                                       { 256, 256 }, { 512, 512 }, { 16, 64 },  { 64, 128 },
                                       { 128, 64 },  { 96, 32 },   { 256, 64 }, { 64, 256 },
                                       { 48, 192 },  { 24, 24 } };
    static const int extents[] = { 7, 13, 14, 28, 56, 112 };
    const double most = 2e9; /* operations: what is bigger takes long and says nothing new */
    for (size_t c = 0; c < G_N_ELEMENTS(channels); c++) {
        for (size_t e = 0; e < G_N_ELEMENTS(extents); e++) {
            Shape shape = { channels[c][0], channels[c][1], extents[e], { 0 }, { 0 } };
            if (18.0 * shape.in * shape.out * shape.extent * shape.extent > most)
                continue;
            for (int a = 0; a < N_ALGORITHMS; a++) {
                if (!measure(&shape, (Algorithm)a, options->min_time, error))
                    return FALSE;
            }
            g_array_append_val(shapes, shape);
        }
    }
    return TRUE;
}

/* --- measurements on disk --- */

static const char columns[] = "in,out,extent,direct_us,winograd_us";

static gboolean
write_shapes(const Options *options, const GArray *shapes, GError **error)
{
    g_autoptr(GString) text = g_string_new(NULL);
    g_string_printf(text, "# %s; convolutions 3x3, stride 1, one thread\n%s\n", kiln_build_info(),
                    columns);
    for (guint i = 0; i < shapes->len; i++) {
        const Shape *s = &g_array_index(shapes, Shape, i);
        g_string_append_printf(text, "%d,%d,%d,%.2f,%.2f\n", s->in, s->out, s->extent,
                               s->us[DIRECT], s->us[WINOGRAD]);
    }
    return kiln_file_write(options->to, text->str, text->len, error);
}

static gboolean
read_shapes(const Options *options, GArray *shapes, GError **error)
{
    g_autofree char *text = NULL;
    if (!g_file_get_contents(options->from, &text, NULL, error))
        return FALSE;
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    for (int i = 0; lines[i]; i++) {
        Shape s = { 0 };
        int end = 0;
        if (!lines[i][0] || lines[i][0] == '#' || strcmp(lines[i], columns) == 0)
            continue;
        int found = sscanf(lines[i], "%d,%d,%d,%lf,%lf%n", &s.in, &s.out, &s.extent, &s.us[DIRECT],
                           &s.us[WINOGRAD], &end);
        if (found != 5 || lines[i][end] || s.in < 1 || s.out < 1 || s.extent < 1 ||
            !(s.us[DIRECT] > 0) || !(s.us[WINOGRAD] > 0))
            return kiln_throw(error, KILN_ERROR_PARSE,
                              "%s:%d: expected %s, all above zero, found %s", options->from, i + 1,
                              columns, lines[i]);
        g_array_append_val(shapes, s);
    }
    if (shapes->len >= MAX_TERMS)
        return TRUE;
    return kiln_throw(error, KILN_ERROR_PARSE, "%s: expected %d shapes or more, found %u",
                      options->from, MAX_TERMS, shapes->len);
}

/* --- fitting --- */

static void
terms_of(const Shape *shape, Algorithm algorithm, double terms[MAX_TERMS])
{
    KilnCpuConv conv = { .batch = 1,
                         .ic = shape->in,
                         .oc = shape->out,
                         .groups = 1,
                         .in = { 1, shape->extent, shape->extent },
                         .out = { 1, shape->extent, shape->extent },
                         .kernel = { 1, 3, 3 },
                         .stride = { 1, 1, 1 },
                         .dilation = { 1, 1, 1 },
                         .pad = { 0, 1, 1 },
                         .tail = kiln_cpu_tail_none(),
                         .weights_packed = true };
    if (algorithm == DIRECT)
        kiln_direct_terms(&conv, terms);
    else
        kiln_winograd_terms(&conv, terms);
}

/* Gaussian elimination with pivots; unknowns that nothing determines become 0. */
static void
solve(int n, double a[MAX_TERMS][MAX_TERMS + 1], double x[MAX_TERMS])
{
    for (int k = 0; k < n; k++) {
        int best = k;
        for (int i = k + 1; i < n; i++) {
            if (fabs(a[i][k]) > fabs(a[best][k]))
                best = i;
        }
        for (int j = 0; best != k && j <= n; j++) {
            double other = a[k][j];
            a[k][j] = a[best][j];
            a[best][j] = other;
        }
        for (int i = 0; i < n; i++) {
            if (i == k || a[k][k] == 0)
                continue;
            double factor = a[i][k] / a[k][k];
            for (int j = k; j <= n; j++)
                a[i][j] -= factor * a[k][j];
        }
    }
    for (int k = 0; k < n; k++)
        x[k] = a[k][k] != 0 ? a[k][n] / a[k][k] : 0;
}

/* Least squares of (model - measured) / measured over the terms in @used. */
static void
least_squares(const GArray *shapes, Algorithm algorithm, const bool used[MAX_TERMS],
              double costs[MAX_TERMS])
{
    double a[MAX_TERMS][MAX_TERMS + 1] = { { 0 } }, x[MAX_TERMS];
    int n = 0, index[MAX_TERMS];
    for (int t = 0; t < algorithms[algorithm].n_terms; t++) {
        costs[t] = 0;
        if (used[t])
            index[n++] = t;
    }
    for (guint s = 0; s < shapes->len; s++) {
        const Shape *shape = &g_array_index(shapes, Shape, s);
        double terms[MAX_TERMS], us = shape->us[algorithm];
        terms_of(shape, algorithm, terms);
        for (int i = 0; i < n; i++) {
            for (int j = 0; j < n; j++)
                a[i][j] += terms[index[i]] * terms[index[j]] / (us * us);
            a[i][n] += terms[index[i]] / us;
        }
    }
    solve(n, a, x);
    for (int i = 0; i < n; i++)
        costs[index[i]] = x[i];
}

/* A term that would cost less than nothing is left out, the worst first, until none does. */
static void
fit(GArray *shapes, Algorithm algorithm, double costs[MAX_TERMS])
{
    bool used[MAX_TERMS] = { true, true, true, true, true };
    for (;;) {
        least_squares(shapes, algorithm, used, costs);
        int worst = -1;
        for (int t = 0; t < algorithms[algorithm].n_terms; t++) {
            if (costs[t] < 0 && (worst < 0 || costs[t] < costs[worst]))
                worst = t;
        }
        if (worst < 0)
            break;
        used[worst] = false;
    }
    for (guint s = 0; s < shapes->len; s++) {
        Shape *shape = &g_array_index(shapes, Shape, s);
        double terms[MAX_TERMS];
        terms_of(shape, algorithm, terms);
        shape->model[algorithm] = kiln_conv_cost(terms, costs, algorithms[algorithm].n_terms);
    }
}

/* --- reports --- */

static void
print_fit(const GArray *shapes)
{
    double squares[N_ALGORITHMS] = { 0 }, chosen = 0, best = 0;
    unsigned wrong = 0;
    printf("%4s %4s %6s %10s %10s %10s %10s  %s\n", "in", "out", "extent", "direct us", "model",
           "winograd", "model", "choice");
    for (guint i = 0; i < shapes->len; i++) {
        const Shape *s = &g_array_index(shapes, Shape, i);
        Algorithm choice = s->model[WINOGRAD] < s->model[DIRECT] ? WINOGRAD : DIRECT;
        Algorithm right = s->us[WINOGRAD] < s->us[DIRECT] ? WINOGRAD : DIRECT;
        for (int a = 0; a < N_ALGORITHMS; a++)
            squares[a] += pow(s->model[a] / s->us[a] - 1, 2);
        chosen += s->us[choice] / s->us[right];
        best += 1;
        wrong += choice != right;
        printf("%4d %4d %6d %10.1f %10.1f %10.1f %10.1f  %s%s\n", s->in, s->out, s->extent,
               s->us[DIRECT], s->model[DIRECT], s->us[WINOGRAD], s->model[WINOGRAD],
               algorithms[choice].name, choice == right ? "" : ", not the faster one");
    }
    for (int a = 0; a < N_ALGORITHMS; a++)
        printf("%s: %.0f %% off (root mean square)\n", algorithms[a].name,
               100 * sqrt(squares[a] / shapes->len));
    printf(
        "%u of %u choices are not the faster one; over all, a choice costs %.3f times the best\n",
        wrong, shapes->len, chosen / best);
}

static gboolean
write_header(const Options *options, double costs[N_ALGORITHMS][MAX_TERMS], GError **error)
{
    g_autoptr(GString) text = g_string_new(
        "/* SPDX-License-Identifier: Apache-2.0 */\n"
        "/* What the algorithms of a convolution cost: microseconds on one thread by each term "
        "that\n"
        " * kiln_direct_terms() and kiln_winograd_terms() count. Written by kiln-fit-costs from\n"
        " * bench/costs/conv.csv, which says what it was measured on. */\n"
        "#pragma once\n\n// clang-format off\n");
    for (int a = 0; a < N_ALGORITHMS; a++) {
        g_string_append_printf(text, "#define %s { ", algorithms[a].macro);
        for (int t = 0; t < algorithms[a].n_terms; t++)
            g_string_append_printf(text, "%s%.4g", t ? ", " : "", costs[a][t]);
        g_string_append(text, " }\n");
    }
    g_string_append(text, "// clang-format on\n");
    return kiln_file_write(options->header, text->str, text->len, error);
}

static gboolean
run(const Options *options, GError **error)
{
    g_autoptr(GArray) shapes = g_array_new(FALSE, FALSE, sizeof(Shape));
    double costs[N_ALGORITHMS][MAX_TERMS] = { { 0 } };
    gboolean good =
        options->from ? read_shapes(options, shapes, error) : measure_all(options, shapes, error);
    if (!good || (options->to && !write_shapes(options, shapes, error)))
        return FALSE;
    for (int a = 0; a < N_ALGORITHMS; a++)
        fit(shapes, (Algorithm)a, costs[a]);
    print_fit(shapes);
    return !options->header || write_header(options, costs, error);
}

int
main(int argc, char **argv)
{
    Options options = { .min_time = 0.1 };
    const GOptionEntry entries[] = {
        { "from", 0, 0, G_OPTION_ARG_FILENAME, &options.from,
          "Fit to these measurements instead of making new ones", "F.csv" },
        { "to", 0, 0, G_OPTION_ARG_FILENAME, &options.to, "Write the measurements here", "F.csv" },
        { "header", 0, 0, G_OPTION_ARG_FILENAME, &options.header,
          "Write the fitted costs here: backends/cpu/conv_costs.h is what Kiln is built with",
          "F.h" },
        { "min-time", 0, 0, G_OPTION_ARG_DOUBLE, &options.min_time,
          "Measure each shape for at least S seconds (default 0.1)", "S" },
        G_OPTION_ENTRY_NULL,
    };
    g_autoptr(GOptionContext) context = g_option_context_new(NULL);
    g_option_context_set_summary(
        context, "Fits the model by which the algorithm of a convolution is chosen to this CPU.");
    g_option_context_add_main_entries(context, entries, NULL);
    g_autoptr(GError) error = NULL;
    int status = 2;
    if (g_option_context_parse(context, &argc, &argv, &error)) {
        if (argc > 1)
            kiln_throw(&error, KILN_ERROR_USAGE, "expected no operand, found %s", argv[1]);
        else
            status = run(&options, &error) ? 0 : 1;
    }
    if (error)
        fprintf(stderr, "kiln-fit-costs: %s\n", error->message);
    g_free(options.from);
    g_free(options.to);
    g_free(options.header);
    return status;
}
