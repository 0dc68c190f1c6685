/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/test_vendor.h"

#include "backends/ref/ref.h"
#include "exec/custom.h"
#include "graph/base/shared.h"
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
#include "graph/op/softmax.h"

static KilnVendorRole
test_vendor_role(const KilnNode *node)
{
    switch (node->op) {
    case KILN_OP_conv:
    case KILN_OP_matmul:
    case KILN_OP_gemm:
    case KILN_OP_max_pool:
    case KILN_OP_lrn:
    case KILN_OP_softmax:
    case KILN_OP_lstm:
        return KILN_VENDOR_ANCHOR;
    case KILN_OP_add:
    case KILN_OP_mul:
    case KILN_OP_relu:
    case KILN_OP_clip:
        return KILN_VENDOR_TAIL;
    case KILN_OP_concat:
        return KILN_VENDOR_GLUE;
    default:
        return KILN_VENDOR_NONE;
    }
}

static bool
test_vendor_wants_layout(const KilnNode *node)
{
    return node->op == KILN_OP_conv || node->op == KILN_OP_max_pool || node->op == KILN_OP_lrn;
}

/* Twice as fast as it need be, so that the call and the reorders decide. */
static double
test_vendor_us(const KilnNode *node, uint32_t layout)
{
    (void)layout;
    return (double)kiln_node_cost(node).flops / 400e3;
}

/* Two layouts of pictures: channels last, in which convolutions of windows are the faster ones, and
 * in blocks of four channels, in which those of single pixels are. */
static const char *
test_vendor_layout_tag(uint32_t layout, int rank)
{
    static const char *const tags[] = { "acdb", "aBcd4b" };
    return rank == 4 ? tags[layout] : NULL;
}

static double
test_vendor_layout_us(const KilnFunction *body, uint32_t layout)
{
    double us = 0;
    kiln_foreach_node (node, body) {
        if (node->op == KILN_OP_conv)
            us += (node->operands[1].value->type.dims[2] == 1) == (layout == 1) ? 1.0 : 1.1;
    }
    return us;
}

/* A sum with what lies in a layout: with what a convolution or a pool gives. */
static bool
test_vendor_adds_laid(const KilnNode *node)
{
    bool laid = false;
    for (uint32_t i = 0; node->op == KILN_OP_add && i < node->n_operands; i++) {
        const KilnNode *def = node->operands[i].value->def;
        laid |= def && test_vendor_wants_layout(def);
    }
    return laid;
}

static bool
test_vendor_lies_in(const KilnFunction *body, const KilnValue *value, uint32_t layout)
{
    (void)body;
    (void)layout;
    if (value->def)
        return test_vendor_wants_layout(value->def) || value->def->op == KILN_OP_relu;
    kiln_foreach_use (use, value) {
        if ((test_vendor_wants_layout(use->user) && use->index == 0) ||
            test_vendor_adds_laid(use->user))
            return true;
    }
    return false;
}

static double
test_vendor_reorder_us(const KilnType *type, uint32_t layout)
{
    (void)layout;
    return 2.0 * (double)kiln_type_bytes(type) / 35e3;
}

/* Whatever is computed of floats. */
static bool
test_vendor_takes_custom(const KilnNode *node)
{
    for (uint32_t r = 0; r < node->n_results; r++) {
        if (node->results[r].type.dtype != KILN_DTYPE_f32)
            return false;
    }
    return true;
}

static const char *
test_vendor_run(const KilnKernelArgs *args)
{
    (void)args;
    return "the kernels of the test vendor do not run";
}

enum {
    TEST_VENDOR_OPERANDS = 16,
};

typedef struct {
    KilnCompiled compiled;
    const char *tags[TEST_VENDOR_OPERANDS]; /* by operand of the call */
    GPtrArray *customs;                     /* KilnShared */
} TestCompiled;

static void
test_vendor_destroy(KilnShared *shared)
{
    g_ptr_array_unref(((TestCompiled *)shared)->customs);
    g_free(shared);
}

