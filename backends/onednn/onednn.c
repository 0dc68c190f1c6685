/* SPDX-License-Identifier: Apache-2.0 */
/* The vendor table of oneDNN: what it takes, and how long that takes. */
#include "backends/onednn/onednn.h"

#include "backends/onednn/cost.h"
#include "backends/onednn/region.h"
#include "graph/infer/infer.h"
#include "graph/module/folding.h"
#include "graph/node.h"
#include "graph/op/activation.h"
#include "graph/op/additive.h"
#include "graph/op/bounds.h"
#include "graph/op/concat.h"
#include "graph/op/conv.h"
#include "graph/op/matmul.h"
#include "graph/op/multiplicative.h"
#include "graph/op/norm.h"
#include "graph/op/pool.h"
#include "graph/op/recurrent.h"
#include "graph/op/reduce.h"
#include "graph/op/softmax.h"
#include "ir/compiled.h"
#include "ir/target.h"

/* --- what it takes --- */

/* Absent, or the same in every run: it is packed ahead of them. */
static bool
is_constant(const KilnNode *node, uint32_t i)
{
    const KilnValue *value = kiln_node_operand(node, i);
    return !value || kiln_value_constant(value) || kiln_operand_is_fixed(node, i);
}

/* Of pictures and volumes: along one dim own kernels are as fast, and the library generates code
 * for tens of milliseconds. */
static bool
takes_conv(const KilnNode *node)
{
    const KilnType *x = &node->operands[0].value->type;
    bool constant = is_constant(node, 1) && is_constant(node, 2);
    bool one_group = node->op == KILN_OP_conv || kiln_attrs(node, conv_transpose)->group == 1;
    return constant && one_group && x->rank >= 4 && x->rank <= 5;
}

/* The further operand is a row, which is added on the way. */
static bool
takes_gemm(const KilnNode *node)
{
    const KilnAttrs_gemm *attrs = kiln_attrs(node, gemm);
    const KilnValue *bias = kiln_node_operand(node, 2);
    const KilnType *y = &node->results[0].type;
    bool row = !bias || (bias->type.rank > 0 && kiln_type_elements(&bias->type) == y->dims[1] &&
                         bias->type.dims[bias->type.rank - 1] == y->dims[1]);
    return attrs->alpha == 1.0f && attrs->beta == 1.0f && !attrs->transA && row &&
           kiln_onednn_has_products();
}

static bool
takes_matmul(const KilnNode *node)
{
    const KilnType *a = &node->operands[0].value->type, *b = &node->operands[1].value->type;
    bool stacked = b->rank == 2 || a->rank == b->rank;
    return a->rank >= 2 && b->rank >= 2 && stacked && a->rank <= 5 && kiln_onednn_has_products();
}

static bool
takes_pool(const KilnNode *node)
{
    const KilnType *x = &node->operands[0].value->type;
    if (x->rank < 3 || x->rank > 5)
        return false;
    return node->op != KILN_OP_average_pool || !kiln_attrs(node, average_pool)->ceil_mode;
}

/* One operand has the shape of the result, the other that or one that broadcasts to it. What is
 * subtracted from does not. */
static bool
takes_binary(const KilnNode *node)
{
    const KilnType *y = &node->results[0].type;
    bool same = false;
    for (uint32_t i = 0; i < node->n_operands; i++) {
        const KilnType *type = &node->operands[i].value->type;
        same |= kiln_type_same_shape(type, y);
        if (type->rank == 0 || type->rank > 5)
            return false;
    }
    bool whole = node->op != KILN_OP_sub || kiln_type_same_shape(&node->operands[0].value->type, y);
    return same && whole && node->n_operands == 2;
}

static bool
takes_clip(const KilnNode *node)
{
    return is_constant(node, 1) && is_constant(node, 2);
}

static bool
takes_concat(const KilnNode *node)
{
    const KilnType *y = &node->results[0].type;
    return y->rank >= 3 && y->rank <= 5 && kiln_type_axis(y, kiln_attrs(node, concat)->axis) == 1;
}

/* Along rows that lie one behind the other. Not its logarithm: the library's is off by 3e-6, of the
 * logarithm of 1, too. */
