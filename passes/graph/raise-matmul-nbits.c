/* SPDX-License-Identifier: Apache-2.0 */
/* raise-matmul-nbits: a product with dequantized weights of few bits reads them packed.
 *
 *      x     q, scale, zero point             x     q', scale', zero point'
 *       \       |                              \       |
 *        \  dequantize_linear        =>        matmul_nbits
 *         \   /
 *         matmul (+ bias)
 *
 * for matmul and gemm of f32 and literal weights: of 2 or 4 bits, or of 8 bits in blocks. The
 * weights may be transposed behind the dequantize_linear. Blocks lie along the inner dim of the
 * product. One scale for each column, or for all weights, is a single block.
 *
 *     add(matmul_nbits(x, …), c)     =>     matmul_nbits(x, …, c)       a number for each column
 *
 * requires nothing, preserves nothing; class U: a kernel may sum in another order. Weights keep
 * their bits: both forms subtract and multiply in f32. Before constant-fold, which makes floats of
 * small weights. Weights of bytes that are not in blocks are left to merge-qdq and sink-dequantize,
 * which multiply integers. */
#include "graph/base/alloc.h"
#include "graph/base/number.h"
#include "graph/infer/infer.h"
#include "graph/op/qproduct.h"
#include "passes/query/quant_product.h"
#include "passes/rule.h"

#include <string.h>

enum {
    CHUNK = 256, /* numbers of a column that are packed at once: whole bytes */
    COLUMNS = 64 /* that are read at once */
};

/* The weights of a product and their parameters. */
typedef struct {
    const KilnMatch *match;
    const KilnNode *dequantize;
    KilnValue *numbers, *scale, *zero; /* literals; zero: NULL if absent */
    bool by_columns;                   /* numbers are [N, K], else [K, N] */
    int64_t k, n, block, blocks;
    bool one_scale; /* for all of a column: all its blocks have that */
    int bits;
    int offset; /* of a stored number to the unsigned one */
} Weights;

/* Bits of an integer that weights are stored in; 0: none. */
static int
bits_of(KilnDType dtype)
{
    switch (dtype) {
    case KILN_DTYPE_u2:
    case KILN_DTYPE_i2:
    case KILN_DTYPE_u4:
    case KILN_DTYPE_i4:
    case KILN_DTYPE_u8:
    case KILN_DTYPE_i8:
        return kiln_dtype_bits(dtype);
    default:
        return 0;
    }
}

static bool
is_literal(const KilnValue *value)
{
    const KilnConstant *constant = kiln_value_constant(value);
    return constant && kiln_tensor_is_readable(constant->tensor);
}

/* The axis of @w's numbers that is the inner dim of the product. */
static int
inner_axis(const Weights *w)
{
    return w->by_columns ? 1 : 0;
}

/* The scale is one number, or one for each column. */
static bool
has_one_scale(const Weights *w, int64_t axis)
{
    const KilnType *scale = &w->scale->type;
    return kiln_type_elements(scale) == 1 ||
           (scale->rank == 1 && kiln_type_axis(&w->numbers->type, axis) != inner_axis(w));
}

static bool
is_matrix(const KilnType *type)
{
    return type->rank == 2 && !type->layout && type->dims[0] > 0 && type->dims[1] > 0 &&
           type->dims[0] <= INT32_MAX && type->dims[1] <= INT32_MAX;
}

/* A size of blocks that ONNX Runtime takes, for @k weights with one scale. */
static int64_t
blocks_with_one_scale(int64_t k)
{
    int64_t block = 16;
    while (block < k && block < 128)
        block *= 2;
    return block;
}

/* Finds the blocks of @w, whose operands are known. */
static bool
find_blocks(const KilnMatch *match, Weights *w)
{
    const KilnQuantBlocks blocks = kiln_quant_blocks(w->dequantize);
    const KilnType *type = &w->numbers->type;
    w->bits = bits_of(type->dtype);
    GUARD(integers, w->bits != 0);
    GUARD(matrix, is_matrix(type));
    w->k = type->dims[inner_axis(w)];
    w->n = type->dims[1 - inner_axis(w)];
    w->one_scale = !blocks.block || blocks.block >= w->k;
    w->offset = kiln_dtype_is_signed(type->dtype) ? 1 << (w->bits - 1) : 0;
    w->block = w->one_scale ? blocks_with_one_scale(w->k) : blocks.block;
    w->blocks = (w->k - 1) / w->block + 1;
    GUARD(whole_bytes, w->block * w->bits % 8 == 0);
    if (blocks.block)
        GUARD(blocks_of_depth, kiln_type_axis(type, blocks.axis) == inner_axis(w));
    else
        GUARD(few_bits_of_columns, w->bits < 8 && has_one_scale(w, blocks.axis));
    return true;
}

