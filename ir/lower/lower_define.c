/* SPDX-License-Identifier: Apache-2.0 */
/* Lowering of nodes whose data decides a dim. The instruction writes to a buffer with room for the
 * most elements, densely from its start, and counts them. `define` makes the count the number of a
 * name. What follows reads a view, whose type has the name.
 *
 *     %y = non_zero(%x) : i64[2,n]    =>    non_zero @out %room, @out %count, @in %x
 *                                           define @in %count {values = [n], most = [24]}
 *                                           %y = view %room : i64[2,n] */
#include "graph/binding.h"
#include "graph/module/define.h"
#include "graph/op/gather.h"
#include "graph/op/generate.h"
#include "graph/op/text.h"
#include "ir/lower/lower_priv.h"
#include "ir/open.h"

/* --- parts --- */

KilnBuffer *
kiln_lower_line(KilnLower *l, const KilnNode *node, const char *what, KilnDType dtype, KilnSize n)
{
    g_autofree char *name = g_strconcat(node->results[0].name, "_", what, NULL);
    KilnType type = kiln_type_make(dtype, 1, &n.n);
    type.open[0] = n.dim;
    return kiln_ir_alloc(l->ir, name, &type, NULL);
}

static gboolean
throw_undefined(const KilnNode *node, GError **error)
{
    return kiln_lower_throw(node, KILN_ERROR_UNSUPPORTED, error,
                            "data decides a dim of its result, and no name was defined for it");
}

/* The elements of @numbers become those of the names that @node defines. */
gboolean
kiln_lower_numbers(KilnLower *l, const KilnNode *node, KilnBuffer *numbers, GError **error)
{
    KilnDefined defined[KILN_DEFINED_MAX];
    uint32_t n = kiln_node_defines(node, defined);
    int64_t values[KILN_DEFINED_MAX], most[KILN_DEFINED_MAX];
    const KilnDim *open[KILN_DEFINED_MAX], *open_most[KILN_DEFINED_MAX];
    if (!l->ir->open || n == 0)
        return throw_undefined(node, error);
    for (uint32_t i = 0; i < n; i++) {
        KilnSize bound = defined[i].most;
        open[i] = defined[i].name;
        open_most[i] = bound.lost ? NULL : bound.dim;
        most[i] = bound.lost ? -1 : bound.n;
        if (open_most[i] && !kiln_dim_evaluate(open_most[i], kiln_dim_binding_lookup,
                                               (void *)kiln_open_binding(l->ir), &most[i], error))
            return FALSE;
        if (!kiln_dim_evaluate(open[i], kiln_dim_binding_lookup, (void *)kiln_open_binding(l->ir),
                               &values[i], error))
            return FALSE;
    }
    const KilnInstrAttrs_define attrs = { .values = kiln_lower_ints_open(l, values, open, (int)n),
                                          .most =
                                              kiln_lower_ints_open(l, most, open_most, (int)n) };
    return kiln_lower_emit(l, node, KILN_INSTR_define, &numbers, 1, &attrs, error);
}

/* Result @r begins where @room does. */
static void
view_result(KilnLower *l, const KilnNode *node, uint32_t r, KilnBuffer *room)
{
    KilnValue *value = &node->results[r];
    if (kiln_lower_wants(l, node, r))
        g_hash_table_insert(l->buffers, value,
                            kiln_ir_view(l->ir, value->name, room, 0, &value->type, NULL));
}

/* --- operators --- */

gboolean
kiln_lower_define(KilnLower *l, const KilnNode *node, GError **error)
{
    KilnBuffer *numbers = kiln_lower_operand(l, node, 0);
    return kiln_lower_numbers(l, node, numbers, error) &&
           kiln_lower_alias(l, node, 0, numbers, error);
}