static bool
takes_softmax(const KilnNode *node)
{
    const KilnType *x = &node->results[0].type;
    int64_t behind = 1;
    for (int i = kiln_type_axis(x, kiln_attrs(node, softmax)->axis) + 1; i < x->rank; i++)
        behind *= x->dims[i];
    return behind == 1;
}

static bool
takes_layer_normalization(const KilnNode *node)
{
    const KilnType *x = &node->results[0].type;
    int64_t columns = 1;
    int axis = kiln_type_axis(x, kiln_attrs(node, layer_normalization)->axis);
    for (int i = axis; i < x->rank; i++)
        columns *= x->dims[i];
    for (uint32_t i = 1; i < 3; i++) {
        const KilnValue *row = kiln_node_operand(node, i);
        if (row && kiln_type_elements(&row->type) != columns)
            return false;
    }
    return true;
}

/* Over the last dims. Of pictures own kernels reduce in the layout in which these lie. */
static bool
takes_reduction(const KilnNode *node)
{
    const KilnType *x = &node->operands[0].value->type;
    bool reduced[KILN_MAX_RANK] = { false }, known = false, any = false;
    if (x->rank > 3 || !kiln_reduce_axes(node, reduced, &known, NULL) || !known)
        return false;
    for (int i = 0; i < x->rank; i++) {
        if (x->dims[i] == 1)
            continue;
        if (any && !reduced[i])
            return false;
        any |= reduced[i];
    }
    return any;
}

/* One direction, the usual gates, no peepholes, all steps of all sequences. */
static bool
takes_lstm(const KilnNode *node)
{
    enum {
        W = 1,
        R,
        B,
        SEQUENCE_LENS,
        H_0,
        C_0,
        P
    };
    const KilnAttrs_lstm *attrs = kiln_attrs(node, lstm);
    bool usual = attrs->clip == 0 && !attrs->input_forget && attrs->layout == 0 &&
                 g_str_equal(attrs->direction, "forward");
    for (uint32_t i = 0; i < attrs->activations.n; i++)
        usual &= g_str_equal(attrs->activations.v[i], i ? "Tanh" : "Sigmoid");
    bool constant = is_constant(node, W) && is_constant(node, R) && is_constant(node, B);
    bool all = !kiln_node_operand(node, SEQUENCE_LENS) && !kiln_node_operand(node, P) &&
               !kiln_node_operand(node, H_0) == !kiln_node_operand(node, C_0);
    return usual && constant && all && kiln_onednn_block() == 16; /* without AVX-512 only `ref` */
}

// clang-format off
static const struct {
    KilnOp op;
    KilnVendorRole role;
    bool layout; /* wants activations its own way */
    bool (*takes)(const KilnNode *node);
} taken[] = {
    { KILN_OP_conv,           KILN_VENDOR_ANCHOR, true,  takes_conv },
    { KILN_OP_conv_transpose, KILN_VENDOR_ANCHOR, true,  takes_conv },
    { KILN_OP_matmul,         KILN_VENDOR_ANCHOR, false, takes_matmul },
    { KILN_OP_gemm,           KILN_VENDOR_ANCHOR, false, takes_gemm },
    { KILN_OP_max_pool,       KILN_VENDOR_ANCHOR, true,  takes_pool },
    { KILN_OP_average_pool,   KILN_VENDOR_ANCHOR, true,  takes_pool },
    { KILN_OP_global_average_pool, KILN_VENDOR_ANCHOR, true, takes_pool },
    { KILN_OP_global_max_pool, KILN_VENDOR_ANCHOR, true, takes_pool },
    { KILN_OP_softmax,        KILN_VENDOR_ANCHOR, false, takes_softmax },
    { KILN_OP_layer_normalization, KILN_VENDOR_ANCHOR, false, takes_layer_normalization },
    { KILN_OP_reduce_max,     KILN_VENDOR_ANCHOR, false, takes_reduction },
    { KILN_OP_reduce_mean,    KILN_VENDOR_ANCHOR, false, takes_reduction },
    { KILN_OP_reduce_min,     KILN_VENDOR_ANCHOR, false, takes_reduction },
    { KILN_OP_reduce_sum,     KILN_VENDOR_ANCHOR, false, takes_reduction },
    { KILN_OP_lstm,           KILN_VENDOR_ANCHOR, false, takes_lstm },
    { KILN_OP_concat,         KILN_VENDOR_GLUE,   false, takes_concat },
    { KILN_OP_add,            KILN_VENDOR_TAIL,   false, takes_binary },
    { KILN_OP_sub,            KILN_VENDOR_TAIL,   false, takes_binary },
    { KILN_OP_mul,            KILN_VENDOR_TAIL,   false, takes_binary },
    { KILN_OP_clip,           KILN_VENDOR_TAIL,   false, takes_clip },
    { KILN_OP_relu,           KILN_VENDOR_TAIL,   false, NULL },
    { KILN_OP_leaky_relu,     KILN_VENDOR_TAIL,   false, NULL },
    { KILN_OP_elu,            KILN_VENDOR_TAIL,   false, NULL },
    { KILN_OP_sigmoid,        KILN_VENDOR_TAIL,   false, NULL },
    { KILN_OP_tanh,           KILN_VENDOR_TAIL,   false, NULL },
    { KILN_OP_swish,          KILN_VENDOR_TAIL,   false, NULL },
    { KILN_OP_hard_swish,     KILN_VENDOR_TAIL,   false, NULL },
    { KILN_OP_gelu,           KILN_VENDOR_TAIL,   false, NULL },
};
// clang-format on

