/* SPDX-License-Identifier: Apache-2.0 */
/* Branches, loops and scans of a graph that is evaluated node by node. */
#include "backends/ref/ref.h"
#include "exec/eval.h"
#include "graph/base/alloc.h"
#include "graph/base/budget.h"
#include "graph/module.h"
#include "graph/node.h"
#include "graph/onnx/onnx.h"
#include "graph/op/structure.h"
#include "graph/text/text.h"
#include "passes/manager/numerics.h"
#include "passes/pass.h"

#include <criterion/criterion.h>
#include <string.h>

enum {
    MAX_VALUES = 8
};

static KilnModule *
parse(const char *text)
{
    g_autoptr(GError) error = NULL;
    KilnModule *module = kiln_module_parse(text, strlen(text), "test", &error);
    cr_assert(module, "%s\n%s", error ? error->message : "", text);
    return module;
}

/* A module whose constants are the tensors of @rows. */
static KilnModule *
parse_tensors(const char *rows)
{
    g_autofree char *text = g_strconcat("constants {\n", rows, "}\n", NULL);
    return parse(text);
}

static const KilnTensor *
tensor_of(const KilnModule *module, guint i)
{
    return ((const KilnConstant *)g_ptr_array_index(module->constants, i))->tensor;
}

static gboolean
evaluate(const KilnModule *graph, const KilnModule *inputs, const KilnWatch *watch,
         KilnTensor **outputs, GError **error)
{
    const KilnTensor *tensors[MAX_VALUES];
    const KilnFunction *entry = kiln_module_entry(graph);
    cr_assert_eq(inputs->constants->len, entry->arguments->len);
    for (guint i = 0; i < inputs->constants->len; i++)
        tensors[i] = tensor_of(inputs, i);
    return kiln_graph_watch(entry, kiln_ref_target(), tensors, watch, outputs, error);
}

/* The graph of @text makes @expected of @inputs, which are rows of constants in order. */
static void
expect(const char *text, const char *inputs, const char *expected)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(KilnModule) graph = parse(text);
    g_autoptr(KilnModule) given = parse_tensors(inputs);
    g_autoptr(KilnModule) wanted = parse_tensors(expected);
    KilnTensor *outputs[MAX_VALUES] = { NULL };
    cr_assert(evaluate(graph, given, NULL, outputs, &error), "%s\n%s", error ? error->message : "",
              text);
    cr_assert_eq(kiln_module_entry(graph)->result_names->len, wanted->constants->len);
    for (guint i = 0; i < wanted->constants->len; i++) {
        g_autofree char *type = kiln_type_to_string(&outputs[i]->type);
        cr_assert(kiln_tensor_equal(outputs[i], tensor_of(wanted, i)),
                  "output %u is another one, of type %s\n%s%s", i, type, text, inputs);
        kiln_tensor_free(outputs[i]);
    }
}

static void
expect_failure(const char *text, const char *inputs, KilnError code, const char *message)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(KilnModule) graph = parse(text);
    g_autoptr(KilnModule) given = parse_tensors(inputs);
    KilnTensor *outputs[MAX_VALUES] = { NULL };
    cr_assert_not(evaluate(graph, given, NULL, outputs, &error));
    cr_assert(g_error_matches(error, KILN_ERROR, (int)code), "%s", error->message);
    cr_assert_str_eq(error->message, message);
}

// clang-format off
/* --- loops --- */

/* The sum of 0 … i while it is below a limit. */
#define COUNTING(trips, condition)                                        \
    "graph @g(%n: i64[], %c: bool[], %limit: i64[]) {\n"                  \
    "  %zero = const @zero : i64[]\n"                                     \
    "  %last, %all = loop(" trips ", " condition ", %zero) body(%i: i64[], %go: bool[], %s: i64[]) {\n" \
    "    %t = add(%s, %i) : i64[]\n"                                      \
    "    %l = less(%t, %limit) : bool[]\n"                                \
    "    return %l, %t, %t\n"                                             \
    "  } : i64[], i64[?]\n"                                               \
    "  return %last, %all\n"                                              \
    "}\n"                                                                 \
    "constants { @zero = [0] : i64[] }\n"

#define GIVEN(n, c, limit) "@n = [" n "] : i64[]\n@c = [" c "] : bool[]\n@l = [" limit "] : i64[]\n"