/* --- data --- */

/* Where the elements of columns lie in a tensor: element i of column n at n × next + i × step. */
typedef struct {
    int64_t next, step;
} Lines;

/* The parameters of blocks, among those of @type. */
static Lines
parameters_of(const Weights *w, const KilnType *type)
{
    if (kiln_type_elements(type) == 1)
        return (Lines){ 0, 0 };
    if (w->one_scale)
        return (Lines){ 1, 0 };
    return w->by_columns ? (Lines){ w->blocks, 1 } : (Lines){ 1, w->n };
}

/* Packs @n numbers of each column to rows of @pitch bytes. A few columns are read at once, because
 * their numbers may lie side by side. */
static void
pack_lines(const Weights *w, const uint8_t *stored, Lines lines, int64_t n, uint8_t *to,
           int64_t pitch)
{
    uint8_t numbers[COLUMNS][CHUNK];
    for (int64_t first = 0; first < w->n; first += COLUMNS) {
        const int64_t columns = MIN(w->n - first, COLUMNS);
        for (int64_t i = 0; i < n; i += CHUNK) {
            const int64_t some = MIN(n - i, CHUNK);
            for (int64_t j = 0; j < some; j++) {
                const uint8_t *from = stored + first * lines.next + (i + j) * lines.step;
                for (int64_t c = 0; c < columns; c++)
                    numbers[c][j] = (uint8_t)(from[c * lines.next] + w->offset);
            }
            for (int64_t c = 0; c < columns; c++)
                kiln_pack_elements(w->numbers->type.dtype,
                                   to + (first + c) * pitch + i * w->bits / 8, numbers[c], some);
        }
    }
}

static KilnValue *
literal(const Weights *w, const char *name, const KilnType *type, GBytes *bytes)
{
    KilnTensor *tensor = kiln_tensor_new_data(type, bytes, w->match->error);
    return tensor ? kiln_build_constant(w->match->root->function, w->match->root, name, tensor)
                  : NULL;
}

/* Zeros for a literal of @type. */
static GBytes *
bytes_for(const Weights *w, const KilnType *type, void **data)
{
    GBytes *bytes = kiln_bytes_new(1, (size_t)kiln_type_bytes(type), data, w->match->error);
    if (bytes)
        memset(*data, 0, (size_t)kiln_type_bytes(type));
    return bytes;
}

static KilnValue *
packed_numbers(const Weights *w)
{
    const int64_t bytes = w->block * w->bits / 8, row = w->blocks * bytes;
    const KilnType type = kiln_type_make(KILN_DTYPE_u8, 3, (int64_t[]){ w->n, w->blocks, bytes });
    const KilnConstant *constant = kiln_value_constant(w->numbers);
    void *data;
    g_autoptr(GBytes) packed = bytes_for(w, &type, &data);
    g_autoptr(GBytes) view = packed ? kiln_tensor_view(constant->tensor, w->match->error) : NULL;
    if (!view)
        return NULL;
    const uint8_t *stored = g_bytes_get_data(view, NULL);
    pack_lines(w, stored, w->by_columns ? (Lines){ w->k, 1 } : (Lines){ 1, w->n }, w->k, data, row);
    kiln_tensor_drop_pages(constant->tensor);
    return literal(w, constant->name, &type, packed);
}

static KilnValue *
block_scales(const Weights *w)
{
    const KilnType type = kiln_type_make(KILN_DTYPE_f32, 2, (int64_t[]){ w->n, w->blocks });
    const KilnConstant *constant = kiln_value_constant(w->scale);
    void *data;
    g_autoptr(GBytes) scales = bytes_for(w, &type, &data);
    g_autoptr(GBytes) view = scales ? kiln_tensor_view(constant->tensor, w->match->error) : NULL;
    if (!view)
        return NULL;
    const float *stored = g_bytes_get_data(view, NULL);
    const Lines lines = parameters_of(w, &w->scale->type);
    for (int64_t n = 0; n < w->n; n++) {
        for (int64_t b = 0; b < w->blocks; b++)
            ((float *)data)[n * w->blocks + b] = stored[n * lines.next + b * lines.step];
    }
    kiln_tensor_drop_pages(constant->tensor);
    return literal(w, constant->name, &type, scales);
}

/* Zero points of the unsigned numbers. Those of signed ones without zero points are the middle of
 * the range, which need no operand. */
