/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers that are drawn for open dims. */
#include "graph/binding.h"
#include "graph/dim.h"
#include "graph/error.h"
#include "ir/ir.h"
#include "passes/manager/draws.h"

#include <criterion/criterion.h>
#include <string.h>

/* Refuses what a test says, and notes what ran. */
typedef struct {
    bool (*refuses)(const KilnDimBinding *binding);
    KilnError code;
    GString *ran;
} Subject;

static gboolean
run_at(const KilnDimBinding *binding, void *data, GError **error)
{
    const Subject *subject = data;
    if (subject->refuses && subject->refuses(binding))
        return kiln_throw(error, subject->code, "no");
    g_autofree char *text = kiln_binding_to_string(binding);
    g_string_append_printf(subject->ran, "%s%s", subject->ran->len ? "; " : "", text);
    return TRUE;
}

/* The draws for the entry of @text as one line, or "error: …". */
static char *
draws_of(const char *text, const KilnDimFacts *facts, Subject subject)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(KilnIRModule) ir = kiln_ir_module_parse(text, strlen(text), "t.kiln", &error);
    cr_assert_not_null(ir, "%s", error ? error->message : "");
    if (facts)
        cr_assert(kiln_dim_state(ir->module->dims, "N", facts, &error));
    g_autoptr(KilnOpenNames) names = kiln_open_names_of_graph(kiln_module_entry(ir->module));
    g_auto(KilnDrawCount) count = { 0, NULL };
    subject.ran = g_string_new(NULL);
    if (!kiln_run_at_draws(names, run_at, &subject, &count, &error))
        g_string_printf(subject.ran, "error %d: %s", error->code, error->message);
    else if (count.refused)
        g_string_append_printf(subject.ran, " (%u left out, the last %s)", count.refused,
                               count.last);
    return g_string_free(subject.ran, FALSE);
}

static void
expect(const char *text, const KilnDimFacts *facts, Subject subject, const char *expected)
{
    g_autofree char *found = draws_of(text, facts, subject);
    cr_expect_str_eq(found, expected, "expected: %s\nfound:    %s", expected, found);
}

#define ONE "graph @f(%x: f32[N,3]) {\n  return %x\n}\n"
#define TWO "graph @f(%x: f32[N,M], %y: f32[N+M,2*K]) {\n  return %x\n}\n"
#define BIG "graph @f(%x: f32[N,1000000]) {\n  return %x\n}\n"

Test(draws, a_hint_the_least_and_a_prime)
{
    const KilnDimFacts hinted = { .lo = 1, .hi = 100, .divisor = 1, .hint = 20 };
    expect(ONE, NULL, (Subject){ 0 }, "N=64; N=1; N=3");
    expect(ONE, &hinted, (Subject){ 0 }, "N=20; N=1; N=3");
    expect(TWO, NULL, (Subject){ 0 }, "N=64, M=64, K=64; N=1, M=1, K=1; N=3, M=5, K=7");
}

Test(draws, facts_hold)
{
    const KilnDimFacts multiples = { .lo = 8, .hi = 40, .divisor = 8 };
    const KilnDimFacts few = { .lo = 5, .hi = 5, .divisor = 1 };
    expect(ONE, &multiples, (Subject){ 0 }, "N=24; N=8");
    expect(ONE, &few, (Subject){ 0 }, "N=5");
}

Test(draws, zero_where_it_is_allowed)
{
    const KilnDimFacts zero = { .lo = 0, .hi = 100, .divisor = 1, .hint = 20 };
    expect(ONE, &zero, (Subject){ 0 }, "N=20; N=1; N=3; N=0");
    expect(TWO, &zero, (Subject){ 0 },
           "N=20, M=64, K=64; N=1, M=1, K=1; N=3, M=5, K=7; N=0, M=5, K=7");
}

Test(draws, fixed_shapes_run_once)
{
    expect("graph @f(%x: f32[2,3]) {\n  return %x\n}\n", NULL, (Subject){ 0 }, "");
}

/* The hints are lowered; other numbers are left out. */
Test(draws, sizes_are_within_reason)
{
    expect(BIG, NULL, (Subject){ 0 }, "N=2; N=1; N=3");
}

static bool
differ(const KilnDimBinding *binding)
{
    for (uint32_t i = 1; i < binding->n; i++) {
        if (binding->names[i].number != binding->names[0].number)
            return true;
    }
    return false;
}

static bool
is_odd(const KilnDimBinding *binding)
{
    return binding->names[0].number % 2;
}

static bool
is_any(const KilnDimBinding *binding)
{
    return binding != NULL;
}

Test(draws, what_is_refused_is_drawn_anew)
{
    const Subject equal = { differ, KILN_ERROR_SHAPE, NULL };
    const Subject even = { is_odd, KILN_ERROR_RUN, NULL };
    expect(TWO, NULL, equal,
           "N=64, M=64, K=64; N=1, M=1, K=1; N=3, M=3, K=3 "
           "(1 left out, the last N=3, M=5, K=7: no)");
    expect(ONE, NULL, even, "N=64; N=2 (3 left out, the last N=11: no)");
}

Test(draws, no_numbers_are_a_failure)
{
    const Subject nothing = { is_any, KILN_ERROR_SHAPE, NULL };
    g_autofree char *found = draws_of(ONE, NULL, nothing);
    cr_expect(strstr(found, "found none in ") && strstr(found, "the first was N=64: no"), "%s",
              found);
}

Test(draws, what_is_not_about_numbers_stops)
{
    const Subject cancelled = { is_any, KILN_ERROR_CANCELLED, NULL };
    const Subject unsupported = { is_any, KILN_ERROR_UNSUPPORTED, NULL };
    g_autofree char *stopped = g_strdup_printf("error %d: no", KILN_ERROR_CANCELLED);
    g_autofree char *lacking = g_strdup_printf("error %d: no", KILN_ERROR_UNSUPPORTED);
    expect(ONE, NULL, cancelled, stopped);
    expect(ONE, NULL, unsupported, lacking);
}
