/* SPDX-License-Identifier: Apache-2.0 */
/* Products, pools, element-wise operators and concatenation. */
#include "backends/onednn/careful.h"
#include "backends/onednn/region.h"

static bool
throw_none(Builder *builder, const char *what)
{
    return kiln_throw(builder->error, KILN_ERROR_UNSUPPORTED,
                      "oneDNN has no implementation of %s that is allowed", what);
}

bool
kiln_onednn_add_operation(Builder *builder, const_dnnl_op_desc_t op, const PostOps *post,
                          GArray *args, const char *what)
{
    const char *name = "";
    dnnl_primitive_attr_t attr = kiln_onednn_attr(post, false);
    dnnl_primitive_desc_t pd = attr ? kiln_onednn_choose(op, attr, &name) : NULL;
    if (attr)
        dnnl_primitive_attr_destroy(attr);
    if (!pd)
        return throw_none(builder, what);
    if (post && !kiln_onednn_post_args(builder, post, false, args)) {
        dnnl_primitive_desc_destroy(pd);
        return false;
    }
    return kiln_onednn_add(builder, pd, (const StepArg *)(const void *)args->data, args->len, what,
                           name);
}

bool
kiln_onednn_add_fast(Builder *builder, const_dnnl_op_desc_t op, GArray *args, const char *what)
{
    builder->when = RUN_FAST;
    bool good = kiln_onednn_add_operation(builder, op, NULL, args, what);
    builder->when = RUN_ANY;
    return good;
}

bool
kiln_onednn_add_arg(GArray *args, int arg, uint32_t slot)
{
    StepArg one = { arg, slot };
    g_array_append_val(args, one);
    return slot != UINT32_MAX;
}

/* --- products --- */

/* A product as the library sees it: matrices, stacked where both operands are. */
typedef struct {
    const KilnBuffer *y, *a, *b, *bias;
    dnnl_memory_desc_t y_md, a_md, b_md;
    bool transposed; /* b lies transposed */
    bool flat;       /* the dims in front of the rows are rows too */
} Product;

static dnnl_memory_desc_t
as_matrix(const KilnType *type)
{
    int64_t columns = type->rank ? type->dims[type->rank - 1] : 1;
    KilnType matrix = kiln_type_make(
        type->dtype, 2, (int64_t[]){ kiln_type_elements(type) / MAX(columns, 1), columns });
    return kiln_onednn_plain(&matrix);
}

static void
set_product(Product *product)
{
    const KilnType *b = &product->b->type;
    product->flat = b->rank == 2;
    product->y_md =
        product->flat ? as_matrix(&product->y->type) : kiln_onednn_plain(&product->y->type);
    product->a_md =
        product->flat ? as_matrix(&product->a->type) : kiln_onednn_plain(&product->a->type);
    product->b_md = kiln_onednn_plain(b);
    if (product->transposed) {
        dnnl_memory_desc_t plain = product->b_md;
        dnnl_memory_desc_permute_axes(&product->b_md, &plain, (int[]){ 1, 0 });
    }
}

/* Further operands lie plain; the dims of those that are added to rows become the matrix's. */
static bool
flatten_post(const Product *product, PostOps *post)
{
    kiln_onednn_post_layout(post, LAYOUT_PLAIN);
    for (uint32_t i = 0; product->flat && i < post->n; i++) {
        PostOp *op = &post->ops[i];
        if (!op->is_binary)
            continue;
        const KilnType *type = &op->other->type;
        dnnl_memory_desc_t matrix = as_matrix(type);
        bool rows = kiln_type_same_shape(type, &post->result->type) ||
                    kiln_type_elements(type) == matrix.dims[1];
        if (!rows)
            return false;
        op->seen_as = matrix;
        op->md = kiln_onednn_plain(type);
    }
    return true;
}

static bool
is_row(const KilnType *type, int64_t columns)
{
    return kiln_type_elements(type) == columns && type->rank > 0 &&
           type->dims[type->rank - 1] == columns;
}

/* NULL where the library has none with @post behind it. @weights: how a constant lies; NULL: as the
 * library likes it. */