Test(eval_flow, loops_end_by_trips_and_condition)
{
    expect(COUNTING("%n", "%c"), GIVEN("4", "true", "100"), "@l = [6] : i64[]\n@a = [0, 1, 3, 6] : i64[4]\n");
    expect(COUNTING("%n", "%c"), GIVEN("9", "true", "3"), "@l = [3] : i64[]\n@a = [0, 1, 3] : i64[3]\n");
    expect(COUNTING("%n", "%c"), GIVEN("0", "true", "3"), "@l = [0] : i64[]\n@a = [] : i64[0]\n");
    expect(COUNTING("%n", "%c"), GIVEN("-1", "true", "3"), "@l = [0] : i64[]\n@a = [] : i64[0]\n");
    expect(COUNTING("%n", "%c"), GIVEN("4", "false", "3"), "@l = [0] : i64[]\n@a = [] : i64[0]\n");
    expect(COUNTING("_", "%c"), GIVEN("0", "true", "10"), "@l = [10] : i64[]\n@a = [0, 1, 3, 6, 10] : i64[5]\n");
    /* without a first condition, those of the body do not count */
    expect(COUNTING("%n", "_"), GIVEN("4", "false", "-5"), "@l = [6] : i64[]\n@a = [0, 1, 3, 6] : i64[4]\n");
}

Test(eval_flow, carried_values_change_their_shape)
{
    expect("graph @g(%n: i64[], %x: f32[2]) {\n"
           "  %grown, %swapped, %same = loop(%n, _, %x, %x, %x)\n"
           "    body(%i: i64[], %go: bool[], %a: f32[?], %b: f32[?], %c: f32[2]) {\n"
           "    %d = concat(%a, %b) : f32[?]\n"
           "    return %go, %d, %a, %c\n"
           "  } : f32[?], f32[?], f32[2]\n"
           "  return %grown, %swapped, %same\n"
           "}\n",
           "@n = [3] : i64[]\n@x = [1, 2] : f32[2]\n",
           "@g = [1, 2, 1, 2, 1, 2, 1, 2, 1, 2] : f32[10]\n@s = [1, 2, 1, 2, 1, 2] : f32[6]\n@x = [1, 2] : f32[2]\n");
    expect("graph @g(%n: i64[], %x: f32[4]) {\n"
           "  %one = const @one : i64[1]\n"
           "  %end = const @end : i64[1]\n"
           "  %rest, %sums = loop(%n, _, %x) body(%i: i64[], %go: bool[], %a: f32[?]) {\n"
           "    %s = reduce_sum(%a) {keepdims=false} : f32[]\n"
           "    %b = slice(%a, %one, %end) : f32[?]\n"
           "    return %go, %b, %s\n"
           "  } : f32[?], f32[?]\n"
           "  return %rest, %sums\n"
           "}\n"
           "constants {\n  @one = [1] : i64[1]\n  @end = [9] : i64[1]\n}\n",
           "@n = [3] : i64[]\n@x = [1, 2, 4, 8] : f32[4]\n",
           "@r = [8] : f32[1]\n@s = [15, 14, 12] : f32[3]\n");
}

/* A vector of one element is a number, too. */
Test(eval_flow, numbers_may_be_vectors)
{
    expect("graph @g(%n: i64[1], %c: bool[1], %x: i64[1]) {\n"
           "  %y = loop(%n, %c, %x) body(%i: i64[1], %go: bool[1], %a: i64[1]) {\n"
           "    %b = add(%a, %i) : i64[1]\n"
           "    return %go, %b\n"
           "  } : i64[1]\n"
           "  return %y\n"
           "}\n",
           "@n = [4] : i64[1]\n@c = [true] : bool[1]\n@x = [10] : i64[1]\n", "@y = [16] : i64[1]\n");
}

Test(eval_flow, stacks_without_an_iteration_are_empty)
{
    expect("graph @g(%n: i64[], %x: f32[N,3]) {\n"
           "  %last, %all, %pairs, %some = loop(%n, _, %x) body(%i: i64[], %go: bool[], %a: f32[N,3]) {\n"
           "    %b = neg(%a) : f32[N,3]\n"
           "    %p = concat(%a, %b) : f32[N*2,3]\n"
           "    %z = non_zero(%a) : i64[2,?]\n"
           "    return %go, %b, %b, %p, %z\n"
           "  } : f32[N,3], f32[?,N,3], f32[*], i64[?,2,?]\n"
           "  return %last, %all, %pairs, %some\n"
           "}\n",
           "@n = [0] : i64[]\n@x = [1, 2, 3, 4, 5, 6] : f32[2,3]\n",
           "@l = [1, 2, 3, 4, 5, 6] : f32[2,3]\n@a = [] : f32[0,2,3]\n@p = [] : f32[0,4,3]\n@s = [] : i64[0,2,0]\n");
}

