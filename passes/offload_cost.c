/* SPDX-License-Identifier: Apache-2.0 */
/* The cost model of partition-offload: all constants of it in one table.
 *
 * Measured with kiln-bench-model and --trace on a 2-core AVX-512 machine (AMD Zen 5, FMA peak 234
 * GFLOP/s a core, November 2026), one thread, over the shared models: medians of what each kind of
 * kernel reaches there. Ratios matter, not times: both sides of the scales come from one machine.
 */
#include "passes/offload_cost.h"

#include "ir/target.h"

/* Operations per microsecond, and bytes per microsecond where those are what counts. */
// clang-format off
static const struct {
    KilnOp op;
    double flops_per_us;
    double bytes_per_us;
} own[] = {
    { KILN_OP_conv,           165e3, 40e3 },
    { KILN_OP_conv_transpose,  90e3, 40e3 },
    { KILN_OP_matmul,         180e3, 40e3 },
    { KILN_OP_gemm,           180e3, 40e3 },
    { KILN_OP_attention,      120e3, 40e3 },
    { KILN_OP_gru,             80e3, 40e3 },
    { KILN_OP_lstm,            80e3, 40e3 },
    { KILN_OP_max_pool,        25e3, 40e3 },
    { KILN_OP_average_pool,    25e3, 40e3 },
};
static const double winograd_flops_per_us = 330e3; /* 3×3, stride 1, 32 channels or more on a side */
static const double other_flops_per_us = 60e3;  /* element-wise, reductions, normalisations */
static const double other_bytes_per_us = 40e3;  /* through L2 and L3 */
static const double reorder_bytes_per_us = 35e3; /* read and written */
static const double call_us = 1.0;
// clang-format on

/* Convolutions that own kernels compute by Winograd's algorithm. */
static bool
has_winograd(const KilnNode *node)
{
    enum {
        CHANNELS_MIN = 32
    };
    if (node->op != KILN_OP_conv || kiln_attrs(node, conv)->group != 1)
        return false;
    const KilnType *x = &node->operands[0].value->type, *w = &node->operands[1].value->type;
    const KilnType *y = &node->results[0].type;
    return x->rank == 4 && w->dims[2] == 3 && w->dims[3] == 3 && w->dims[0] >= CHANNELS_MIN &&
           w->dims[1] >= CHANNELS_MIN && y->dims[2] + 2 >= x->dims[2] && y->dims[2] > 7;
}

double
kiln_own_us(const KilnNode *node)
{
    KilnCost cost = kiln_node_cost(node);
    double flops = other_flops_per_us, bytes = other_bytes_per_us;
    for (size_t i = 0; i < G_N_ELEMENTS(own); i++) {
        if (own[i].op == node->op) {
            flops = own[i].flops_per_us;
            bytes = own[i].bytes_per_us;
        }
    }
    if (has_winograd(node))
        flops = winograd_flops_per_us;
    return MAX((double)cost.flops / flops, (double)cost.bytes / bytes);
}

double
kiln_reorder_us(const KilnType *type)
{
    return 2.0 * (double)kiln_type_bytes(type) / reorder_bytes_per_us;
}

double
kiln_vendor_call_us(void)
{
    return call_us;
}
