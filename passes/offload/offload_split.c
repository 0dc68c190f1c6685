/* SPDX-License-Identifier: Apache-2.0 */
/* Literals, and what is unpacked at the edge of a region, belong to no part: each part that reads
 * one has a copy. */
#include "passes/offload/offload_split.h"

#include "graph/function.h"
#include "graph/module.h"
#include "graph/module/layout.h"
#include "graph/module/outline.h"
#include "graph/node.h"
#include "graph/op/concat.h"
#include "graph/op/layout.h"
#include "graph/op/offload.h"
#include "passes/offload/offload_outline.h"

/* A part of the body on its way into a region of its own. Values are keyed by those of the body. */
typedef struct {
    KilnPart part;
    KilnFunction *body;
    GHashTable *values;  /* KilnValue* → of the new body */
    GPtrArray *captured; /* KilnValue*, one per argument */
    GPtrArray *given;    /* KilnValue*, one per result */
    bool any;            /* a node is in it */
} Piece;

typedef struct {
    KilnNode *region;
    const KilnFunction *body;
    const KilnPart *parts;
    KilnSplitter *splitter;
    GHashTable *made;  /* KilnValue* of the body → of the function, maybe in a layout */
    GHashTable *plain; /* the same, in the layout that it has in the body */
    GError **error;
} Split;

/* --- parts --- */

static bool
is_entered(const KilnNode *node)
{
    return node->op == KILN_OP_unpack && !node->operands[0].value->def;
}

static bool
is_in_all_parts(const KilnNode *node)
{
    return node->op == KILN_OP_const || node->op == KILN_OP_return || is_entered(node);
}

/* What a product that stands inline applies on its way out stands there, too; and so does what it
 * leaves the region by. */
static bool
follows(const KilnNode *node, const KilnNode *product, const KilnNode *refused)
{
    return node == refused || product == refused ||
           (node->op == KILN_OP_pack && node->operands[0].value->def == refused);
}

KilnPart *
kiln_offload_parts(const KilnFunction *body, const KilnNode *refused)
{
    KilnPart *parts = g_new0(KilnPart, (gsize)body->next_id + 1);
    g_autofree const KilnNode **tails = kiln_find_tails(body);
    kiln_foreach_node (node, body) {
        bool reads = false, reads_after = false;
        for (uint32_t i = 0; i < node->n_operands; i++) {
            const KilnNode *def = node->operands[i].value ? node->operands[i].value->def : NULL;
            if (!def || is_in_all_parts(def))
                continue;
            reads |= parts[def->id] != KILN_PART_BEFORE;
            reads_after |= parts[def->id] == KILN_PART_AFTER;
        }
        bool inlined = !reads_after && follows(node, tails[node->id], refused);
        parts[node->id] = inlined ? KILN_PART_INLINE : reads ? KILN_PART_AFTER : KILN_PART_BEFORE;
    }
    return parts;
}

/* Beside whose time that of the others counts. */
static bool
is_anchor(const KilnNode *node)
{
    return !kiln_op_has(node->op, KILN_TRAIT_ELEMENTWISE) && node->op != KILN_OP_concat;
}

double
kiln_offload_parts_us(const KilnOffloadCosts *costs, const KilnFunction *body,
                      const KilnPart *parts, uint32_t which)
{
    bool any = false;
    double us = 0;
    g_autofree const KilnNode **tails = kiln_find_tails(body);
    kiln_foreach_node (node, body) {
        if (is_in_all_parts(node) || !(which >> parts[node->id] & 1) || node->op == KILN_OP_pack ||
            node->op == KILN_OP_custom_op)
            continue;
        any |= is_anchor(node);
        us += kiln_own_us(costs, node, tails[node->id] != NULL);
    }
    return any ? us : 0;
}

/* --- pieces --- */

static Piece
piece_new(const Split *split, KilnPart part)
{
    return (Piece){ .part = part,
                    .body = kiln_function_new_region(split->region->function->module, "body"),
                    .values = g_hash_table_new(NULL, NULL),
                    .captured = g_ptr_array_new(),
                    .given = g_ptr_array_new() };
}

static void
piece_clear(Piece *piece)
{
    g_hash_table_unref(piece->values);
    g_ptr_array_unref(piece->captured);
    g_ptr_array_unref(piece->given);
}

/* What the region has as a constant is one of each piece. */
static bool
capture(const Split *split, Piece *piece, KilnValue *value)
{
    if (!kiln_offload_capture(piece->body, value, piece->values, piece->captured, split->error))
        return false;
    for (guint i = 0; !value->def && i < split->body->arguments->len; i++) {
        const KilnArgument *argument = kiln_function_argument(split->body, i);
        if (&argument->value == value)
            kiln_function_argument(piece->body, piece->captured->len - 1)->constness =
                argument->constness;
    }
    return true;
}

