/* SPDX-License-Identifier: Apache-2.0 */
/* If and Loop of ONNX where the shapes decide what runs: as PyTorch writes x.squeeze(1), an If of
 * the extent whose branches have results of different rank, one of which does not fit. */
#include "tests/unit/onnx_builder.h"

#include "graph/kiln-types.h"

#include <string.h>

static GByteArray *
branch(const char *op, const char *inputs)
{
    GByteArray *graph = onnx_graph_new("b");
    onnx_node(graph, op, inputs, "t", NULL);
    onnx_output(graph, "t", ONNX_F32, NULL);
    return graph;
}

static void
put_integers(GByteArray *graph, const char *name, const char *dims, int64_t value)
{
    onnx_initializer(graph, onnx_tensor(name, ONNX_I64, dims, &value, sizeof value));
}

/* x of @dims, and `c`: whether its dim 1 is @extent. */
static GByteArray *
graph_of(const char *dims, int64_t extent)
{
    GByteArray *graph = onnx_graph_new("g");
    onnx_input(graph, "x", ONNX_F32, dims);
    put_integers(graph, "one", "1", 1);
    put_integers(graph, "extent", "1", extent);
    onnx_node(graph, "Shape", "x", "s", NULL);
    onnx_node(graph, "Gather", "s,one", "d", NULL);
    onnx_node(graph, "Equal", "d,extent", "e", NULL);
    onnx_node(graph, "Squeeze", "e", "c", NULL);
    return graph;
}

static char *
imported(GByteArray *graph)
{
    return onnx_imported(onnx_model(graph, 8, 13));
}

/* Takes both branches over. */
static void
put_if(GByteArray *graph, const char *condition, const char *results, GByteArray *then,
       GByteArray *otherwise)
{
    onnx_node(graph, "If", condition, results, onnx_graph("then_branch", then),
              onnx_graph("else_branch", otherwise), NULL);
}

static void
put_squeeze(GByteArray *graph, const char *result)
{
    put_if(graph, "c", result, branch("Squeeze", "x,one"), branch("Neg", "x"));
}

/* y = relu of what that If makes of x of @dims. */
static char *
relu_of_squeezed(const char *dims)
{
    GByteArray *graph = graph_of(dims, 1);
    put_squeeze(graph, "r");
    onnx_node(graph, "Relu", "r", "y", NULL);
    onnx_output(graph, "y", ONNX_F32, NULL);
    return imported(graph);
}

/* A graph of an If alone whose condition is an input, and whose branches are those. */
static GByteArray *
graph_of_unknown(GByteArray *then, GByteArray *otherwise)
{
    GByteArray *graph = graph_of("2,3,4", 1);
    onnx_input(graph, "b", ONNX_BOOL, "");
    put_if(graph, "b", "y", then, otherwise);
    onnx_output(graph, "y", ONNX_F32, NULL);
    return graph;
}

#define expect_line(text, line) cr_expect(strstr((text), (line)), "no '%s' in\n%s", (line), (text))

Test(onnx_flow, the_branch_not_taken_need_not_fit)
{
    g_autofree char *text = relu_of_squeezed("2,3,4");
    expect_line(text, "%r = neg(%x) : f32[2,3,4]\n");
    expect_line(text, "%y = relu(%r) : f32[2,3,4]\n");
    cr_expect_null(strstr(text, "squeeze(%x"), "%s", text);
}

Test(onnx_flow, the_branch_taken_decides_the_rank)
{
    g_autofree char *text = relu_of_squeezed("2,1,4");
    expect_line(text, "%r = squeeze(%x, %one) : f32[2,4]\n");
    expect_line(text, "%y = relu(%r) : f32[2,4]\n");
}

