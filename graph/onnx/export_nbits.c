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
#include "graph/base/number.h"
#include "graph/module/by_name.h"
#include "graph/node.h"
#include "graph/onnx/export.h"
#include "graph/op/qproduct.h"
#include "graph/tensor.h"

enum {
    SMALLEST_BLOCK = 16, /* that ONNX Runtime takes; others are its multiples by powers of 2 */
    CHUNK = 256          /* numbers that are packed at once: whole bytes */
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

/* Packed numbers in rows. */
typedef struct {
    const uint8_t *stored;
    int64_t pitch, each; /* bytes from row to row, and numbers of a row */
    KilnDType dtype;
} Rows;

/* Brings the @n numbers from number @first of all rows on together. @flip changes bits of each. */
static void
gather_numbers(const Rows *rows, int64_t first, int64_t n, uint8_t flip, uint8_t *to)
{
    for (int64_t i = 0, some; i < n; i += some) {
        const int64_t row = (first + i) / rows->each, at = (first + i) % rows->each;
        some = MIN(n - i, rows->each - at);
        kiln_unpack_elements(rows->dtype, to + i, rows->stored + row * rows->pitch, at, some);
    }
    for (int64_t i = 0; i < n; i++)
        to[i] ^= flip;
}

/* The numbers of @from, which lie in rows of whole bytes, as rows of @each: those of a column of
 * the product. Made before the product. NULL and @error on failure. */
static KilnValue *
rows_of(const Weights *w, const KilnValue *from, int64_t each, GError **error)
{
    const int64_t bits = w->attrs->bits, n = w->attrs->N * each;
    const KilnType type = kiln_type_make(dtype_of(w), 2, (int64_t[]){ w->attrs->N, each });
    const KilnConstant *constant = kiln_value_constant(from);
    /* The highest bit of a number says on which side of the middle it is, and so does the sign. */
    const uint8_t flip = w->zeros ? 0 : (uint8_t)(1U << (bits - 1));
    void *data;
    g_autoptr(GBytes) bytes =
        kiln_bytes_new(1, (size_t)kiln_tensor_stored_bytes(&type), &data, error);
    g_autoptr(GBytes) view = bytes ? kiln_tensor_view(constant->tensor, error) : NULL;
    if (!view)
        return NULL;
    const Rows rows = { .stored = g_bytes_get_data(view, NULL),
                        .pitch = kiln_type_bytes(&from->type) / w->attrs->N,
                        .each = each,
                        .dtype = type.dtype };
    uint8_t chunk[CHUNK];
    for (int64_t i = 0; i < n; i += CHUNK) {
        gather_numbers(&rows, i, MIN(n - i, CHUNK), flip, chunk);
        kiln_pack_elements(type.dtype, (uint8_t *)data + i * bits / 8, chunk, MIN(n - i, CHUNK));
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