static int
row_of(const KilnNode *node)
{
    for (int i = 0; i < (int)G_N_ELEMENTS(taken); i++) {
        if (taken[i].op == node->op)
            return i;
    }
    return -1;
}

static KilnVendorRole
role(const KilnNode *node)
{
    int row = row_of(node);
    bool one = node->n_results == 1 || node->op == KILN_OP_lstm;
    if (row < 0 || !one)
        return KILN_VENDOR_NONE;
    for (uint32_t i = 0; i < node->n_results; i++) {
        if (!kiln_onednn_is_float(&node->results[i].type))
            return KILN_VENDOR_NONE;
    }
    for (uint32_t i = 0; i < node->n_operands; i++) {
        const KilnValue *value = node->operands[i].value;
        bool attribute = kiln_op_is_shape_operand(node->op, i);
        if (value && !attribute && !kiln_onednn_is_float(&value->type))
            return KILN_VENDOR_NONE;
    }
    return !taken[row].takes || taken[row].takes(node) ? taken[row].role : KILN_VENDOR_NONE;
}

/* What the library can hold. Literals may be of the custom_op alone. */
static bool
takes_custom(const KilnNode *node)
{
    for (uint32_t i = 0; i < node->n_operands; i++) {
        const KilnValue *value = node->operands[i].value;
        if (value && !kiln_onednn_is_float(&value->type) && !kiln_value_constant(value))
            return false;
    }
    for (uint32_t r = 0; r < node->n_results; r++) {
        if (!kiln_onednn_is_float(&node->results[r].type))
            return false;
    }
    return true;
}

static bool
wants_layout(const KilnNode *node)
{
    int row = row_of(node);
    return row >= 0 && taken[row].layout;
}

/* --- how long it takes --- */

static double
product_us(const KilnNode *node)
{
    const KilnType *y = &node->results[0].type, *a = &node->operands[0].value->type;
    const KilnType *b = &node->operands[1].value->type;
    KilnOnednnWork work = { .in = a->dims[a->rank - 1],
                            .out = y->dims[y->rank - 1],
                            .groups = 1,
                            .block = kiln_onednn_block() };
    for (int i = 0; i < b->rank - 2; i++)
        work.groups *= b->dims[i];
    int64_t columns = work.out * work.groups;
    work.written = columns ? kiln_type_elements(y) / columns : 0;
    return kiln_onednn_cost(KILN_ONEDNN_COST_matmul, &work, false);
}

/* Rows of the values of which @columns follow each other. They may be empty: is_alone() asks for
 * nodes that the library does not take. */
static double
rows_us(KilnOnednnCostKind kind, const KilnType *type, int64_t columns)
{
    KilnOnednnWork work = { .in = columns,
                            .written = columns ? kiln_type_elements(type) / columns : 0,
                            .block = kiln_onednn_block() };
    return kiln_onednn_cost(kind, &work, false);
}

