/* SPDX-License-Identifier: Apache-2.0 */
/* The vendor table of oneDNN: what it takes, and how long that takes. */
#include "backends/onednn/onednn.h"

#include "backends/onednn/cost.h"
#include "backends/onednn/region.h"

/* --- what it takes --- */

static bool
is_literal(const KilnNode *node, uint32_t i)
{
    const KilnValue *value = kiln_node_operand(node, i);
    return !value || kiln_value_constant(value);
}

/* Of pictures and volumes: along one dim own kernels are as fast, and the library generates code
 * for tens of milliseconds. */
static bool
takes_conv(const KilnNode *node)
{
    const KilnType *x = &node->operands[0].value->type;
    bool literal = is_literal(node, 1) && is_literal(node, 2);
    bool one_group = node->op == KILN_OP_conv || kiln_attrs(node, conv_transpose)->group == 1;
    return literal && one_group && x->rank >= 4 && x->rank <= 5;
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
    return attrs->alpha == 1.0f && attrs->beta == 1.0f && !attrs->transA && row;
}

static bool
takes_matmul(const KilnNode *node)
{
    const KilnType *a = &node->operands[0].value->type, *b = &node->operands[1].value->type;
    return a->rank >= 2 && b->rank >= 2 && (b->rank == 2 || a->rank == b->rank) && a->rank <= 5;
}

static bool
takes_pool(const KilnNode *node)
{
    const KilnType *x = &node->operands[0].value->type;
    if (x->rank < 3 || x->rank > 5)
        return false;
    return node->op != KILN_OP_average_pool || !kiln_attrs(node, average_pool)->ceil_mode;
}

/* One operand has the shape of the result, the other that or one that broadcasts to it. */
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
    return same && node->n_operands == 2;
}

static bool
takes_clip(const KilnNode *node)
{
    return is_literal(node, 1) && is_literal(node, 2);
}

static bool
takes_concat(const KilnNode *node)
{
    const KilnType *y = &node->results[0].type;
    return y->rank >= 3 && y->rank <= 5 && kiln_type_axis(y, kiln_attrs(node, concat)->axis) == 1;
}

/* Where no model of cost.h says more: of tails. */
static const double tail_flops_per_us = 60e3, tail_bytes_per_us = 80e3;

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
    if (row < 0 || node->n_results != 1 || !kiln_onednn_is_float(&node->results[0].type))
        return KILN_VENDOR_NONE;
    for (uint32_t i = 0; i < node->n_operands; i++) {
        const KilnValue *value = node->operands[i].value;
        if (value && !kiln_onednn_is_float(&value->type))
            return KILN_VENDOR_NONE;
    }
    return !taken[row].takes || taken[row].takes(node) ? taken[row].role : KILN_VENDOR_NONE;
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
    KilnOnednnWork work = { .in = a->dims[a->rank - 1], .out = y->dims[y->rank - 1], .groups = 1 };
    for (int i = 0; i < b->rank - 2; i++)
        work.groups *= b->dims[i];
    int64_t columns = work.out * work.groups;
    work.written = columns ? kiln_type_elements(y) / columns : 0;
    return kiln_onednn_cost(KILN_ONEDNN_COST_matmul, &work, false);
}

static double
node_us(const KilnNode *node, uint32_t layout)
{
    int row = row_of(node);
    if (row < 0)
        return 0;
    if (node->op == KILN_OP_matmul || node->op == KILN_OP_gemm)
        return product_us(node);
    if (taken[row].role != KILN_VENDOR_TAIL)
        return kiln_onednn_node_us(node, kiln_onednn_layout_at(layout));
    KilnCost cost = kiln_node_cost(node);
    /* On the way out of another operation: no memory is touched for it but a further operand. */
    double further = (double)kiln_type_bytes(&node->results[0].type) * (node->n_operands == 2);
    return (double)cost.flops / tail_flops_per_us + further / tail_bytes_per_us;
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
                                       .compile = kiln_onednn_compile,
                                       .describe = describe };
    const dnnl_version_t *found = dnnl_version();
    /* The same text whoever comes first. */
    if (!version[0])
        g_snprintf(version, sizeof version, "%d.%d.%d isa %x", found->major, found->minor,
                   found->patch, (unsigned)dnnl_get_effective_cpu_isa());
    return &vendor;
}
