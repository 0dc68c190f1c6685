/* SPDX-License-Identifier: Apache-2.0 */
/* Random functions of the IR level through random passes in random order: the verifier is content,
 * `changed` is honest, a pass that runs twice changes nothing the second time, results are the same
 * bits with a heap buffer per alloc and in the planned arena, and no pass that is about memory
 * raises its peak. */
#include "passes/context/options.h"
#include "passes/context/report.h"
#include "passes/pipeline/pipeline.h"
#include "tests/unit/ir_peaks.h"
#include "tests/unit/random_ir.h"

#include "backends/ref/ref.h"
#include "passes/manager/manager.h"
#include "passes/manager/results.h"
#include "passes/pass.h"

#include <criterion/criterion.h>
#include <string.h>

enum {
    FUNCTIONS = 1500,
    FUNCTIONS_LONG = 40000,
    PASSES = 8 /* per function */
};

static bool
takes_all_strided(const KilnInstr *instr, uint32_t i, int64_t rows)
{
    (void)instr, (void)i, (void)rows;
    return true;
}

/* What passes see: the reference, or one whose kernels claim to work on rows. What they leave runs
 * on the reference itself, which works on copies of rows. */
static const KilnTarget *
target_of(uint64_t seed)
{
    static KilnKernel kernels[1024];
    static KilnTarget target;
    const KilnTarget *ref = kiln_ref_target();
    cr_assert_leq(ref->n_kernels, G_N_ELEMENTS(kernels));
    if (!target.n_kernels) {
        memcpy(kernels, ref->kernels, ref->n_kernels * sizeof *kernels);
        for (uint32_t i = 0; i < ref->n_kernels; i++)
            kernels[i].takes_strided = takes_all_strided;
        target = *ref;
        target.kernels = kernels;
    }
    return seed % 2 ? &target : ref;
}

typedef struct {
    KilnIRModule *module;
    KilnIRFunction *function;
    KilnResults *expected;
    uint64_t seed;
    GString *passes; /* that have run */
} Case;

static void
expect_same(const Case *c, bool planned)
{
    g_autoptr(GError) error = NULL;
    KilnMemoryPlan *plan =
        planned ? kiln_memory_plan(c->function, kiln_ref_target(), 1, &error) : NULL;
    kiln_memory_plan_free(plan);
    g_autoptr(KilnResults) found =
        error ? NULL : kiln_results_of_ir(c->function, kiln_ref_target(), planned, &error);
    bool good = found && kiln_results_compare(c->expected, found, KILN_NUMERICS_E, &error) &&
                kiln_ir_verify(c->function, &error);
    cr_assert(good, "seed %lu, %s, %s: %s", (unsigned long)c->seed, c->passes->str,
              planned ? "in its arena" : "a buffer per alloc", error ? error->message : "");
    if (planned)
        kiln_memory_plan_forget(c->function);
}

static bool
run_once(const Case *c, const KilnPassInfo *pass)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(KilnPassPipeline) pipeline = kiln_pass_pipeline_parse_inline(pass->id, &error);
    g_autoptr(KilnPassReport) report = kiln_pass_report_new();
    KilnPassOptions options = KILN_PASS_OPTIONS_INIT;
    options.check_changed = true;
    options.target = target_of(c->seed);
    bool good = pipeline && kiln_pipeline_run_ir(pipeline, c->module, &options, report, &error);
    cr_assert(good, "seed %lu, %s: %s", (unsigned long)c->seed, c->passes->str,
              error ? error->message : "");
    const KilnPassStats *stats = g_ptr_array_index(report->passes, 0);
    return stats->changed > 0;
}

/* Peaks of lives, and of a heap for what frees and allocates. A stack reads its operands where its
 * last step was: it is made for speed, and may let them live longer. */
static void
expect_no_higher_peak(const Case *c, const KilnPassInfo *pass, Peaks before)
{
    if (g_str_equal(pass->id, "stack-elementwise"))
        return;
    static const char *const of_heap[] = { "hoist-dealloc", "sink-allocs", "delete-dead-allocs" };
    Peaks after = peaks_of(c->function, target_of(c->seed));
    cr_expect_leq(after.live, before.live, "seed %lu, %s", (unsigned long)c->seed, c->passes->str);
    for (size_t i = 0; i < G_N_ELEMENTS(of_heap); i++) {
        if (g_str_equal(pass->id, of_heap[i]))
            cr_expect_leq(after.heap, before.heap, "seed %lu, %s", (unsigned long)c->seed,
                          c->passes->str);
    }
}

static const KilnPassInfo *
random_pass(RandomIR *r)
{
    for (;;) {
        const KilnPassInfo *pass = kiln_pass_at(random_ir_draw(r, kiln_pass_count()));
        if (pass->level == KILN_LEVEL_IR)
            return pass;
    }
}

static unsigned
try_function(uint64_t seed)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GString) passes = g_string_new(NULL);
    g_autoptr(KilnIRModule) module = random_ir(seed);
    Case c = { module, g_ptr_array_index(module->functions, 0), NULL, seed, passes };
    RandomIR order = { .seed = seed ^ UINT64_C(0x9E3779B97F4A7C15) };
    cr_assert(kiln_ir_verify(c.function, &error), "seed %lu: %s", (unsigned long)seed,
              error ? error->message : "");
    g_autoptr(KilnResults) expected =
        kiln_results_of_ir(c.function, kiln_ref_target(), false, &error);
    cr_assert(expected, "seed %lu: %s", (unsigned long)seed, error ? error->message : "");
    c.expected = expected;
    expect_same(&c, true);
    unsigned changed = 0;
    for (int i = 0; i < PASSES; i++) {
        const KilnPassInfo *pass = random_pass(&order);
        Peaks before = peaks_of(c.function, target_of(c.seed));
        g_string_append_printf(passes, "%s%s", i ? "," : "", pass->id);
        changed += run_once(&c, pass);
        expect_no_higher_peak(&c, pass, before);
        cr_expect_not(run_once(&c, pass), "seed %lu, %s: a second run changed something",
                      (unsigned long)seed, passes->str);
        expect_same(&c, false);
        expect_same(&c, true);
    }
    return changed;
}

/* Seeds that have found something: 29149, orders that a second run made better. */
static const uint64_t found[] = { 29149 };

Test(ir_random, passes_in_any_order)
{
    unsigned changed = 0, n = g_getenv("KILN_TEST_LONG") ? FUNCTIONS_LONG : FUNCTIONS;
    for (uint64_t seed = 1; seed <= n; seed++)
        changed += try_function(seed);
    for (size_t i = 0; i < G_N_ELEMENTS(found); i++)
        try_function(found[i]);
    cr_expect_gt(changed, 3 * n, "functions are hardly changed: %u times", changed);
}
