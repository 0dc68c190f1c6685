/* SPDX-License-Identifier: Apache-2.0 */
#include "passes/permute/permute.h"

#include "graph/base/alloc.h"
#include "graph/infer/infer.h"
#include "graph/op/transpose.h"
#include "passes/query/extents.h"
#include "passes/query/movement.h"

#include <string.h>

/* --- permutations --- */

KilnPerm
kiln_perm_of(const KilnNode *node)
{
    KilnPerm perm = KILN_PERM_NONE;
    if (node->op != KILN_OP_transpose)
        return perm;
    const KilnType *x = &node->operands[0].value->type;
    if (x->rank < 0 || x->layout || node->results[0].type.layout ||
        !kiln_transpose_perm(node, perm.at, NULL))
        return perm;
    perm.rank = x->rank;
    return perm;
}

KilnPerm
kiln_perm_inverse(const KilnPerm *perm)
{
    KilnPerm inverse = { .rank = perm->rank };
    for (int d = 0; d < perm->rank; d++)
        inverse.at[perm->at[d]] = d;
    return inverse;
}

KilnPerm
kiln_perm_compose(const KilnPerm *first, const KilnPerm *second)
{
    KilnPerm both = { .rank = first->rank };
    for (int d = 0; d < first->rank; d++)
        both.at[d] = first->at[second->at[d]];
    return both;
}

bool
kiln_perm_equal(const KilnPerm *a, const KilnPerm *b)
{
    if (a->rank != b->rank)
        return false;
    for (int d = 0; d < a->rank; d++) {
        if (a->at[d] != b->at[d])
            return false;
    }
    return true;
}

bool
kiln_perm_is_identity(const KilnPerm *perm)
{
    for (int d = 0; d < perm->rank; d++) {
        if (perm->at[d] != d)
            return false;
    }
    return true;
}

KilnType
kiln_perm_type_after(KilnArena *arena, const KilnType *type, const KilnPerm *perm)
{
    KilnType after = *type;
    KilnPerm inverse = kiln_perm_inverse(perm);
    for (int d = 0; d < perm->rank; d++) {
        after.dims[d] = type->dims[perm->at[d]];
        after.open[d] = type->open[perm->at[d]];
    }
    if (type->quant && type->quant->axis >= 0) {
        KilnQuant *quant = kiln_arena_copy(arena, type->quant, sizeof *quant);
        quant->axis = inverse.at[quant->axis];
        after.quant = quant;
    }
    return after;
}

KilnType
kiln_perm_type_before(KilnArena *arena, const KilnType *type, const KilnPerm *perm)
{
    KilnPerm inverse = kiln_perm_inverse(perm);
    return kiln_perm_type_after(arena, type, &inverse);
}

double
kiln_perm_bytes(const KilnType *type)
{
    double bytes = (double)kiln_dtype_size(type->dtype);
    const KilnType likely = kiln_type_at_hints(type);
    for (int d = 0; d < type->rank; d++)
        bytes *= (double)likely.dims[d];
    return bytes;
}

KilnValue *
kiln_perm_transpose(KilnNode *before, KilnValue *x, const KilnPerm *perm, const KilnType *type,
                    GError **error)
{
    int64_t list[KILN_MAX_RANK];
    for (int d = 0; d < perm->rank; d++)
        list[d] = perm->at[d];
    KilnAttrs_transpose attrs = { .perm = { .n = (uint32_t)perm->rank, .v = list } };
    KilnNodeSpec spec = { .op = KILN_OP_transpose,
                          .operands = &x,
                          .n_operands = 1,
                          .attrs = &attrs,
                          .types = type,
                          .before = before };
    KilnNode *node = kiln_node_new(before->function, &spec, error);
    return node ? &node->results[0] : NULL;
}

/* --- literals --- */

bool
kiln_perm_can_move(const KilnValue *value)
{
    const KilnConstant *constant = kiln_value_constant(value);
    if (!constant || value->type.layout || (value->type.quant && value->type.quant->axis >= 0))
        return false;
    return kiln_tensor_is_readable(constant->tensor);
}

/* Copies @n elements of @size bytes that stand @stride elements apart. */
static void
gather_row(uint8_t *to, const uint8_t *from, int64_t n, int64_t stride, size_t size)
{
    for (int64_t i = 0; i < n; i++)
        memcpy(to + (size_t)i * size, from + (size_t)(i * stride) * size, size);
}

/* @from has @dims; @to gets the transpose by @perm, row by row. */
static void
move_elements(uint8_t *to, const uint8_t *from, const int64_t *dims, const KilnPerm *perm,
              size_t size)
{
    int64_t strides[KILN_MAX_RANK + 1], at[KILN_MAX_RANK] = { 0 }, stride = 1, rows = 1;
    int last = perm->rank - 1;
    for (int d = last; d >= 0; d--) {
        strides[d] = stride;
        stride *= dims[d];
        rows *= d == perm->at[last] ? 1 : dims[d];
    }
    int64_t length = dims[perm->at[last]], offset = 0;
    for (int64_t row = 0; row < rows; row++, to += (size_t)length * size) {
        gather_row(to, from + (size_t)offset * size, length, strides[perm->at[last]], size);
        for (int d = last - 1; d >= 0; d--) {
            int e = perm->at[d];
            offset += strides[e];
            if (++at[d] < dims[e])
                break;
            offset -= at[d] * strides[e];
            at[d] = 0;
        }
    }
}