/* Own kernels for every call in @region: in blocks of channels where they can. */
static bool
test_vendor_add_customs(TestCompiled *compiled, const KilnIRFunction *region,
                        const KilnTarget *target, int threads, GError **error)
{
    kiln_foreach_instr (instr, region) {
        if (instr->kind != KILN_INSTR_call)
            continue;
        const KilnFunction *body = instr->declaration->body;
        g_autoptr(GHashTable) laid = kiln_custom_laid(body, test_vendor_layout_tag, 1);
        KilnCustom *custom =
            kiln_custom_get(body, laid ? test_vendor_layout_tag : NULL, 1, target, threads, error);
        if (!custom)
            return false;
        g_ptr_array_add(compiled->customs, kiln_custom_shared(custom));
    }
    return true;
}

/* Weights of convolutions are wanted in blocks both ways, of those with strides one way. */
static void
test_vendor_note_weights(TestCompiled *compiled, const KilnIRFunction *region, const bool *constant)
{
    for (guint i = 0; i < region->inputs->len; i++) {
        guint operand = region->outputs->len + i;
        const KilnBuffer *buffer = g_ptr_array_index(region->inputs, i);
        kiln_foreach_buffer_use (use, buffer) {
            if (!constant[i] || use->user->kind != KILN_INSTR_conv || use->index != 2 ||
                operand >= TEST_VENDOR_OPERANDS)
                continue;
            int64_t rows = use->user->operands[1].buffer->type.dims[2];
            bool steps = use->user->operands[0].buffer->type.dims[2] < rows;
            compiled->tags[operand] = steps ? "Abcd4a" : "ABcd4b4a";
        }
    }
}

static const char *
test_vendor_packed_tag(const KilnCompiled *compiled, uint32_t i)
{
    return i < TEST_VENDOR_OPERANDS ? ((const TestCompiled *)compiled)->tags[i] : NULL;
}

/* lrn, and convolutions that step by threes. */
static bool
test_vendor_refuses(const KilnInstr *instr)
{
    const KilnInts *strides =
        instr->kind == KILN_INSTR_conv ? &kiln_instr_attrs(instr, conv)->strides : NULL;
    return instr->kind == KILN_INSTR_lrn || (strides && strides->n && strides->v[0] == 3);
}

KilnCompiled *
test_vendor_compile(const KilnIRFunction *region, const KilnTarget *target, const bool *constant,
                    int threads, const KilnInstr **out_refused, GError **error)
{
    kiln_foreach_instr (instr, region) {
        if (test_vendor_refuses(instr)) {
            *out_refused = instr;
            return kiln_throw_null(error, KILN_ERROR_UNSUPPORTED, "injected failure");
        }
    }
    TestCompiled *made = g_new0(TestCompiled, 1);
    made->customs = g_ptr_array_new_with_free_func((GDestroyNotify)kiln_shared_unref);
    if (!test_vendor_add_customs(made, region, target, threads, error)) {
        test_vendor_destroy(&made->compiled.shared);
        return NULL;
    }
    KilnCompiled *compiled = &made->compiled;
    test_vendor_note_weights(made, region, constant);
    atomic_init(&compiled->shared.references, 1);
    compiled->shared.destroy = test_vendor_destroy;
    compiled->kernel =
        (KilnKernel){ .instr = KILN_INSTR_call, .name = "test:call", .run = test_vendor_run };
    return compiled;
}

static void
test_vendor_describe(const KilnCompiled *compiled, GString *out)
{
    g_string_append(out, compiled->kernel.name);
}

const KilnVendor test_vendor = { .name = "test",
                                 .version = "1",
                                 .role = test_vendor_role,
                                 .wants_layout = test_vendor_wants_layout,
                                 .n_layouts = 2,
                                 .layout_tag = test_vendor_layout_tag,
                                 .layout_us = test_vendor_layout_us,
                                 .lies_in = test_vendor_lies_in,
                                 .packed_tag = test_vendor_packed_tag,
                                 .node_us = test_vendor_us,
                                 .reorder_us = test_vendor_reorder_us,
                                 .call_us = 1,
                                 .code_us = 100,
                                 .takes_custom = test_vendor_takes_custom,
                                 .compile = test_vendor_compile,
                                 .describe = test_vendor_describe };

KilnTarget
test_vendor_target(void)
{
    KilnTarget target = *kiln_ref_target();
    target.vendor = &test_vendor;
    return target;
}
