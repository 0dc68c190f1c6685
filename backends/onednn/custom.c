/* SPDX-License-Identifier: Apache-2.0 */
/* What the library lacks, between its primitives: own kernels on the same slots. They know nothing
 * of layouts of their own; where the operators mean the same on the loops over memory they run on
 * activations as they lie, else on plain ones behind reorders. */
#include "backends/onednn/region.h"
#include "graph/base/shared.h"
#include "graph/function.h"
#include "graph/module.h"
#include "graph/node.h"
#include "graph/op/activation.h"

GHashTable *
kiln_onednn_custom_laid(const KilnFunction *body, Layout layout)
{
    return layout == LAYOUT_PLAIN
               ? NULL
               : kiln_custom_laid(body, kiln_onednn_layout_tag, kiln_onednn_layout_index(layout));
}

/* An operand lies in the region's layout already. */
static bool
reads_laid(const Builder *builder, const KilnInstr *call)
{
    for (uint32_t i = 0; i < call->n_operands; i++) {
        const KilnBuffer *buffer = call->operands[i].buffer;
        if (call->operands[i].access == KILN_ACCESS_OUT || !builder->values[buffer->id])
            continue;
        dnnl_memory_desc_t md = kiln_onednn_md(&buffer->type, builder->layout);
        dnnl_memory_desc_t plain = kiln_onednn_plain(&buffer->type);
        const dnnl_memory_desc_t *found =
            kiln_onednn_slot_md(builder, kiln_onednn_slot(builder, buffer));
        if (dnnl_memory_desc_equal(found, &md) && !dnnl_memory_desc_equal(found, &plain))
            return true;
    }
    return false;
}

static KilnCustom *
get_custom(const Builder *builder, const KilnInstr *call)
{
    const KilnFunction *body = call->declaration->body;
    g_autoptr(GHashTable) laid =
        reads_laid(builder, call) ? kiln_onednn_custom_laid(body, builder->layout) : NULL;
    return kiln_custom_get(body, laid ? kiln_onednn_layout_tag : NULL,
                           laid ? kiln_onednn_layout_index(builder->layout) : 0, builder->target,
                           builder->threads, builder->error);
}

/* Slots of all operands: those that are read first, for reorders stand in front of the step. */
static bool
find_slots(Builder *builder, const KilnInstr *call, const KilnCustom *custom, uint32_t *slots)
{
    for (int out = 0; out <= 1; out++) {
        for (uint32_t i = 0; i < call->n_operands; i++) {
            const KilnBuffer *buffer = call->operands[i].buffer;
            dnnl_memory_desc_t md = kiln_onednn_edge(kiln_custom_type(custom, i));
            if ((call->operands[i].access == KILN_ACCESS_OUT) != out)
                continue;
            slots[i] = out ? kiln_onednn_result(builder, buffer, &md)
                           : kiln_onednn_slot_as(builder, buffer, &md);
            if (slots[i] == UINT32_MAX)
                return false;
        }
    }
    return true;
}

bool
kiln_onednn_build_custom(Builder *builder, const KilnInstr *instr)
{
    g_autofree uint32_t *slots = g_new0(uint32_t, instr->n_operands + 1);
    KilnCustom *custom = get_custom(builder, instr);
    if (!custom)
        return false;
    if (!find_slots(builder, instr, custom, slots)) {
        kiln_shared_unref(kiln_custom_shared(custom));
        return false;
    }
    kiln_onednn_add_custom(builder, custom, slots, instr->n_operands);
    return true;
}

/* --- one operator, by own kernels on the bytes of slots --- */

KilnCustom *
kiln_onednn_own_with(const Builder *builder, KilnOp op, const void *attrs, const KilnType *types,
                     uint32_t n, KilnTensor *const *literals, uint32_t n_literals)
{
    g_autoptr(KilnModule) module = kiln_module_new();
    g_autofree KilnValue **operands = g_new0(KilnValue *, n + n_literals);
    KilnFunction *function = kiln_function_new(module, "own");
    for (uint32_t i = 0; i < n_literals; i++)
        operands[n + i] = kiln_build_constant(function, NULL, "c", literals[i]);
    for (uint32_t i = 0; i < n; i++) {
        g_autofree char *name = g_strdup_printf("x%u", i);
        KilnArgument *argument =
            kiln_function_add_argument(function, name, &types[i], builder->error);
        if (!argument)
            return NULL;
        operands[i] = &argument->value;
    }
    KilnNodeSpec spec = {
        .op = op, .operands = operands, .n_operands = n + n_literals, .attrs = attrs
    };
    KilnNode *node = kiln_node_new(function, &spec, builder->error);
    KilnValue *result = node ? &node->results[0] : NULL;
    if (!node || !kiln_function_set_results(function, &result, NULL, 1, builder->error))
        return NULL;
    return kiln_custom_get(function, NULL, 0, builder->target, builder->threads, builder->error);
}

KilnCustom *
kiln_onednn_own(const Builder *builder, KilnOp op, const void *attrs, const KilnType *types,
                uint32_t n)
{
    return kiln_onednn_own_with(builder, op, attrs, types, n, NULL, 0);
}

/* Own kernels must be that much faster: a step more has its own end, where threads meet. Not by the
 * threads that there are: bits depend on the choice. */
static const double least_gain_us = 2;

bool
kiln_onednn_own_pays(const Builder *builder, const KilnInstr *instr)
{
    const KilnType *y = &instr->operands[0].buffer->type;
    KilnCost work = kiln_instr_cost(instr);
    int64_t numbers = kiln_type_elements(y);
    if (instr->kind != KILN_INSTR_swish || numbers == 0)
        return false;
    double library = kiln_onednn_tail_us(y, work.flops / numbers, false, builder->layout);
    return library - kiln_target_work_us(builder->target, &work) > least_gain_us;
}

bool
kiln_onednn_add_own(Builder *builder, const PostOps *post, uint32_t slot)
{
    if (!post->own)
        return true;
    size_t bytes = dnnl_memory_desc_get_size(kiln_onednn_slot_md(builder, slot));
    int64_t n = (int64_t)(bytes / sizeof(float));
    KilnType type = kiln_type_make(KILN_DTYPE_f32, 1, &n);
    KilnAttrs_swish attrs = { .alpha = kiln_instr_attrs(post->own, swish)->alpha };
    KilnCustom *custom = kiln_onednn_own(builder, KILN_OP_swish, &attrs, &type, 1);
    if (custom)
        kiln_onednn_add_custom(builder, custom, (uint32_t[]){ slot, slot }, 2);
    return custom;
}