/* @value of the body is there to be read in @piece. */
static bool
bring(const Split *split, Piece *piece, KilnValue *value)
{
    if (!value || g_hash_table_contains(piece->values, value))
        return true;
    if (!value->def || !is_in_all_parts(value->def))
        return capture(split, piece, value);
    return (!is_entered(value->def) || bring(split, piece, value->def->operands[0].value)) &&
           kiln_node_copy(piece->body, value->def, piece->values, NULL, NULL, split->error);
}

/* Read by other parts, or a result of the region. */
static bool
is_given(const Split *split, const Piece *piece, const KilnValue *value)
{
    kiln_foreach_use (use, value) {
        if (use->user->op == KILN_OP_return || split->parts[use->user->id] != piece->part)
            return true;
    }
    return false;
}

static bool
fill(const Split *split, Piece *piece)
{
    kiln_foreach_node (node, split->body) {
        if (is_in_all_parts(node) || split->parts[node->id] != piece->part)
            continue;
        for (uint32_t i = 0; i < node->n_operands; i++) {
            if (!bring(split, piece, node->operands[i].value))
                return false;
        }
        if (!kiln_node_copy(piece->body, node, piece->values, NULL, NULL, split->error))
            return false;
        for (uint32_t r = 0; r < node->n_results; r++) {
            if (is_given(split, piece, &node->results[r]))
                g_ptr_array_add(piece->given, &node->results[r]);
        }
        piece->any = true;
    }
    return true;
}

/* --- layouts of what goes from one piece to the other --- */

/* Activations of @region lie in layout @k at an edge. */
static bool
has_edge_in(const Split *split, uint32_t k)
{
    const KilnNode *node = split->region;
    bool any = false;
    for (uint32_t i = 0; i < node->n_operands + node->n_results; i++) {
        bool result = i >= node->n_operands;
        const KilnType *type =
            result ? &node->results[i - node->n_operands].type : &node->operands[i].value->type;
        bool weight =
            !result && kiln_function_argument(split->body, i)->constness == KILN_CONSTNESS_COMPILE;
        any |= type->layout && !weight &&
               g_strcmp0(type->layout, split->splitter->vendor->layout_tag(k, type->rank)) == 0;
    }
    return any;
}

/* That of its edges, else the one in which it takes the least time. */
static uint32_t
layout_of(const Split *split)
{
    const KilnVendor *vendor = split->splitter->vendor;
    uint32_t best = 0;
    for (uint32_t k = 0; k < vendor->n_layouts; k++) {
        if (has_edge_in(split, k))
            return k;
        if (vendor->layout_us(split->body, k) < vendor->layout_us(split->body, best))
            best = k;
    }
    return best;
}

/* @argument is taken in layout @tag. */
static bool
take_in(KilnFunction *body, KilnArgument *argument, const char *tag, GError **error)
{
    argument->value.type.layout = tag;
    KilnValue *unpacked = kiln_value_reorder(body, body->first, &argument->value, NULL, error);
    if (!unpacked)
        return false;
    kiln_foreach_use_safe (use, &argument->value) {
        if (use->user != unpacked->def)
            kiln_node_set_operand(use->user, use->index, unpacked);
    }
    return true;
}

/* What both compute in a layout stays in it. */
static bool
lay_between(const Split *split, Piece *before, Piece *after)
{
    const KilnVendor *vendor = split->splitter->vendor;
    uint32_t k = vendor->n_layouts ? layout_of(split) : 0;
    for (guint i = 0; vendor->n_layouts && i < after->captured->len; i++) {
        KilnValue *value = g_ptr_array_index(after->captured, i);
        KilnArgument *argument = kiln_function_argument(after->body, i);
        KilnValue *given = g_hash_table_lookup(before->values, value);
        const char *tag = vendor->layout_tag(k, value->type.rank);
        if (!tag || !g_ptr_array_find(before->given, value, NULL) || value->type.layout ||
            !vendor->lies_in(before->body, given, k) ||
            !vendor->lies_in(after->body, &argument->value, k))
            continue;
        KilnValue *packed = kiln_value_reorder(before->body, NULL, given, tag, split->error);
        if (!packed || !take_in(after->body, argument, tag, split->error))
            return false;
        g_hash_table_insert(before->values, value, packed);
    }
    return true;
}

/* --- what stands in the place of the region --- */