/* --- scans --- */

#define SCAN(attributes, row, out, types)                                             \
    "graph @g(%s: f32[2], %x: f32[3,2], %y: f32[2,3]) {\n"                            \
    "  %last, %rows = scan(%s, %x, %y) {num_scan_inputs=2" attributes "}\n"           \
    "    body(%a: f32[2], %p: f32[2], %q: f32[" row "]) {\n"                          \
    "    %b = add(%a, %p) : f32[2]\n"                                                 \
    "    return %b, " out "\n"                                                        \
    "  } : f32[2], " types "\n"                                                       \
    "  return %last, %rows\n"                                                         \
    "}\n"

#define SCANNED "@s = [0, 0] : f32[2]\n@x = [1, 2, 3, 4, 5, 6] : f32[3,2]\n@y = [1, 2, 3, 10, 20, 30] : f32[2,3]\n"

Test(eval_flow, scans_have_axes_and_directions)
{
    expect(SCAN(", scan_input_axes=[0,1]", "2", "%q", "f32[3,2]"), SCANNED,
           "@l = [9, 12] : f32[2]\n@r = [1, 10, 2, 20, 3, 30] : f32[3,2]\n");
    expect(SCAN(", scan_input_axes=[-2,-1], scan_input_directions=[0,1]", "2", "%q", "f32[3,2]"), SCANNED,
           "@l = [9, 12] : f32[2]\n@r = [3, 30, 2, 20, 1, 10] : f32[3,2]\n");
    expect(SCAN(", scan_input_axes=[0,1], scan_output_axes=[1]", "2", "%q", "f32[2,3]"), SCANNED,
           "@l = [9, 12] : f32[2]\n@r = [1, 2, 3, 10, 20, 30] : f32[2,3]\n");
    expect(SCAN(", scan_input_axes=[0,1], scan_output_axes=[-1], scan_output_directions=[1]", "2", "%b", "f32[2,3]"), SCANNED,
           "@l = [9, 12] : f32[2]\n@r = [9, 4, 1, 12, 6, 2] : f32[2,3]\n");
    expect(SCAN(", scan_input_axes=[0,1], scan_input_directions=[1,0]", "2", "%b", "f32[3,2]"), SCANNED,
           "@l = [9, 12] : f32[2]\n@r = [5, 6, 8, 10, 9, 12] : f32[3,2]\n");
}

Test(eval_flow, scans_of_nothing_are_empty)
{
    expect("graph @g(%s: f32[2], %x: f32[2,N]) {\n"
           "  %last, %rows = scan(%s, %x) {num_scan_inputs=1, scan_input_axes=[1], scan_output_axes=[-1]}\n"
           "    body(%a: f32[2], %p: f32[2]) {\n"
           "    %b = add(%a, %p) : f32[2]\n"
           "    return %b, %b\n"
           "  } : f32[2], f32[2,N]\n"
           "  return %last, %rows\n"
           "}\n",
           "@s = [3, 4] : f32[2]\n@x = [] : f32[2,0]\n", "@l = [3, 4] : f32[2]\n@r = [] : f32[2,0]\n");
}

/* --- nests --- */

/* %u is read in two loops and behind them, %v in a branch of the inner loop only. */
static const char nest[] =
    "graph @g(%n: i64[], %x: f32[2]) {\n"
    "  %one = const @one : i64[]\n"
    "  %u = neg(%x) : f32[2]\n"
    "  %v = abs(%x) : f32[2]\n"
    "  %w = exp(%x) : f32[2]\n"
    "  %y, %all = loop(%n, _, %x) body(%i: i64[], %go: bool[], %a: f32[2]) {\n"
    "    %k = add(%i, %one) : i64[]\n"
    "    %m = add(%a, %u) : f32[2]\n"
    "    %b = loop(%k, _, %m) body(%j: i64[], %on: bool[], %c: f32[2]) {\n"
    "      %even = equal(%j, %one) : bool[]\n"
    "      %d = if(%even) then {\n"
    "        %t = add(%c, %v) : f32[2]\n"
    "        return %t\n"
    "      } else {\n"
    "        %t = if(%on) then {\n"
    "          %r = sub(%m, %u) : f32[2]\n"
    "          return %r\n"
    "        } else {\n"
    "          return %w\n"
    "        } : f32[2]\n"
    "        return %t\n"
    "      } : f32[2]\n"
    "      return %on, %d\n"
    "    } : f32[2]\n"
    "    return %go, %b, %b\n"
    "  } : f32[2], f32[?,2]\n"
    "  %z = add(%y, %u) : f32[2]\n"
    "  return %z, %all\n"
    "}\n"
    "constants { @one = [1] : i64[] }\n";

