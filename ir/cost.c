/* SPDX-License-Identifier: Apache-2.0 */
/* What an instruction costs, by its types alone: operations for the arithmetic that the formula of
 * the instruction asks for (a multiply-add counts two, a transcendental function ten), bytes for
 * what it reads and writes. Blocking, caches and instruction sets are the kernels' business. */
#include "graph/base/number.h"
#include "graph/op/offload.h"
#include "ir/plugin.h"
#include "ir/stack.h"
#include "ir/tail.h"
#include "ir/target.h"

#include <string.h>

enum {
    FLOPS_TRANSCENDENTAL = 10
};

/* How the operations of a kind are counted. */
typedef struct Count {
    int64_t (*count)(const KilnInstr *instr, const struct Count *row);
    uint32_t data, weights; /* operands that @count looks at */
    int64_t each;           /* without @count: operations per element of the result */
} Count;

static int64_t
elements(const KilnInstr *instr, uint32_t i)
{
    const KilnBuffer *buffer = kiln_instr_operand(instr, i);
    return buffer ? kiln_type_elements(&buffer->type) : 0;
}

static int64_t
times(int64_t a, int64_t b)
{
    int64_t product;
    return __builtin_mul_overflow(a, b, &product) ? INT64_MAX : product;
}

/* The extent of dim @d counted from the end (1: the last); 1 where there is none. */
static int64_t
dim_from_end(const KilnInstr *instr, uint32_t i, int d)
{
    const KilnBuffer *buffer = kiln_instr_operand(instr, i);
    return buffer && buffer->type.rank >= d ? buffer->type.dims[buffer->type.rank - d] : 1;
}

static int64_t
product(KilnInts list)
{
    int64_t result = 1;
    for (uint32_t i = 0; i < list.n; i++)
        result = times(result, list.v[i]);
    return result;
}

static int64_t
element_flops(KilnInstrKind kind)
{
    bool transcendental = kiln_instr_info(kind)->flags & KILN_INSTR_TRANSCENDENTAL;
    return transcendental ? FLOPS_TRANSCENDENTAL : 1;
}

static int64_t
stack_flops(const KilnInstr *instr, const Count *row)
{
    (void)row;
    int64_t flops = 0;
    KilnType space;
    for (uint32_t i = 0; i < instr->n_steps; i++)
        flops += element_flops(instr->steps[i].kind);
    return kiln_stack_space(instr, &space) ? times(flops, kiln_type_elements(&space)) : 0;
}

/* Every weight meets every position of its channel once: of the result for a convolution, of the
 * data for a transposed one. */
static int64_t
conv_flops(const KilnInstr *instr, const Count *row)
{
    const KilnType *w = &kiln_instr_operand(instr, row->weights)->type;
    int64_t per_position = w->dims[0] ? kiln_type_elements(w) / w->dims[0] : 0;
    return times(times(2, per_position), elements(instr, row->data));
}

/* Products of the contracted dim for every element of the result. */
static int64_t
matmul_flops(const KilnInstr *instr, const Count *row)
{
    (void)row;
    bool transposed = instr->kind == KILN_INSTR_gemm && kiln_instr_attrs(instr, gemm)->transA;
    return times(times(2, dim_from_end(instr, 1, transposed ? 2 : 1)), elements(instr, 0));
}

/* By elimination. */
static int64_t
det_flops(const KilnInstr *instr, const Count *row)
{
    (void)row;
    return times(elements(instr, 1), dim_from_end(instr, 1, 1));
}

/* Each row of the result has a score for each key: a product of the depth, a share, and a product
 * of the width. */
static int64_t
attention_flops(const KilnInstr *instr, const Count *row)
{
    (void)row;
    int64_t width = MAX(dim_from_end(instr, 0, 1), 1);
    int64_t scores = times(elements(instr, 0) / width, dim_from_end(instr, 2, 2));
    int64_t products = times(2, kiln_add_capped(dim_from_end(instr, 1, 1), width));
    return times(scores, kiln_add_capped(products, FLOPS_TRANSCENDENTAL + 3));
}

/* The data is followed by the weights [D,G·H,I] and [D,G·H,H]: each meets every
 * time step and batch. */
static int64_t
recurrent_flops(const KilnInstr *instr, const Count *row)
{
    const uint32_t x = row->data;
    int64_t weights = kiln_add_capped(elements(instr, x + 1), elements(instr, x + 2));
    int64_t input = MAX(dim_from_end(instr, x, 1), 1);
    return times(times(2, weights), elements(instr, x) / input);
}