/* Value @value of the body, outside and as it is there; NULL with an error. */
static KilnValue *
outside(const Split *split, KilnValue *value)
{
    KilnValue *plain = g_hash_table_lookup(split->plain, value);
    KilnValue *made = g_hash_table_lookup(split->made, value);
    KilnFunction *function = split->region->function;
    if (plain)
        return plain;
    if (made) {
        plain = kiln_value_reorder(function, split->region, made, value->type.layout, split->error);
        if (plain)
            g_hash_table_insert(split->plain, value, plain);
        return plain;
    }
    KilnNode *def = value->def;
    if ((is_entered(def) && !outside(split, def->operands[0].value)) ||
        !kiln_node_copy(function, def, split->plain, split->region, NULL, split->error))
        return NULL;
    return g_hash_table_lookup(split->plain, value);
}

static KilnNode *
make_region(const Split *split, const Piece *piece)
{
    guint n = piece->given->len;
    g_autofree KilnValue **operands = g_new0(KilnValue *, piece->captured->len + 1);
    g_autofree KilnValue **returned = g_new0(KilnValue *, n + 1);
    g_autofree KilnType *types = g_new0(KilnType, n + 1);
    for (guint i = 0; i < piece->captured->len; i++) {
        KilnValue *value = g_ptr_array_index(piece->captured, i);
        operands[i] = g_hash_table_lookup(split->made, value);
        if (!operands[i])
            operands[i] = outside(split, value);
        if (!operands[i])
            return NULL;
    }
    for (guint r = 0; r < n; r++) {
        returned[r] = g_hash_table_lookup(piece->values, g_ptr_array_index(piece->given, r));
        types[r] = returned[r]->type;
    }
    if (!kiln_function_set_results(piece->body, returned, NULL, n, split->error))
        return NULL;
    g_autofree char *name =
        g_strdup_printf("%s.%u", split->splitter->callee, ++split->splitter->n_pieces);
    KilnAttrs_vendor_graph attrs = { .callee = name, .body = piece->body };
    KilnNodeSpec spec = { .op = KILN_OP_vendor_graph,
                          .operands = operands,
                          .n_operands = piece->captured->len,
                          .n_results = n,
                          .attrs = &attrs,
                          .types = types,
                          .before = split->region };
    KilnNode *node = kiln_node_new(split->region->function, &spec, split->error);
    for (guint r = 0; node && r < n; r++) {
        KilnValue *value = g_ptr_array_index(piece->given, r);
        bool same = g_strcmp0(types[r].layout, value->type.layout) == 0;
        g_hash_table_insert(same ? split->plain : split->made, value, &node->results[r]);
    }
    return node;
}

static bool
put_inline(const Split *split)
{
    kiln_foreach_node (node, split->body) {
        if (is_in_all_parts(node) || split->parts[node->id] != KILN_PART_INLINE)
            continue;
        for (uint32_t i = 0; i < node->n_operands; i++) {
            if (node->operands[i].value && !outside(split, node->operands[i].value))
                return false;
        }
        if (!kiln_node_copy_inline(split->region->function, node, split->plain, split->region,
                                   split->error))
            return false;
    }
    return true;
}

static bool
put_all(const Split *split, const Piece *before, const Piece *after, KilnNode **out_regions)
{
    const KilnNode *results = kiln_function_return(split->body);
    KilnNode *region = split->region;
    for (uint32_t i = 0; i < region->n_operands; i++)
        g_hash_table_insert(split->plain, &kiln_function_argument(split->body, i)->value,
                            region->operands[i].value);
    if (before->any && !(out_regions[KILN_PART_BEFORE] = make_region(split, before)))
        return false;
    if (!put_inline(split))
        return false;
    if (after->any && !(out_regions[KILN_PART_AFTER] = make_region(split, after)))
        return false;
    for (uint32_t r = 0; r < region->n_results; r++) {
        KilnValue *value = outside(split, results->operands[r].value);
        if (!value)
            return false;
        kiln_value_replace(&region->results[r], value);
    }
    kiln_node_remove(region);
    return true;
}

gboolean
kiln_offload_split(KilnSplitter *splitter, KilnNode *region, const KilnPart *parts,
                   KilnNode *out_regions[KILN_N_PARTS], GError **error)
{
    Split split = { .region = region,
                    .body = kiln_attrs(region, vendor_graph)->body,
                    .parts = parts,
                    .splitter = splitter,
                    .made = g_hash_table_new(NULL, NULL),
                    .plain = g_hash_table_new(NULL, NULL),
                    .error = error };
    Piece before = piece_new(&split, KILN_PART_BEFORE), after = piece_new(&split, KILN_PART_AFTER);
    for (int part = 0; part < KILN_N_PARTS; part++)
        out_regions[part] = NULL;
    gboolean good = fill(&split, &before) && fill(&split, &after) &&
                    lay_between(&split, &before, &after) &&
                    put_all(&split, &before, &after, out_regions);
    piece_clear(&before);
    piece_clear(&after);
    g_hash_table_unref(split.made);
    g_hash_table_unref(split.plain);
    return good;
}