static dnnl_primitive_desc_t
choose_product(const Builder *builder, const Product *product, const PostOps *post,
               const dnnl_memory_desc_t *weights, const char **out_name)
{
    dnnl_memory_desc_t b = product->b_md, bias = { 0 };
    if (weights)
        b = *weights;
    else if (kiln_onednn_is_constant(builder, product->b))
        b.format_kind = dnnl_format_kind_any;
    if (product->bias)
        bias = as_matrix(&product->bias->type);
    dnnl_matmul_desc_t op;
    if (dnnl_matmul_desc_init(&op, &product->a_md, &b, product->bias ? &bias : NULL,
                              &product->y_md) != dnnl_success)
        return NULL;
    dnnl_primitive_attr_t attr = kiln_onednn_attr(post, false);
    dnnl_primitive_desc_t pd = attr ? kiln_onednn_choose(&op, attr, out_name) : NULL;
    if (attr)
        dnnl_primitive_attr_destroy(attr);
    return pd;
}

/* A product: of all runs, or once for fast and once for careful ones, as convolutions are. */
typedef struct {
    dnnl_primitive_desc_t pd, careful;
    const char *name, *careful_name;
    CarefulTail tail;
} Chosen;

static void
chosen_clear(Chosen *chosen)
{
    if (chosen->pd)
        dnnl_primitive_desc_destroy(g_steal_pointer(&chosen->pd));
    if (chosen->careful)
        dnnl_primitive_desc_destroy(g_steal_pointer(&chosen->careful));
    kiln_onednn_careful_clear(&chosen->tail);
}

static bool
choose_products(Builder *builder, const Product *product, PostOps *post, Chosen *out)
{
    if (!flatten_post(product, post))
        return false;
    out->pd = choose_product(builder, product, post, NULL, &out->name);
    if (!out->pd || !kiln_onednn_careful_tail(builder, post, LAYOUT_PLAIN, &out->tail))
        return false;
    if (out->tail.first == post->n)
        return true;
    PostOps head = *post;
    head.n = out->tail.first;
    out->careful = choose_product(builder, product, &head,
                                  dnnl_primitive_desc_query_md(out->pd, dnnl_query_weights_md, 0),
                                  &out->careful_name);
    return out->careful != NULL;
}

/* The slots of operands to @args. */
static bool
find_factors(Builder *builder, const Product *product, const Chosen *chosen, GArray *args)
{
    dnnl_memory_desc_t a = kiln_onednn_plain(&product->a->type);
    uint32_t slot = kiln_onednn_slot_as(builder, product->a, &a);
    bool good =
        kiln_onednn_add_arg(args, DNNL_ARG_SRC, kiln_onednn_alias(builder, slot, &product->a_md));
    if (kiln_onednn_is_constant(builder, product->b)) {
        dnnl_memory_desc_t b = *dnnl_primitive_desc_query_md(chosen->pd, dnnl_query_weights_md, 0);
        slot = kiln_onednn_packed(builder, product->b, &product->b_md, &b);
    } else {
        dnnl_memory_desc_t b = kiln_onednn_plain(&product->b->type);
        slot = kiln_onednn_slot_as(builder, product->b, &b);
        slot = kiln_onednn_alias(builder, slot, &product->b_md);
    }
    good &= kiln_onednn_add_arg(args, DNNL_ARG_WEIGHTS, slot);
    if (product->bias) {
        dnnl_memory_desc_t plain = kiln_onednn_plain(&product->bias->type);
        dnnl_memory_desc_t bias = as_matrix(&product->bias->type);
        slot = kiln_onednn_slot_as(builder, product->bias, &plain);
        good &= kiln_onednn_add_arg(args, DNNL_ARG_BIAS, kiln_onednn_alias(builder, slot, &bias));
    }
    return good;
}

/* The step of *@pd, which is taken over, with @post, of runs as @when says. @factors: its operands.
 */