/* Every step decays, reads, adds to and reads a state again: once for each head of queries. */
static int64_t
linear_attention_flops(const KilnInstr *instr, const Count *row)
{
    (void)row;
    const int64_t heads = MAX(kiln_instr_attrs(instr, linear_attention)->kv_num_heads, 1);
    const int64_t depth = dim_from_end(instr, 3, 1) / heads;
    const int64_t reads =
        kiln_add_capped(times(2, elements(instr, 0)), times(5, elements(instr, 4)));
    return times(depth, reads);
}

/* Each row goes down each tree, whose depth its nodes tell if it is full. */
static int64_t
tree_ensemble_flops(const KilnInstr *instr, const Count *row)
{
    (void)row;
    const int64_t trees = MAX(elements(instr, 2), 1);
    int64_t steps = 1;
    for (int64_t nodes = elements(instr, 3) / trees; nodes > 1; nodes /= 2)
        steps++;
    return times(times(dim_from_end(instr, 1, 2), trees), 4 * steps);
}

static int64_t
squared_distance_flops(const KilnInstr *instr, const Count *row)
{
    (void)row;
    return times(times(3, elements(instr, 0)), dim_from_end(instr, 1, 1));
}

/* Each item of the pool is compared at each place, for each number of skips. */
static int64_t
tf_idf_vectorizer_flops(const KilnInstr *instr, const Count *row)
{
    (void)row;
    const KilnInstrAttrs_tf_idf_vectorizer *attrs = kiln_instr_attrs(instr, tf_idf_vectorizer);
    const int64_t steps = MIN(attrs->max_skip_count, dim_from_end(instr, 1, 1)) + 1;
    return times(times(elements(instr, 1), attrs->pool_int64s.n), steps);
}

/* Some rounds over the square of pairs. */
static int64_t
pairwise_coupling_flops(const KilnInstr *instr, const Count *row)
{
    (void)row;
    return times(times(20, elements(instr, 0)), dim_from_end(instr, 0, 1));
}

/* 5 n log2 n for a transform of n numbers. */
static int64_t
dft_flops(const KilnInstr *instr, const Count *row)
{
    (void)row;
    const KilnInstrAttrs_dft *attrs = kiln_instr_attrs(instr, dft);
    const KilnType *out = &kiln_instr_operand(instr, 0)->type;
    const int64_t extent = MAX(out->dims[attrs->axis], 1);
    const int64_t n = kiln_ints_at(attrs->length, 0, extent); /* a node may leave it to the data */
    const int64_t lines = elements(instr, 0) / extent / MAX(dim_from_end(instr, 0, 1), 1);
    int64_t stages = 1;
    while (n >> stages > 0)
        stages++;
    return times(lines, times(times(5, n), stages));
}

/* Every element of the columns is added once. */
static int64_t
col2im_flops(const KilnInstr *instr, const Count *row)
{
    (void)row;
    return elements(instr, 1);
}

/* The dims of the operand whose term begins at @term, by letter and, under an ellipsis, from the
 * right. Returns where the term ends. */
static const char *
add_extents(const char *term, const KilnType *type, int64_t letters[128],
            int64_t dots[KILN_MAX_RANK])
{
    int n_letters = 0, d = 0;
    const char *end = term + strcspn(term, ",-");
    for (const char *at = term; at < end; at++)
        n_letters += g_ascii_isalpha(*at);
    const int n_dots = MAX(type->rank - n_letters, 0);
    for (const char *at = term; at < end; at++) {
        if (g_ascii_isalpha(*at) && d < type->rank) {
            letters[(int)*at] = MAX(letters[(int)*at], type->dims[d]);
            d++;
        } else if (strncmp(at, "...", 3) == 0) {
            for (int i = n_dots; i > 0 && d < type->rank; i--, d++)
                dots[i - 1] = MAX(dots[i - 1], type->dims[d]);
        }
    }
    return *end == ',' ? end + 1 : end;
}

/* A product of all operands for every combination of labels. */
static int64_t
einsum_flops(const KilnInstr *instr, const Count *row)
{
    (void)row;
    int64_t letters[128] = { 0 }, dots[KILN_MAX_RANK] = { 0 }, flops = instr->n_operands - 1;
    const char *term = kiln_instr_attrs(instr, einsum)->equation;
    for (uint32_t i = 1; i < instr->n_operands; i++)
        term = add_extents(term, &kiln_instr_operand(instr, i)->type, letters, dots);
    for (int i = 0; i < 128; i++)
        flops = times(flops, MAX(letters[i], (int64_t)1));
    for (int d = 0; d < KILN_MAX_RANK; d++)
        flops = times(flops, MAX(dots[d], (int64_t)1));
    return flops;
}