Test(eval_flow, nests_read_what_is_around_them)
{
    /* an iteration i: m = a - x; j=0: m + x = a; j=1: a + |x|; j=2: a */
    expect(nest, "@n = [3] : i64[]\n@x = [1, -2] : f32[2]\n",
           "@z = [1, 2] : f32[2]\n@a = [1, -2, 2, 0, 2, 0] : f32[3,2]\n");
    expect(nest, "@n = [0] : i64[]\n@x = [1, -2] : f32[2]\n", "@z = [0, 0] : f32[2]\n@a = [] : f32[0,2]\n");
}

Test(eval_flow, scans_and_branches_nest)
{
    expect("graph @g(%n: i64[], %x: i64[3,2]) {\n"
           "  %zero = const @zero : i64[2]\n"
           "  %s, %all = loop(%n, _, %zero) body(%i: i64[], %go: bool[], %a: i64[2]) {\n"
           "    %b, %rows = scan(%a, %x) {num_scan_inputs=1, scan_input_directions=[1]}\n"
           "      body(%p: i64[2], %q: i64[2]) {\n"
           "      %r = add(%q, %i) : i64[2]\n"
           "      %t = add(%p, %r) : i64[2]\n"
           "      return %t, %r\n"
           "    } : i64[2], i64[3,2]\n"
           "    return %go, %b, %rows\n"
           "  } : i64[2], i64[?,3,2]\n"
           "  return %s, %all\n"
           "}\n"
           "constants { @zero = [0, 0] : i64[2] }\n",
           "@n = [2] : i64[]\n@x = [1, 2, 3, 4, 5, 6] : i64[3,2]\n",
           "@s = [21, 27] : i64[2]\n@a = [5, 6, 3, 4, 1, 2, 6, 7, 4, 5, 2, 3] : i64[2,3,2]\n");
}
// clang-format on

/* --- what is seen and kept --- */

static gboolean
see(const KilnValue *value, KilnTensor **io_tensor, void *data, GError **error)
{
    (void)error;
    GString *seen = data;
    uint8_t element[8];
    cr_assert(kiln_tensor_write(*io_tensor, element, NULL));
    if (value->def->op != KILN_OP_const)
        g_string_append_printf(seen, "%s=%d ", value->name, (int)*(int64_t *)(void *)element);
    return TRUE;
}

Test(eval_flow, each_iteration_is_seen)
{
    g_autoptr(KilnModule) graph = parse("graph @g(%n: i64[], %x: i64[]) {\n"
                                        "  %y = loop(%n, _, %x) body(%i: i64[], %go: bool[], "
                                        "%a: i64[]) {\n"
                                        "    %b = add(%a, %i) : i64[]\n"
                                        "    return %go, %b\n"
                                        "  } : i64[]\n"
                                        "  return %y\n"
                                        "}\n");
    g_autoptr(KilnModule) inputs = parse_tensors("@n = [3] : i64[]\n@x = [5] : i64[]\n");
    g_autoptr(GString) seen = g_string_new(NULL);
    const KilnWatch watch = { .see = see, .data = seen };
    cr_assert(evaluate(graph, inputs, &watch, NULL, NULL));
    cr_assert_str_eq(seen->str, "b=5 b=6 b=8 y=8 ");
}

