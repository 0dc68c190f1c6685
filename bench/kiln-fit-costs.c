/* SPDX-License-Identifier: Apache-2.0 */
/* kiln-fit-costs: fits the models by which choose-algorithms picks the algorithm of a convolution
 * and partition-offload weighs own kernels against those of the vendor library.
 *
 * Measures operators of many shapes in each way that they can be computed, or reads what was
 * measured before; fits the cost of each term by least squares of relative errors, none below zero;
 * says how far the models are off and what choices by them lose; writes the headers that the
 * backends are built with. */
#include "backends/cpu/conv/conv.h"
#include "backends/cpu/conv/conv_problem.h"
#include "backends/cpu/conv/conv_winograd.h"
#include "backends/cpu/cost.h"
#include "backends/cpu/gemm/gemm.h"
#include "backends/cpu/isa.h"
#include "backends/cpu/recurrent/recurrent.h"
#include "backends/cpu/reduce/pool_windows.h"
#include "backends/cpu/stack/tail.h"
#include "backends/onednn/cost.h"
#include "bench/cost_measure.h"
#include "bench/cost_shape.h"
#include "graph/base/write_file.h"
#include "graph/error.h"

#include <locale.h>
#include <math.h>
#include <stdio.h>

typedef struct {
    char *from, *to, *only, *part, *isa, *own_header, *vendor_header;
    double min_time;
} Options;

enum {
    MAX_TERMS = MAX((int)KILN_CPU_TERMS, (int)KILN_ONEDNN_TERMS),
};

static bool
is_wide(const Options *options)
{
    return options->isa ? g_str_equal(options->isa, "avx512")
                        : kiln_cpu_isa_best() == KILN_CPU_ISA_AVX512;
}

/* One column of some shapes, and the terms that its times are sums of. */
typedef struct {
    const char *name;
    int n_terms;
    ShapeWay way;
    bool vendor;
    int kind; /* KilnCpuCostKind or KilnOnednnCostKind */
    bool blocked;
} Model;

