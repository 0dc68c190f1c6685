/* SPDX-License-Identifier: Apache-2.0 */
#include "ir/flow.h"

#include "graph/dim/dim_defined.h"
#include "ir/open.h"

#include <string.h>

bool
kiln_instr_is_flow(KilnInstrKind kind)
{
    return kind == KILN_INSTR_branch || kind == KILN_INSTR_loop;
}

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
    for (int b = 0; b < 2; b++) {
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

/* --- names --- */

typedef struct {
    KilnDimTable *table;
    GHashTable *seen; /* names; looked up only */
    GPtrArray *out;   /* KilnDim* */
} Search;

/* Looks at all names: it never says that one is found. */
static bool
see_name(void *data, const char *name)
{
    Search *search = data;
    const KilnDim *dim = kiln_dim_name(search->table, name);
    if (g_hash_table_add(search->seen, (gpointer)dim))
        g_ptr_array_add(search->out, (gpointer)dim);
    return false;
}

static void
see_dim(Search *search, const KilnDim *dim)
{
    if (dim)
        kiln_dim_any_name(dim, see_name, search);
}

static void
see_buffer(Search *search, const KilnBuffer *buffer)
{
    for (int d = 0; d < buffer->type.rank; d++)
        see_dim(search, buffer->type.open[d]);
    if (!buffer->view_open)
        return;
    see_dim(search, buffer->view_open->offset);
    see_dim(search, buffer->view_open->rows);
    see_dim(search, buffer->view_open->pitch);
}

static void
see_instr(Search *search, const KilnInstr *instr)
{
    const KilnInstrInfo *info = kiln_instr_info(instr->kind);
    for (uint32_t i = 0; i < info->n_attrs; i++) {
        if (info->attrs[i].kind != KILN_ATTR_INTS)
            continue;
        const KilnInts *list =
            (const KilnInts *)((const char *)instr->attrs + info->attrs[i].offset);
        for (uint32_t k = 0; list->open && k < list->n; k++)
            see_dim(search, list->open[k]);
    }
}

/* What a `define` of @function defines is not needed from outside. */
static void
leave_defined(Search *search, const KilnIRFunction *function)
{
    kiln_foreach_instr (instr, function) {
        if (instr->kind != KILN_INSTR_define)
            continue;
        const KilnInts *values = &kiln_instr_attrs(instr, define)->values;
        for (uint32_t i = 0; values->open && i < values->n; i++)
            g_hash_table_add(search->seen, (gpointer)values->open[i]);
    }
}

GPtrArray *
kiln_flow_needed_names(const KilnIRFunction *function)
{
    Search search = { function->module->dims, g_hash_table_new(NULL, NULL), g_ptr_array_new() };
    leave_defined(&search, function);
    for (guint i = 0; i < function->buffers->len; i++) {
        const KilnBuffer *buffer = g_ptr_array_index(function->buffers, i);
        if (buffer)
            see_buffer(&search, buffer);
    }
    kiln_foreach_instr (instr, function)
        see_instr(&search, instr);
    for (guint i = 0; function->open && i < function->open->rules->len; i++) {
        const KilnOpenRule *rule = &g_array_index(function->open->rules, KilnOpenRule, i);
        see_dim(&search, rule->a);
        see_dim(&search, rule->b);
    }
    g_hash_table_unref(search.seen);
    return search.out;
}
