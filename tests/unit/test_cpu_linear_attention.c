/* SPDX-License-Identifier: Apache-2.0 */
/* The cpu backend's linear_attention against the reference: every rule, shared heads, values wider
 * than a task takes, and operands that are not there. */
#include "ir/instr.h"
#include "tests/unit/cpu_case.h"
#include "tests/unit/ref_case.h"

#include <string.h>

/* Sums of some hundred products, carried through the steps. */
static const Tolerance near = { 2e-5, 2e-5 };

typedef struct {
    const char *rule;
    int64_t batch, steps, heads, shared, depth, width;
    bool past, next;
    bool decay_each, rate_each; /* else one for a head, one for all */
} Net;

/* Small keys, rates and decays, so that the state stays small. */
static void
scale_operand(RefCase *c, uint32_t i, double by, double add)
{
    float *x = c->data[i];
    for (int64_t k = 0; k < kiln_type_elements(&c->buffers[i].type); k++)
        x[k] = (float)((double)x[k] * by + add);
}

static void
add_state(RefCase *c, const Net *n, bool there, bool out)
{
    const int64_t dims[] = { n->batch, n->heads, n->depth, n->width };
    if (!there)
        case_absent(c);
    else if (out)
        case_out(c, KILN_DTYPE_f32, 4, dims);
    else
        cpu_in(c, 4, dims);
}

static void
try_net(const Net *n)
{
    g_autofree char *what = g_strdup_printf("%s, %d steps of %d × %d", n->rule, (int)n->steps,
                                            (int)n->depth, (int)n->width);
    const int64_t b = n->batch, t = n->steps, h = n->heads;
    g_autoptr(RefCase) c = case_new(KILN_INSTR_linear_attention);
    CASE_ATTRS(c, linear_attention)->update_rule = n->rule;
    CASE_ATTRS(c, linear_attention)->kv_num_heads = h;
    CASE_ATTRS(c, linear_attention)->q_num_heads = h * n->shared;
    case_out(c, KILN_DTYPE_f32, 3, (int64_t[]){ b, t, h * n->shared * n->width });
    add_state(c, n, n->next, true);
    cpu_in(c, 3, (int64_t[]){ b, t, h * n->shared * n->depth });
    cpu_in(c, 3, (int64_t[]){ b, t, h * n->depth });
    scale_operand(c, 3, 0.3 / (double)MAX(n->depth, 1), 0);
    cpu_in(c, 3, (int64_t[]){ b, t, h * n->width });
    add_state(c, n, n->past, false);
    if (strstr(n->rule, "gated")) {
        cpu_in(c, 3, (int64_t[]){ b, t, n->decay_each ? h * n->depth : h });
        scale_operand(c, 6, 0.1, -0.3);
    } else {
        case_absent(c);
    }
    if (strstr(n->rule, "delta")) {
        cpu_in(c, 3, (int64_t[]){ b, t, n->rate_each ? h : 1 });
        scale_operand(c, 7, 0.15, 0.5);
    } else {
        case_absent(c);
    }
    cpu_agrees(c, near, what);
}

Test(cpu_linear_attention, rules)
{
    static const char *const rules[] = { "linear", "gated", "delta", "gated_delta" };
    for (size_t i = 0; i < G_N_ELEMENTS(rules); i++) {
        try_net(&(Net){ rules[i], 1, 1, 1, 1, 1, 1, .past = false });
        try_net(&(Net){ rules[i], 2, 5, 3, 1, 7, 9, .past = true, .next = true });
        try_net(&(Net){ rules[i], 2, 4, 2, 3, 16, 130, .next = true, .decay_each = true,
                        .rate_each = true });
        try_net(&(Net){ rules[i], 1, 3, 2, 2, 33, 64, .past = true, .rate_each = true });
        try_net(&(Net){ rules[i], 1, 0, 2, 1, 4, 5, .past = true, .next = true });
        try_net(&(Net){ rules[i], 0, 2, 2, 1, 4, 5, .past = true, .next = true });
    }
}