gboolean
kiln_lower_non_zero(KilnLower *l, const KilnNode *node, GError **error)
{
    const KilnType *x = &kiln_node_operand(node, 0)->type;
    KilnSize all = kiln_size_mul(kiln_type_size_elements(x), kiln_size_make(x->rank));
    if (!kiln_node_count(node))
        return throw_undefined(node, error);
    KilnBuffer *operands[] = { kiln_lower_line(l, node, "room", KILN_DTYPE_i64, all),
                               kiln_lower_line(l, node, "count", KILN_DTYPE_i64, kiln_size_make(1)),
                               kiln_lower_operand(l, node, 0) };
    if (!kiln_lower_emit(l, node, KILN_INSTR_non_zero, operands, 3, NULL, error) ||
        !kiln_lower_numbers(l, node, operands[1], error))
        return FALSE;
    view_result(l, node, 0, operands[0]);
    return TRUE;
}

gboolean
kiln_lower_non_max_suppression(KilnLower *l, const KilnNode *node, GError **error)
{
    KilnDefined defined[KILN_DEFINED_MAX];
    const KilnInstrAttrs_non_max_suppression attrs = {
        .center_point_box = kiln_attrs(node, non_max_suppression)->center_point_box
    };
    if (!kiln_node_defines(node, defined))
        return throw_undefined(node, error);
    g_autofree char *name = g_strconcat(node->results[0].name, "_room", NULL);
    int64_t dims[] = { defined[0].most.n, 3 };
    KilnType type = kiln_type_make(KILN_DTYPE_i64, 2, dims);
    type.open[0] = defined[0].most.dim;
    KilnBuffer *operands[7] = { kiln_ir_alloc(l->ir, name, &type, NULL),
                                kiln_lower_line(l, node, "count", KILN_DTYPE_i64,
                                                kiln_size_make(1)) };
    uint32_t n = 2;
    for (uint32_t i = 0; i < node->n_operands; i++) {
        operands[2 + i] = kiln_lower_operand(l, node, i);
        n = operands[2 + i] ? 3 + i : n;
    }
    if (!kiln_lower_emit(l, node, KILN_INSTR_non_max_suppression, operands, n, &attrs, error) ||
        !kiln_lower_numbers(l, node, operands[1], error))
        return FALSE;
    view_result(l, node, 0, operands[0]);
    return TRUE;
}

gboolean
kiln_lower_unique(KilnLower *l, const KilnNode *node, GError **error)
{
    static const char *const what[] = { "room", "first", "inverse", "counts" };
    const KilnAttrs_unique *stated = kiln_attrs(node, unique);
    const KilnInstrAttrs_unique attrs = { .axis = stated->axis, .sorted = stated->sorted };
    const KilnType *x = &kiln_node_operand(node, 0)->type;
    KilnDefined defined[KILN_DEFINED_MAX];
    if (!kiln_node_defines(node, defined))
        return throw_undefined(node, error);
    KilnBuffer *operands[6] = { NULL };
    operands[0] = kiln_lower_line(l, node, what[0], x->dtype, kiln_type_size_elements(x));
    operands[1] = kiln_lower_line(l, node, "count", KILN_DTYPE_i64, kiln_size_make(1));
    for (uint32_t r = 1; r < node->n_results; r++) {
        if (kiln_lower_wants(l, node, r))
            operands[1 + r] = kiln_lower_line(l, node, what[r], KILN_DTYPE_i64, defined[0].most);
    }
    operands[5] = kiln_lower_operand(l, node, 0);
    if (!kiln_lower_emit(l, node, KILN_INSTR_unique, operands, 6, &attrs, error) ||
        !kiln_lower_numbers(l, node, operands[1], error))
        return FALSE;
    for (uint32_t r = 0; r < node->n_results; r++)
        view_result(l, node, r, operands[r ? 1 + r : 0]);
    return TRUE;
}

/* The parts are counted first, because nobody knows how many a string has:
 *
 *     %y, %n = string_split(%x)    =>    string_parts @out %n, @out %count, @in %x
 *                                        define @in %count {values = [m]}
 *                                        string_split @out %y, @in %x */