Test(onnx_flow, the_branch_taken_has_to_fit)
{
    GByteArray *graph = graph_of("2,3,4", 3);
    put_squeeze(graph, "y");
    onnx_output(graph, "y", ONNX_F32, NULL);
    onnx_expect_error(graph, 13, KILN_ERROR_SHAPE,
                      "y (If): then_branch: t (squeeze): operand 0: expected dim 1 to be 1, found "
                      "f32[2,3,4]");
}

Test(onnx_flow, open_extents_leave_both)
{
    GByteArray *graph = graph_of("2,N,4", 1);
    put_squeeze(graph, "y");
    onnx_output(graph, "y", ONNX_F32, NULL);
    g_autofree char *text = imported(graph);
    expect_line(text, "%y = if(%c) then @b {\n    %t = squeeze(%x, %one) : f32[2,4]\n");
    expect_line(text, "%t = neg(%x) : f32[2,N,4]\n    return %t\n  } : f32[*]\n");
}

/* Whether it runs is not known, and it is no error of the model before it does. */
Test(onnx_flow, a_branch_that_may_be_taken_says_why_it_cannot)
{
    GByteArray *graph = graph_of_unknown(branch("Squeeze", "x,one"), branch("Neg", "x"));
    g_autofree char *text = imported(graph);
    expect_line(text, "unknown() {reason=\"t (squeeze): operand 0: expected dim 1 to be 1, found "
                      "f32[2,3,4]\", mismatch=true} : f32[2,3,4]\n");
    expect_line(text, "} : f32[2,3,4]\n  return %y\n");
}

Test(onnx_flow, one_branch_has_to_fit)
{
    GByteArray *graph = graph_of_unknown(branch("Squeeze", "x,one"), branch("Squeeze", "x,one"));
    onnx_expect_error(graph, 13, KILN_ERROR_SHAPE, "y (If): neither branch can run: t (squeeze): ");
}

/* What is no matter of shapes is wrong wherever it stands, and so is a branch that is not there. */
Test(onnx_flow, a_broken_branch_is_an_error)
{
    GByteArray *graph = graph_of("2,N,4", 1);
    put_if(graph, "c", "y", branch("Neg", "nowhere"), branch("Neg", "x"));
    onnx_output(graph, "y", ONNX_F32, NULL);
    onnx_expect_error(graph, 13, KILN_ERROR_INVALID, "reads 'nowhere', which nothing computes");
    graph = graph_of("2,3,4", 1);
    onnx_node(graph, "If", "c", "y", onnx_graph("else_branch", branch("Neg", "x")), NULL);
    onnx_output(graph, "y", ONNX_F32, NULL);
    onnx_expect_error(graph, 13, KILN_ERROR_INVALID, "lacks the attribute 'then_branch'");
}

/* Branches of two Ifs, and the graph behind them, use one name each for something else. */
Test(onnx_flow, names_in_branches_are_their_own)
{
    GByteArray *graph = graph_of("2,3,4", 1);
    put_squeeze(graph, "a");
    put_squeeze(graph, "b");
    onnx_node(graph, "Add", "a,b", "t", NULL);
    onnx_node(graph, "Relu", "t", "y", NULL);
    onnx_output(graph, "y", ONNX_F32, NULL);
    g_autofree char *text = imported(graph);
    expect_line(text, "%a = neg(%x) : f32[2,3,4]\n  %b = neg(%x) : f32[2,3,4]\n"
                      "  %t = add(%a, %b) : f32[2,3,4]\n  %y = relu(%t) : f32[2,3,4]\n");
}