static const Model models[] = {
#define OWN(name, n)                                                                               \
    { #name,                                                                                       \
      n,                                                                                           \
      KILN_CPU_COST_##name == KILN_CPU_COST_winograd ? WAY_WINOGRAD : WAY_DIRECT,                  \
      false,                                                                                       \
      KILN_CPU_COST_##name,                                                                        \
      false },
#define VENDOR(name, n)                                                                            \
    { #name, n, WAY_LAST, true, KILN_ONEDNN_COST_##name, false },                                  \
        { #name, n, WAY_BLOCKED, true, KILN_ONEDNN_COST_##name, true },
    KILN_CPU_COST_KINDS(OWN) KILN_ONEDNN_COST_KINDS(VENDOR)
};

/* --- terms --- */

enum {
    ACTIVATION = 10, /* operations of a sigmoid or swish for each number, as kiln_instr_cost() */
};

/* Of what works on pictures as they are. */
static bool
value_terms(const Shape *s, int *kind, double terms[MAX_TERMS])
{
    double numbers = (double)s->out * s->extent * s->extent, bytes = 4 * numbers;
    switch (s->kind) {
    case SHAPE_REORDER:
        *kind = KILN_CPU_COST_relayout;
        kiln_relayout_terms(bytes, terms);
        return true;
    case SHAPE_ADD:
        *kind = KILN_CPU_COST_moved;
        kiln_moved_terms(3 * bytes, terms);
        return true;
    case SHAPE_SIGMOID:
    case SHAPE_SWISH:
        *kind = KILN_CPU_COST_computed;
        kiln_computed_terms(ACTIVATION * numbers, terms);
        return true;
    case SHAPE_TAIL_ADD:
    case SHAPE_TAIL_SWISH:
        *kind = KILN_CPU_COST_tail;
        kiln_cpu_tail_terms(s->kind == SHAPE_TAIL_ADD ? 0 : ACTIVATION * numbers,
                            s->kind == SHAPE_TAIL_ADD ? bytes : 0, terms);
        return true;
    default:
        return false;
    }
}

static bool
own_terms(const Shape *s, ShapeWay way, int *kind, double terms[MAX_TERMS])
{
    int half = cost_shape_pad(s), y = cost_shape_result(s);
    KilnCpuConv conv = { .batch = 1,
                         .ic = s->in,
                         .oc = s->out,
                         .groups = s->kind == SHAPE_DEPTHWISE ? s->in : 1,
                         .in = { 1, s->extent, s->extent },
                         .out = { 1, y, y },
                         .kernel = { 1, s->kernel, s->kernel },
                         .stride = { 1, s->stride, s->stride },
                         .dilation = { 1, 1, 1 },
                         .pad = { 0, half, half },
                         .tail = kiln_cpu_tail_none(),
                         .weights_packed = true };
    KilnCpuPoolShape pool = { .planes = s->in,
                              .in = { 1, s->extent, s->extent },
                              .out = { 1, y, y },
                              .kernel = { 1, s->kernel, s->kernel } };
    pool.edges = kiln_pool_edges(s->extent, y, s->kernel, s->stride, half);
    KilnCpuGemm gemm = kiln_cpu_gemm_dense(s->extent, s->out, s->in);
    gemm.b_packed = true;
    switch (s->kind) {
    case SHAPE_CONV:
    case SHAPE_DEPTHWISE:
        *kind = KILN_CPU_COST_winograd;
        if (way == WAY_WINOGRAD)
            kiln_winograd_terms(&conv, terms);
        else
            *kind = (int)kiln_direct_terms(&conv, terms);
        return true;
    case SHAPE_CONV_TRANSPOSE:
        *kind = KILN_CPU_COST_transposed;
        kiln_transposed_terms(&conv, terms);
        return true;
    case SHAPE_MAX_POOL:
        *kind = KILN_CPU_COST_pool;
        kiln_pool_terms(&pool, terms);
        return true;
    case SHAPE_GLOBAL_AVERAGE_POOL:
        *kind = KILN_CPU_COST_global_pool;
        kiln_global_pool_terms(&pool, terms);
        return true;
    case SHAPE_MATMUL:
        *kind = KILN_CPU_COST_matmul;
        kiln_matmul_terms(&gemm, terms);
        return true;
    case SHAPE_SOFTMAX:
    case SHAPE_LAYER_NORMALIZATION:
    case SHAPE_REDUCTION:
        *kind = s->kind == SHAPE_SOFTMAX     ? KILN_CPU_COST_softmax
                : s->kind == SHAPE_REDUCTION ? KILN_CPU_COST_reduction
                                             : KILN_CPU_COST_layer_normalization;
        kiln_rows_terms(s->extent, s->in, terms);
        return true;
    case SHAPE_LSTM:
        *kind = KILN_CPU_COST_lstm;
        kiln_lstm_terms(s->extent, 1, s->in, s->out, terms);
        return true;
    default:
        return value_terms(s, kind, terms);
    }
}

static int
vendor_kind(const Shape *s)
{
    static const int kinds[N_SHAPE_KINDS] = {
        [SHAPE_CONV] = KILN_ONEDNN_COST_window,
        [SHAPE_DEPTHWISE] = KILN_ONEDNN_COST_depthwise,
        [SHAPE_CONV_TRANSPOSE] = KILN_ONEDNN_COST_transposed,
        [SHAPE_MAX_POOL] = KILN_ONEDNN_COST_pool,
        [SHAPE_GLOBAL_AVERAGE_POOL] = KILN_ONEDNN_COST_global_pool,
        [SHAPE_MATMUL] = KILN_ONEDNN_COST_matmul,
        [SHAPE_REORDER] = KILN_ONEDNN_COST_reorder,
        [SHAPE_SOFTMAX] = KILN_ONEDNN_COST_softmax,
        [SHAPE_LAYER_NORMALIZATION] = KILN_ONEDNN_COST_layer_normalization,
        [SHAPE_REDUCTION] = KILN_ONEDNN_COST_reduction,
        [SHAPE_LSTM] = KILN_ONEDNN_COST_lstm,
        [SHAPE_ADD] = -1,
        [SHAPE_SIGMOID] = -1,
        [SHAPE_SWISH] = -1,
        [SHAPE_TAIL_ADD] = KILN_ONEDNN_COST_tail,
        [SHAPE_TAIL_SWISH] = KILN_ONEDNN_COST_tail,
        [SHAPE_CONCAT] = KILN_ONEDNN_COST_concat,
        [SHAPE_BIAS] = KILN_ONEDNN_COST_pass,
        [SHAPE_FAR_WEIGHTS] = KILN_ONEDNN_COST_far_weights,
    };
    bool pointwise = s->kind == SHAPE_CONV && s->kernel == 1;
    return pointwise ? (int)KILN_ONEDNN_COST_pointwise : kinds[s->kind];
}

static void
vendor_terms(const Shape *s, const Model *model, double terms[MAX_TERMS])
{
    int64_t y = cost_shape_result(s), x = s->extent;
    KilnOnednnWork work = { .in = s->in,
                            .out = s->out,
                            .groups = 1,
                            .taps = (int64_t)s->kernel * s->kernel,
                            .read = x * x,
                            .written = cost_shape_has_layouts(s->kind) ? y * y : x,
                            .block = s->block };
    if (s->kind == SHAPE_GLOBAL_AVERAGE_POOL)
        work.taps = x * x;
    if (s->kind == SHAPE_LSTM)
        work = (KilnOnednnWork){ s->in, s->out, x, 0, 0, 1, s->block };
    if (s->kind == SHAPE_CONV_TRANSPOSE)
        work = (KilnOnednnWork){ s->in, s->out, 1, work.taps, y * y, x * x, s->block };
    if (s->kind == SHAPE_TAIL_ADD || s->kind == SHAPE_TAIL_SWISH) {
        work.taps = s->kind == SHAPE_TAIL_ADD ? 0 : ACTIVATION;
        work.groups = s->kind == SHAPE_TAIL_ADD;
    }
    kiln_onednn_terms((KilnOnednnCostKind)model->kind, &work, model->blocked, terms);
}

/* False where @model says nothing of @s. */
static bool
terms_of(const Shape *s, const Model *model, double terms[MAX_TERMS])
{
    int kind = -1;
    for (int i = 0; i < MAX_TERMS; i++)
        terms[i] = 0;
    if (!(s->us[model->way] > 0))
        return false;
    if (!model->vendor)
        return own_terms(s, model->way, &kind, terms) && kind == model->kind;
    if (vendor_kind(s) != model->kind)
        return false;
    vendor_terms(s, model, terms);
    return true;
}

/* --- fitting --- */

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

/* What errors are measured in: the time itself, so that they are relative. A difference may be next
 * to nothing by chance: its errors are counted per unit of work. */
static double
unit_of(const Shape *shape, ShapeWay way)
{
    double pixels = (double)shape->extent * shape->extent;
    if (shape->kind == SHAPE_FAR_WEIGHTS)
        return (double)shape->in * shape->out;
    return cost_shape_is_difference(shape->kind) ? shape->out * pixels : shape->us[way];
}

/* Least squares of (model - measured) / unit over the terms in @used. How many shapes. */
static unsigned
least_squares(const GArray *shapes, const Model *model, const bool used[MAX_TERMS],
              double costs[MAX_TERMS])
{
    double a[MAX_TERMS][MAX_TERMS + 1] = { { 0 } }, x[MAX_TERMS];
    int n = 0, index[MAX_TERMS];
    unsigned found = 0;
    for (int t = 0; t < model->n_terms; t++) {
        costs[t] = 0;
        if (used[t])
            index[n++] = t;
    }
    for (guint s = 0; s < shapes->len; s++) {
        const Shape *shape = &g_array_index(shapes, Shape, s);
        double terms[MAX_TERMS], us = shape->us[model->way], unit = unit_of(shape, model->way);
        if (!terms_of(shape, model, terms))
            continue;
        found++;
        for (int i = 0; i < n; i++) {
            for (int j = 0; j < n; j++)
                a[i][j] += terms[index[i]] * terms[index[j]] / (unit * unit);
            a[i][n] += terms[index[i]] * us / (unit * unit);
        }
    }
    solve(n, a, x);
    for (int i = 0; i < n; i++)
        costs[index[i]] = x[i];
    return found;
}

/* A term that would cost less than nothing is left out, the worst first, until none does. */
static unsigned
fit(const GArray *shapes, const Model *model, double costs[MAX_TERMS])
{
    bool used[MAX_TERMS];
    for (int t = 0; t < MAX_TERMS; t++)
        used[t] = true;
    for (;;) {
        unsigned found = least_squares(shapes, model, used, costs);
        int worst = -1;
        for (int t = 0; t < model->n_terms; t++) {
            if (costs[t] < 0 && (worst < 0 || costs[t] < costs[worst]))
                worst = t;
        }
        if (worst < 0)
            return found;
        used[worst] = false;
    }
}

/* --- reports --- */

/* What the models say of @shape computed in @way; negative where none does. */
static double
modelled(const Shape *shape, ShapeWay way, double costs[][MAX_TERMS])
{
    for (size_t m = 0; m < G_N_ELEMENTS(models); m++) {
        double terms[MAX_TERMS], us = 0;
        if (models[m].way != way || !terms_of(shape, &models[m], terms))
            continue;
        for (int t = 0; t < models[m].n_terms; t++)
            us += terms[t] * costs[m][t];
        return us;
    }
    return -1;
}

/* Of the choices that the models make, how good they are. */
typedef struct {
    double lost; /* times as long as the best, summed */
    unsigned n, wrong;
} Choices;

static void
print_shape(const Shape *s, double costs[][MAX_TERMS], Choices *io)
{
    int choice = -1, right = -1;
    double model[N_WAYS];
    printf("%-20s %4d %4d %2d/%d %4d", cost_shape_kind(s->kind), s->in, s->out, s->kernel,
           s->stride, s->extent);
    for (int way = 0; way < N_WAYS; way++) {
        model[way] = modelled(s, (ShapeWay)way, costs);
        if (model[way] < 0) {
            printf(" %10s %10s", "-", "-");
            continue;
        }
        printf(" %10.1f %10.1f", s->us[way], model[way]);
        if (choice < 0 || model[way] < model[choice])
            choice = way;
        if (right < 0 || s->us[way] < s->us[right])
            right = way;
    }
    if (choice < 0 || !cost_shape_has_choice(s->kind)) {
        printf("  -\n");
        return;
    }
    printf("  %s%s\n", cost_shape_way((ShapeWay)choice),
           choice == right ? "" : ", not the faster one");
    io->lost += s->us[choice] / s->us[right];
    io->wrong += choice != right;
    io->n++;
}

static void
print_fit(const GArray *shapes, double costs[][MAX_TERMS])
{
    Choices choices = { 0 };
    printf("%-20s %4s %4s %4s %4s", "us measured, by model", "in", "out", "k/s", "ext");
    for (int way = 0; way < N_WAYS; way++)
        printf(" %10s %10s", cost_shape_way((ShapeWay)way), "model");
    printf("  choice\n");
    for (guint i = 0; i < shapes->len; i++)
        print_shape(&g_array_index(shapes, Shape, i), costs, &choices);
    for (size_t m = 0; m < G_N_ELEMENTS(models); m++) {
        double squares = 0, all = 0, terms[MAX_TERMS];
        for (guint i = 0; i < shapes->len; i++) {
            const Shape *s = &g_array_index(shapes, Shape, i);
            if (!terms_of(s, &models[m], terms))
                continue;
            double us = s->us[models[m].way], unit = unit_of(s, models[m].way);
            squares += pow((modelled(s, models[m].way, costs) - us) / unit, 2);
            all += pow(us / unit, 2);
        }
        if (all > 0)
            printf("%s, %s: %.0f %% off (root mean square)\n", models[m].name,
                   cost_shape_way(models[m].way), 100 * sqrt(squares / all));
    }
    printf(
        "%u of %u choices are not the faster one; over all, a choice costs %.3f times the best\n",
        choices.wrong, choices.n, choices.lost / MAX(choices.n, 1));
}

/* The costs of one side as a table: of a vendor with two rows for each model. */
static gboolean
write_header(const char *path, bool vendor, bool wide, double costs[][MAX_TERMS], GError **error)
{
    const char *side = vendor ? "ONEDNN" : "CPU", *place = vendor ? "onednn" : "cpu";
    const char *narrow = wide ? "" : "_AVX2";
    g_autoptr(GString) text = g_string_new(NULL);
    g_string_printf(text,
                    "/* SPDX-License-Identifier: Apache-2.0 */\n"
                    "/* Microseconds on one thread by each term that backends/%s/cost.h counts%s.\n"
                    " * Written by kiln-fit-costs: bench/costs/operators%s.csv says what it was "
                    "measured on. */\n"
                    "#ifndef KILN_BACKENDS_%s_COSTS%s_H\n#define KILN_BACKENDS_%s_COSTS%s_H\n\n"
                    "// clang-format off\n"
                    "#define KILN_%s_COSTS%s { \\\n",
                    place, vendor ? ",\n * channels last and in blocks" : "", wide ? "" : "-avx2",
                    side, narrow, side, narrow, side, narrow);
    for (size_t m = 0; m < G_N_ELEMENTS(models); m++) {
        const Model *model = &models[m];
        if (model->vendor != vendor)
            continue;
        if (!vendor || !model->blocked)
            g_string_append_printf(text, "    [KILN_%s_COST_%s] = { ", side, model->name);
        if (vendor)
            g_string_append(text, "{ ");
        for (int t = 0; t < model->n_terms; t++)
            g_string_append_printf(text, "%s%.4g", t ? ", " : "", costs[m][t]);
        g_string_append(text, vendor && !model->blocked ? " }, "
                              : vendor                  ? " } }, \\\n"
                                                        : " }, \\\n");
    }
    g_string_append(text, "}\n// clang-format on\n\n#endif\n");
    return kiln_file_write(path, text->str, text->len, error);
}

static bool
has_layouts(const Model *model)
{
    return model->kind != KILN_ONEDNN_COST_matmul &&
           (model->kind < KILN_ONEDNN_COST_softmax || model->kind > KILN_ONEDNN_COST_lstm);
}

/* Without AVX-512 the library has `gemm` and `ref` alone, which are not taken. */
static bool
is_lacked(const Options *options, const Model *model)
{
    bool product = model->kind == KILN_ONEDNN_COST_matmul || model->kind == KILN_ONEDNN_COST_lstm;
    return product && !is_wide(options);
}

/* Costs of every model, or an error that names the one that has too few shapes. */
static gboolean
fit_all(const Options *options, const GArray *shapes, double costs[][MAX_TERMS], GError **error)
{
    for (size_t m = 0; m < G_N_ELEMENTS(models); m++) {
        const Model *model = &models[m];
        unsigned found = fit(shapes, model, costs[m]);
        bool wanted = model->vendor
                          ? options->vendor_header && !(model->blocked && !has_layouts(model)) &&
                                !is_lacked(options, model)
                          : options->own_header != NULL;
        if (wanted && found < (unsigned)model->n_terms)
            return kiln_throw(error, KILN_ERROR_PARSE,
                              "%s (%s): expected %d shapes or more, found %u", model->name,
                              cost_shape_way(model->way), model->n_terms, found);
    }
    return TRUE;
}

/* "2/5": the second of five. */
static gboolean
read_part(const char *text, CostMeasure *out, GError **error)
{
    char *end;
    guint64 part = g_ascii_strtoull(text, &end, 10);
    guint64 parts = end != text && *end == '/' ? g_ascii_strtoull(end + 1, &end, 10) : 0;
    if (*end || part < 1 || part > parts || parts > 1000)
        return kiln_throw(error, KILN_ERROR_USAGE,
                          "--part: expected I/N, I of 1 to N, N up to 1000, found %s", text);
    out->part = (guint)part - 1;
    out->parts = (guint)parts;
    return TRUE;
}

/* What was measured before, and what is measured now. */
static gboolean
get_shapes(const Options *options, GArray *shapes, GError **error)
{
    CostMeasure how = { COST_ALL_KINDS, 0, 1, options->min_time };
    if ((options->only && !cost_shapes_kinds(options->only, &how.kinds, error)) ||
        (options->part && !read_part(options->part, &how, error)) ||
        (options->from && !cost_shapes_read(options->from, shapes, error)))
        return FALSE;
    bool anew = !options->from || options->only || options->part;
    return !anew || cost_shapes_measure(shapes, &how, error);
}

static gboolean
run(const Options *options, GError **error)
{
    g_autoptr(GArray) shapes = g_array_new(FALSE, FALSE, sizeof(Shape));
    double costs[G_N_ELEMENTS(models)][MAX_TERMS] = { { 0 } };
    gboolean good = get_shapes(options, shapes, error);
    for (guint i = 0; i < shapes->len; i++)
        g_array_index(shapes, Shape, i).block = is_wide(options) ? 16 : 8;
    if (!good || (options->to && !cost_shapes_write(options->to, shapes, error)) ||
        !fit_all(options, shapes, costs, error))
        return FALSE;
    print_fit(shapes, costs);
    bool wide = is_wide(options);
    return (!options->own_header || write_header(options->own_header, false, wide, costs, error)) &&
           (!options->vendor_header ||
            write_header(options->vendor_header, true, wide, costs, error));
}

/* Before the library, and own kernels, ask for the first time what this CPU has. */
static gboolean
limit_isa(const Options *options, GError **error)
{
    if (!options->isa || g_str_equal(options->isa, "avx512"))
        return TRUE;
    if (!g_str_equal(options->isa, "avx2"))
        return kiln_throw(error, KILN_ERROR_USAGE, "--isa: expected avx2 or avx512, found %s",
                          options->isa);
    g_setenv("KILN_CPU_ISA", "avx2", TRUE);
    g_setenv("ONEDNN_MAX_CPU_ISA", "AVX2", TRUE);
    return TRUE;
}

int
main(int argc, char **argv)
{
    Options options = { .min_time = 0.05 };
    const GOptionEntry entries[] = {
        { "from", 0, 0, G_OPTION_ARG_FILENAME, &options.from,
          "Fit to the measurements of this file", "F.csv" },
        { "only", 0, 0, G_OPTION_ARG_STRING, &options.only,
          "With --from, measure these kinds of operators again: conv,softmax", "KIND,…" },
        { "part", 0, 0, G_OPTION_ARG_STRING, &options.part,
          "With --from, measure again every N-th shape, starting at the I-th", "I/N" },
        { "to", 0, 0, G_OPTION_ARG_FILENAME, &options.to, "Write the measurements to this file",
          "F.csv" },
        { "isa", 0, 0, G_OPTION_ARG_STRING, &options.isa,
          "Measure kernels for avx2 or avx512 (default: the best that this CPU has)", "ISA" },
        { "own-header", 0, 0, G_OPTION_ARG_FILENAME, &options.own_header,
          "Write the costs of Kiln's kernels to this file: backends/cpu/costs.h", "F.h" },
        { "vendor-header", 0, 0, G_OPTION_ARG_FILENAME, &options.vendor_header,
          "Write the costs of the vendor library to this file: backends/onednn/costs.h", "F.h" },
        { "min-time", 0, 0, G_OPTION_ARG_DOUBLE, &options.min_time,
          "Measure each shape for at least S seconds in each way (default 0.05)", "S" },
        G_OPTION_ENTRY_NULL,
    };
    setlocale(LC_CTYPE, ""); /* what --help is written in */
    g_autoptr(GOptionContext) context = g_option_context_new(NULL);
    g_option_context_set_summary(
        context, "Fits the cost models of the algorithms and of the vendor library to this CPU.");
    g_option_context_add_main_entries(context, entries, NULL);
    g_autoptr(GError) error = NULL;
    int status = 2;
    if (g_option_context_parse(context, &argc, &argv, &error)) {
        if (argc > 1)
            kiln_throw(&error, KILN_ERROR_USAGE, "expected no operand, found %s", argv[1]);
        else if ((options.only || options.part) && !options.from)
            kiln_throw(&error, KILN_ERROR_USAGE, "--%s: expected --from, for the others",
                       options.only ? "only" : "part");
        else if (limit_isa(&options, &error))
            status = run(&options, &error) ? 0 : 1;
    }
    if (error)
        fprintf(stderr, "kiln-fit-costs: %s\n", error->message);
    g_free(options.from);
    g_free(options.to);
    g_free(options.only);
    g_free(options.part);
    g_free(options.isa);
    g_free(options.own_header);
    g_free(options.vendor_header);
    return status;
}