static bool
add_product(Builder *builder, const Product *product, const PostOps *post,
            dnnl_primitive_desc_t *pd, const char *name, const GArray *factors, RunKind when)
{
    g_autoptr(GArray) args = g_array_new(FALSE, FALSE, sizeof(StepArg));
    g_array_append_vals(args, factors->data, factors->len);
    if (!kiln_onednn_post_args(builder, post, false, args))
        return false;
    g_autofree char *type = kiln_type_to_string(&product->b->type);
    g_autofree char *what = g_strdup_printf("matmul %s", type);
    builder->when = when;
    bool good = kiln_onednn_add(builder, g_steal_pointer(pd),
                                (const StepArg *)(const void *)args->data, args->len, what, name);
    builder->when = RUN_ANY;
    return good;
}

static bool
add_products(Builder *builder, const Product *product, const PostOps *post, Chosen *chosen)
{
    g_autoptr(GArray) factors = g_array_new(FALSE, FALSE, sizeof(StepArg));
    if (!find_factors(builder, product, chosen, factors))
        return false;
    /* Further operands are brought where they must lie in front of the result's first step. */
    g_autoptr(GArray) others = g_array_new(FALSE, FALSE, sizeof(StepArg));
    if (!kiln_onednn_post_args(builder, post, false, others))
        return false;
    dnnl_memory_desc_t y = kiln_onednn_plain(&post->result->type);
    uint32_t slot = kiln_onednn_result(builder, post->result, &y);
    kiln_onednn_add_arg(factors, DNNL_ARG_DST, kiln_onednn_alias(builder, slot, &product->y_md));
    RunKind when = chosen->careful ? RUN_FAST : RUN_ANY;
    if (!add_product(builder, product, post, &chosen->pd, chosen->name, factors, when))
        return false;
    if (chosen->careful) {
        PostOps head = *post;
        head.n = chosen->tail.first;
        if (!add_product(builder, product, &head, &chosen->careful, chosen->careful_name, factors,
                         RUN_CAREFUL) ||
            !kiln_onednn_add_tail(builder, post, &chosen->tail, slot))
            return false;
    }
    return kiln_onednn_add_own(builder, post, slot);
}

bool
kiln_onednn_build_product(Builder *builder, const KilnInstr *instr)
{
    Product product = { .y = kiln_instr_operand(instr, 0),
                        .a = kiln_instr_operand(instr, 1),
                        .b = kiln_instr_operand(instr, 2),
                        .bias = kiln_instr_operand(instr, 3) };
    product.transposed = instr->kind == KILN_INSTR_gemm && kiln_instr_attrs(instr, gemm)->transB;
    set_product(&product);
    int64_t columns = product.y->type.dims[product.y->type.rank - 1];
    if (product.bias && !is_row(&product.bias->type, columns))
        return kiln_throw(builder->error, KILN_ERROR_UNSUPPORTED, "a bias of other shape");
    PostOps post = kiln_onednn_absorb(builder, product.y, true);
    Chosen chosen = { 0 };
    bool found;
    do {
        chosen_clear(&chosen);
        found = choose_products(builder, &product, &post, &chosen);
        if (!found && builder->error && *builder->error) {
            chosen_clear(&chosen);
            return false;
        }
    } while (!found && kiln_onednn_release(builder, product.y, &post));
    bool good =
        found ? add_products(builder, &product, &post, &chosen) : throw_none(builder, "matmul");
    chosen_clear(&chosen);
    return good;
}

/* --- pools --- */

typedef struct {
    dnnl_alg_kind_t alg;
    PoolWindow window;
} Pool;

static void
set_window(PoolWindow *pool, const KilnType *x, const KilnType *y, const KilnInts *attrs)
{
    const KilnInts dilations = attrs[0], kernel = attrs[1], pads = attrs[2], strides = attrs[3];
    uint32_t n = (uint32_t)x->rank - 2;
    for (uint32_t i = 0; i < n; i++) {
        pool->kernel[i] = kernel.v[i];
        pool->strides[i] = strides.n ? strides.v[i] : 1;
        pool->dilates[i] = dilations.n ? dilations.v[i] - 1 : 0;
        pool->before[i] = pads.n ? pads.v[i] : 0;
        /* Windows that begin inside and end behind the padding: what rounding up asks for. */
        int64_t extent = (pool->kernel[i] - 1) * (pool->dilates[i] + 1) + 1;
        int64_t need =
            (y->dims[i + 2] - 1) * pool->strides[i] + extent - x->dims[i + 2] - pool->before[i];
        pool->after[i] = MAX(need, pads.n ? pads.v[n + i] : 0);
    }
}

