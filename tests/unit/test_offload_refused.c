/* SPDX-License-Identifier: Apache-2.0 */
/* OFF-06 with failures injected: whichever operator of whichever region the vendor refuses, that
 * one goes inline, and nothing else. */
#include "ir/compiled.h"
#include "backends/ref/ref.h"
#include "graph/op/offload.h"
#include "ir/target.h"
#include "ir/vendor.h"
#include "passes/context/options.h"
#include "passes/pipeline/pipeline.h"
#include "runtime/compile.h"
#include "runtime/model.h"
#include "tests/test_vendor.h"
#include "tests/unit/runtime_case.h"
#include "tests/unit/op_named.h"

/* Two regions with branches that meet again, a residual over what is refused, and a value that is
 * read outside. Each product has as many columns as no other one; the weights are constant. */
static const char text[] =
    "graph @f(%x: f32[4,8], %w: f32[8,9] constant=compile, %v: f32[9,10] constant=compile,\n"
    "         %u: f32[10,11] constant=compile, %t: f32[9,11] constant=compile,\n"
    "         %s: f32[11,12] constant=compile, %r: f32[11,13] constant=compile) {\n"
    "  %a, %b = vendor.graph @r0(%x, %w, %v, %u, %t) body(%p: f32[4,8],\n"
    "      %q0: f32[8,9] constant=compile, %q1: f32[9,10] constant=compile,\n"
    "      %q2: f32[10,11] constant=compile, %q3: f32[9,11] constant=compile) {\n"
    "    %m0 = matmul(%p, %q0) : f32[4,9]\n"
    "    %n0 = relu(%m0) : f32[4,9]\n"
    "    %m1 = matmul(%n0, %q1) : f32[4,10]\n"
    "    %n1 = relu(%m1) : f32[4,10]\n"
    "    %m2 = matmul(%n1, %q2) : f32[4,11]\n"
    "    %o = matmul(%n0, %q3) : f32[4,11]\n"
    "    %d = add(%m2, %o) : f32[4,11]\n"
    "    %e = relu(%d) : f32[4,11]\n"
    "    return %e, %n1\n"
    "  } : f32[4,11], f32[4,10]\n"
    "  %c, %g = vendor.graph @r1(%a, %s, %r) body(%p: f32[4,11],\n"
    "      %q0: f32[11,12] constant=compile, %q1: f32[11,13] constant=compile) {\n"
    "    %m0 = matmul(%p, %q0) : f32[4,12]\n"
    "    %n0 = softmax(%m0) : f32[4,12]\n"
    "    %m1 = matmul(%p, %q1) : f32[4,13]\n"
    "    return %n0, %m1\n"
    "  } : f32[4,12], f32[4,13]\n"
    "  return %b, %c, %g\n"
    "}\n";

/* Of the product that is refused: the operator, and how many columns its result has. */
static KilnInstrKind refused_kind;
static int64_t refused_columns;

static KilnCompiled *
compile(const KilnIRFunction *region, const KilnTarget *target, const bool *constant, int threads,
        const KilnInstr **out_refused, GError **error)
{
    kiln_foreach_instr (instr, region) {
        const KilnBuffer *y = kiln_instr_operand(instr, 0);
        if (instr->kind != refused_kind || y->type.dims[y->type.rank - 1] != refused_columns)
            continue;
        *out_refused = instr;
        return kiln_throw_null(error, KILN_ERROR_UNSUPPORTED, "injected failure");
    }
    return test_vendor_compile(region, target, constant, threads, out_refused, error);
}

static KilnModule *
compiled_module(void)
{
    GError *error = NULL;
    KilnVendor vendor = test_vendor;
    KilnTarget target = *kiln_ref_target();
    KilnPassOptions options = KILN_PASS_OPTIONS_INIT;
    vendor.compile = compile;
    target.vendor = &vendor;
    options.target = &target;
    options.check_target = kiln_ref_target();
    options.check_changed = options.check_numerics = true;
    g_autoptr(KilnModel) model = model_of(text);
    g_autoptr(KilnPassPipeline) pipeline =
        kiln_pass_pipeline_parse_inline("compile-offload{min-us=0}", &error);
    cr_assert(pipeline, "%s", error ? error->message : "");
    KilnModule *module = kiln_compile_graph(model, NULL, pipeline, &options, NULL, &error);
    cr_assert(module, "%s", error ? error->message : "");
    return module;
}

static uint32_t
count(const KilnFunction *function, KilnOp op)
{
    uint32_t n = 0;
    kiln_foreach_node (node, function) {
        n += node->op == op;
        if (node->op == op_named("custom_op"))
            n += count(kiln_attrs(node, custom_op)->body, op);
    }
    return n;
}

static uint32_t
count_declared(const KilnModule *module, KilnOp op)
{
    uint32_t n = 0;
    for (guint i = 0; i < module->declarations->len; i++) {
        const KilnDeclaration *declaration = g_ptr_array_index(module->declarations, i);
        n += count(declaration->body, op);
    }
    return n;
}

Test(offload_refused, OFF_06_one_product_at_a_time)
{
    /* By columns: two products of region 0 have 11, none has 8. What a refused product applies on
     * its way out goes with it, of the last one in region 0 a sum and what follows it. */
    static const struct {
        int64_t columns;
        uint32_t products, tails;
    } cases[] = {
        { 8, 0, 0 }, { 9, 1, 1 }, { 10, 1, 1 }, { 11, 2, 2 }, { 12, 1, 0 }, { 13, 1, 0 }
    };
    refused_kind = KILN_INSTR_matmul;
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        refused_columns = cases[i].columns;
        g_autoptr(KilnModule) module = compiled_module();
        const KilnFunction *function = kiln_module_entry(module);
        uint32_t tails = count(function, op_named("relu")) + count(function, op_named("add"));
        cr_expect_eq(count(function, op_named("matmul")), cases[i].products, "case %zu", i);
        cr_expect_eq(tails, cases[i].tails, "case %zu: %u tails", i, tails);
        cr_expect_eq(count(function, op_named("softmax")), 0u, "case %zu", i);
        cr_expect_eq(count_declared(module, op_named("matmul")), 6 - cases[i].products);
        cr_expect_eq(count_declared(module, op_named("relu")) +
                         count_declared(module, op_named("add")),
                     4 - tails);
        cr_expect_eq(count_declared(module, op_named("softmax")), 1u);
        cr_expect_eq(count_declared(module, op_named("custom_op")), 0u);
    }
}

Test(offload_refused, OFF_06_what_has_no_weights_stays_among_the_vendors)
{
    refused_kind = KILN_INSTR_softmax;
    refused_columns = 12;
    g_autoptr(KilnModule) module = compiled_module();
    cr_expect_eq(count(kiln_module_entry(module), op_named("vendor.executable")), 2u);
    cr_expect_eq(count(kiln_module_entry(module), op_named("softmax")), 0u);
    cr_expect_eq(count_declared(module, op_named("custom_op")), 1u);
    cr_expect_eq(count_declared(module, op_named("matmul")), 6u);
}
