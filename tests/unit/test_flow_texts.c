/* SPDX-License-Identifier: Apache-2.0 */
/* Texts with branches and loops that are wrong in one place: each is refused with a message, and no
 * body runs on buffers that it does not fit. */
#include "graph/text/text.h"
#include "ir/ir.h"

#include <criterion/criterion.h>
#include <string.h>

/* A text that passes, and what takes the place of all that equals @old. */
typedef struct {
    const char *old, *new;
    const char *error; /* a part of the message; NULL: accepted */
} Case;

static char *
changed(const char *text, const Case *row)
{
    g_auto(GStrv) parts = g_strsplit(text, row->old, -1);
    cr_assert(parts[0] && parts[1], "%s: not in the text", row->old);
    return g_strjoinv(row->new, parts);
}

static KilnIRModule *
parse(const char *text, GError **error)
{
    return kiln_ir_module_parse(text, strlen(text), "t.kiln", error);
}

static void
expect(const char *text, const Case *cases, size_t n)
{
    g_autoptr(GError) why = NULL;
    g_autoptr(KilnIRModule) base = parse(text, &why);
    cr_assert(base, "%s", why ? why->message : "");
    for (size_t i = 0; i < n; i++) {
        const Case *row = &cases[i];
        g_autofree char *wrong = changed(text, row);
        g_autoptr(GError) error = NULL;
        g_autoptr(KilnIRModule) ir = parse(wrong, &error);
        if (!row->error) {
            cr_expect(ir, "%s: %s", row->new, error ? error->message : "");
            continue;
        }
        cr_expect_null(ir, "accepted: %s -> %s", row->old, row->new);
        cr_expect(error && strstr(error->message, row->error), "%s -> %s: expected %s, found %s",
                  row->old, row->new, row->error, error ? error->message : "none");
    }
}

/* --- the IR level --- */

static const char scan[] =
    "func @body {\n"
    "  input @i : i64[]\n  input @c : bool[]\n"
    "  input @a : f32[2]\n  input @p : f32[2]\n  input @w : f32[2]\n"
    "  output @more : bool[]\n  output @b : f32[2]\n  output @s : f32[2]\n"
    "  add @out @b, @in @a, @in @p\n"
    "  mul @out @s, @in @b, @in @w\n"
    "  copy @out @more, @in @c\n"
    "}\n"
    "func @g {\n"
    "  input @n : i64[]\n  input @go : bool[]\n"
    "  input @x : f32[2]\n  input @y : f32[3,2]\n  input @z : f32[3,2]\n  input @v : f32[2]\n"
    "  output @last : f32[2]\n  output @all : f32[3,2]\n"
    "  loop @out @last, @out @all, @in @x, @in @y, @in @v {body=\"body\", asks=true, carried=1, "
    "scanned=1}\n"
    "}\n";

#define LOOP                                                                                       \
    "loop @out @last, @out @all, @in @x, @in @y, @in @v {body=\"body\", asks=true, carried=1, "    \
    "scanned=1}"