static Pool
pool_of(const KilnInstr *instr)
{
    const KilnType *y = &instr->operands[0].buffer->type, *x = &instr->operands[1].buffer->type;
    Pool pool = { .alg = dnnl_pooling_max };
    if (instr->kind == KILN_INSTR_max_pool) {
        const KilnInstrAttrs_max_pool *a = kiln_instr_attrs(instr, max_pool);
        set_window(&pool.window, x, y,
                   (KilnInts[]){ a->dilations, a->kernel_shape, a->pads, a->strides });
        return pool;
    }
    if (instr->kind == KILN_INSTR_average_pool) {
        const KilnInstrAttrs_average_pool *a = kiln_instr_attrs(instr, average_pool);
        set_window(&pool.window, x, y,
                   (KilnInts[]){ a->dilations, a->kernel_shape, a->pads, a->strides });
        pool.alg = a->count_include_pad ? dnnl_pooling_avg_include_padding
                                        : dnnl_pooling_avg_exclude_padding;
        return pool;
    }
    for (int i = 2; i < x->rank; i++) {
        pool.window.kernel[i - 2] = x->dims[i];
        pool.window.strides[i - 2] = 1;
    }
    if (instr->kind == KILN_INSTR_global_average_pool)
        pool.alg = dnnl_pooling_avg_exclude_padding;
    return pool;
}

bool
kiln_onednn_build_pool(Builder *builder, const KilnInstr *instr)
{
    const KilnBuffer *y = kiln_instr_operand(instr, 0), *x = kiln_instr_operand(instr, 1);
    Pool pool = pool_of(instr);
    dnnl_memory_desc_t x_md = kiln_onednn_md(&x->type, builder->layout);
    dnnl_memory_desc_t y_md = kiln_onednn_md(&y->type, builder->layout);
    const PoolWindow *window = &pool.window;
    dnnl_pooling_v2_desc_t op;
    if (!kiln_onednn_check(dnnl_pooling_v2_forward_desc_init(
                               &op, dnnl_forward_inference, pool.alg, &x_md, &y_md, window->strides,
                               window->kernel, window->dilates, window->before, window->after),
                           "pool", builder->error))
        return false;
    g_autoptr(GArray) args = g_array_new(FALSE, FALSE, sizeof(StepArg));
    uint32_t from = kiln_onednn_slot_as(builder, x, &x_md);
    if (!kiln_onednn_add_arg(args, DNNL_ARG_SRC, from))
        return false;
    uint32_t to = kiln_onednn_result(builder, y, &y_md);
    kiln_onednn_add_arg(args, DNNL_ARG_DST, to);
    const char *what = kiln_instr_info(instr->kind)->name;
    if (!kiln_onednn_masks(instr))
        return kiln_onednn_add_operation(builder, &op, NULL, args, what);
    return kiln_onednn_add_fast(builder, &op, args, what) &&
           kiln_onednn_add_careful_pool(builder, instr, window, from, to);
}

/* --- element-wise operators by themselves --- */

static bool
build_unary(Builder *builder, const KilnInstr *instr, const PostOp *op)
{
    const KilnBuffer *y = kiln_instr_operand(instr, 0), *x = kiln_instr_operand(instr, 1);
    /* As it lies; a constant lies nowhere yet. */
    dnnl_memory_desc_t md = kiln_onednn_plain(&x->type);
    uint32_t from = builder->values[x->id] ? kiln_onednn_slot(builder, x)
                                           : kiln_onednn_slot_as(builder, x, &md);
    if (from == UINT32_MAX)
        return false;
    md = *kiln_onednn_slot_md(builder, from);
    dnnl_eltwise_desc_t desc;
    if (!kiln_onednn_check(dnnl_eltwise_forward_desc_init(&desc, dnnl_forward_inference, op->alg,
                                                          &md, op->alpha, op->beta),
                           "eltwise", builder->error))
        return false;
    g_autoptr(GArray) args = g_array_new(FALSE, FALSE, sizeof(StepArg));
    uint32_t to = kiln_onednn_result(builder, y, &md);
    kiln_onednn_add_arg(args, DNNL_ARG_SRC, from);
    kiln_onednn_add_arg(args, DNNL_ARG_DST, to);
    const char *what = kiln_instr_info(instr->kind)->name;
    if (!kiln_onednn_masks(instr))
        return kiln_onednn_add_operation(builder, &desc, NULL, args, what);
    PostOp careful = *op;
    careful.instr = instr;
    return kiln_onednn_add_fast(builder, &desc, args, what) &&
           kiln_onednn_add_careful_unary(builder, &careful, from, to);
}

