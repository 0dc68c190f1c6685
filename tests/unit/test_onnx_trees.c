/* SPDX-License-Identifier: Apache-2.0 */
/* Imports of trees of ai.onnx.ml: what they become, and what is refused. */
#include "graph/kiln-types.h"
#include "tests/unit/onnx_builder.h"

#include <math.h>
#include <string.h>

typedef struct {
    const char *name; /* of the attribute that replaces one of the same name, if there is one */
    GByteArray *attr;
} Change;

/* Takes over what is changed. */
static GByteArray *
choose(const Change *change, const char *name, GByteArray *attr)
{
    if (!change || strcmp(change->name, name) != 0)
        return attr;
    g_byte_array_unref(attr);
    return change->attr;
}

/* x[2] <= 0.5 ? (x[0] > -1 ? leaf 0 : leaf 1) : leaf 2, as TreeEnsembleRegressor. */
static GByteArray *
regressor(const Change *change)
{
    static const char *const modes[] = { "BRANCH_LEQ", "BRANCH_GT", "LEAF", "LEAF", "LEAF" };
    static const float splits[] = { 0.5f, -1, 0, 0, 0 }, weights[] = { 1, 2, 3 };
    GByteArray *graph = onnx_graph_new("g");
    onnx_input(graph, "x", ONNX_F32, "N,3");
#define ATTR(name, ...) choose(change, name, __VA_ARGS__)
    onnx_node(graph, "ai.onnx.ml:TreeEnsembleRegressor", "x", "y",
              ATTR("nodes_treeids", ONNX_INTS("nodes_treeids", 0, 0, 0, 0, 0)),
              ATTR("nodes_nodeids", ONNX_INTS("nodes_nodeids", 0, 1, 2, 3, 4)),
              ATTR("nodes_featureids", ONNX_INTS("nodes_featureids", 2, 0, 0, 0, 0)),
              ATTR("nodes_truenodeids", ONNX_INTS("nodes_truenodeids", 1, 2, 0, 0, 0)),
              ATTR("nodes_falsenodeids", ONNX_INTS("nodes_falsenodeids", 4, 3, 0, 0, 0)),
              ATTR("nodes_modes", onnx_texts("nodes_modes", 5, modes)),
              ATTR("nodes_values", onnx_floats("nodes_values", 5, splits)),
              ATTR("target_treeids", ONNX_INTS("target_treeids", 0, 0, 0)),
              ATTR("target_nodeids", ONNX_INTS("target_nodeids", 2, 3, 4)),
              ATTR("target_ids", ONNX_INTS("target_ids", 0, 0, 0)),
              ATTR("target_weights", onnx_floats("target_weights", 3, weights)),
              ATTR("n_targets", onnx_int("n_targets", 1)),
              ATTR("aggregate_function", onnx_text("aggregate_function", "AVERAGE")),
              ATTR("post_transform", onnx_text("post_transform", "NONE")), NULL);
    onnx_output(graph, "y", ONNX_F32, NULL);
    return graph;
}

Test(onnx_trees, a_mean_of_trees_is_a_sum_that_is_divided)
{
    g_autofree char *found = onnx_imported(onnx_model(regressor(NULL), 9, 18));
    cr_expect(strstr(found, "tree_ensemble(%x, %y.roots, %y.features, %y.splits, %y.children, "
                            "%y.missing, %y.starts, %y.targets, %y.weights) : f32[N,1]"),
              "%s", found);
    cr_expect(strstr(found, "div(%y.tree_ensemble"), "%s", found);
    cr_expect(strstr(found, "%y.splits = const @y.splits : f32[5]"), "%s", found);
}

static void
expect_refused(const char *name, GByteArray *attr, const char *message)
{
    const Change change = { name, attr };
    onnx_expect_error(regressor(&change), 18, KILN_ERROR_INVALID, message);
}

Test(onnx_trees, lists_that_do_not_fit)
{
    expect_refused("nodes_nodeids", ONNX_INTS("nodes_nodeids", 0, 1, 2, 3),
                   "y (TreeEnsembleRegressor): attribute 'nodes_nodeids': expected 5 elements, "
                   "found 4");
    expect_refused("nodes_truenodeids", ONNX_INTS("nodes_truenodeids", 1),
                   "attribute 'nodes_truenodeids': expected 5 elements, found 1");
    expect_refused("nodes_values", onnx_floats("nodes_values", 1, (float[]){ 1 }),
                   "attribute 'nodes_values': expected 5 elements, found 1");
    expect_refused("target_ids", ONNX_INTS("target_ids", 0, 0, 0, 0),
                   "attribute 'target_ids': expected 3 elements, found 4");
    expect_refused("nodes_modes", onnx_texts("nodes_modes", 1, (const char *const[]){ "LEAF" }),
                   "attribute 'nodes_modes': expected 5 elements, found 1");
}