// clang-format off
Test(flow_texts, loops)
{
    static const Case cases[] = {
        { "carried=1", "carried=1", NULL },
        /* the body */
        { "body=\"body\"", "body=\"other\"", "no func of the module has the name of its body" },
        { "body=\"body\"", "body=\"g\"", "@g runs itself" },
        { "  input @w : f32[2]\n", "  input @w : f32[2]\n  input @u : f32[2]\n", "@body: expected 5 inputs, found 6" },
        { "  input @i : i64[]\n", "  input @i : i64[9]\n", "@body: input 0, the iteration: expected one i64, found i64[9]" },
        { "  input @i : i64[]\n", "  input @i : i32[]\n", "@body: input 0, the iteration: expected one i64, found i32[]" },
        { "bool[]\n  input @a", "bool[7]\n  input @a", "(copy): operand 1 (c): expected bool[], found bool[7]" },
        { "  copy @out @more, @in @c\n", "  less @out @more, @in @p, @in @a\n", "expected" },
        { "asks=true", "asks=false", "@body: expected 2 outputs, found 3" },
        { "f32[2]\n  output @more : bool[]", "f32[2]\n  output @more : f32[2]", "expected" },
        { "input @a : f32[2]\n  input @p : f32[2]\n", "input @a : f32[900]\n  input @p : f32[2]\n", "expected" },
        /* what it is given */
        { "@in @x, @in @y, @in @v {", "@in @y, @in @y, @in @v {", "operand 2 (y): expected f32[2], found f32[3,2]" },
        { "@in @x, @in @y, @in @v {", "@in @x, @in @x, @in @v {", "operand 3 (x): expected a stack of f32[2], found f32[2]" },
        { "@in @x, @in @y, @in @v {", "@in @x, @in @y, @in @n {", "operand 4 (n): expected f32[2], found i64[]" },
        { "@in @x, @in @y, @in @v {", "@in @x, @in @y, _ {", "operand 4 is required" },
        { "@in @x, @in @y, @in @v {", "@in @x, @in @y {", "@body: expected 4 inputs, found 5" },
        { "input @x : f32[2]", "input @x : f32[1]", "operand 2 (x): expected f32[2], found f32[1]" },
        { "input @y : f32[3,2]", "input @y : f32[3,1]", "operand 3 (y): expected a stack of f32[2], found f32[3,1]" },
        { "input @x : f32[2]", "input @x : i32[2]", "operand 2 (x): expected f32[2], found i32[2]" },
        { "@out @last, @out @all, @in", "@out @last, @inout @all, @in", "loop: operand 1: expected @out, found @inout" },
        { "@out @last, @out @all, @in @x", "@out @last, @out @all, @inout @x", "loop: operand 2: expected @out, found @inout" },
        { "@out @last, @out @all, @in @x", "@out @last, @in @x, @out @all", "loop: operand 2: expected @in, found @out" },
        /* what it gives */
        { "@out @last, @out @all", "@out @all, @out @last", "operand 0 (all): expected the rank and element type of f32[2]" },
        { "output @all : f32[3,2]", "output @all : i32[3,2]", "operand 1 (all): expected a stack of the rank and element type of f32[2]" },
        /* attributes */
        { "carried=1, scanned=1", "carried=3, scanned=1", "expected 6 operands or more, found 5" },
        { "carried=1, scanned=1", "carried=-1, scanned=1", "carried, scanned: expected numbers of operands, of which there are 5, found -1 and 1" },
        { "carried=1, scanned=1", "carried=1, scanned=99", "carried, scanned: expected numbers of operands" },
        { "carried=1, scanned=1", "carried=5, scanned=5", "expected 12 operands or more, found 5" },
        { "scanned=1}", "scanned=1, limited=true}", "operand 2 (x): expected one i64" },
        { "scanned=1}", "scanned=1, names=[\"n\"]}", "expected a number for each of 1 names, found 0" },
        { "scanned=1}", "scanned=1, decided=[0]}", "decided: expected pairs of a result and a dim, in order" },
        { "scanned=1}", "scanned=1, decided=[7,0]}", "decided: expected pairs" },
        { "scanned=1}", "scanned=1, decided=[0,0]}", "" },
        { "scanned=1}", "scanned=1, backwards=[1,0]}", NULL },
        { "scanned=1}", "scanned=1, backwards=[1]}", "backwards: expected a flag for each of 2 scanned operands and stacked results, found 1" },
        { "scanned=1}", "scanned=1, backwards=[2,0]}", "backwards: expected 0 or 1, found 2" },
        { "scanned=1}", "scanned=1, backwards=[0,1]}", "backwards: expected a loop that scans to the end" },
        { "asks=true, carried=1, scanned=1}", "carried=2, scanned=0, limited=true}", "expected" },
        { LOOP, "loop @out @last, @out @all, @in @x, @in @y, @in @z, @in @v {body=\"body\", asks=true, carried=1, scanned=2}", "@body: expected 6 inputs, found 5" },
        { LOOP, LOOP "\n  " LOOP, NULL },
    };
    expect(scan, cases, G_N_ELEMENTS(cases));
}

static const char open[] =
    "func @b {\n  dims n=3\n"
    "  input @i : i64[]\n  input @c : bool[]\n  input @p : f32[2]\n  output @s : f32[2]\n"
    "  neg @out @s, @in @p\n}\n"
    "func @g {\n  dims n=3\n  input @x : f32[n,2]\n  output @all : f32[n,2]\n"
    "  loop @out @all, @in @x {body=\"b\", scanned=1}\n}\n";

Test(flow_texts, open_functions)
{
    static const Case cases[] = {
        { "func @b {\n  dims n=3\n", "func @b {\n", "@b: expected a func with dims, as @g has them, found one without" },
    };
    expect(open, cases, G_N_ELEMENTS(cases));
}

static const char branch[] =
    "func @yes {\n  dims n=2\n  input @x : f32[2]\n  output @t : f32[4]\n  concat @out @t, @in @x, @in @x\n}\n"
    "func @no {\n  dims n=2\n  input @x : f32[2]\n  output @e : f32[2]\n  neg @out @e, @in @x\n}\n"
    "func @g {\n  dims n=2\n  input @c : bool[]\n  input @x : f32[2]\n  input @k : i64[1]\n  output @y : f32[n]\n"
    "  %counts = alloc : i64[1]\n  %held = alloc : i64[1]\n"
    "  branch @out %counts, @out %held, @in @c, @in @x {then=\"yes\", otherwise=\"no\", decided=[0,0]}\n"
    "  define @in %counts {values=[n], most=[4]}\n"
    "  take @out @y, @in %held\n"
    "  dealloc %counts\n  dealloc %held\n}\n"
    "dims {\n  n: least=0, most=4\n}\n";