static KilnValue *
block_zeros(const Weights *w)
{
    const int64_t row = (w->blocks * w->bits + 7) / 8;
    const KilnType type = kiln_type_make(KILN_DTYPE_u8, 2, (int64_t[]){ w->n, row });
    const KilnConstant *constant = w->zero ? kiln_value_constant(w->zero) : NULL;
    void *data;
    g_autoptr(GBytes) zeros = bytes_for(w, &type, &data);
    g_autoptr(GBytes) view =
        zeros && constant ? kiln_tensor_view(constant->tensor, w->match->error) : NULL;
    if (!zeros || (constant && !view))
        return NULL;
    if (view)
        pack_lines(w, g_bytes_get_data(view, NULL), parameters_of(w, &w->zero->type), w->blocks,
                   data, row);
    return literal(w, constant ? constant->name : "zero_point", &type, zeros);
}

/* --- rewrites --- */

/* @bias: NULL if there is none. */
static bool
raise_product(KilnMatch *match, bool by_columns, KilnValue *bias)
{
    const KilnNode *dequantize = kiln_match_node(match, "d");
    Weights w = { .match = match,
                  .dequantize = dequantize,
                  .numbers = kiln_node_operand(dequantize, 0),
                  .scale = kiln_node_operand(dequantize, 1),
                  .zero = kiln_node_operand(dequantize, 2),
                  .by_columns = by_columns };
    GUARD(literal_zero_point, !w.zero || is_literal(w.zero));
    GUARD(readable, is_literal(w.numbers) && is_literal(w.scale));
    if (!find_blocks(match, &w))
        return false;
    const KilnAttrs_matmul_nbits attrs = {
        .K = w.k, .N = w.n, .bits = w.bits, .block_size = w.block
    };
    const bool middle = w.offset && !w.zero;
    KilnValue *operands[] = { kiln_match_value(match, "x"), packed_numbers(&w), NULL, NULL, bias };
    if (!operands[1] || !(operands[2] = block_scales(&w)) ||
        (!middle && !(operands[3] = block_zeros(&w))))
        return false;
    return kiln_match_replace(match, kiln_match_build(match, KILN_OP_matmul_nbits, &attrs, operands,
                                                      bias     ? 5
                                                      : middle ? 3
                                                               : 4));
}

static bool
raise_plain(KilnMatch *match)
{
    return raise_product(match, false, NULL);
}

/* A transpose of two dims that exchanges them. */
static bool
raise_transposed(KilnMatch *match)
{
    int perm[KILN_MAX_RANK];
    const KilnNode *transpose = kiln_match_node(match, "t");
    if (!kiln_transpose_perm(transpose, perm, match->error))
        return false;
    GUARD(exchanged, perm[0] == 1);
    return raise_product(match, true, NULL);
}

/* One number for each of @n columns. */
static bool
is_of_columns(const KilnValue *bias, int64_t n)
{
    return bias->type.rank == 1 && bias->type.dims[0] == n && !bias->type.layout &&
           bias->type.dtype == KILN_DTYPE_f32;
}

static bool
raise_gemm(KilnMatch *match)
{
    const KilnNode *root = match->root;
    const KilnType *type = &root->results[0].type;
    KilnValue *bias = kiln_node_operand(root, 2);
    GUARD(plain, kiln_product_is_plain(root));
    GUARD(bias_of_columns, !bias || is_of_columns(bias, type->dims[1]));
    return raise_product(match, kiln_product_turns_right(root), bias);
}

static bool
add_bias(KilnMatch *match)
{
    const KilnNode *product = kiln_match_node(match, "p");
    const KilnAttrs_matmul_nbits *attrs = kiln_attrs(product, matmul_nbits);
    KilnValue *bias = kiln_match_value(match, "c");
    GUARD(no_bias, !kiln_node_operand(product, 4));
    GUARD(of_columns, is_of_columns(bias, attrs->N));
    KilnValue *operands[] = { kiln_node_operand(product, 0), kiln_node_operand(product, 1),
                              kiln_node_operand(product, 2), kiln_node_operand(product, 3), bias };
    return kiln_match_replace(match,
                              kiln_match_build(match, KILN_OP_matmul_nbits, attrs, operands, 5));
}

static const KilnRule rules[] = {
    RULE("few-bits", U, "(matmul ?x:f32 (dequantize_linear#d $ $ ...))", raise_plain),
    RULE("few-bits-transposed", U, "(matmul ?x:f32 (transpose#t (dequantize_linear#d $ $ ...)))",
         raise_transposed),
    RULE("few-bits-gemm", U, "(gemm ?x:f32 (dequantize_linear#d $ $ ...) ...)", raise_gemm),
    RULE("few-bits-bias", U, "(add~ (matmul_nbits!#p ...) ?c)", add_bias),
};

RULE_PASS(raise_matmul_nbits, FORWARD);