static int64_t
max_pool_flops(const KilnInstr *instr, const Count *row)
{
    (void)row;
    return times(product(kiln_instr_attrs(instr, max_pool)->kernel_shape),
                 MAX(elements(instr, 0), elements(instr, 2)));
}

static int64_t
average_pool_flops(const KilnInstr *instr, const Count *row)
{
    (void)row;
    return times(product(kiln_instr_attrs(instr, average_pool)->kernel_shape), elements(instr, 0));
}

static int64_t
lp_pool_flops(const KilnInstr *instr, const Count *row)
{
    (void)row;
    return times(times(2, product(kiln_instr_attrs(instr, lp_pool)->kernel_shape)),
                 elements(instr, 0));
}

/* Four neighbours of each sample; regions say how many samples a bin has where the ratio is 0. */
static int64_t
roi_align_flops(const KilnInstr *instr, const Count *row)
{
    (void)row;
    const int64_t ratio = kiln_instr_attrs(instr, roi_align)->sampling_ratio;
    const int64_t side = ratio > 0 ? ratio : 2;
    return times(times(8, times(side, side)), elements(instr, 0));
}

static int64_t
lrn_flops(const KilnInstr *instr, const Count *row)
{
    (void)row;
    int64_t sums = times(2, kiln_instr_attrs(instr, lrn)->size);
    return times(kiln_add_capped(sums, FLOPS_TRANSCENDENTAL), elements(instr, 0));
}

static int64_t
tail_flops(const KilnInstr *instr)
{
    KilnTail tail = kiln_instr_tail(instr);
    uint32_t residual = kiln_residual_operand(instr->kind);
    int64_t flops = residual && kiln_instr_operand(instr, residual);
    if (tail.activation != KILN_N_INSTRS)
        flops += element_flops(tail.activation);
    return times(flops, elements(instr, 0));
}

static int64_t
body_flops(const KilnFunction *body)
{
    int64_t flops = 0;
    kiln_foreach_node (node, body)
        flops = kiln_add_capped(flops, node->op == KILN_OP_custom_op
                                           ? body_flops(kiln_attrs(node, custom_op)->body)
                                           : kiln_node_cost(node).flops);
    return flops;
}

/* What the region of the callee computes, where that is known. */
static int64_t
call_flops(const KilnInstr *instr, const Count *row)
{
    (void)row;
    bool known = instr->declaration && instr->declaration->body;
    return known ? body_flops(instr->declaration->body) : 0;
}

static int64_t
plugin_flops(const KilnInstr *instr, const Count *row)
{
    (void)row;
    return kiln_plugin_flops(instr);
}

