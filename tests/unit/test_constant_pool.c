/* SPDX-License-Identifier: Apache-2.0 */
/* Where folding keeps what it computes: whose buffers are, when they go, and what they are reused
 * for. Names are those of the checklist in docs/constants.md. */
#include "graph/base/alloc.h"
#include "graph/node.h"
#include "ir/target.h"
#include "passes/context/context.h"
#include "passes/context/options.h"
#include "passes/fold/constant_pool.h"
#include "passes/fold/evaluator.h"
#include "passes/fold/fold_plan.h"
#include "runtime/targets.h"
#include "tests/unit/graph_builder.h"
#include "tests/unit/op_named.h"

#include <signal.h>
#include <string.h>

TestSuite(constant_pool);

/* --- buffers of values --- */

typedef struct {
    KilnModule *module;
    KilnFunction *function;
    KilnValue *literal, *sum;
} Case;

/* A literal that @rows rows of 4 floats hold, and what is added to it, which two nodes read. */
static Case
case_of(int64_t rows)
{
    Case c = { .module = kiln_module_new() };
    c.function = kiln_function_new(c.module, "f");
    KilnType type = kiln_type_make(KILN_DTYPE_f32, 2, (int64_t[]){ rows, 4 });
    g_autofree float *numbers = g_new0(float, (gsize)rows * 4 + 1);
    for (int64_t i = 0; i < rows * 4; i++)
        numbers[i] = (float)i;
    c.literal = kiln_build_constant(c.function, NULL, "literal",
                                    kiln_tensor_new_copy(&type, numbers, NULL));
    c.sum = add_node(c.function, op_named("add"), "sum", NULL, c.literal, c.literal);
    set_result(c.function, add_node(c.function, op_named("mul"), "product", NULL, c.sum, c.sum));
    return c;
}

Test(constant_pool, CP_03_a_literal_is_read_once)
{
    Case c = case_of(3);
    g_autoptr(KilnConstantPool) pool = kiln_constant_pool_new(c.module, NULL);
    const float *first = kiln_constant_pool_array(pool, c.literal, NULL);
    cr_assert(first && first[11] == 11);
    cr_expect_eq(kiln_constant_pool_array(pool, c.literal, NULL), first);
    cr_expect_not(kiln_constant_pool_has(pool, c.literal), "nothing was stored for it");
    cr_expect_null(kiln_constant_pool_get(pool, c.sum), "nothing was computed yet");
    g_autoptr(GError) error = NULL;
    cr_expect_null(kiln_constant_pool_array(pool, c.sum, &error));
    cr_expect(g_error_matches(error, KILN_ERROR, KILN_ERROR_UNSUPPORTED));
    kiln_module_free(c.module);
}

/* Under AddressSanitizer a buffer that nobody frees, and one that two free, fail the test. */
Test(constant_pool, CP_03_a_buffer_is_the_callers_until_it_is_stored)
{
    Case c = case_of(3);
    g_autoptr(KilnConstantPool) pool = kiln_constant_pool_new(c.module, NULL);
    void *array, *wide;
    KilnTensor *stored = kiln_constant_pool_allocate(pool, &c.sum->type, false, &array, NULL);
    g_autoptr(KilnTensor) dropped =
        kiln_constant_pool_allocate(pool, &c.sum->type, true, &wide, NULL);
    cr_assert(stored && dropped);
    cr_expect_eq(dropped->type.dtype, KILN_DTYPE_f64);
    cr_expect_eq(kiln_tensor_storage(dropped), 2 * kiln_tensor_storage(stored));
    cr_expect_eq(kiln_constant_pool_live(pool), 0, "what is not stored does not count");
    memset(array, 0, 48);
    kiln_constant_pool_store(pool, c.sum, stored);
    cr_expect_eq(kiln_constant_pool_live(pool), 48);
    cr_expect_eq(kiln_constant_pool_array(pool, c.sum, NULL), array);
    kiln_module_free(c.module);
}