/* A branch may hand on what is around it, more than once; a result has a name of its own. */
Test(onnx_flow, branches_hand_on_what_they_see)
{
    GByteArray *graph = graph_of("2,3,4", 3);
    GByteArray *then = onnx_graph_new("t");
    onnx_node(then, "Neg", "x", "n", NULL);
    onnx_output(then, "n", ONNX_F32, NULL);
    onnx_output(then, "x", ONNX_F32, NULL);
    GByteArray *otherwise = onnx_graph_new("o");
    onnx_node(otherwise, "Squeeze", "x,one", "n", NULL);
    onnx_output(otherwise, "n", ONNX_F32, NULL);
    onnx_output(otherwise, "x", ONNX_F32, NULL);
    put_if(graph, "c", "a,b", then, otherwise);
    onnx_node(graph, "Add", "a,b", "y", NULL);
    onnx_output(graph, "y", ONNX_F32, NULL);
    g_autofree char *text = imported(graph);
    expect_line(text, "%a = neg(%x) : f32[2,3,4]\n  %b = identity(%x) : f32[2,3,4]\n"
                      "  %y = add(%a, %b) : f32[2,3,4]\n");
}

/* The body does not fit what is carried, and stacks what has an open extent. */
Test(onnx_flow, a_loop_without_an_iteration)
{
    GByteArray *body = onnx_loop_body("2,3,4");
    onnx_node(body, "Squeeze", "v,one", "w", NULL);
    onnx_node(body, "Neg", "v", "e", NULL);
    onnx_output(body, "w", ONNX_F32, NULL);
    onnx_output(body, "e", ONNX_F32, "2,M,4");
    GByteArray *graph = graph_of("2,3,4", 1);
    onnx_node(graph, "Loop", ",c,x", "y,all", onnx_graph("body", body), NULL);
    onnx_output(graph, "y", ONNX_F32, NULL);
    onnx_output(graph, "all", ONNX_F32, NULL);
    g_autofree char *text = imported(graph);
    expect_line(text, "%y = identity(%x) : f32[2,3,4]\n");
    expect_line(text, "%all = const @");
    expect_line(text, " : f32[0,2,0,4]\n");
}

/* Loops without an iteration, one in the body of the next, each with two results whose types are
 * those of its body alone: what is in the innermost one is looked at once. */
Test(onnx_flow, loops_without_an_iteration_in_each_other, .timeout = 20)
{
    enum {
        DEPTH = 40
    };
    GByteArray *inner = NULL;
    for (unsigned depth = 0; depth <= DEPTH; depth++) {
        GByteArray *body = onnx_graph_new("body");
        onnx_input(body, "i", ONNX_I64, "");
        onnx_input(body, "go", ONNX_BOOL, "");
        if (inner)
            onnx_node(body, "Loop", ",c", "a,b", onnx_graph("body", inner), NULL);
        onnx_node(body, "Identity", "go", "on", NULL);
        onnx_node(body, "Neg", "x", "e", NULL);
        onnx_node(body, "Relu", "x", "f", NULL);
        onnx_output(body, "on", ONNX_BOOL, "");
        onnx_output(body, "e", ONNX_F32, NULL);
        onnx_output(body, "f", ONNX_F32, NULL);
        inner = body;
    }
    GByteArray *graph = graph_of("2,3,4", 1);
    onnx_node(graph, "Loop", ",c", "y,z", onnx_graph("body", inner), NULL);
    onnx_output(graph, "y", ONNX_F32, NULL);
    onnx_output(graph, "z", ONNX_F32, NULL);
    g_autofree char *text = imported(graph);
    expect_line(text, " : f32[0,2,3,4]\n");
}

/* --- Scan --- */

/* A scan of x, f32 of @x, and y, f32 of @y, in a state s of f32[2], with an attribute @attr. */
static GByteArray *
graph_of_scan(const char *x, const char *y, int64_t scanned, GByteArray *attr)
{
    GByteArray *body = onnx_graph_new("b"), *graph = onnx_graph_new("g");
    onnx_input(body, "a", ONNX_F32, NULL);
    onnx_input(body, "p", ONNX_F32, NULL);
    onnx_input(body, "q", ONNX_F32, NULL);
    onnx_node(body, "Add", "a,p", "t", NULL);
    onnx_node(body, "Mul", "p,q", "u", NULL);
    onnx_output(body, "t", ONNX_F32, NULL);
    onnx_output(body, "u", ONNX_F32, NULL);
    onnx_input(graph, "s", ONNX_F32, "2");
    onnx_input(graph, "x", ONNX_F32, x);
    onnx_input(graph, "y", ONNX_F32, y);
    onnx_node(graph, "Scan", "s,x,y", "last,all", onnx_graph("body", body),
              onnx_int("num_scan_inputs", scanned), attr, NULL);
    onnx_output(graph, "last", ONNX_F32, NULL);
    onnx_output(graph, "all", ONNX_F32, NULL);
    return graph;
}

