/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/bench_side.h"

#include "bench/bench_stats.h"
#include "graph/tensor.h"
#include "kiln.h"
#include "runtime/model.h"
#include "runtime/tensors/tensor_file.h"

void
bench_side_clear(BenchSide *side)
{
    g_clear_pointer(&side->session, kiln_session_free);
    g_clear_pointer(&side->program, kiln_program_unref);
    g_clear_pointer(&side->inputs, g_ptr_array_unref);
}

static gboolean
bind_inputs(BenchSide *side, KilnModel *model, GError **error)
{
    side->inputs = g_ptr_array_new_with_free_func((GDestroyNotify)g_bytes_unref);
    for (unsigned i = 0; i < kiln_program_n_inputs(side->program); i++) {
        const KilnType *type = &side->program->inputs.types[i];
        g_autoptr(KilnTensor) tensor =
            kiln_model_random_input(model, i, type, side->program->inputs.types, 1, error);
        GBytes *bytes = tensor ? kiln_tensor_view(tensor, error) : NULL;
        if (!bytes)
            return FALSE;
        g_ptr_array_add(side->inputs, bytes);
        if (!kiln_session_bind_input(side->session, i, g_bytes_get_data(bytes, NULL),
                                     g_bytes_get_size(bytes), error))
            return FALSE;
    }
    return TRUE;
}

gboolean
bench_side_open(BenchSide *side, KilnModel *model, const char *target, int threads, GError **error)
{
    KilnCompileOptions options = KILN_COMPILE_OPTIONS_INIT;
    options.target = target;
    options.threads = threads;
    options.pipeline = kiln_pipeline_new();
    side->program = kiln_program_compile(model, &options, error);
    kiln_pipeline_unref(options.pipeline);
    if (!side->program)
        return FALSE;
    side->session = kiln_session_new(side->program, NULL, error);
    return side->session && bind_inputs(side, model, error) &&
           kiln_session_run(side->session, error);
}

gboolean
bench_side_time(const BenchSide *side, int repeats, double *out, GError **error)
{
    double start = bench_now();
    for (int i = 0; i < repeats; i++) {
        if (!kiln_session_run(side->session, error))
            return FALSE;
    }
    *out = (bench_now() - start) / repeats;
    return TRUE;
}