Test(constant_pool, CP_04_a_buffer_goes_with_its_last_reader)
{
    Case c = case_of(1 << 17); /* 2 MB: pages of its own */
    g_autoptr(KilnConstantPool) pool = kiln_constant_pool_new(c.module, NULL);
    size_t before = kiln_bytes_mapped();
    void *array;
    kiln_constant_pool_store(pool, c.sum,
                             kiln_constant_pool_allocate(pool, &c.sum->type, false, &array, NULL));
    cr_expect_not(kiln_constant_pool_release(pool, c.sum), "the other operand still reads it");
    cr_expect_eq(kiln_constant_pool_live(pool), 2 << 20);
    cr_expect(kiln_constant_pool_release(pool, c.sum));
    cr_expect_eq(kiln_constant_pool_live(pool), 0);
    cr_expect_eq(kiln_constant_pool_peak(pool), 2 << 20);
    cr_expect_null(kiln_constant_pool_get(pool, c.sum));
    kiln_constant_pool_free(g_steal_pointer(&pool));
    cr_expect_eq(kiln_bytes_mapped(), before, "the pages went back to the system");
    kiln_module_free(c.module);
}

#ifndef G_DISABLE_ASSERT
Test(constant_pool, CP_08_rules_make_no_constants, .signal = SIGABRT)
{
    Case c = case_of(3);
    KilnConstantPool *pool = kiln_constant_pool_new(c.module, NULL);
    kiln_constant_pool_enter_rule(pool);
    kiln_build_constant(c.function, c.sum->def, "made", kiln_tensor_new_splat(&c.sum->type, 1));
    kiln_constant_pool_leave_rule(pool);
}
#endif

/* --- pages --- */

Test(constant_pool, pages_are_kept_for_the_next_of_their_size)
{
    size_t before = kiln_bytes_mapped();
    KilnRecycler *recycler = kiln_recycler_new();
    void *first, *second, *third;
    GBytes *bytes = kiln_bytes_recycle(recycler, 2, KILN_MAP_MIN, &first, NULL);
    g_bytes_unref(bytes);
    bytes = kiln_bytes_recycle(recycler, 1, 2 * KILN_MAP_MIN, &second, NULL);
    GBytes *other = kiln_bytes_recycle(recycler, 3, KILN_MAP_MIN, &third, NULL);
    cr_assert(bytes && other);
#ifndef KILN_SANITIZED
    cr_expect_eq(first, second);
    cr_expect_eq(kiln_bytes_mapped(), before + 5 * (size_t)KILN_MAP_MIN);
#endif
    g_bytes_unref(bytes);
    kiln_recycler_free(recycler); /* what still lives goes by itself */
    memset(third, 1, 3 * (size_t)KILN_MAP_MIN);
    g_bytes_unref(other);
    cr_expect_eq(kiln_bytes_mapped(), before);
}

/* Bytes that are pages of their own, and all of them, become read-only; others do not, and sealed
 * pages are never written again. */
Test(constant_pool, computed_pages_are_sealed_where_they_lie)
{
    size_t before = kiln_bytes_mapped();
    KilnRecycler *recycler = kiln_recycler_new();
    void *big, *small, *next;
    GBytes *pages = kiln_bytes_recycle(recycler, 1, KILN_MAP_MIN, &big, NULL);
    GBytes *heap = kiln_bytes_new(1, KILN_MAP_MIN / 2, &small, NULL);
    GBytes *part = g_bytes_new_from_bytes(pages, 0, KILN_MAP_MIN / 2);
    memset(big, 7, KILN_MAP_MIN);
    cr_expect_not(kiln_bytes_seal(heap));
    cr_expect_not(kiln_bytes_seal(part), "the rest may be written still");
#ifndef KILN_SANITIZED
    cr_expect(kiln_bytes_seal(pages));
    cr_expect(kiln_bytes_seal(pages), "they are sealed already");
#endif
    cr_expect_eq(*(char *)big, 7);
    g_bytes_unref(part);
    g_bytes_unref(pages);
    GBytes *bytes = kiln_bytes_recycle(recycler, 1, KILN_MAP_MIN, &next, NULL);
    memset(next, 8, KILN_MAP_MIN);
    g_bytes_unref(bytes);
    g_bytes_unref(heap);
    kiln_recycler_free(recycler);
    cr_expect_eq(kiln_bytes_mapped(), before);
}