/* The same in the form of opset 8, with @lengths (NULL: none) of @dtype in front. */
static GByteArray *
graph_of_scan_8(const char *lengths, int dtype, int64_t scanned, GByteArray *directions,
                const char *x)
{
    GByteArray *body = onnx_graph_new("b"), *graph = onnx_graph_new("g");
    onnx_input(body, "p", ONNX_F32, NULL);
    onnx_input(body, "q", ONNX_F32, NULL);
    onnx_node(body, "Mul", "p,q", "u", NULL);
    onnx_output(body, "u", ONNX_F32, NULL);
    onnx_input(graph, "n", dtype, lengths ? lengths : "3");
    onnx_input(graph, "x", ONNX_F32, x);
    onnx_input(graph, "y", ONNX_F32, "3,4");
    onnx_node(graph, "Scan", lengths ? "n,x,y" : ",x,y", "all", onnx_graph("body", body),
              onnx_int("num_scan_inputs", scanned), directions, NULL);
    onnx_output(graph, "all", ONNX_F32, NULL);
    return graph;
}

static GByteArray *
pair(const char *name, int64_t a, int64_t b)
{
    return onnx_ints(name, 2, (const int64_t[]){ a, b });
}

// clang-format off
Test(onnx_flow, scans_say_what_does_not_fit)
{
    static const struct {
        const char *x, *y;
        int64_t scanned;
        const char *attr;
        int64_t a, b;
        KilnError code;
        const char *error;
    } cases[] = {
        { "3,2", "4,2", 2, "scan_input_axes", 0, 0, KILN_ERROR_SHAPE, "operand 2: expected length 3 along its axis, as operand 1 has, found 4" },
        { "3,2", "2,3", 2, "scan_input_axes", 0, 2, KILN_ERROR_SHAPE, "operand 2: expected an axis of rank 2 to scan, found axis 2" },
        { "3,2", "2,3", 2, "scan_input_axes", 0, -3, KILN_ERROR_SHAPE, "operand 2: expected an axis of rank 2 to scan, found axis -3" },
        { "3,2", "3,2", 2, "scan_input_directions", 0, 2, KILN_ERROR_INVALID, "scan_input_directions: expected 0 (forward) or 1 (backward), found 2" },
        { "3,2", "3,2", 2, "scan_input_directions", -1, 0, KILN_ERROR_INVALID, "scan_input_directions: expected 0 (forward) or 1 (backward), found -1" },
        { "3,2", "3,2", 2, "scan_output_directions", 0, 0, KILN_ERROR_INVALID, "scan_output_directions: expected a number for each of 1 stacked results, found 2" },
        { "3,2", "3,2", 4, "scan_input_axes", 0, 0, KILN_ERROR_INVALID, "num_scan_inputs: expected 1 to 3, the number of operands, found 4" },
        { "3,2", "3,2", 0, "scan_input_axes", 0, 0, KILN_ERROR_INVALID, "num_scan_inputs: expected 1 to 3, the number of operands, found 0" },
    };
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++)
        onnx_expect_error(graph_of_scan(cases[i].x, cases[i].y, cases[i].scanned, pair(cases[i].attr, cases[i].a, cases[i].b)),
                          13, cases[i].code, cases[i].error);
}