Test(onnx_trees, ids_that_do_not_exist)
{
    expect_refused(
        "nodes_truenodeids", ONNX_INTS("nodes_truenodeids", 1, 7, 0, 0, 0),
        "attribute 'nodes_truenodeids': node 1 of tree 0: expected a node of its tree where "
        "the test is true, found 7");
    expect_refused(
        "nodes_falsenodeids", ONNX_INTS("nodes_falsenodeids", -1, 3, 0, 0, 0),
        "attribute 'nodes_falsenodeids': node 0 of tree 0: expected a node of its tree where "
        "the test is false, found -1");
    expect_refused("target_nodeids", ONNX_INTS("target_nodeids", 2, 3, 9),
                   "attribute 'target_nodeids': weight 2: tree 0 has no node 9");
    expect_refused("target_treeids", ONNX_INTS("target_treeids", 0, 1, 0),
                   "attribute 'target_nodeids': weight 1: tree 1 has no node 3");
    expect_refused("target_ids", ONNX_INTS("target_ids", 0, 0, 1),
                   "attribute 'target_ids': weight 2: expected a target from 0 to 0, found 1");
    expect_refused(
        "nodes_featureids", ONNX_INTS("nodes_featureids", 3, 0, 0, 0, 0),
        "attribute 'nodes_featureids': node 0 of tree 0: expected a feature from 0 to 2, found 3");
    expect_refused("nodes_nodeids", ONNX_INTS("nodes_nodeids", 0, 1, 2, 3, 3),
                   "attribute 'nodes_nodeids': tree 0: expected one node 3, found two");
}

Test(onnx_trees, circles)
{
    expect_refused("nodes_truenodeids", ONNX_INTS("nodes_truenodeids", 1, 1, 0, 0, 0),
                   "attributes 'nodes_truenodeids' and 'nodes_falsenodeids': expected trees, found "
                   "a branch that leads back to node 1 of tree 0");
    expect_refused("nodes_truenodeids", ONNX_INTS("nodes_truenodeids", 1, 0, 0, 0, 0),
                   "node 0 of tree 0: expected a node below the root of its tree, to which no "
                   "branch leads");
    expect_refused("nodes_falsenodeids", ONNX_INTS("nodes_falsenodeids", 1, 3, 0, 0, 0),
                   "node 4 of tree 0: expected a node below the root of its tree");
}

Test(onnx_trees, texts_that_are_not_known)
{
    static const char *const modes[] = { "BRANCH_LEQ", "BRANCH_LIKE", "LEAF", "LEAF", "LEAF" };
    expect_refused("nodes_modes", onnx_texts("nodes_modes", 5, modes),
                   "expected BRANCH_LEQ, BRANCH_LT, BRANCH_GTE, BRANCH_GT, BRANCH_EQ, BRANCH_NEQ "
                   "or LEAF, found \"BRANCH_LIKE\"");
    expect_refused("aggregate_function", onnx_text("aggregate_function", "MEAN"),
                   "attribute 'aggregate_function': expected AVERAGE, SUM, MIN or MAX, found "
                   "\"MEAN\"");
    expect_refused("post_transform", onnx_text("post_transform", "TANH"),
                   "attribute 'post_transform': expected NONE, SOFTMAX, LOGISTIC, SOFTMAX_ZERO or "
                   "PROBIT, found \"TANH\"");
    expect_refused("n_targets", onnx_int("n_targets", 0),
                   "attribute 'n_targets': expected 1 to 2147483647, found 0");
}