Test(flow_texts, branches)
{
    static const Case cases[] = {
        { "otherwise=\"no\"", "otherwise=\"yes\"", NULL },
        { "func @no {\n  dims n=2", "func @no {", "@no: expected a func with dims, as @g has them, found one without" },
        { "otherwise=\"no\"", "otherwise=\"g\"", "@g runs itself" },
        { "otherwise=\"no\", ", "", "no func of the module has the name of a branch" },
        { "input @c : bool[]", "input @c : bool[3]", "operand 2 (c): expected one bool, found bool[3]" },
        { "input @c : bool[]", "input @c : i64[]", "operand 2 (c): expected one bool, found i64[]" },
        { "decided=[0,0]", "decided=[0,1]", "decided: result 0: expected a dim below its rank 1, found 1" },
        { "decided=[0,0]", "decided=[0,0,0,0]", "decided: expected pairs" },
        { ", decided=[0,0]", "", "expected" },
        { "branch @out %counts, @out %held,", "branch @out %counts,", "expected" },
        { "%counts = alloc : i64[1]", "%counts = alloc : i64[3]", "expected a list of i64" },
        { "%held = alloc : i64[1]", "%held = alloc : i32[1]", "expected a list of i64" },
        { "output @e : f32[2]\n  neg", "output @e : f32[2]\n  output @more : f32[2]\n  neg @out @more, @in @x\n  neg", "@no: expected 1 outputs, found 2" },
        { "input @x : f32[2]\n  output @e : f32[2]", "input @x : f32[5]\n  output @e : f32[5]", "operand 3 (x): expected f32[5], found f32[2]" },
        /* held results */
        { "take @out @y, @in %held", "take @out @y, @in %held {index=1}", "expected a list that has the index" },
        { "take @out @y, @in %held", "take @out @y, @in %held {index=-1}", "expected a list that has the index" },
        { "take @out @y, @in %held", "take @out @y, @in @k", "expected a list of held results that a branch or loop alone writes" },
        { "take @out @y, @in %held", "take @out @y, @in %counts", "expected a list of held results that a branch or loop alone writes" },
        { "  take", "  copy @out %held, @in @k\n  take", "expected a list of held results that a branch or loop alone writes" },
        { "output @y : f32[n]", "output @y : i64[n]", "operand 0 (y): expected the rank and element type of f32[4], found i64[n]" },
        { "output @y : f32[n]", "output @y : f32[n,1]", "operand 0 (y): expected the rank and element type of f32[4]" },
    };
    expect(branch, cases, G_N_ELEMENTS(cases));
}
// clang-format on

/* Functions in each other, up to @depth. */
static char *
nest(int depth)
{
    GString *text = g_string_new("func @f0 {\n  input @c : bool[]\n  output @y : bool[]\n"
                                 "  copy @out @y, @in @c\n}\n");
    for (int i = 1; i <= depth; i++)
        g_string_append_printf(text,
                               "func @e%d {\n  input @c : bool[]\n  output @y : bool[]\n"
                               "  copy @out @y, @in @c\n}\n"
                               "func @f%d {\n  input @c : bool[]\n  output @y : bool[]\n"
                               "  branch @out @y, @in @c, @in @c {then=\"f%d\", "
                               "otherwise=\"e%d\"}\n}\n",
                               i, i, i - 1, i);
    return g_string_free(text, FALSE);
}

Test(flow_texts, depth)
{
    g_autofree char *good = nest(60), *deep = nest(300);
    g_autoptr(GError) error = NULL;
    g_autoptr(KilnIRModule) ir = parse(good, &error);
    cr_assert(ir, "%s", error ? error->message : "");
    g_autoptr(KilnIRModule) none = parse(deep, &error);
    cr_assert_null(none);
    cr_assert(strstr(error->message, "expected at most 64 branches and loops in each other"), "%s",
              error->message);
}

/* --- the graph level --- */

static const char graph[] =
    "graph @g(%n: i64[], %go: bool[], %x: f32[3], %y: f32[3]) {\n"
    "  %l, %p = loop(%n, %go, %x) body(%i: i64[], %c: bool[], %a: f32[3]) {\n"
    "    %b = neg(%a) : f32[3]\n"
    "    return %c, %b, %a\n"
    "  } : f32[3], f32[?,3]\n"
    "  %s, %t = scan(%n, %x, %y) {num_scan_inputs=2} body(%k: i64[], %u: f32[], %v: f32[]) {\n"
    "    %w = add(%u, %v) : f32[]\n"
    "    return %k, %w\n"
    "  } : i64[], f32[3]\n"
    "  return %l, %p, %s, %t\n"
    "}\n";

