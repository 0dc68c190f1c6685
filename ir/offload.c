/* SPDX-License-Identifier: Apache-2.0 */
/* Names of regions become handles: every call gets what the vendor compiled, or goes inline.
 *
 *     call @r0 @out %y, @in %x, @in @w        %v = alloc : …
 *                                        =>   conv @out %v, @in %x, @in @w
 *                                             relu @out %y, @in %v
 *                                             dealloc %v */
#include "graph/base/shared.h"
#include "graph/module.h"
#include "graph/op/offload.h"
#include "ir/vendor.h"

/* --- inline --- */

typedef struct {
    KilnInstr *call;
    KilnIRFunction *region; /* the callee's body, lowered */
    KilnBuffer **buffers;   /* of the caller, by id in the region */
} Splice;

static KilnBuffer *
find_weight(const KilnIRFunction *function, const KilnConstant *constant)
{
    for (guint i = 0; i < function->weights->len; i++) {
        KilnBuffer *weight = g_ptr_array_index(function->weights, i);
        if (weight->constant == constant && weight->is_const)
            return weight;
    }
    return NULL;
}

static void
map_signature(const Splice *splice)
{
    const KilnIRFunction *region = splice->region;
    KilnIRFunction *function = splice->call->function;
    uint32_t n_out = region->outputs->len;
    for (uint32_t i = 0; i < splice->call->n_operands; i++) {
        const KilnBuffer *inner = i < n_out ? g_ptr_array_index(region->outputs, i)
                                            : g_ptr_array_index(region->inputs, i - n_out);
        splice->buffers[inner->id] = splice->call->operands[i].buffer;
    }
    for (guint i = 0; i < region->weights->len; i++) {
        const KilnBuffer *inner = g_ptr_array_index(region->weights, i);
        KilnBuffer *weight = find_weight(function, inner->constant);
        splice->buffers[inner->id] =
            weight ? weight : kiln_ir_add_weight(function, inner->constant);
    }
}

static gboolean
splice_compute(const Splice *splice, const KilnInstr *instr, GError **error)
{
    g_autofree KilnBuffer **operands = g_new0(KilnBuffer *, instr->n_operands + 1);
    for (uint32_t i = 0; i < instr->n_operands; i++) {
        const KilnBuffer *buffer = instr->operands[i].buffer;
        operands[i] = buffer ? splice->buffers[buffer->id] : NULL;
    }
    KilnIRFunction *function = splice->call->function;
    KilnInstr *copy = kiln_instr_new(function, instr->kind, operands, instr->n_operands,
                                     instr->attrs, splice->call, error);
    if (copy && instr->name)
        copy->name = kiln_arena_strdup(function->arena, instr->name);
    return copy != NULL;
}

static gboolean
splice_instr(const Splice *splice, const KilnInstr *instr, GError **error)
{
    KilnIRFunction *function = splice->call->function;
    const KilnBuffer *buffer = kiln_instr_operand(instr, 0);
    switch (instr->kind) {
    case KILN_INSTR_alloc:
        splice->buffers[buffer->id] =
            kiln_ir_alloc(function, buffer->name, &buffer->type, splice->call);
        return TRUE;
    case KILN_INSTR_dealloc:
        kiln_ir_dealloc(splice->buffers[buffer->id], splice->call);
        return TRUE;
    case KILN_INSTR_view: {
        KilnRegion part = kiln_view_part(buffer);
        splice->buffers[buffer->id] =
            kiln_ir_view_part(function, buffer->name, splice->buffers[buffer->base->id], &part,
                              &buffer->type, splice->call);
        return TRUE;
    }
    default:
        return splice_compute(splice, instr, error);
    }
}

static gboolean
inline_call(KilnInstr *call, GError **error)
{
    g_autoptr(KilnIRFunction) region = kiln_lower(call->declaration->body, error);
    if (!region)
        return FALSE;
    g_autofree KilnBuffer **buffers = g_new0(KilnBuffer *, region->buffers->len + 1);
    Splice splice = { call, region, buffers };
    map_signature(&splice);
    kiln_foreach_instr (instr, region) {
        if (!splice_instr(&splice, instr, error))
            return FALSE;
    }
    /* A printed program may be planned: not for what stands in it now. */
    kiln_memory_plan_forget(call->function);
    kiln_instr_remove(call);
    return TRUE;
}

/* --- names --- */

static gboolean
resolve(KilnInstr *call, const KilnTarget *target, int threads, GError **error)
{
    KilnDeclaration *callee = kiln_module_find_declaration(call->function->module, call->callee);
    const KilnVendor *vendor = target ? target->vendor : NULL;
    const KilnCompiled *compiled = callee ? (KilnCompiled *)callee->compiled : NULL;
    if (compiled && compiled->vendor == vendor && compiled->threads >= threads)
        return TRUE;
    if (!callee || !callee->body)
        return kiln_throw(error, KILN_ERROR_UNSUPPORTED,
                          "%s (call): no region of the name @%s is compiled, and its declaration "
                          "has no body",
                          kiln_instr_label(call), call->callee);
    g_clear_pointer(&callee->compiled, kiln_shared_unref);
    /* What the vendor fails at runs as instructions: no error. */
    KilnCompiled *made =
        vendor ? kiln_kernel_cache_get(target, callee->body, threads, NULL, NULL) : NULL;
    callee->compiled = made ? &made->shared : NULL;
    return made || inline_call(call, error);
}

static void
count_readers(const KilnFunction *body, uint32_t *readers)
{
    kiln_foreach_node (node, body) {
        if (node->op == KILN_OP_const)
            readers[kiln_attrs(node, const)->value->id]++;
        if (node->op == KILN_OP_custom_op)
            count_readers(kiln_attrs(node, custom_op)->body, readers);
    }
}

void
kiln_offload_count_readers(const KilnModule *module, uint32_t *readers)
{
    for (guint i = 0; i < module->declarations->len; i++) {
        const KilnDeclaration *declaration = g_ptr_array_index(module->declarations, i);
        if (declaration->body)
            count_readers(declaration->body, readers);
    }
}

/* Those that a call of @ir still reads. */
static void
keep_called(KilnIRModule *ir)
{
    const GPtrArray *declarations = ir->module->declarations;
    g_autofree bool *keep = g_new0(bool, declarations->len + 1);
    g_autoptr(GHashTable) called = g_hash_table_new(NULL, NULL);
    for (guint i = 0; i < ir->functions->len; i++) {
        const KilnIRFunction *function = g_ptr_array_index(ir->functions, i);
        kiln_foreach_instr (instr, function) {
            if (instr->kind == KILN_INSTR_call)
                g_hash_table_add(called, (gpointer)instr->declaration);
        }
    }
    for (guint i = 0; i < declarations->len; i++)
        keep[i] = g_hash_table_contains(called, g_ptr_array_index(declarations, i));
    if (declarations->len)
        kiln_module_keep_declarations(ir->module, keep);
}

gboolean
kiln_offload_resolve(KilnIRModule *ir, const KilnTarget *target, int threads, GError **error)
{
    for (guint i = 0; i < ir->functions->len; i++) {
        KilnIRFunction *function = g_ptr_array_index(ir->functions, i);
        kiln_foreach_instr_safe (instr, function) {
            if (instr->kind == KILN_INSTR_call && !resolve(instr, target, threads, error))
                return FALSE;
        }
    }
    keep_called(ir);
    return TRUE;
}