Test(onnx_flow, scans_of_opset_8_say_what_does_not_fit)
{
    static const struct {
        const char *lengths;
        int dtype;
        int64_t scanned, direction;
        const char *x;
        KilnError code;
        const char *error;
    } cases[] = {
        { NULL, ONNX_I64, 3, 0, "3,4", KILN_ERROR_INVALID, "num_scan_inputs: expected 1 to the number of operands behind sequence_lens, found 3 of 3 operands" },
        { NULL, ONNX_I64, 0, 0, "3,4", KILN_ERROR_INVALID, "num_scan_inputs: expected 1 to" },
        { NULL, ONNX_I64, 2, 3, "3,4", KILN_ERROR_INVALID, "directions: expected 0 (forward) or 1 (backward), found 3" },
        { NULL, ONNX_I64, 2, 0, "2,4", KILN_ERROR_SHAPE, "expected length 2 along its axis, as operand 0 has, found 3" },
        { NULL, ONNX_I64, 2, 0, "3,5", KILN_ERROR_SHAPE, "expected length 5 along its axis, as operand 0 has, found 4" },
        { NULL, ONNX_I64, 2, 0, "3", KILN_ERROR_SHAPE, "expected an axis of rank 0 to scan" },
        { "3", ONNX_F32, 2, 0, "3,4", KILN_ERROR_TYPE, "sequence_lens: expected a list of i64, found f32[3]" },
        { "3,1", ONNX_I64, 2, 0, "3,4", KILN_ERROR_TYPE, "sequence_lens: expected a list of i64, found i64[3,1]" },
        { "2", ONNX_I64, 2, 0, "3,4", KILN_ERROR_SHAPE, "expected length 2 along its axis, as operand 0 has, found 3" },
    };
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++)
        onnx_expect_error(graph_of_scan_8(cases[i].lengths, cases[i].dtype, cases[i].scanned, pair("directions", 0, cases[i].direction), cases[i].x),
                          8, cases[i].code, cases[i].error);
}

/* A Loop of trips f32, or with a condition i64, or a body whose inputs have other types. */
Test(onnx_flow, loops_say_what_does_not_fit)
{
    static const struct {
        int trips, condition, iteration, again, carried;
        const char *error;
    } cases[] = {
        { ONNX_F32, ONNX_BOOL, ONNX_I64, ONNX_BOOL, ONNX_F32, "trip count: expected one i64, found f32[]" },
        { ONNX_I64, ONNX_I64, ONNX_I64, ONNX_BOOL, ONNX_F32, "condition: expected one bool, found i64[]" },
        { ONNX_I64, ONNX_BOOL, ONNX_F32, ONNX_BOOL, ONNX_F32, "input 0 of the body, the iteration: expected one i64, found f32[]" },
        { ONNX_I64, ONNX_BOOL, ONNX_I64, ONNX_F32, ONNX_F32, "input 1 of the body, the condition: expected one bool, found f32[]" },
        { ONNX_I64, ONNX_BOOL, ONNX_I64, ONNX_BOOL, ONNX_I64, "input 2 of the body: expected f32[*], found i64[2]" },
    };
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        GByteArray *body = onnx_graph_new("b"), *graph = onnx_graph_new("g");
        onnx_input(body, "i", cases[i].iteration, "");
        onnx_input(body, "go", cases[i].again, "");
        onnx_input(body, "v", cases[i].carried, "2");
        onnx_node(body, "Identity", "go", "on", NULL);
        onnx_node(body, "Neg", "v", "w", NULL);
        onnx_output(body, "on", cases[i].again, "");
        onnx_output(body, "w", cases[i].carried, NULL);
        onnx_input(graph, "n", cases[i].trips, "");
        onnx_input(graph, "c", cases[i].condition, "");
        onnx_input(graph, "x", ONNX_F32, "2");
        onnx_node(graph, "Loop", "n,c,x", "y", onnx_graph("body", body), NULL);
        onnx_output(graph, "y", ONNX_F32, NULL);
        onnx_expect_error(graph, 13, KILN_ERROR_TYPE, cases[i].error);
    }
}
// clang-format on