Test(constant_pool, too_many_bytes_are_an_error)
{
    void *data;
    g_autoptr(GError) error = NULL;
    cr_expect_null(kiln_bytes_new(SIZE_MAX / 2, 3, &data, &error));
    cr_expect(g_error_matches(error, KILN_ERROR, KILN_ERROR_MEMORY));
    g_clear_error(&error);
    cr_expect_null(kiln_bytes_new(1, SIZE_MAX / 2, &data, &error));
    cr_expect(g_error_matches(error, KILN_ERROR, KILN_ERROR_MEMORY));
}

/* --- folding --- */

static bool
always(KilnFoldPlan *plan, const KilnNode *node)
{
    (void)plan, (void)node;
    return true;
}

static bool
always_room(KilnEvaluator *folder, KilnFoldPlan *plan, const KilnNode *node, int64_t live)
{
    (void)folder, (void)plan, (void)node, (void)live;
    return true;
}

/* Folds the literals of @text with the budgets off; the module, and the most bytes at a time. */
static KilnModule *
fold(const char *text, int64_t *peak)
{
    g_autoptr(GError) error = NULL;
    KilnModule *module = kiln_module_parse(text, strlen(text), "case", &error);
    cr_assert(module, "%s", error ? error->message : "");
    KilnPassOptions options = KILN_PASS_OPTIONS_INIT;
    options.target = kiln_target_by_name("cpu", NULL);
    KilnPassContext context = { .options = &options };
    KilnEvaluator folder = { .context = &context,
                             .rule = "fold",
                             .target = options.target,
                             .threads = 1,
                             .plan = { .context = &context,
                                       .may_compute = always,
                                       .may_store = always,
                                       .max_bytes = INT64_MAX,
                                       .max_expansion = 1e9F },
                             .may_hold = always_room };
    folder.plan.when[KILN_CONSTNESS_LITERAL] = KILN_CONSTNESS_LITERAL;
    kiln_fold_now(&folder, kiln_module_entry(module));
    cr_assert_null(folder.failure);
    *peak = folder.peak;
    kiln_pass_context_clear_recent(&context);
    return module;
}

/* @n sums in a row of a literal of 1 MB and another, read by a node that varies. */
static char *
chain_text(int n)
{
    GString *text = g_string_new("graph @chain(%x: f32[256,1024]) {\n"
                                 "  %s0 = const @a\n  %b = const @b\n");
    for (int i = 0; i < n; i++)
        g_string_append_printf(text, "  %%s%d = add(%%s%d, %%b)\n", i + 1, i);
    g_string_append_printf(text, "  %%r = add(%%x, %%s%d)\n  return %%r\n}\n", n);
    g_string_append(text, "constants {\n"
                          "  @a = random_uniform(seed=1, low=0, high=1) : f32[256,1024]\n"
                          "  @b = random_uniform(seed=2, low=0, high=1) : f32[256,1024]\n}\n");
    return g_string_free(text, FALSE);
}

Test(constant_pool, CP_02_intermediates_take_a_few_buffers)
{
    size_t before = kiln_bytes_mapped();
    int64_t peaks[2];
    for (int i = 0; i < 2; i++) {
        g_autofree char *text = chain_text(i ? 100 : 10);
        KilnModule *module = fold(text, &peaks[i]);
        cr_expect_eq(module->constants->len, 1, "the last sum; found %u", module->constants->len);
#ifndef KILN_SANITIZED
        cr_expect_eq(kiln_bytes_mapped(), before + (1 << 20), "the last sum is all that is left");
#endif
        kiln_module_free(module);
    }
    cr_expect_eq(peaks[0], peaks[1], "they do not grow with the chain");
    cr_expect_leq(peaks[1], 2 << 20);
    cr_expect_eq(kiln_bytes_mapped(), before);
}
