/* SPDX-License-Identifier: Apache-2.0 */
/* A cast of a cast and the one that optimize-conversions makes of it, for triples of types: on
 * all elements of 16 bits and less, on corners and random bits of the others. */
#include "backends/ref/ref.h"
#include "graph/base/number.h"
#include "graph/op/cast.h"
#include "passes/context/options.h"
#include "passes/context/report.h"
#include "passes/manager/manager.h"
#include "passes/manager/numerics.h"
#include "passes/manager/results.h"
#include "passes/pass.h"
#include "passes/pipeline/pipeline.h"
#include "tests/unit/graph_builder.h"

#include <string.h>

enum {
    ELEMENTS = 65536,
};

/* One of each kind. */
static const KilnDType types[] = {
    KILN_DTYPE_f32,    KILN_DTYPE_f64,    KILN_DTYPE_f16,    KILN_DTYPE_bf16, KILN_DTYPE_i8,
    KILN_DTYPE_i16,    KILN_DTYPE_i32,    KILN_DTYPE_i64,    KILN_DTYPE_u8,   KILN_DTYPE_u16,
    KILN_DTYPE_u32,    KILN_DTYPE_u64,    KILN_DTYPE_bool,   KILN_DTYPE_i4,   KILN_DTYPE_u2,
    KILN_DTYPE_f8e5m2, KILN_DTYPE_f8e8m0, KILN_DTYPE_f4e2m1,
};

static uint64_t
next_random(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* Numbers around every power of two and zero, then bits of any kind. */
static KilnTensor *
elements_of(KilnDType dtype)
{
    size_t size = kiln_dtype_size(dtype);
    int64_t n = dtype == KILN_DTYPE_bool ? 2 : size == 1 ? 1 << kiln_dtype_bits(dtype) : ELEMENTS;
    KilnType type = kiln_type_make(dtype, 1, &n);
    g_autofree uint8_t *bytes = g_malloc0((size_t)n * size);
    uint64_t state = 1;
    for (int64_t i = 0; i < n; i++) {
        uint64_t bits = (uint64_t)i;
        if (size > 2 && i < 512 && kiln_dtype_is_float(dtype)) {
            double near = (double)(i % 4 - 1) / 2 + (double)(UINT64_C(1) << (i / 8));
            kiln_element_store_f64(dtype, bytes, i, i & 4 ? -near : near);
            continue;
        }
        if (size > 2 && i < 512)
            bits = ((UINT64_C(1) << (i / 8)) + (uint64_t)(i % 4) - 1) * (i & 4 ? UINT64_MAX : 1);
        else if (size > 2)
            bits = next_random(&state) >> (i % 56);
        memcpy(bytes + (size_t)i * size, &bits, size);
    }
    return kiln_tensor_new_copy(&type, bytes, NULL);
}

static KilnValue *
cast_to(KilnFunction *function, KilnValue *x, KilnDType dtype)
{
    return add_node(function, KILN_OP_cast, "c", (KilnAttrs_cast[]){ kiln_cast_to(dtype) }, x,
                    NULL);
}

typedef struct {
    KilnDType from, through, to;
} Triple;

static KilnModule *
module_of(const Triple *t, const KilnTensor *elements, bool direct)
{
    KilnModule *module = kiln_module_new();
    KilnFunction *function = kiln_function_new(module, "f");
    KilnValue *x = kiln_build_constant(function, NULL, "x", kiln_tensor_copy(elements));
    KilnValue *inner = direct ? x : cast_to(function, x, t->through);
    set_result(function, cast_to(function, inner, t->to));
    return module;
}

static bool
merges(KilnModule *module)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(KilnPassPipeline) pipeline =
        kiln_pass_pipeline_parse_inline("optimize-conversions", &error);
    g_autoptr(KilnPassReport) report = kiln_pass_report_new();
    KilnPassOptions options = KILN_PASS_OPTIONS_INIT;
    options.target = kiln_ref_target();
    cr_assert(kiln_pipeline_run_graph(pipeline, module, &options, report, &error), "%s",
              error ? error->message : "");
    const KilnPassStats *stats = g_ptr_array_index(report->passes, report->passes->len - 1);
    return stats->changed > 0;
}

static bool
equal_results(const KilnModule *a, const KilnModule *b)
{
    const KilnTarget *target = kiln_ref_target();
    g_autoptr(KilnResults) left = kiln_results_of_graph(kiln_module_entry(a), target, NULL, NULL);
    g_autoptr(KilnResults) right = kiln_results_of_graph(kiln_module_entry(b), target, NULL, NULL);
    cr_assert(left && right);
    return kiln_compare_numerics(g_ptr_array_index(left->tensors, 0),
                                 g_ptr_array_index(right->tensors, 0), KILN_NUMERICS_E,
                                 &left->terms, NULL);
}

static bool
is_wide(KilnDType dtype)
{
    return kiln_dtype_bits(dtype) >= 8 && !kiln_dtype_is_low_float(dtype);
}

/* Where the pass merges, the one cast does what both did; where it does not, it would not have, but
 * for few that it gives away, among types of whole bytes. */
static void
check(const Triple *t, const KilnTensor *elements, unsigned *merged, unsigned *missed)
{
    g_autoptr(KilnModule) before = module_of(t, elements, false);
    g_autoptr(KilnModule) after = kiln_module_clone(before);
    g_autoptr(KilnModule) direct = module_of(t, elements, true);
    if (merges(after)) {
        (*merged)++;
        cr_assert(equal_results(before, after), "%s to %s to %s", kiln_dtype_name(t->from),
                  kiln_dtype_name(t->through), kiln_dtype_name(t->to));
    } else if (is_wide(t->from) && is_wide(t->through) && is_wide(t->to) &&
               equal_results(before, direct)) {
        (*missed)++;
    }
}

Test(conversions, all_triples)
{
    unsigned merged = 0, missed = 0;
    for (size_t from = 0; from < G_N_ELEMENTS(types); from++) {
        g_autoptr(KilnTensor) elements = elements_of(types[from]);
        for (size_t i = 0; i < G_N_ELEMENTS(types) * G_N_ELEMENTS(types); i++) {
            Triple t = { types[from], types[i / G_N_ELEMENTS(types)],
                         types[i % G_N_ELEMENTS(types)] };
            check(&t, elements, &merged, &missed);
        }
    }
    cr_assert(merged > 900, "only %u merged", merged);
    cr_assert(missed < 100, "%u missed", missed);
}