/* A loop in a scan: of each depth one iteration, or all. */
Test(eval_flow, values_of_one_iteration_are_seen)
{
    static const struct {
        uint32_t n;
        int64_t numbers[3];
        bool found;
        const char *seen;
    } cases[] = {
        { 0, { 0 }, false, "a=1 c=1 c=2 s=2 d=3 a=4 c=4 c=5 s=5 d=6 t=6 " },
        { 1, { 1 }, true, "a=4 c=4 c=5 s=5 d=6 t=6 " },
        { 2, { 0, 1 }, true, "a=1 c=2 s=2 d=3 t=6 " },
        { 2, { 1, 2 }, false, "a=4 s=5 d=6 t=6 " },
        { 1, { 2 }, false, "t=6 " },
        { 3, { 0, 0, 0 }, false, "a=1 c=1 s=2 d=3 t=6 " },
    };
    g_autoptr(KilnModule) graph =
        parse("graph @g(%n: i64[], %x: i64[], %k: i64[2]) {\n"
              "  %t = scan(%x, %k) {num_scan_inputs=1} body(%q: i64[], %r: i64[]) {\n"
              "    %a = add(%q, %r) : i64[]\n"
              "    %s = loop(%n, _, %a) body(%i: i64[], %go: bool[], %b: i64[]) {\n"
              "      %c = add(%b, %i) : i64[]\n"
              "      return %go, %c\n"
              "    } : i64[]\n"
              "    %d = add(%s, %r) : i64[]\n"
              "    return %d\n"
              "  } : i64[]\n"
              "  return %t\n"
              "}\n");
    g_autoptr(KilnModule) inputs =
        parse_tensors("@n = [2] : i64[]\n@x = [0] : i64[]\n@k = [1, 1] : i64[2]\n");
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GString) seen = g_string_new(NULL);
        KilnIterations only = { .numbers = cases[i].numbers, .n = cases[i].n };
        const KilnWatch watch = { .see = see, .data = seen, .only = &only };
        cr_assert(evaluate(graph, inputs, &watch, NULL, NULL));
        cr_expect_str_eq(seen->str, cases[i].seen, "case %zu: %s", i, seen->str);
        cr_expect_eq(only.found, cases[i].found, "case %zu", i);
    }
}

/* Three tensors of 1 MB are alive at a time: what is carried, what it becomes, what is read around
 * the loop. None of 20 iterations leaves another one. */
static const char big[] = "graph @g(%n: i64[], %x: f32[1]) {\n"
                          "  %s = const @size : i64[1]\n"
                          "  %e = expand(%x, %s) : f32[262144]\n"
                          "  %w = exp(%e) : f32[262144]\n"
                          "  %v = neg(%w) : f32[262144]\n"
                          "  %y = loop(%n, _, %v) body(%i: i64[], %go: bool[], %a: f32[262144]) {\n"
                          "    %b = add(%a, %w) : f32[262144]\n"
                          "    %c = if(%go) then {\n"
                          "      %d = neg(%b) : f32[262144]\n"
                          "      return %d\n"
                          "    } else {\n"
                          "      return %b\n"
                          "    } : f32[262144]\n"
                          "    return %go, %c\n"
                          "  } : f32[262144]\n"
                          "  %z = reduce_max(%y) : f32[1]\n"
                          "  return %z\n"
                          "}\n"
                          "constants { @size = [262144] : i64[1] }\n";

static gboolean
evaluate_within(int64_t bytes, const char *text, const char *given, GError **error)
{
    g_autoptr(KilnModule) graph = parse(text);
    g_autoptr(KilnModule) inputs = parse_tensors(given);
    g_autoptr(KilnBudget) budget = kiln_budget_new(&(KilnLimits){ .bytes = bytes });
    KilnBudget *before = kiln_budget_enter(budget);
    KilnTensor *outputs[MAX_VALUES] = { NULL };
    gboolean good = evaluate(graph, inputs, NULL, outputs, error);
    for (guint i = 0; i < MAX_VALUES; i++)
        kiln_tensor_free(outputs[i]);
    kiln_budget_leave(before);
    return good;
}

Test(eval_flow, values_go_with_their_last_reader)
{
    g_autoptr(GError) error = NULL;
    static const char given[] = "@n = [20] : i64[]\n@x = [0] : f32[1]\n";
    cr_assert(evaluate_within(7 << 19, big, given, &error), "%s", error ? error->message : "");
    cr_assert_not(evaluate_within(5 << 19, big, given, &error));
    cr_assert(g_error_matches(error, KILN_ERROR, KILN_ERROR_LIMIT), "%s", error->message);
}