/* The elements of @tensor, seen as of @dims, transposed; of @type. */
static KilnTensor *
moved_tensor(const KilnTensor *tensor, const int64_t *dims, const KilnPerm *perm,
             const KilnType *type, GError **error)
{
    KilnType plain = *type;
    plain.quant = NULL;
    if (tensor->kind == KILN_TENSOR_SPLAT)
        return kiln_tensor_new_splat_bits(&plain, tensor->splat);
    g_autoptr(GBytes) bytes = kiln_tensor_view(tensor, error);
    if (!bytes)
        return NULL;
    if (kiln_perm_is_identity(perm)) /* another shape, at most */
        return kiln_tensor_new_data(&plain, bytes, error);
    size_t size = (size_t)kiln_type_bytes(&plain);
    void *moved;
    g_autoptr(GBytes) made = kiln_bytes_new(1, size, &moved, error);
    if (!made)
        return NULL;
    if (size)
        move_elements(moved, g_bytes_get_data(bytes, NULL), dims, perm,
                      kiln_dtype_size(plain.dtype));
    return kiln_tensor_compact(kiln_tensor_new_data(&plain, made, error));
}

KilnValue *
kiln_perm_literal(KilnNode *before, const KilnValue *literal, const KilnPerm *perm,
                  const KilnType *type, GError **error)
{
    const KilnConstant *constant = kiln_value_constant(literal);
    const KilnType *own = &constant->tensor->type;
    int64_t dims[KILN_MAX_RANK];
    int missing = perm->rank - own->rank;
    for (int d = 0; d < perm->rank; d++)
        dims[d] = d < missing ? 1 : own->dims[d - missing];
    KilnTensor *tensor = moved_tensor(constant->tensor, dims, perm, type, error);
    return tensor ? kiln_build_constant_as(before->function, before, constant->name, tensor, type)
                  : NULL;
}

KilnValue *
kiln_perm_literal_split(KilnNode *before, const KilnValue *literal, const KilnType *split,
                        const KilnPerm *perm, GError **error)
{
    const KilnConstant *constant = kiln_value_constant(literal);
    KilnTensor *tensor = moved_tensor(constant->tensor, split->dims, perm, &literal->type, error);
    return tensor ? kiln_build_constant_as(before->function, before, constant->name, tensor,
                                           &literal->type)
                  : NULL;
}

/* --- building what was planned --- */

static KilnValue *
build_ints(const KilnPermuted *plan, const KilnPermutedOperand *operand, GError **error)
{
    int32_t words[2 * KILN_MAX_RANK];
    const void *data = operand->ints.v;
    for (uint32_t i = 0; operand->type.dtype == KILN_DTYPE_i32 && i < operand->ints.n; i++) {
        words[i] = (int32_t)operand->ints.v[i];
        data = words;
    }
    KilnTensor *tensor = kiln_tensor_new_copy(&operand->type, data, error);
    return tensor ? kiln_build_constant(plan->node->function, plan->node, "ints", tensor) : NULL;
}

/* All dims, or all but one, which a reshape infers. */
static KilnValue *
build_extents(const KilnPermuted *plan, const KilnPermutedOperand *operand, GError **error)
{
    KilnNode *node = plan->node;
    KilnValue *near = node->operands[0].value;
    bool infer = !kiln_extents_can_build(node->function, near, &operand->type, false);
    return kiln_extents_build(node->function, node, near, &operand->type, infer, error);
}

static gboolean
build_operand(const KilnPermuted *plan, uint32_t i, KilnValue *flipped, KilnValue **out,
              GError **error)
{
    const KilnPermutedOperand *operand = &plan->operands[i];
    KilnValue *value = kiln_node_operand(plan->node, i);
    switch (operand->kind) {
    case KILN_PERMUTED_SAME:
        *out = value;
        return TRUE;
    case KILN_PERMUTED_FLIPPED:
    case KILN_PERMUTED_INVERSE:
        *out = flipped;
        return TRUE;
    case KILN_PERMUTED_LITERAL:
        *out = kiln_perm_literal(plan->node, value, &operand->perm, &operand->type, error);
        return *out != NULL;
    case KILN_PERMUTED_VIEW:
        *out = kiln_reshape_build(plan->node->function, plan->node, value, &operand->type, error);
        return *out != NULL;
    case KILN_PERMUTED_INTS:
        *out = build_ints(plan, operand, error);
        return *out != NULL;
    case KILN_PERMUTED_EXTENTS:
        *out = build_extents(plan, operand, error);
        return *out != NULL;
    }
    return FALSE;
}

KilnNode *
kiln_permute_build(const KilnPermuted *plan, KilnValue *const *flipped, GError **error)
{
    const KilnNode *node = plan->node;
    g_autofree KilnValue **operands = g_new0(KilnValue *, plan->n_operands + 1);
    g_autofree KilnType *types = g_new0(KilnType, node->n_results + 1);
    for (uint32_t i = 0; i < plan->n_operands; i++) {
        KilnValue *instead = i < node->n_operands ? flipped[i] : NULL;
        if (!build_operand(plan, i, instead, &operands[i], error))
            return NULL;
    }
    for (uint32_t r = 0; r < node->n_results; r++) {
        types[r] = node->results[r].type;
        if (plan->results[r].rank >= 0)
            types[r] = kiln_perm_type_before(plan->arena, &types[r], &plan->results[r]);
    }
    KilnNodeSpec spec = { .op = plan->op,
                          .name = node->name,
                          .operands = operands,
                          .n_operands = plan->n_operands,
                          .n_results = node->n_results,
                          .attrs = plan->attrs,
                          .types = types,
                          .before = plan->node };
    return kiln_node_new(node->function, &spec, error);
}