static Layout
layout_of(const Builder *builder, const KilnBuffer *buffer)
{
    if (!builder->values[buffer->id])
        return LAYOUT_PLAIN;
    const dnnl_memory_desc_t *found =
        kiln_onednn_slot_md(builder, kiln_onednn_slot(builder, buffer));
    for (int layout = 0; layout < N_LAYOUTS; layout++) {
        dnnl_memory_desc_t md = kiln_onednn_md(&buffer->type, (Layout)layout);
        if (dnnl_memory_desc_equal(&md, found))
            return (Layout)layout;
    }
    return LAYOUT_PLAIN;
}

dnnl_memory_desc_t
kiln_onednn_channels_md(const KilnType *result, Layout layout)
{
    KilnType row = *result;
    for (int i = 0; i < row.rank; i++)
        row.dims[i] = i == 1 ? row.dims[i] : 1;
    return kiln_onednn_md(&row, layout);
}

bool
kiln_onednn_is_per_channel(const KilnType *type, const KilnType *result)
{
    int channel = 1 - (result->rank - type->rank);
    return result->rank >= 3 && channel >= 0 && type->dims[channel] == result->dims[1] &&
           kiln_type_elements(type) == result->dims[1];
}

static bool
build_binary(Builder *builder, const KilnInstr *instr, const PostOp *op)
{
    const KilnBuffer *y = kiln_instr_operand(instr, 0);
    /* The left operand has the shape of the result. */
    const KilnBuffer *a = kiln_instr_operand(instr, 1), *b = kiln_instr_operand(instr, 2);
    bool swap = !kiln_type_same_shape(&a->type, &y->type);
    if (swap && op->alg == dnnl_binary_sub)
        return throw_none(builder, "a difference that broadcasts its left operand");
    PostOps post = { .n = 1, .result = y, .ops = { *op } };
    post.ops[0].other = swap ? a : b;
    const KilnBuffer *left = swap ? b : a;
    if (!kiln_type_same_shape(&left->type, &y->type))
        return throw_none(builder, "an operator that broadcasts both operands");
    Layout layout = layout_of(builder, left);
    dnnl_memory_desc_t md = kiln_onednn_md(&y->type, layout);
    kiln_onednn_post_layout(&post, layout);
    /* The library adds no single number to blocks that are not full, but does nothing. */
    if (y->type.rank > 1 && y->type.dims[1] > 1 &&
        kiln_onednn_is_per_channel(&post.ops[0].other->type, &y->type))
        post.ops[0].md = kiln_onednn_channels_md(&y->type, layout);
    dnnl_binary_desc_t desc;
    if (!kiln_onednn_check(dnnl_binary_desc_init(&desc, op->alg, &md, &post.ops[0].md, &md),
                           "binary", builder->error))
        return false;
    g_autoptr(GArray) args = g_array_new(FALSE, FALSE, sizeof(StepArg));
    if (!kiln_onednn_add_arg(args, DNNL_ARG_SRC_0, kiln_onednn_slot_as(builder, left, &md)) ||
        !kiln_onednn_add_arg(args, DNNL_ARG_SRC_1,
                             kiln_onednn_slot_as(builder, post.ops[0].other, &post.ops[0].md)))
        return false;
    kiln_onednn_add_arg(args, DNNL_ARG_DST, kiln_onednn_result(builder, y, &md));
    return kiln_onednn_add_operation(builder, &desc, NULL, args,
                                     kiln_instr_info(instr->kind)->name);
}