/* It would never end. */
Test(eval_flow, time_limits_end_loops)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(KilnModule) graph =
        parse("graph @g(%x: i64[]) {\n"
              "  %y = loop(_, _, %x) body(%i: i64[], %go: bool[], %a: i64[]) {\n"
              "    %b = add(%a, %i) : i64[]\n"
              "    return %go, %b\n"
              "  } : i64[]\n"
              "  return %y\n"
              "}\n");
    g_autoptr(KilnModule) inputs = parse_tensors("@x = [1] : i64[]\n");
    g_autoptr(KilnBudget) budget = kiln_budget_new(&(KilnLimits){ .ms = 50 });
    KilnBudget *before = kiln_budget_enter(budget);
    KilnTensor *y = NULL;
    cr_assert_not(evaluate(graph, inputs, NULL, &y, &error));
    kiln_budget_leave(before);
    cr_assert(g_error_matches(error, KILN_ERROR, KILN_ERROR_LIMIT), "%s", error->message);
    cr_assert(strstr(error->message, "y (loop): body: iteration "), "%s", error->message);
}

/* --- failures --- */

// clang-format off
Test(eval_flow, failures_name_regions_and_iterations)
{
    expect_failure("graph @g(%n: i64[], %x: f32[2]) {\n"
                   "  %y, %p = loop(%n, _, %x) body(%i: i64[], %go: bool[], %a: f32[2]) {\n"
                   "    %b = gather(%a, %i) : f32[] loc(\"/pick\")\n"
                   "    return %go, %a, %b\n"
                   "  } : f32[2], f32[?]\n"
                   "  return %y, %p\n"
                   "}\n",
                   "@n = [4] : i64[]\n@x = [1, 2] : f32[2]\n", KILN_ERROR_RUN,
                   "y (loop): body: iteration 2: /pick (gather): an index is out of range");
    expect_failure("graph @g(%n: i64[], %x: f32[2]) {\n"
                   "  %y, %all = loop(%n, _, %x) body(%i: i64[], %go: bool[], %a: f32[?]) {\n"
                   "    %b = concat(%a, %a) : f32[?]\n"
                   "    return %go, %b, %b\n"
                   "  } : f32[?], f32[?,?]\n"
                   "  return %y, %all\n"
                   "}\n",
                   "@n = [4] : i64[]\n@x = [1, 2] : f32[2]\n", KILN_ERROR_SHAPE,
                   "y (loop): body: iteration 1: result 2: expected f32[4] as before, found f32[8]");
    expect_failure("graph @g(%n: i64[], %x: f32[?]) {\n"
                   "  %y = loop(%n, _, %x) body(%i: i64[], %go: bool[], %a: f32[2]) {\n"
                   "    return %go, %x\n"
                   "  } : f32[?]\n"
                   "  return %y\n"
                   "}\n",
                   "@n = [4] : i64[]\n@x = [1] : f32[1]\n", KILN_ERROR_SHAPE,
                   "y (loop): body: iteration 0: a: expected f32[2], found f32[1]");
    expect_failure("graph @g(%n: i64[?], %x: f32[1]) {\n"
                   "  %y = loop(%n, _, %x) body(%i: i64[], %go: bool[], %a: f32[1]) {\n"
                   "    return %go, %a\n"
                   "  } : f32[1]\n"
                   "  return %y\n"
                   "}\n",
                   "@n = [4, 5] : i64[2]\n@x = [1] : f32[1]\n", KILN_ERROR_SHAPE,
                   "y (loop): trip count: expected one element of i64, found i64[2]");
    expect_failure("graph @g(%c: bool[], %x: f32[2], %i: i64[]) {\n"
                   "  %y = if(%c) then {\n"
                   "    %b = gather(%x, %i) : f32[]\n"
                   "    return %b\n"
                   "  } else {\n"
                   "    %b = reduce_sum(%x) {keepdims=false} : f32[]\n"
                   "    return %b\n"
                   "  } : f32[]\n"
                   "  return %y\n"
                   "}\n",
                   "@c = [true] : bool[]\n@x = [1, 2] : f32[2]\n@i = [7] : i64[]\n", KILN_ERROR_RUN,
                   "y (if): then_branch: b (gather): an index is out of range");
}