// clang-format off
Test(flow_texts, graphs)
{
    static const Case cases[] = {
        { "loop(%n, %go, %x)", "loop(_, _, %x)", NULL },
        { "loop(%n, %go, %x)", "loop(%x, %go, %x)", "l (loop): operand 0, the trip count: expected one i64, found f32[3]" },
        { "loop(%n, %go, %x)", "loop(%n, %n, %x)", "l (loop): operand 1, the condition: expected one bool, found i64[]" },
        { "loop(%n, %go, %x)", "loop(%n, %go, %n)", "argument 2: expected the element type of i64[], found f32[3]" },
        { "loop(%n, %go, %x)", "loop(%n, %go, _)", "l (loop): operand 2 is missing" },
        { "loop(%n, %go, %x)", "loop(%n, %go)", "expected 2 arguments, found 3" },
        { "body(%i: i64[]", "body(%i: f32[]", "argument 0 of the body, the iteration: expected one i64, found f32[]" },
        { "%c: bool[]", "%c: i64[]", "argument 1 of the body, the condition: expected one bool, found i64[]" },
        { "return %c, %b, %a", "return %i, %b, %a", "result 0 of the body, the condition: expected one bool, found i64[]" },
        { "return %c, %b, %a", "return %c, %b", "expected 3 results, found 2" },
        { "f32[3], f32[?,3]", "f32[3], f32[?]", "result 1: expected a stack of f32[3], found f32[?]" },
        { "num_scan_inputs=2", "num_scan_inputs=0", "num_scan_inputs: expected 1 to 3, the number of operands, found 0" },
        { "num_scan_inputs=2", "num_scan_inputs=4", "num_scan_inputs: expected 1 to 3, the number of operands, found 4" },
        { "%y: f32[3]", "%y: f32[2]", "s (scan): operand 2: expected length 3 along its axis, as operand 1 has, found 2" },
        { "num_scan_inputs=2", "num_scan_inputs=2, scan_input_axes=[0,-1]", NULL },
        { "num_scan_inputs=2", "num_scan_inputs=2, scan_input_axes=[0,1]", "operand 2: expected an axis of rank 1 to scan, found axis 1" },
        { "num_scan_inputs=2", "num_scan_inputs=2, scan_input_axes=[0]", "scan_input_axes: expected a number for each of 2 scanned operands, found 1" },
        { "num_scan_inputs=2", "num_scan_inputs=2, scan_input_directions=[0,2]", "scan_input_directions: expected 0 (forward) or 1 (backward), found 2" },
        { "num_scan_inputs=2", "num_scan_inputs=2, scan_output_directions=[-1]", "scan_output_directions: expected 0 (forward) or 1 (backward), found -1" },
        { "num_scan_inputs=2", "num_scan_inputs=2, scan_output_axes=[0,0]", "scan_output_axes: expected a number for each of 1 stacked results, found 2" },
        { "num_scan_inputs=2", "num_scan_inputs=2, scan_output_axes=[-2]", "result 1: expected an axis of rank 1 to stack along, found axis -2" },
        { "%u: f32[], ", "%u: f32[3], ", "w (add): result 0: expected f32[3], found f32[] stated" },
    };
    expect(graph, cases, G_N_ELEMENTS(cases));
}
// clang-format on

/* More names than a node may define. */
Test(flow_texts, names)
{
    GString *dims = g_string_new("dims=[");
    for (int i = 0; i < 65; i++)
        g_string_append_printf(dims, "%s\"d%d\"", i ? ", " : "", i);
    g_string_append(dims, "], num_scan_inputs=2");
    const Case row = { "num_scan_inputs=2", dims->str,
                       "dims: expected at most 64 names, found 65" };
    expect(graph, &row, 1);
    g_string_free(dims, TRUE);
}

Test(flow_texts, graphs_in_each_other)
{
    enum {
        DEPTH = 3000
    };
    GString *text = g_string_new("graph @g(%c: bool[]) {\n");
    for (int i = 0; i < DEPTH; i++)
        g_string_append_printf(text, "%%y%d = if(%%c) then {\n", i);
    g_string_append(text, "return %c\n");
    for (int i = DEPTH; i-- > 0;)
        g_string_append_printf(text, "} else {\nreturn %%c\n} : bool[]\nreturn %%y%d\n", i);
    g_string_append(text, "}\n");
    g_autoptr(GError) error = NULL;
    g_autoptr(KilnIRModule) ir = parse(text->str, &error);
    cr_assert_null(ir);
    cr_expect(strstr(error->message, "deep") || strstr(error->message, "in each other"), "%s",
              error->message);
    g_string_free(text, TRUE);
}
