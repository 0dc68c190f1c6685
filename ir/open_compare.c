/* SPDX-License-Identifier: Apache-2.0 */
/* Lowering writes numbers: places of parts, paddings, scales. A lowering for another binding tells
 * which of them depend on it, and whether each of these has its expression. */
#include "ir/open.h"

typedef struct {
    const KilnIRFunction *other;
    const KilnInstr *instr; /* that is compared; NULL: none yet */
    GError **error;
} Compare;

static bool
differ(const Compare *compare, const char *what)
{
    const char *label = compare->instr ? kiln_instr_label(compare->instr) : compare->other->name;
    return kiln_throw(compare->error, KILN_ERROR_UNSUPPORTED,
                      "%s: %s depends on open dims, and has no expression", label, what);
}

/* @number with its expression is @expected at the other binding. */
static bool
agrees(const Compare *compare, int64_t number, const KilnDim *dim, int64_t expected)
{
    const KilnDimBinding *binding = compare->other->open->binding;
    if (dim && !kiln_dim_evaluate(dim, kiln_dim_binding_lookup, (void *)binding, &number, NULL))
        return false;
    return number == expected;
}

static bool
same_type(const Compare *compare, const KilnType *a, const KilnType *b)
{
    bool same = a->dtype == b->dtype && a->rank == b->rank &&
                g_strcmp0(a->layout, b->layout) == 0 && kiln_quant_equal(a->quant, b->quant);
    for (int d = 0; same && d < a->rank; d++)
        same = agrees(compare, a->dims[d], a->open[d], b->dims[d]);
    return same;
}

static bool
same_constant(const KilnConstant *a, const KilnConstant *b)
{
    if (!a || !b || a->tensor == b->tensor)
        return a == b || (a && b);
    if (a->tensor->bytes && a->tensor->bytes == b->tensor->bytes)
        return true;
    g_autoptr(GBytes) x = kiln_tensor_view(a->tensor, NULL);
    g_autoptr(GBytes) y = kiln_tensor_view(b->tensor, NULL);
    return x && y && g_bytes_equal(x, y);
}

static bool
same_buffer(const Compare *compare, const KilnBuffer *a, const KilnBuffer *b)
{
    if (!a || !b)
        return a == b || differ(compare, "an operand");
    if (a->kind != b->kind || a->id != b->id || !same_type(compare, &a->type, &b->type))
        return differ(compare, "a shape");
    if (a->kind != KILN_BUFFER_VIEW)
        return true;
    const KilnViewOpen *open = a->view_open;
    bool same = a->base->id == b->base->id &&
                agrees(compare, a->view_offset, open ? open->offset : NULL, b->view_offset) &&
                agrees(compare, a->view_rows, open ? open->rows : NULL, b->view_rows) &&
                (b->view_rows == 1 ||
                 agrees(compare, a->view_pitch, open ? open->pitch : NULL, b->view_pitch));
    return same || differ(compare, "the place of a view");
}

/* --- attributes --- */

static bool
same_ints(const Compare *compare, const KilnInts *a, const KilnInts *b)
{
    bool same = a->n == b->n;
    for (uint32_t i = 0; same && i < a->n; i++)
        same = agrees(compare, a->v[i], kiln_ints_open(*a, i), b->v[i]);
    return same;
}

static bool
same_attrs(const Compare *compare, const KilnInstr *a, const KilnInstr *b)
{
    const KilnInstrInfo *info = kiln_instr_info(a->kind);
    for (uint32_t i = 0; i < info->n_attrs; i++) {
        const KilnAttrInfo *attr = &info->attrs[i];
        const void *x = (const char *)a->attrs + attr->offset;
        const void *y = (const char *)b->attrs + attr->offset;
        bool same = attr->kind == KILN_ATTR_INTS ? same_ints(compare, x, y)
                                                 : kiln_attrs_equal(attr, 1, a->attrs, b->attrs);
        if (!same)
            return differ(compare, attr->name);
    }
    return true;
}

static bool
same_instr(Compare *compare, const KilnInstr *a, const KilnInstr *b)
{
    compare->instr = a;
    if (a->kind != b->kind || a->n_operands != b->n_operands || a->n_steps != b->n_steps)
        return differ(compare, "the instruction");
    for (uint32_t i = 0; i < a->n_operands; i++) {
        if (!same_buffer(compare, a->operands[i].buffer, b->operands[i].buffer))
            return false;
    }
    return same_attrs(compare, a, b);
}

static bool
same_weights(const Compare *compare, const KilnIRFunction *a)
{
    const GPtrArray *x = a->weights, *y = compare->other->weights;
    if (x->len != y->len)
        return differ(compare, "the number of weights");
    for (guint i = 0; i < x->len; i++) {
        const KilnBuffer *weight = g_ptr_array_index(x, i), *other = g_ptr_array_index(y, i);
        if (kiln_type_is_open(&weight->type) || !same_type(compare, &weight->type, &other->type) ||
            !same_constant(weight->constant, other->constant))
            return differ(compare, weight->name);
    }
    return true;
}

gboolean
kiln_open_compare(const KilnIRFunction *function, const KilnIRFunction *other, GError **error)
{
    Compare compare = { other, NULL, error };
    const KilnInstr *a = function->first, *b = other->first;
    if (!same_weights(&compare, function))
        return FALSE;
    for (; a && b; a = a->next, b = b->next) {
        if (!same_instr(&compare, a, b))
            return FALSE;
    }
    return (!a && !b) || differ(&compare, "the number of instructions");
}