bool
kiln_onednn_build_elementwise(Builder *builder, const KilnInstr *instr)
{
    PostOp op;
    if (!kiln_onednn_elementwise(instr, &op))
        return throw_none(builder, kiln_instr_info(instr->kind)->name);
    if (kiln_onednn_defer_scale(builder, instr))
        return true;
    return op.is_binary ? build_binary(builder, instr, &op) : build_unary(builder, instr, &op);
}

bool
kiln_onednn_add_bias(Builder *builder, const KilnBuffer *bias, const PostOps *post, Layout layout,
                     uint32_t slot)
{
    dnnl_memory_desc_t md = *kiln_onednn_slot_md(builder, slot);
    dnnl_memory_desc_t row_md = kiln_onednn_channels_md(&post->result->type, layout);
    dnnl_binary_desc_t desc;
    if (!kiln_onednn_check(dnnl_binary_desc_init(&desc, dnnl_binary_add, &md, &row_md, &md), "bias",
                           builder->error))
        return false;
    g_autoptr(GArray) args = g_array_new(FALSE, FALSE, sizeof(StepArg));
    kiln_onednn_add_arg(args, DNNL_ARG_SRC_0, slot);
    if (!kiln_onednn_add_arg(args, DNNL_ARG_SRC_1, kiln_onednn_slot_as(builder, bias, &row_md)))
        return false;
    kiln_onednn_add_arg(args, DNNL_ARG_DST, slot);
    CarefulTail tail;
    if (kiln_onednn_first_mask(post) == post->n)
        return kiln_onednn_add_operation(builder, &desc, post, args, "bias");
    if (!kiln_onednn_careful_tail(builder, post, layout, &tail))
        return builder->error && *builder->error ? false
                                                 : throw_none(builder, "what stands behind a bias");
    PostOps head = *post;
    head.n = tail.first;
    builder->when = RUN_FAST;
    bool good = kiln_onednn_add_operation(builder, &desc, post, args, "bias");
    builder->when = RUN_CAREFUL;
    good = good && kiln_onednn_add_operation(builder, &desc, &head, args, "bias");
    builder->when = RUN_ANY;
    good = good && kiln_onednn_add_tail(builder, post, &tail, slot);
    kiln_onednn_careful_clear(&tail);
    return good;
}

/* --- movement --- */

/* A constant in a layout that the caller gives it. */
static bool
is_given_constant(const Builder *builder, const KilnBuffer *buffer)
{
    const KilnInstr *writer = kiln_onednn_writer(buffer);
    return writer && writer->kind == KILN_INSTR_unpack &&
           kiln_onednn_is_constant(builder, kiln_instr_operand(writer, 1));
}

/* Pictures of a batch of one in blocks of channels lie one behind the other. */
static bool
joins_blocks(const Builder *builder, const KilnInstr *concat)
{
    const KilnType *y = &concat->operands[0].buffer->type;
    if (builder->layout != LAYOUT_BLOCKED || y->rank < 3 || y->rank > 5 || y->dims[0] != 1 ||
        kiln_instr_attrs(concat, concat)->axis != 1)
        return false;
    for (uint32_t i = 1; i < concat->n_operands; i++) {
        const KilnBuffer *part = concat->operands[i].buffer;
        if (part->type.dims[1] % kiln_onednn_block() || part->kind != KILN_BUFFER_ALLOC ||
            builder->joins[part->id].concat || is_given_constant(builder, part))
            return false;
        for (uint32_t k = 1; k < i; k++) {
            if (concat->operands[k].buffer == part)
                return false;
        }
    }
    return true;
}

void
kiln_onednn_find_joins(Builder *builder)
{
    kiln_foreach_instr (instr, builder->function) {
        if (instr->kind != KILN_INSTR_concat || !joins_blocks(builder, instr))
            continue;
        int64_t channel = 0;
        for (uint32_t i = 1; i < instr->n_operands; i++) {
            const KilnBuffer *part = instr->operands[i].buffer;
            builder->joins[part->id] = (Join){ instr, channel };
            channel += part->type.dims[1];
        }
    }
}