Test(eval_flow, scans_say_what_does_not_fit)
{
    static const char given[] = "@x = [1, 2, 3] : f32[3]\n@y = [1, 2] : f32[2]\n";
    expect_failure("graph @g(%x: f32[?], %y: f32[?]) {\n"
                   "  %z = scan(%x, %y) {num_scan_inputs=2} body(%a: f32[], %b: f32[]) {\n"
                   "    return %a\n"
                   "  } : f32[?]\n"
                   "  return %z\n"
                   "}\n", given, KILN_ERROR_SHAPE, "z (scan): operand 1: expected length 3, found 2");
}

/* Every allocation of a nest may fail, and leaves nothing behind. */
Test(eval_flow, allocations_may_fail)
{
    g_autoptr(KilnModule) graph = parse(nest);
    g_autoptr(KilnModule) inputs = parse_tensors("@n = [3] : i64[]\n@x = [1, -2] : f32[2]\n");
    unsigned failed = 0;
    for (unsigned nth = 1;; nth++) {
        g_autoptr(GError) error = NULL;
        KilnTensor *outputs[2] = { NULL };
        kiln_alloc_inject_failure(nth);
        gboolean good = evaluate(graph, inputs, NULL, outputs, &error);
        kiln_alloc_inject_failure(0);
        kiln_tensor_free(outputs[0]);
        kiln_tensor_free(outputs[1]);
        if (good)
            break;
        cr_assert(g_error_matches(error, KILN_ERROR, KILN_ERROR_MEMORY), "%s", error->message);
        failed++;
    }
    cr_assert_gt(failed, 10);
}

/* --- models of ONNX --- */

static KilnTensor *
read_tensor(const char *folder, const char *kind, guint i)
{
    g_autofree char *path = g_strdup_printf("%s/%s_%u.pb", folder, kind, i);
    char *data;
    gsize size;
    if (!g_file_get_contents(path, &data, &size, NULL))
        return NULL;
    g_autoptr(GError) error = NULL;
    g_autoptr(GBytes) bytes = g_bytes_new_take(data, size);
    g_autofree char *name = NULL;
    KilnTensor *tensor = kiln_onnx_tensor_parse(bytes, path, &name, &error);
    cr_assert(tensor, "%s", error ? error->message : "");
    return tensor;
}

/* False where there is no such folder. */
static bool
expect_set(const KilnModule *module, const char *folder)
{
    const KilnFunction *entry = kiln_module_entry(module);
    const KilnErrorTerms terms = { .terms = 100 };
    g_autoptr(GError) error = NULL;
    KilnTensor *inputs[MAX_VALUES] = { NULL }, *outputs[MAX_VALUES] = { NULL };
    if (!g_file_test(folder, G_FILE_TEST_IS_DIR))
        return false;
    for (guint i = 0; i < entry->arguments->len; i++)
        inputs[i] = read_tensor(folder, "input", i);
    cr_assert(kiln_graph_evaluate(entry, kiln_ref_target(), (const KilnTensor *const *)inputs,
                                  outputs, &error),
              "%s: %s", folder, error ? error->message : "");
    for (guint i = 0; i < entry->result_names->len; i++) {
        KilnTensor *expected = read_tensor(folder, "output", i);
        cr_assert(expected && kiln_compare_numerics(expected, outputs[i], KILN_NUMERICS_U, &terms,
                                                    &error),
                  "%s, output %u: %s", folder, i, error ? error->message : "");
        kiln_tensor_free(expected);
    }
    for (guint i = 0; i < MAX_VALUES; i++) {
        kiln_tensor_free(inputs[i]);
        kiln_tensor_free(outputs[i]);
    }
    return true;
}

Test(eval_flow, models_of_onnx_have_their_outputs)
{
    static const char folder[] = KILN_SOURCE_DIR "/tests/onnx/flow";
    g_autoptr(GDir) dir = g_dir_open(folder, 0, NULL);
    unsigned sets = 0;
    cr_assert(dir);
    for (const char *name; (name = g_dir_read_name(dir));) {
        g_autoptr(GError) error = NULL;
        g_autofree char *path = g_strdup_printf("%s/%s/model.onnx", folder, name);
        g_autoptr(KilnModule) module = kiln_onnx_import_file(path, &error);
        cr_assert(module, "%s: %s", name, error ? error->message : "");
        for (unsigned n = 0;; n++) {
            g_autofree char *set = g_strdup_printf("%s/%s/test_data_set_%u", folder, name, n);
            if (!expect_set(module, set))
                break;
            sets++;
        }
    }
    cr_assert_geq(sets, 20);
}
