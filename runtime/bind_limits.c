/* SPDX-License-Identifier: Apache-2.0 */
/* What a program will need, looked at before its weights are packed and its arena is made. */

#include "graph/base/budget.h"
#include "graph/base/number.h"
#include "ir/plan.h"
#include "runtime/bind.h"

/* Weights as kernels will read them: packed, plain, or both. */
static int64_t
weight_bytes(const KilnBinder *binder)
{
    const KilnSpecialisation *out = binder->out;
    int64_t bytes = 0;
    for (uint32_t c = 0; c < out->n_calls; c++)
        bytes = kiln_add_capped(bytes, (int64_t)MIN(out->calls[c].packed_bytes, (size_t)INT64_MAX));
    for (guint i = 0; i < out->function->weights->len; i++) {
        const KilnBuffer *weight = g_ptr_array_index(out->function->weights, i);
        if (binder->read_plain[weight->id])
            bytes = kiln_add_capped(bytes, kiln_type_bytes(&weight->type));
    }
    return bytes;
}

static int64_t
output_bytes(const KilnSpecialisation *out)
{
    int64_t bytes = 0;
    for (unsigned i = 0; i < out->outputs.n; i++)
        bytes = kiln_add_capped(bytes, out->outputs.info[i].bytes);
    return bytes;
}

static gboolean
check_memory(const KilnBinder *binder, int64_t limit, GError **error)
{
    const KilnSpecialisation *out = binder->out;
    const int64_t weights = weight_bytes(binder), outputs = output_bytes(out);
    const int64_t total = kiln_add_capped(kiln_add_capped(weights, outputs), out->arena_bytes);
    if (total <= limit)
        return TRUE;
    const KilnMemoryPeak peak = kiln_memory_peak(out->function, out->plan);
    return kiln_throw(error, KILN_ERROR_LIMIT,
                      "memory limit: expected at most %" G_GINT64_FORMAT
                      " bytes, found %" G_GINT64_FORMAT " (arena %" G_GINT64_FORMAT
                      ", weights %" G_GINT64_FORMAT ", outputs %" G_GINT64_FORMAT
                      "); most of the arena lives at %s",
                      limit, total, out->arena_bytes, weights, outputs,
                      peak.instr ? kiln_instr_label(peak.instr) : "no instruction");
}

static gboolean
check_time(const KilnBinder *binder, int64_t limit_ms, GError **error)
{
    const KilnSpecialisation *out = binder->out;
    const KilnInstr *longest = NULL;
    double total = 0, most = 0;
    for (uint32_t c = 0; c < out->n_calls; c++) {
        const KilnBoundCall *call = &out->calls[c];
        if (!call->kernel) /* it waits for a dim that data decides */
            continue;
        const double us = kiln_kernel_us(binder->options->target, call->kernel, call->instr,
                                         binder->options->threads);
        total += us;
        longest = us > most ? call->instr : longest;
        most = MAX(most, us);
    }
    return total / 1e3 <= (double)limit_ms ||
           kiln_throw(error, KILN_ERROR_LIMIT,
                      "time limit: expected at most %g seconds, found an estimate of %.3g for a "
                      "run, of which %s takes %.3g",
                      (double)limit_ms / 1e3, total / 1e6, kiln_instr_label(longest), most / 1e6);
}

gboolean
kiln_bind_check_limits(const KilnBinder *binder, GError **error)
{
    const KilnLimits limits = kiln_limits_current();
    return (!limits.bytes || check_memory(binder, limits.bytes, error)) &&
           (!limits.ms || check_time(binder, limits.ms, error));
}
