/* SPDX-License-Identifier: Apache-2.0 */
/* Products with packed weights as ONNX has them. ONNX itself has no such operator. It dequantizes
 * the weights and multiplies:
 *
 *      x   b, scales, zeros            x     b', scales, zeros'
 *       \  |                            \    |
 *       matmul_nbits          =>         \   dequantize_linear     blocks along axis 1
 *       (+ bias)                          \  |
 *                                          \ transpose
 *                                           matmul (+ bias)
 *
 * b' are numbers of [N, K], signed where there are no zeros: the middle of the range is 0 then.
 * Else they are unsigned. Weights of several products are written once. Numbers of [K, N] would
 * need no transpose. But ONNX Runtime makes a product of those that rounds x to bytes by default.
 *
 * Literals can be packed again. Where a run brings weights, or zeros are floats, the node stays and
 * is MatMulNBits of ONNX Runtime, which takes blocks of some sizes only. */
#include "graph/base/alloc.h"
#include "graph/module/by_name.h"
#include "graph/node.h"
#include "graph/onnx/export.h"
#include "graph/op/qproduct.h"
#include "graph/tensor.h"

#include <string.h>

/* The least size of a block that ONNX Runtime takes; others are its multiples by powers of 2. */
enum {
    SMALLEST_BLOCK = 16
};

/* The weights of a product, and what they became. */
typedef struct {
    KilnNode *node;               /* the product */
    const KilnFunction *function; /* of that */
    const KilnAttrs_matmul_nbits *attrs;
    KilnValue *numbers, *scales, *zeros; /* zeros: NULL if absent */
    int64_t blocks;                      /* of a column */
    KilnValue *dequantized;              /* [K, N] */
} Weights;

bool
kiln_onnx_has_nbits(const KilnFunction *function)
{
    kiln_foreach_node (node, function) {
        if (node->op == KILN_OP_matmul_nbits)
            return true;
        kiln_foreach_region (region, node) {
            if (kiln_onnx_has_nbits(region))
                return true;
        }
    }
    return false;
}

static bool
is_literal(const KilnValue *value)
{
    const KilnConstant *constant = kiln_value_constant(value);
    return constant && kiln_tensor_is_readable(constant->tensor);
}

/* The operands can be packed in another way. */
static bool
is_known(const Weights *w)
{
    return is_literal(w->numbers) && is_literal(w->scales) &&
           (!w->zeros || (w->zeros->type.dtype == KILN_DTYPE_u8 && is_literal(w->zeros)));
}

static gboolean
check_block_size(const KilnNode *node, GError **error)
{
    const int64_t block = kiln_attrs(node, matmul_nbits)->block_size;
    return (block >= SMALLEST_BLOCK && (block & (block - 1)) == 0) ||
           kiln_throw(error, KILN_ERROR_UNSUPPORTED,
                      "%s (%s): expected literal weights and scales with zero points of u8, or a "
                      "block_size that is a power of two from %d on; found neither, but "
                      "block_size=%" G_GINT64_FORMAT,
                      kiln_node_label(node), kiln_op_info(node->op)->name, SMALLEST_BLOCK, block);
}

/* --- data --- */

static KilnDType
dtype_of(const Weights *w)
{
    const bool is_signed = !w->zeros;
    switch (w->attrs->bits) {
    case 2:
        return is_signed ? KILN_DTYPE_i2 : KILN_DTYPE_u2;
    case 4:
        return is_signed ? KILN_DTYPE_i4 : KILN_DTYPE_u4;
    default:
        return is_signed ? KILN_DTYPE_i8 : KILN_DTYPE_u8;
    }
}

/* Number @i of those that lie in @bytes, the lowest bits first. */
static unsigned
number_at(const uint8_t *bytes, int64_t bits, int64_t i)
{
    return (unsigned)bytes[i * bits / 8] >> i * bits % 8 & ((1U << bits) - 1);
}

/* Adds number @i to @bytes, where it was 0. */
static void
put_number(uint8_t *bytes, int64_t bits, int64_t i, unsigned number)
{
    const int64_t bit = i * bits;
    bytes[bit / 8] = (uint8_t)(bytes[bit / 8] | number << bit % 8);
}

/* The numbers of @from, which lie in rows of whole bytes, as rows of @each: those of a column of
 * the product. Made before the product. NULL and @error on failure. */