/* What is no product and has no layout of its own; negative for others. */
static double
other_us(const KilnNode *node)
{
    const KilnType *x = &node->operands[0].value->type, *y = &node->results[0].type;
    switch (node->op) {
    case KILN_OP_softmax:
        return rows_us(KILN_ONEDNN_COST_softmax, x,
                       x->dims[kiln_type_axis(x, kiln_attrs(node, softmax)->axis)]);
    case KILN_OP_layer_normalization:
        return rows_us(KILN_ONEDNN_COST_layer_normalization, x,
                       kiln_type_elements(&node->operands[1].value->type));
    case KILN_OP_reduce_max:
    case KILN_OP_reduce_mean:
    case KILN_OP_reduce_min:
    case KILN_OP_reduce_sum:
        return rows_us(KILN_ONEDNN_COST_reduction, x,
                       kiln_type_elements(x) / MAX(kiln_type_elements(y), 1));
    case KILN_OP_lstm: {
        KilnOnednnWork work = { .in = x->dims[2],
                                .out = node->operands[2].value->type.dims[2],
                                .groups = x->dims[0],
                                .written = x->dims[1],
                                .block = kiln_onednn_block() };
        return kiln_onednn_cost(KILN_ONEDNN_COST_lstm, &work, false);
    }
    default:
        return -1;
    }
}

/* A pass of its own: what computes @node's operands applies nothing on the way out. */
static bool
is_alone(const KilnNode *tail)
{
    for (uint32_t i = 0; i < tail->n_operands; i++) {
        const KilnNode *def = tail->operands[i].value ? tail->operands[i].value->def : NULL;
        int row = def ? row_of(def) : -1;
        if (row >= 0 && taken[row].role == KILN_VENDOR_ANCHOR && other_us(def) >= 0)
            return true;
    }
    return false;
}

static double
node_us(const KilnNode *node, uint32_t layout)
{
    int row = row_of(node);
    if (row < 0)
        return 0;
    if (node->op == KILN_OP_matmul || node->op == KILN_OP_gemm)
        return product_us(node);
    double other = other_us(node);
    if (other >= 0)
        return other;
    if (taken[row].role != KILN_VENDOR_TAIL)
        return kiln_onednn_node_us(node, kiln_onednn_layout_at(layout));
    const KilnType *y = &node->results[0].type;
    Layout at = kiln_onednn_layout_at(layout);
    int64_t numbers = kiln_type_elements(y), flops = kiln_node_cost(node).flops;
    double us =
        kiln_onednn_tail_us(y, numbers ? flops / numbers : 0, taken[row].takes == takes_binary, at);
    /* On the way out of another operation no memory is touched for it but a further operand. */
    return us + (is_alone(node) ? kiln_onednn_pass_us(y, at) : 0);
}

static double
reorder_us(const KilnType *type, uint32_t layout)
{
    return kiln_onednn_reorder_us(type, kiln_onednn_layout_at(layout));
}

/* --- what was made --- */

static void
describe(const KilnCompiled *compiled, GString *out)
{
    g_string_append(out, ((const Region *)compiled)->description->str);
}

static const char *
packed_tag(const KilnCompiled *compiled, uint32_t i)
{
    return ((const Region *)compiled)->packed_tags[i];
}

const KilnVendor *
kiln_onednn_vendor(void)
{
    static char version[64];
    static const KilnVendor vendor = { .name = "onednn",
                                       .version = version,
                                       .role = role,
                                       .wants_layout = wants_layout,
                                       .n_layouts = N_LAYOUTS - 1,
                                       .layout_tag = kiln_onednn_layout_tag,
                                       .layout_us = kiln_onednn_layout_us,
                                       .lies_in = kiln_onednn_lies_in,
                                       .packed_tag = packed_tag,
                                       .node_us = node_us,
                                       .reorder_us = reorder_us,
                                       .call_us = 1,
                                       .code_us = 150,
                                       .takes_custom = takes_custom,
                                       .compile = kiln_onednn_compile,
                                       .describe = describe };
    const dnnl_version_t *found = dnnl_version();
    /* The same text whoever comes first. */
    if (!version[0])
        g_snprintf(version, sizeof version, "%d.%d.%d isa %x", found->major, found->minor,
                   found->patch, (unsigned)dnnl_get_effective_cpu_isa());
    return &vendor;
}
