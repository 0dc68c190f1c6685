/* SPDX-License-Identifier: Apache-2.0 */
/* Trees of the older form: node (tree, id) has branches to ids of its own tree, and weights name
 * the leaf by tree and id. A tree begins at the first of its nodes that no branch leads to. Trees
 * are summed in the order of their first nodes. */
#include "graph/attr.h"
#include "graph/base/number.h"
#include "graph/graph.h"
#include "graph/onnx/convert.h"
#include "graph/onnx/ml/ml.h"
#include "graph/onnx/ml/trees.h"
#include "graph/onnx/model.h"
#include "graph/onnx/tensor.h"
#include "graph/tensor.h"

#include <stdlib.h>
#include <string.h>

/* --- attributes --- */

static gboolean
load_numbers(KilnOnnxCall *call, const char *name, const KilnOnnxTensor *proto,
             KilnTreeNumbers *out, GError **error)
{
    g_autoptr(KilnTensor) tensor = NULL;
    g_autoptr(GBytes) bytes = NULL;
    if (!proto)
        return kiln_onnx_throw(call, KILN_ERROR_INVALID, error, "attribute '%s': expected a tensor",
                               name);
    tensor = kiln_onnx_tensor_load(proto, &call->import->files, error);
    if (tensor && !kiln_dtype_is_float(tensor->type.dtype) && tensor->type.dtype != KILN_DTYPE_u8)
        return kiln_onnx_throw(call, KILN_ERROR_TYPE, error, "attribute '%s': expected floats",
                               name);
    bytes = tensor ? kiln_tensor_view(tensor, error) : NULL;
    if (!bytes)
        return FALSE;
    const int64_t n = kiln_type_elements(&tensor->type);
    const void *data = g_bytes_get_data(bytes, NULL);
    out->wide = tensor->type.dtype == KILN_DTYPE_f64;
    for (int64_t i = 0; i < n; i++) {
        const double value = kiln_element_as_f64(tensor->type.dtype, data, i);
        g_array_append_val(out->v, value);
    }
    return TRUE;
}

gboolean
kiln_trees_take_numbers(KilnOnnxCall *call, const char *name, const char *tensor,
                        KilnTreeNumbers *out, GError **error)
{
    KilnFloats floats = { 0 };
    const KilnOnnxAttr *attr = tensor ? kiln_onnx_take(call, tensor) : NULL;
    if (name && !kiln_onnx_take_floats(call, name, &floats, error))
        return FALSE;
    if (!attr && !floats.n)
        return TRUE;
    if (attr && floats.n)
        return kiln_onnx_throw(call, KILN_ERROR_INVALID, error,
                               "expected one of '%s' and '%s', found both", name, tensor);
    out->v = g_array_new(FALSE, FALSE, sizeof(double));
    if (attr)
        return load_numbers(call, tensor, attr->tensor, out, error);
    for (uint32_t i = 0; i < floats.n; i++) {
        const double value = floats.v[i];
        g_array_append_val(out->v, value);
    }
    return TRUE;
}

void
kiln_trees_clear_numbers(KilnTreeNumbers *numbers)
{
    if (numbers->v)
        g_array_unref(numbers->v);
    numbers->v = NULL;
}

gboolean
kiln_trees_take_ints(KilnOnnxCall *call, const char *name, KilnInts *out, GError **error)
{
    bool there = false;
    if (!kiln_onnx_take_ints(call, name, out, &there, error))
        return FALSE;
    return there ||
           kiln_onnx_throw(call, KILN_ERROR_INVALID, error, "lacks the attribute '%s'", name);
}

KilnDType
kiln_trees_dtype(const KilnValue *x, bool wide)
{
    return wide || x->type.dtype == KILN_DTYPE_f64 ? KILN_DTYPE_f64 : KILN_DTYPE_f32;
}

/* --- nodes by id --- */

typedef struct {
    int64_t tree, id, node;
} Id;

typedef struct {
    KilnOnnxCall *call;
    KilnForest *forest;
    GArray *ids; /* Id, in order */
} Reader;