/* What has no row moves data, reduces its operand, or computes each element by itself. */
static const Count counts[KILN_N_INSTRS] = {
    [KILN_INSTR_stack] = { .count = stack_flops },
    [KILN_INSTR_call] = { .count = call_flops },
    [KILN_INSTR_plugin_op] = { .count = plugin_flops },
    [KILN_INSTR_conv] = { .count = conv_flops, .data = 0, .weights = 2 },
    [KILN_INSTR_conv_integer] = { .count = conv_flops, .data = 0, .weights = 2 },
    [KILN_INSTR_qlinear_conv] = { .count = conv_flops, .data = 0, .weights = 4 },
    [KILN_INSTR_deform_conv] = { .count = conv_flops, .data = 0, .weights = 2 },
    [KILN_INSTR_conv_transpose] = { .count = conv_flops, .data = 1, .weights = 2 },
    [KILN_INSTR_matmul] = { .count = matmul_flops },
    [KILN_INSTR_matmul_integer] = { .count = matmul_flops },
    [KILN_INSTR_qlinear_matmul] = { .count = matmul_flops },
    [KILN_INSTR_matmul_nbits] = { .count = matmul_flops },
    [KILN_INSTR_gemm] = { .count = matmul_flops },
    [KILN_INSTR_einsum] = { .count = einsum_flops },
    [KILN_INSTR_det] = { .count = det_flops },
    [KILN_INSTR_attention] = { .count = attention_flops },
    [KILN_INSTR_rnn] = { .count = recurrent_flops, .data = 2 },
    [KILN_INSTR_gru] = { .count = recurrent_flops, .data = 2 },
    [KILN_INSTR_lstm] = { .count = recurrent_flops, .data = 3 },
    [KILN_INSTR_linear_attention] = { .count = linear_attention_flops },
    [KILN_INSTR_dft] = { .count = dft_flops },
    [KILN_INSTR_tree_ensemble] = { .count = tree_ensemble_flops },
    [KILN_INSTR_squared_distance] = { .count = squared_distance_flops },
    [KILN_INSTR_pairwise_coupling] = { .count = pairwise_coupling_flops },
    [KILN_INSTR_label_encoder] = { .each = 16 },
    [KILN_INSTR_string_concat] = { .each = 64 },
    [KILN_INSTR_string_parts] = { .each = 256 },
    [KILN_INSTR_string_split] = { .each = 64 },
    [KILN_INSTR_string_normalizer] = { .each = 256 },
    [KILN_INSTR_regex_full_match] = { .each = 1024 },
    [KILN_INSTR_token_count] = { .each = 1024 },
    [KILN_INSTR_tokenizer] = { .each = 256 },
    [KILN_INSTR_tf_idf_vectorizer] = { .count = tf_idf_vectorizer_flops },
    [KILN_INSTR_col2im] = { .count = col2im_flops },
    [KILN_INSTR_affine_grid] = { .each = 8 },
    [KILN_INSTR_max_pool] = { .count = max_pool_flops },
    [KILN_INSTR_average_pool] = { .count = average_pool_flops },
    [KILN_INSTR_lp_pool] = { .count = lp_pool_flops },
    [KILN_INSTR_image_decoder] = { .each = 16 },
    [KILN_INSTR_max_roi_pool] = { .each = 8 },
    [KILN_INSTR_roi_align] = { .count = roi_align_flops },
    [KILN_INSTR_lrn] = { .count = lrn_flops },
    [KILN_INSTR_softmax] = { .each = FLOPS_TRANSCENDENTAL + 3 },
    [KILN_INSTR_log_softmax] = { .each = FLOPS_TRANSCENDENTAL + 3 },
    [KILN_INSTR_batch_normalization] = { .each = 8 },
    [KILN_INSTR_instance_normalization] = { .each = 8 },
    [KILN_INSTR_layer_normalization] = { .each = 8 },
    [KILN_INSTR_group_normalization] = { .each = 8 },
    [KILN_INSTR_rms_normalization] = { .each = 8 },
};

static int64_t
flops_of(const KilnInstr *instr)
{
    const Count *row = &counts[instr->kind];
    uint32_t flags = kiln_instr_info(instr->kind)->flags;
    if (row->count)
        return row->count(instr, row);
    if (flags & (KILN_INSTR_MOVEMENT | KILN_INSTR_BOOKKEEPING))
        return 0;
    if (flags & KILN_INSTR_REDUCTION)
        return elements(instr, 1);
    return times(row->each ? row->each : element_flops(instr->kind), elements(instr, 0));
}

static int64_t
bytes_of(const KilnInstr *instr)
{
    int64_t sum = 0;
    for (uint32_t i = 0; i < instr->n_operands; i++) {
        const KilnBuffer *buffer = instr->operands[i].buffer;
        int64_t bytes = buffer ? kiln_type_bytes(&buffer->type) : 0;
        sum = kiln_add_capped(sum, instr->operands[i].access == KILN_ACCESS_INOUT ? times(2, bytes)
                                                                                  : bytes);
    }
    return sum;
}

KilnCost
kiln_instr_cost(const KilnInstr *instr)
{
    if (kiln_instr_is_bookkeeping(instr))
        return (KilnCost){ 0, 0 };
    return (KilnCost){ kiln_add_capped(flops_of(instr), tail_flops(instr)), bytes_of(instr) };
}

/* A parallel region costs about as much as 32 k element-wise operations, and must be a small part
 * of what it saves. */
enum {
    PARALLEL_FLOPS = 200 * 1000,
    PARALLEL_BYTES = 512 * 1024,
};

bool
kiln_cost_is_parallel(const KilnCost *cost)
{
    return cost->flops >= PARALLEL_FLOPS || cost->bytes >= PARALLEL_BYTES;
}

/* Bytes first: to count the operations of a region its nodes are looked at one by one. */
bool
kiln_instr_is_parallel(const KilnInstr *instr)
{
    KilnCost cost = { 0, kiln_instr_is_bookkeeping(instr) ? 0 : bytes_of(instr) };
    if (kiln_cost_is_parallel(&cost))
        return true;
    cost = kiln_instr_cost(instr);
    return kiln_cost_is_parallel(&cost);
}
