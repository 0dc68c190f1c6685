/* SPDX-License-Identifier: Apache-2.0 */
#include "ir/flow.h"

#include <string.h>

const KilnInts *
kiln_flow_decided(const KilnInstr *instr)
{
    return instr->kind == KILN_INSTR_branch ? &kiln_instr_attrs(instr, branch)->decided
                                            : &kiln_instr_attrs(instr, loop)->decided;
}

const KilnStrings *
kiln_flow_names(const KilnInstr *instr)
{
    return instr->kind == KILN_INSTR_branch ? &kiln_instr_attrs(instr, branch)->names
                                            : &kiln_instr_attrs(instr, loop)->names;
}

const KilnInts *
kiln_flow_numbers(const KilnInstr *instr)
{
    return instr->kind == KILN_INSTR_branch ? &kiln_instr_attrs(instr, branch)->numbers
                                            : &kiln_instr_attrs(instr, loop)->numbers;
}

bool
kiln_flow_is_held(const KilnInstr *instr, uint32_t r)
{
    const KilnInts *decided = kiln_flow_decided(instr);
    for (uint32_t i = 0; i + 1 < decided->n; i += 2) {
        if (decided->v[i] == r)
            return true;
    }
    return false;
}

bool
kiln_flow_goes_backwards(const KilnInstr *instr, uint32_t i)
{
    return kiln_ints_at(kiln_instr_attrs(instr, loop)->backwards, i, 0) != 0;
}

KilnIRFunction *
kiln_flow_function(const KilnInstr *instr, bool otherwise)
{
    const GPtrArray *siblings = instr->function->siblings;
    const char *name = instr->kind == KILN_INSTR_loop ? kiln_instr_attrs(instr, loop)->body
                       : otherwise                    ? kiln_instr_attrs(instr, branch)->otherwise
                                                      : kiln_instr_attrs(instr, branch)->then;
    for (guint i = 0; siblings && name && i < siblings->len; i++) {
        KilnIRFunction *function = g_ptr_array_index(siblings, i);
        if (strcmp(function->name, name) == 0)
            return function;
    }
    return NULL;
}

static uint32_t
count_held(const KilnInts *decided)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i + 1 < decided->n; i += 2)
        n += i == 0 || decided->v[i] != decided->v[i - 2];
    return n;
}

static uint32_t
count_out(const KilnInstr *instr)
{
    uint32_t n = 0;
    while (n < instr->n_operands && instr->operands[n].access == KILN_ACCESS_OUT)
        n++;
    return n;
}

KilnFlowOperands
kiln_flow_operands(const KilnInstr *instr)
{
    KilnFlowOperands at = { .limit = UINT32_MAX, .condition = UINT32_MAX };
    uint32_t n_out = count_out(instr), next = n_out;
    at.n_held = count_held(kiln_flow_decided(instr));
    at.n_direct = at.n_held ? n_out - MIN(n_out, 2u) : n_out;
    at.n_results = at.n_direct + at.n_held;
    at.counts = at.n_direct;
    at.held = at.n_direct + 1;
    if (instr->kind == KILN_INSTR_branch) {
        at.condition = next++;
    } else {
        const KilnInstrAttrs_loop *attrs = kiln_instr_attrs(instr, loop);
        at.limit = attrs->limited ? next++ : UINT32_MAX;
        at.condition = attrs->tested ? next++ : UINT32_MAX;
        at.n_carried = (uint32_t)attrs->carried;
        at.n_scanned = (uint32_t)attrs->scanned;
    }
    at.carried = next;
    at.scanned = at.carried + at.n_carried;
    at.captures = at.scanned + at.n_scanned;
    at.n_captures = instr->n_operands > at.captures ? instr->n_operands - at.captures : 0;
    return at;
}

gboolean
kiln_flow_scanned_length(const KilnInstr *instr, int64_t *out, GError **error)
{
    const KilnFlowOperands at = kiln_flow_operands(instr);
    const KilnBuffer *first = at.n_scanned ? instr->operands[at.scanned].buffer : NULL;
    *out = first ? first->type.dims[0] : INT64_MAX;
    for (uint32_t s = 1; s < at.n_scanned; s++) {
        const KilnBuffer *buffer = instr->operands[at.scanned + s].buffer;
        if (buffer->type.dims[0] != *out)
            return kiln_throw(error, KILN_ERROR_SHAPE,
                              "scanned operand %u (%s): expected length %" G_GINT64_FORMAT
                              ", as %s has, found %" G_GINT64_FORMAT,
                              s, buffer->name, *out, first->name, buffer->type.dims[0]);
    }
    return TRUE;
}

/* --- the kernel --- */

const char kiln_flow_failed[] = "a function that it runs failed";

static const char *
run(const KilnKernelArgs *args)
{
    KilnFlowRunner *runner = (KilnFlowRunner *)args->prepared;
    return runner ? runner->run(runner, args) : "expected somebody who runs its functions";
}

/* The arenas of static functions: those of branches lie one over the other. */
static size_t
scratch_bytes(const KilnInstr *instr, uint32_t form, int threads)
{
    int64_t most = 0;
    (void)form, (void)threads;
    for (int b = 0; b < kiln_flow_n_functions(instr); b++) {
        const KilnIRFunction *function = kiln_flow_function(instr, b);
        if (function && !function->open)
            most = MAX(most, function->arena_bytes);
    }
    return (size_t)most;
}

const KilnKernel *
kiln_flow_kernel(KilnInstrKind kind)
{
    static const KilnKernel branch = { .instr = KILN_INSTR_branch,
                                       .name = "flow:branch",
                                       .run = run,
                                       .scratch_bytes = scratch_bytes };
    static const KilnKernel loop = {
        .instr = KILN_INSTR_loop, .name = "flow:loop", .run = run, .scratch_bytes = scratch_bytes
    };
    return kind == KILN_INSTR_branch ? &branch : &loop;
}