static int
by_id(const void *a, const void *b)
{
    const Id *x = a, *y = b;
    if (x->tree != y->tree)
        return x->tree < y->tree ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

/* The node with this id; -1: none. */
static int64_t
find(const Reader *r, int64_t tree, int64_t id)
{
    const Id key = { tree, id, 0 };
    const Id *found = bsearch(&key, r->ids->data, r->ids->len, sizeof(Id), by_id);
    return found ? found->node : -1;
}

static gboolean
read_ids(Reader *r, KilnInts trees, KilnInts ids, GError **error)
{
    for (uint32_t i = 0; i < trees.n; i++) {
        const Id id = { trees.v[i], ids.v[i], i };
        g_array_append_val(r->ids, id);
    }
    g_array_sort(r->ids, by_id);
    for (guint i = 1; i < r->ids->len; i++) {
        const Id *id = &g_array_index(r->ids, Id, i);
        if (by_id(id - 1, id) == 0)
            return kiln_onnx_throw(r->call, KILN_ERROR_INVALID, error,
                                   "attribute 'nodes_nodeids': tree %" G_GINT64_FORMAT
                                   ": expected one node %" G_GINT64_FORMAT ", found two",
                                   id->tree, id->id);
    }
    return TRUE;
}

static gboolean
read_mode(const Reader *r, ProtobufCBinaryData text, KilnBranch *out, GError **error)
{
    static const char *const names[KILN_N_BRANCHES] = {
        [KILN_BRANCH_LEQ] = "BRANCH_LEQ", [KILN_BRANCH_LT] = "BRANCH_LT",
        [KILN_BRANCH_GTE] = "BRANCH_GTE", [KILN_BRANCH_GT] = "BRANCH_GT",
        [KILN_BRANCH_EQ] = "BRANCH_EQ",   [KILN_BRANCH_NEQ] = "BRANCH_NEQ",
        [KILN_BRANCH_LEAF] = "LEAF",
    };
    for (int i = 0; i < KILN_N_BRANCHES; i++) {
        if (names[i] && strlen(names[i]) == text.len &&
            memcmp(names[i], text.data, text.len) == 0) {
            *out = (KilnBranch)i;
            return TRUE;
        }
    }
    g_autofree char *found = g_utf8_make_valid((const char *)text.data, (gssize)text.len);
    return kiln_onnx_throw(r->call, KILN_ERROR_INVALID, error,
                           "attribute 'nodes_modes': expected BRANCH_LEQ, BRANCH_LT, BRANCH_GTE, "
                           "BRANCH_GT, BRANCH_EQ, BRANCH_NEQ or LEAF, found \"%s\"",
                           found);
}

/* Checks that both branches of node @i exist. */
static gboolean
find_branches(const Reader *r, int64_t i, int64_t tree, const int64_t ids[2], GError **error)
{
    KilnForestNode *node = kiln_forest_node(r->forest, i);
    int64_t *const branches[] = { &node->yes, &node->no };
    for (int b = 0; b < 2 && node->mode != KILN_BRANCH_LEAF; b++) {
        *branches[b] = find(r, tree, ids[b]);
        if (*branches[b] >= 0)
            continue;
        g_autofree char *name = r->forest->name(r->forest->data, i);
        return kiln_onnx_throw(
            r->call, KILN_ERROR_INVALID, error,
            "attribute '%s': %s: expected a node of its tree where the test is %s, "
            "found %" G_GINT64_FORMAT,
            b ? "nodes_falsenodeids" : "nodes_truenodeids", name, b ? "false" : "true", ids[b]);
    }
    return TRUE;
}

/* The lists of a node's attributes. */
typedef struct {
    KilnInts trees, ids, features, yes, no, missing;
    const KilnOnnxAttr *modes;
    KilnTreeNumbers splits;
} Lists;

static gboolean
take_lists(KilnOnnxCall *call, Lists *lists, GError **error)
{
    bool there;
    lists->modes = kiln_onnx_take(call, "nodes_modes");
    kiln_onnx_take(call, "nodes_hitrates"); /* how often nodes were reached in training */
    kiln_onnx_take(call, "nodes_hitrates_as_tensor");
    if (!kiln_trees_take_ints(call, "nodes_treeids", &lists->trees, error) ||
        !kiln_trees_take_ints(call, "nodes_nodeids", &lists->ids, error) ||
        !kiln_trees_take_ints(call, "nodes_featureids", &lists->features, error) ||
        !kiln_trees_take_ints(call, "nodes_truenodeids", &lists->yes, error) ||
        !kiln_trees_take_ints(call, "nodes_falsenodeids", &lists->no, error) ||
        !kiln_onnx_take_ints(call, "nodes_missing_value_tracks_true", &lists->missing, &there,
                             error) ||
        !kiln_trees_take_numbers(call, "nodes_values", "nodes_values_as_tensor", &lists->splits,
                                 error))
        return FALSE;
    const int64_t n = lists->trees.n;
    return kiln_onnx_ml_check_length(call, "nodes_nodeids", lists->ids.n, n, error) &&
           kiln_onnx_ml_check_length(call, "nodes_featureids", lists->features.n, n, error) &&
           kiln_onnx_ml_check_length(call, "nodes_truenodeids", lists->yes.n, n, error) &&
           kiln_onnx_ml_check_length(call, "nodes_falsenodeids", lists->no.n, n, error) &&
           kiln_onnx_ml_check_length(call, "nodes_values",
                                     lists->splits.v ? lists->splits.v->len : 0, n, error) &&
           kiln_onnx_ml_check_length(call, "nodes_modes",
                                     lists->modes ? lists->modes->proto->n_strings : 0, n, error) &&
           (!lists->missing.n || kiln_onnx_ml_check_length(call, "nodes_missing_value_tracks_true",
                                                           lists->missing.n, n, error));
}

/* The first node of each tree that no branch leads to. */
static gboolean
find_roots(const Reader *r, KilnInts trees, GError **error)
{
    KilnForest *forest = r->forest;
    g_autoptr(GHashTable) done = g_hash_table_new(g_int64_hash, g_int64_equal);
    for (int64_t i = 0; i < forest->nodes->len; i++) {
        const KilnForestNode *node = kiln_forest_node(forest, i);
        if (node->mode == KILN_BRANCH_LEAF)
            continue;
        kiln_forest_node(forest, node->yes)->waiting = 1;
        kiln_forest_node(forest, node->no)->waiting = 1;
    }
    for (int64_t i = 0; i < forest->nodes->len; i++) {
        if (!kiln_forest_node(forest, i)->waiting && g_hash_table_add(done, &trees.v[i]))
            g_array_append_val(forest->roots, i);
    }
    for (int64_t i = 0; i < forest->nodes->len; i++) {
        if (g_hash_table_contains(done, &trees.v[i]))
            continue;
        g_autofree char *name = forest->name(forest->data, i);
        return kiln_onnx_throw(
            r->call, KILN_ERROR_INVALID, error,
            KILN_FOREST_BRANCHES "expected trees, found a branch that leads back to %s", name);
    }
    return TRUE;
}

static gboolean
read_nodes(Reader *r, const Lists *lists, GError **error)
{
    const int64_t n = lists->trees.n;
    g_array_set_size(r->forest->nodes, (guint)n);
    if (!read_ids(r, lists->trees, lists->ids, error))
        return FALSE;
    for (int64_t i = 0; i < n; i++) {
        KilnForestNode *node = kiln_forest_node(r->forest, i);
        const int64_t ids[] = { lists->yes.v[i], lists->no.v[i] };
        node->feature = lists->features.v[i];
        node->split = g_array_index(lists->splits.v, double, i);
        node->missing = lists->missing.n && lists->missing.v[i] != 0;
        if (!read_mode(r, lists->modes->proto->strings[i], &node->mode, error) ||
            !find_branches(r, i, lists->trees.v[i], ids, error))
            return FALSE;
    }
    return find_roots(r, lists->trees, error);
}

/* --- weights --- */

static gboolean
read_weights(const Reader *r, const char *prefix, bool *wide, GError **error)
{
    static const char *const ends[] = { "treeids", "nodeids", "ids", "weights" };
    char names[4][32];
    KilnInts lists[3];
    g_auto(KilnTreeNumbers) weights = { 0 };
    for (int i = 0; i < 4; i++)
        g_snprintf(names[i], sizeof names[i], "%s_%s", prefix, ends[i]);
    g_autofree char *tensor = g_strdup_printf("%s_as_tensor", names[3]);
    if (!kiln_trees_take_numbers(r->call, names[3], tensor, &weights, error))
        return FALSE;
    const int64_t n = weights.v ? weights.v->len : 0;
    for (int i = 0; i < 3; i++) {
        if (!kiln_trees_take_ints(r->call, names[i], &lists[i], error) ||
            !kiln_onnx_ml_check_length(r->call, names[i], lists[i].n, n, error))
            return FALSE;
    }
    for (int64_t i = 0; i < n; i++) {
        const KilnForestEntry entry = { find(r, lists[0].v[i], lists[1].v[i]), lists[2].v[i],
                                        g_array_index(weights.v, double, i) };
        if (entry.node < 0)
            return kiln_onnx_throw(r->call, KILN_ERROR_INVALID, error,
                                   "attribute '%s': weight %" G_GINT64_FORMAT
                                   ": tree %" G_GINT64_FORMAT " has no node %" G_GINT64_FORMAT,
                                   names[1], i, lists[0].v[i], lists[1].v[i]);
        g_array_append_val(r->forest->entries, entry);
    }
    *wide |= weights.wide;
    return TRUE;
}

/* Names of nodes in messages, by the ids of the model. */
static char *
name_of(const void *data, int64_t i)
{
    const KilnInts *lists = data;
    return g_strdup_printf("node %" G_GINT64_FORMAT " of tree %" G_GINT64_FORMAT, lists[1].v[i],
                           lists[0].v[i]);
}

gboolean
kiln_trees_read_ids(KilnOnnxCall *call, const char *prefix, KilnForest *forest, bool *out_wide,
                    GError **error)
{
    Lists lists = { 0 };
    g_autoptr(GArray) ids = g_array_new(FALSE, FALSE, sizeof(Id));
    Reader r = { call, forest, ids };
    gboolean good = take_lists(call, &lists, error);
    KilnInts *named = kiln_arena_new0(call->import->module->arena, KilnInts, 2);
    named[0] = lists.trees;
    named[1] = lists.ids;
    forest->name = name_of;
    forest->data = named;
    forest->targets = strcmp(prefix, "class") == 0 ? "class_ids" : "target_ids";
    forest->complete = true;
    *out_wide = lists.splits.wide;
    good = good && read_nodes(&r, &lists, error) && read_weights(&r, prefix, out_wide, error);
    kiln_trees_clear_numbers(&lists.splits);
    if (good)
        kiln_forest_sort_entries(forest);
    return good;
}