static KilnValue *
rows_of(const Weights *w, const KilnValue *from, int64_t each, GError **error)
{
    const int64_t bits = w->attrs->bits, rows = w->attrs->N;
    const KilnType type = kiln_type_make(dtype_of(w), 2, (int64_t[]){ rows, each });
    const KilnConstant *constant = kiln_value_constant(from);
    const int64_t row = kiln_type_bytes(&from->type) / rows, size = kiln_tensor_stored_bytes(&type);
    /* The highest bit of a number says on which side of the middle it is, and so does the sign. */
    const unsigned flip = w->zeros ? 0 : 1U << (bits - 1);
    void *data;
    g_autoptr(GBytes) bytes = kiln_bytes_new(1, (size_t)size, &data, error);
    g_autoptr(GBytes) view = bytes ? kiln_tensor_view(constant->tensor, error) : NULL;
    if (!view)
        return NULL;
    const uint8_t *stored = g_bytes_get_data(view, NULL);
    memset(data, 0, (size_t)size);
    for (int64_t n = 0; n < rows; n++) {
        for (int64_t i = 0; i < each; i++)
            put_number(data, bits, n * each + i, number_at(stored + n * row, bits, i) ^ flip);
    }
    kiln_tensor_drop_pages(constant->tensor);
    KilnTensor *tensor = kiln_tensor_new_stored(&type, bytes, error);
    return tensor ? kiln_build_constant(w->node->function, w->node, constant->name, tensor) : NULL;
}

/* --- nodes --- */

/* The weights as floats of [K, N]. A block is no longer than a column, as ONNX asks for. */
static KilnValue *
dequantize(const Weights *w, GError **error)
{
    int64_t exchange[] = { 1, 0 };
    const KilnNamed convert = { "dequantize_linear",
                                { KILN_NAMED(INT, "block_size",
                                             MIN(w->attrs->block_size, w->attrs->K)) } };
    const KilnNamed turn = { "transpose", { KILN_NAMED(INTS, "perm", .n = 2, .v = exchange) } };
    KilnValue *operands[] = { rows_of(w, w->numbers, w->attrs->K, error), w->scales, NULL };
    if (!operands[0] || (w->zeros && !(operands[2] = rows_of(w, w->zeros, w->blocks, error))))
        return NULL;
    KilnValue *value = kiln_build_named(w->node, &convert, operands, w->zeros ? 3 : 2, error);
    return value ? kiln_build_named(w->node, &turn, &value, 1, error) : NULL;
}

static bool
is_same(const Weights *a, const Weights *b)
{
    return a->function == b->function && a->scales == b->scales && a->zeros == b->zeros &&
           a->attrs->bits == b->attrs->bits && a->attrs->K == b->attrs->K &&
           a->attrs->block_size == b->attrs->block_size;
}

/* Replaces @node, unless it stays. @known: the last Weights with the same numbers. */
static gboolean
state(KilnNode *node, GHashTable *known, GError **error)
{
    KilnValue *bias = kiln_node_operand(node, 4);
    Weights w = { .node = node,
                  .function = node->function,
                  .attrs = kiln_attrs(node, matmul_nbits),
                  .numbers = kiln_node_operand(node, 1),
                  .scales = kiln_node_operand(node, 2),
                  .zeros = kiln_node_operand(node, 3) };
    const Weights *last = g_hash_table_lookup(known, w.numbers);
    if (!is_known(&w))
        return check_block_size(node, error);
    w.blocks = (w.attrs->K - 1) / w.attrs->block_size + 1;
    w.dequantized = last && is_same(last, &w) ? last->dequantized : dequantize(&w, error);
    if (!w.dequantized)
        return FALSE;
    KilnValue *value =
        kiln_build_pair(node, "matmul", kiln_node_operand(node, 0), w.dequantized, error);
    if (value && bias)
        value = kiln_build_pair(node, "add", value, bias, error);
    if (!value)
        return FALSE;
    g_hash_table_insert(known, w.numbers, g_memdup2(&w, sizeof w));
    kiln_value_replace(&node->results[0], value);
    kiln_node_remove_if_dead(node);
    return TRUE;
}

static gboolean
state_all(KilnFunction *function, GHashTable *known, GError **error)
{
    for (KilnNode *node = function->first, *next; node; node = next) {
        next = node->next;
        kiln_foreach_region (region, node) {
            if (!state_all(region, known, error))
                return FALSE;
        }
        if (node->op == KILN_OP_matmul_nbits && !state(node, known, error))
            return FALSE;
    }
    return TRUE;
}

gboolean
kiln_onnx_state_nbits(KilnFunction *function, GError **error)
{
    g_autoptr(GHashTable) known = g_hash_table_new_full(NULL, NULL, NULL, g_free);
    return state_all(function, known, error);
}
