/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/bench_sweep.h"

#include "graph/dim.h"
#include "graph/error.h"
#include "graph/tensor.h"
#include "graph/type.h"
#include "runtime/model.h"
#include "runtime/program.h"
#include "runtime/session.h"
#include "runtime/tensors/tensor_file.h"

#include <string.h>

enum {
    MIN_RUNS = 5,
    MAX_RUNS = 100000,
};

/* --- ranges --- */

static bool
parse_number(const char *text, int64_t *out)
{
    uint64_t number;
    bool good = g_ascii_string_to_unsigned(text, 10, 1, KILN_DIM_MOST, &number, NULL);
    if (good)
        *out = (int64_t)number;
    return good;
}

gboolean
bench_sweep_parse(const char *text, BenchSweep *out, GError **error)
{
    g_autofree char *copy = g_strdup(text);
    char *equals = strrchr(copy, '=');
    char *dots = equals ? strstr(equals, "..") : NULL, *colon = dots ? strchr(dots, ':') : NULL;
    *out = (BenchSweep){ .step = 1 };
    if (colon)
        *colon = 0;
    if (dots)
        *dots = *equals = 0;
    if (!dots || !*copy || !parse_number(equals + 1, &out->first) ||
        !parse_number(dots + 2, &out->last) || out->last < out->first ||
        (colon && !parse_number(colon + 1, &out->step)))
        return kiln_throw(error, KILN_ERROR_USAGE,
                          "--sweep: expected DIM=1..512 or DIM=1..512:8, found %s", text);
    out->dim = g_strdup(copy);
    return TRUE;
}

void
bench_sweep_clear(BenchSweep *sweep)
{
    g_clear_pointer(&sweep->dim, g_free);
}

/* --- inputs at an extent --- */

typedef struct {
    const char *dim;
    int64_t extent;
    const KilnType *type; /* of the input that is made */
} Place;

static bool
number_at(void *data, const char *name, int64_t *out)
{
    const Place *place = data;
    *out = place->extent;
    for (int d = 0; d < place->type->rank && strcmp(name, place->dim) != 0; d++) {
        if (g_strcmp0(kiln_type_dim_name(place->type, d), name) == 0)
            *out = kiln_dim_hint(place->type->open[d]);
    }
    return true;
}

static gboolean
type_at(const BenchSweep *sweep, int64_t extent, const KilnTensorInfo *info, KilnType *type,
        GError **error)
{
    Place place = { sweep->dim, extent, type };
    int64_t dims[KILN_MAX_RANK];
    if (!kiln_type_is_known(type))
        return kiln_throw(error, KILN_ERROR_USAGE, "input %s: its shape is open: give --shape",
                          info->name);
    for (int d = 0; d < type->rank; d++) {
        dims[d] = type->dims[d];
        if (type->open[d] && !kiln_dim_evaluate(type->open[d], number_at, &place, &dims[d], error))
            return FALSE;
    }
    *type = kiln_type_make(type->dtype, type->rank, dims);
    return TRUE;
}

/* Memory that is big enough for @type: the same at all extents, so that no run finds it cold. */
static GBytes *
make_input(KilnModel *model, unsigned i, const KilnType *type, GError **error)
{
    g_autoptr(KilnTensor) tensor = kiln_model_random_input(model, i, type, NULL, 1, error);
    return tensor ? kiln_tensor_view(tensor, error) : NULL;
}

/* @inputs: GBytes*, one per input; NULL: not made yet. */
static gboolean
bind_at(KilnSession *session, const BenchSweep *sweep, int64_t extent, GBytes **inputs,
        GError **error)
{
    KilnProgram *program = session->program;
    for (unsigned i = 0; i < program->inputs.n; i++) {
        KilnType type = program->inputs.types[i], biggest = type;
        const KilnTensorInfo *info = &program->inputs.info[i];
        if (!type_at(sweep, extent, info, &type, error) ||
            !type_at(sweep, sweep->last, info, &biggest, error))
            return FALSE;
        bool fits = inputs[i] && kiln_type_bytes(&type) <= (int64_t)g_bytes_get_size(inputs[i]);
        if (!fits) {
            g_clear_pointer(&inputs[i], g_bytes_unref);
            bool grows = kiln_type_bytes(&biggest) >= kiln_type_bytes(&type);
            inputs[i] = make_input(program->model, i, grows ? &biggest : &type, error);
        }
        if (!inputs[i] ||
            !kiln_session_bind_input_shaped(session, i, g_bytes_get_data(inputs[i], NULL),
                                            type.rank, type.dims, error))
            return FALSE;
    }
    return TRUE;
}

/* --- the sweep --- */

static bool
is_open_in(const KilnProgram *program, const char *dim)
{
    bool found = false;
    for (unsigned i = 0; i < program->inputs.n; i++) {
        const KilnType *type = &program->inputs.types[i];
        for (int d = 0; d < type->rank; d++)
            found |= g_strcmp0(kiln_type_dim_name(type, d), dim) == 0;
    }
    return found;
}

static gboolean
time_run(KilnSession *session, double *out, GError **error)
{
    double start = bench_now();
    gboolean good = kiln_session_run(session, error);
    *out = bench_now() - start;
    return good;
}

static gboolean
measure_at(KilnSession *session, BenchSweepPoint *point, double *samples, double min_time,
           GError **error)
{
    unsigned n = 0;
    if (!time_run(session, &point->first, error))
        return FALSE;
    double begin = bench_now(), cpu = bench_cpu_now();
    for (; n < MIN_RUNS || (n < MAX_RUNS && bench_now() - begin < min_time); n++) {
        if (!time_run(session, &samples[n], error))
            return FALSE;
    }
    point->cpu = (bench_cpu_now() - cpu) / n;
    point->later = bench_stats(samples, n);
    return TRUE;
}

static gboolean
sweep_all(KilnSession *session, const BenchSweep *sweep, double min_time, GBytes **inputs,
          BenchSweepFn see, void *data, GError **error)
{
    g_autofree double *samples = g_new(double, MAX_RUNS);
    for (int64_t extent = sweep->first; extent <= sweep->last; extent += sweep->step) {
        BenchSweepPoint point = { .extent = extent };
        if (!bind_at(session, sweep, extent, inputs, error) ||
            !measure_at(session, &point, samples, min_time, error))
            return FALSE;
        see(&point, data);
    }
    return TRUE;
}

gboolean
bench_sweep(KilnProgram *program, const BenchSweep *sweep, int threads, double min_time,
            BenchSweepFn see, void *data, GError **error)
{
    if (!is_open_in(program, sweep->dim))
        return kiln_throw(error, KILN_ERROR_USAGE, "--sweep: the model has no open dim %s",
                          sweep->dim);
    KilnSessionOptions options = KILN_SESSION_OPTIONS_INIT;
    options.threads = threads;
    g_autoptr(KilnSession) session = kiln_session_new(program, &options, error);
    g_autofree GBytes **inputs = g_new0(GBytes *, (gsize)program->inputs.n + 1);
    gboolean good = session && sweep_all(session, sweep, min_time, inputs, see, data, error);
    for (unsigned i = 0; i < program->inputs.n; i++)
        g_clear_pointer(&inputs[i], g_bytes_unref);
    return good;
}