/* A TreeEnsemble with the test of @mode at its root, and leaves 0 and 1. */
static GByteArray *
ensemble(uint8_t mode, const float *members, int n_members, const Change *change)
{
    static const float split = 2, weights[] = { 1, -1 };
    g_autofree char *dims = g_strdup_printf("%d", n_members);
    GByteArray *graph = onnx_graph_new("g");
    onnx_input(graph, "x", ONNX_F32, "N,3");
    onnx_node(
        graph, "ai.onnx.ml:TreeEnsemble", "x", "y", ATTR("tree_roots", ONNX_INTS("tree_roots", 0)),
        ATTR("nodes_featureids", ONNX_INTS("nodes_featureids", 1)),
        ATTR("nodes_truenodeids", ONNX_INTS("nodes_truenodeids", 0)),
        ATTR("nodes_falsenodeids", ONNX_INTS("nodes_falsenodeids", 1)),
        ATTR("nodes_trueleafs", ONNX_INTS("nodes_trueleafs", 1)),
        ATTR("nodes_falseleafs", ONNX_INTS("nodes_falseleafs", 1)),
        ATTR("leaf_targetids", ONNX_INTS("leaf_targetids", 0, 0)),
        onnx_tensor_attr("nodes_modes", onnx_tensor("m", ONNX_U8, "1", &mode, 1)),
        onnx_tensor_attr("nodes_splits", onnx_tensor("s", ONNX_F32, "1", &split, sizeof split)),
        onnx_tensor_attr("leaf_weights", onnx_tensor("w", ONNX_F32, "2", weights, sizeof weights)),
        onnx_tensor_attr("membership_values", onnx_tensor("v", ONNX_F32, dims, members,
                                                          (size_t)n_members * sizeof *members)),
        NULL);
    onnx_output(graph, "y", ONNX_F32, NULL);
    return graph;
}

/* The number of nodes that a test becomes, its leaves among them. */
static void
expect_nodes(uint8_t mode, const float *members, int n_members, int expected)
{
    g_autofree char *found =
        onnx_imported(onnx_model(ensemble(mode, members, n_members, NULL), 9, 18));
    g_autofree char *list = g_strdup_printf("@y.splits : f32[%d]", expected);
    cr_expect(strstr(found, list), "mode %d: %s", mode, found);
}

Test(onnx_trees, modes)
{
    const float members[] = { 5, 2, 5, NAN };
    for (uint8_t mode = 0; mode < 4; mode++)
        expect_nodes(mode, NULL, 0, 3);
    expect_nodes(4, NULL, 0, 5);
    expect_nodes(5, NULL, 0, 5);
    expect_nodes(6, members, 4, 9);
    expect_nodes(6, members + 3, 1, 3);
}

static void
expect_bad(uint8_t mode, const char *name, GByteArray *attr, const char *message)
{
    const Change change = { name, attr };
    onnx_expect_error(ensemble(mode, NULL, 0, &change), 18, KILN_ERROR_INVALID, message);
}

Test(onnx_trees, numbers_of_nodes_that_do_not_exist)
{
    expect_bad(7, "none", NULL,
               "attribute 'nodes_modes': node 0: expected a mode from 0 to 6, found 7");
    expect_bad(6, "none", NULL, "expected a set for each node of mode BRANCH_MEMBER, found fewer");
    expect_bad(0, "tree_roots", ONNX_INTS("tree_roots", 1),
               "attribute 'tree_roots': tree 0: expected a root from 0 to 0, found 1");
    expect_bad(
        0, "nodes_truenodeids", ONNX_INTS("nodes_truenodeids", 2),
        "attribute 'nodes_truenodeids': node 0: expected a leaf from 0 to 1 where the test is "
        "true, found 2");
    expect_bad(
        0, "nodes_falseleafs", ONNX_INTS("nodes_falseleafs", 0),
        "attribute 'nodes_falsenodeids': node 0: expected a node from 0 to 0 where the test is "
        "false, found 1");
    expect_bad(0, "nodes_trueleafs", ONNX_INTS("nodes_trueleafs", 0),
               "expected trees, found a branch that leads back to node 0");
    expect_bad(0, "leaf_targetids", ONNX_INTS("leaf_targetids", 0, 1),
               "attribute 'leaf_targetids': weight 1: expected a target from 0 to 0, found 1");
    expect_bad(0, "nodes_featureids", ONNX_INTS("nodes_featureids", 3),
               "attribute 'nodes_featureids': node 0: expected a feature from 0 to 2, found 3");
    expect_bad(0, "nodes_falsenodeids", ONNX_INTS("nodes_falsenodeids", 1, 1),
               "attribute 'nodes_falsenodeids': expected 1 elements, found 2");
    expect_bad(0, "leaf_targetids", ONNX_INTS("leaf_targetids", 0),
               "attribute 'leaf_weights': expected 1 elements, found 2");
    expect_bad(0, "tree_roots", onnx_text("tree_roots", "0"), "attribute 'tree_roots'");
}