gboolean
kiln_lower_string_split(KilnLower *l, const KilnNode *node, GError **error)
{
    const KilnAttrs_string_split *stated = kiln_attrs(node, string_split);
    const KilnInstrAttrs_string_parts of_parts = { .delimiter = stated->delimiter,
                                                   .maxsplit = stated->maxsplit };
    const KilnInstrAttrs_string_split attrs = { .delimiter = stated->delimiter,
                                                .maxsplit = stated->maxsplit };
    KilnBuffer *x = kiln_lower_operand(l, node, 0), *lengths;
    if (!kiln_node_count(node))
        return throw_undefined(node, error);
    if (node->n_results > 1 && kiln_lower_wants(l, node, 1)) {
        lengths = kiln_lower_result(l, node, 1);
    } else {
        g_autofree char *name = g_strconcat(node->results[0].name, "_lengths", NULL);
        KilnType type = x->type;
        type.dtype = KILN_DTYPE_i64;
        lengths = kiln_ir_alloc(l->ir, name, &type, NULL);
    }
    KilnBuffer *parts[] = { lengths,
                            kiln_lower_line(l, node, "count", KILN_DTYPE_i64, kiln_size_make(1)),
                            x };
    if (!kiln_lower_emit(l, node, KILN_INSTR_string_parts, parts, 3, &of_parts, error) ||
        !kiln_lower_numbers(l, node, parts[1], error))
        return FALSE;
    KilnBuffer *operands[] = { kiln_lower_result(l, node, 0), x };
    return kiln_lower_emit(l, node, KILN_INSTR_string_split, operands, 2, &attrs, error);
}

/*     %y = tokenizer(%x)    =>    token_count @out %count, @in %x
 *                                 define @in %count {values = [m]}
 *                                 tokenizer @out %y, @in %x */
gboolean
kiln_lower_tokenizer(KilnLower *l, const KilnNode *node, GError **error)
{
    const KilnAttrs_tokenizer *stated = kiln_attrs(node, tokenizer);
    const KilnInstrAttrs_token_count of_count = { .separators = stated->separators,
                                                  .tokenexp = stated->tokenexp,
                                                  .mincharnum = stated->mincharnum,
                                                  .mark = stated->mark };
    const KilnInstrAttrs_tokenizer attrs = { .separators = stated->separators,
                                             .tokenexp = stated->tokenexp,
                                             .mincharnum = stated->mincharnum,
                                             .mark = stated->mark,
                                             .pad_value = stated->pad_value };
    KilnBuffer *x = kiln_lower_operand(l, node, 0);
    if (!kiln_node_count(node))
        return throw_undefined(node, error);
    KilnBuffer *count[] = { kiln_lower_line(l, node, "count", KILN_DTYPE_i64, kiln_size_make(1)),
                            x };
    if (!kiln_lower_emit(l, node, KILN_INSTR_token_count, count, 2, &of_count, error) ||
        !kiln_lower_numbers(l, node, count[0], error))
        return FALSE;
    KilnBuffer *operands[] = { kiln_lower_result(l, node, 0), x };
    return kiln_lower_emit(l, node, KILN_INSTR_tokenizer, operands, 2, &attrs, error);
}

gboolean
kiln_lower_string_normalizer(KilnLower *l, const KilnNode *node, GError **error)
{
    const KilnAttrs_string_normalizer *stated = kiln_attrs(node, string_normalizer);
    const KilnInstrAttrs_string_normalizer attrs = { .case_change_action =
                                                         stated->case_change_action,
                                                     .is_case_sensitive = stated->is_case_sensitive,
                                                     .stopwords = stated->stopwords };
    KilnBuffer *x = kiln_lower_operand(l, node, 0);
    const KilnSize room = kiln_size_add(kiln_type_size_elements(&x->type), kiln_size_make(1));
    KilnBuffer *operands[] = { kiln_lower_line(l, node, "room", KILN_DTYPE_string, room),
                               kiln_lower_line(l, node, "count", KILN_DTYPE_i64, kiln_size_make(1)),
                               x };
    if (!kiln_node_count(node) && stated->stopwords.n)
        return throw_undefined(node, error);
    if (!kiln_lower_emit(l, node, KILN_INSTR_string_normalizer, operands, 3, &attrs, error) ||
        (stated->stopwords.n && !kiln_lower_numbers(l, node, operands[1], error)))
        return FALSE;
    view_result(l, node, 0, operands[0]);
    return TRUE;
}