/* What does not lie in its place yet is brought there. */
static bool
build_joined(Builder *builder, const KilnInstr *instr)
{
    for (uint32_t i = 1; i < instr->n_operands; i++) {
        const KilnBuffer *part = instr->operands[i].buffer;
        const KilnBuffer *whole = instr->operands[0].buffer;
        uint32_t from = kiln_onednn_slot(builder, part);
        const Slot *found = &g_array_index(builder->region->slots, Slot, from);
        if (found->place == SLOT_ALIAS && builder->values[whole->id] &&
            found->index == kiln_onednn_slot(builder, whole))
            continue;
        uint32_t to = kiln_onednn_part(builder, part);
        if (!kiln_onednn_reorder(builder, from, to, "reorder of a part"))
            return false;
    }
    return true;
}

bool
kiln_onednn_build_concat(Builder *builder, const KilnInstr *instr)
{
    if (builder->joins[instr->operands[1].buffer->id].concat == instr)
        return build_joined(builder, instr);
    const KilnBuffer *y = kiln_instr_operand(instr, 0);
    uint32_t n = instr->n_operands - 1;
    int axis = (int)kiln_instr_attrs(instr, concat)->axis;
    /* Whole blocks are joined by copying them. */
    Layout layout = builder->layout;
    for (uint32_t i = 0; i < n; i++) {
        const KilnType *type = &instr->operands[i + 1].buffer->type;
        if (layout == LAYOUT_BLOCKED && axis == 1 && type->dims[1] % kiln_onednn_block())
            layout = LAYOUT_CHANNELS_LAST;
    }
    g_autofree dnnl_memory_desc_t *mds = g_new0(dnnl_memory_desc_t, n);
    g_autoptr(GArray) args = g_array_new(FALSE, FALSE, sizeof(StepArg));
    for (uint32_t i = 0; i < n; i++) {
        const KilnBuffer *part = instr->operands[i + 1].buffer;
        mds[i] = kiln_onednn_md(&part->type, layout);
        if (!kiln_onednn_add_arg(args, DNNL_ARG_MULTIPLE_SRC + (int)i,
                                 kiln_onednn_slot_as(builder, part, &mds[i])))
            return false;
    }
    dnnl_memory_desc_t md = kiln_onednn_md(&y->type, layout);
    dnnl_primitive_attr_t attr = kiln_onednn_attr(NULL, false);
    dnnl_primitive_desc_t pd = NULL;
    dnnl_status_t status =
        dnnl_concat_primitive_desc_create(&pd, &md, (int)n, axis, mds, attr, kiln_onednn_engine());
    dnnl_primitive_attr_destroy(attr);
    if (!kiln_onednn_check(status, "concat", builder->error))
        return false;
    const char *name = kiln_onednn_implementation(pd, "concat", builder->error);
    if (!name)
        return false;
    kiln_onednn_add_arg(args, DNNL_ARG_DST, kiln_onednn_result(builder, y, &md));
    return kiln_onednn_add(builder, pd, (const StepArg *)(const void *)args->data, args->len,
                           "concat", name);
}

bool
kiln_onednn_build_copy(Builder *builder, const KilnInstr *instr)
{
    const KilnBuffer *y = kiln_instr_operand(instr, 0), *x = kiln_instr_operand(instr, 1);
    dnnl_memory_desc_t md = kiln_onednn_plain(&x->type);
    uint32_t slot = kiln_onednn_slot_as(builder, x, &md);
    if (slot != UINT32_MAX)
        kiln_onednn_enter(builder, y, slot);
    return slot != UINT32_MAX;
}

/* A value lies in whatever layout it was given in, until somebody wants another. */
bool
kiln_onednn_build_relayout(Builder *builder, const KilnInstr *instr)
{
    const KilnBuffer *y = kiln_instr_operand(instr, 0), *x = kiln_instr_operand(instr, 1);
    if (kiln_onednn_is_constant(builder, x)) { /* whoever reads it says whether that is its way */
        builder->laid[y->id] = x;
        return true;
    }
    kiln_onednn_enter(builder, y, kiln_onednn_slot(builder, x));
    return true;
}
