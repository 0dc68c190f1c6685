/* SPDX-License-Identifier: Apache-2.0 */
/* The op table, generated from the rows of graph/ops/. */
#include "graph/base/names.h"
#include "graph/op/all.h"

/* Short spellings of the table. */
#define EW KILN_TRAIT_ELEMENTWISE
#define COMM KILN_TRAIT_COMMUTATIVE
#define LFREE KILN_TRAIT_LAYOUT_FREE
#define INPL KILN_TRAIT_INPLACE
#define MONO KILN_TRAIT_MONOTONE
#define EFFECT KILN_TRAIT_SIDE_EFFECT
#define RAND KILN_TRAIT_RANDOM
#define EXPANDS KILN_TRAIT_EXPANDS
#define VIEW KILN_TRAIT_VIEW
#define REGION KILN_TRAIT_REGION
#define TERM KILN_TRAIT_TERMINATOR
#define STATE KILN_TRAIT_STATE
#define QUANT KILN_TRAIT_QUANTIZED
#define KEEPS KILN_TRAIT_KEEPS_QUANTIZATION
#define REDUCES KILN_TRAIT_REDUCES
#define MANY KILN_MANY
#define AT(i) (1u << (i))

/* Both spellings of a row are defined here: passing ATTR's commas through a second macro would
 * split it. */
#define ATTR(op, kind, field, d)                                                                   \
    { #field, KILN_ATTR_##kind, offsetof(KilnAttrs_##op, field), KILN_OTHERWISE_##kind(d) },
#define OP(id, onnx, since, lo, hi, lo_out, hi_out, traits, shapes, infer, list)                   \
    static const KilnAttrInfo attrs_##id[] = { list{ NULL, KILN_ATTR_INT, 0, { .i = 0 } } };
#define OP_AS(id, text, onnx, since, lo, hi, lo_out, hi_out, traits, shapes, infer, list)          \
    static const KilnAttrInfo attrs_##id[] = { list{ NULL, KILN_ATTR_INT, 0, { .i = 0 } } };
#include "graph/ops/all.def"

static const KilnOpInfo ops[KILN_OP_END] = {
#define ATTR(...)
#define OP_AS(id, text, onnx_name, first, lo, hi, lo_out, hi_out, trait_set, shapes, fn, list)     \
    [KILN_OP_##id] = { .name = text,                                                               \
                       .onnx = onnx_name,                                                          \
                       .since = first,                                                             \
                       .min_operands = lo,                                                         \
                       .max_operands = hi,                                                         \
                       .min_results = lo_out,                                                      \
                       .max_results = hi_out,                                                      \
                       .traits = trait_set,                                                        \
                       .shape_operands = shapes,                                                   \
                       .attrs = attrs_##id,                                                        \
                       .n_attrs = G_N_ELEMENTS(attrs_##id) - 1,                                    \
                       .attrs_size = sizeof(KilnAttrs_##id) },
#include "graph/ops/all.def"
};

/* Without the gaps between families: patterns are looked up often. */
static const struct {
    const char *name;
    KilnOp op;
} names[] = {
#define ATTR(...)
#define OP_AS(id, text, ...) { text, KILN_OP_##id },
#include "graph/ops/all.def"
};

const KilnOpInfo *
kiln_op_info(KilnOp op)
{
    return &ops[op];
}

bool
kiln_op_find(KilnOp *op)
{
    while (*op < KILN_OP_END && !ops[*op].name)
        ++*op;
    return *op < KILN_OP_END;
}

bool
kiln_op_from_name(const char *name, KilnOp *out)
{
    for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
        if (kiln_name_equal(names[i].name, name)) {
            *out = names[i].op;
            return true;
        }
    }
    return false;
}

void *
kiln_op_attrs_new(KilnOp op, KilnArena *arena)
{
    const KilnOpInfo *info = &ops[op];
    if (!info->n_attrs)
        return NULL;
    void *attrs = kiln_arena_alloc(arena, info->attrs_size);
    kiln_attrs_init(info->attrs, info->n_attrs, attrs);
    return attrs;
}

char *
kiln_arity_text(uint32_t lowest, uint32_t highest)
{
    if (highest == (uint32_t)KILN_MANY)
        return g_strdup_printf("%u or more", lowest);
    return lowest == highest ? g_strdup_printf("%u", lowest)
                             : g_strdup_printf("%u to %u", lowest, highest);
}
