/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/module/define.h"

#include "graph/dim/dim_defined.h"
#include "graph/module/flow.h"
#include "graph/op/flow.h"
#include "graph/op/gather.h"
#include "graph/op/generate.h"
#include "graph/op/items.h"
#include "graph/op/text.h"

#include <string.h>

/* The field `count` of @node; NULL where its operator has none. */
static const char **
count_of(const KilnNode *node)
{
    switch (node->op) {
    case KILN_OP_non_zero:
        return &kiln_attrs(node, non_zero)->count;
    case KILN_OP_non_max_suppression:
        return &kiln_attrs(node, non_max_suppression)->count;
    case KILN_OP_unique:
        return &kiln_attrs(node, unique)->count;
    case KILN_OP_string_split:
        return &kiln_attrs(node, string_split)->count;
    case KILN_OP_tokenizer:
        return &kiln_attrs(node, tokenizer)->count;
    case KILN_OP_string_normalizer:
        return &kiln_attrs(node, string_normalizer)->count;
    default:
        return NULL;
    }
}

KilnStrings *
kiln_node_item_dims(const KilnNode *node)
{
    switch (node->op) {
    case KILN_OP_sequence_at:
        return &kiln_attrs(node, sequence_at)->dims;
    case KILN_OP_concat_from_sequence:
        return &kiln_attrs(node, concat_from_sequence)->dims;
    case KILN_OP_optional_get_element:
        return &kiln_attrs(node, optional_get_element)->dims;
    case KILN_OP_cast_map:
        return &kiln_attrs(node, cast_map)->dims;
    default:
        return NULL;
    }
}

bool
kiln_op_is_define(KilnOp op)
{
    return op == KILN_OP_define;
}

bool
kiln_op_measures(KilnOp op)
{
    return op == KILN_OP_image_size;
}

/* True where a tensor comes out of a sequence, optional or map. */
static bool
takes_out(KilnOp op)
{
    return op == KILN_OP_sequence_at || op == KILN_OP_concat_from_sequence ||
           op == KILN_OP_optional_get_element || op == KILN_OP_cast_map;
}

/* True where nobody knows how many a string has, and the result is made when it is known. */
static bool
makes_parts(KilnOp op)
{
    return op == KILN_OP_string_split || op == KILN_OP_tokenizer;
}

bool
kiln_op_counts(KilnOp op)
{
    return op == KILN_OP_non_zero || op == KILN_OP_non_max_suppression || op == KILN_OP_unique ||
           makes_parts(op) || op == KILN_OP_string_normalizer || takes_out(op);
}

const char *
kiln_node_count(const KilnNode *node)
{
    const char **count = count_of(node);
    return count ? *count : NULL;
}

bool
kiln_node_forget_count(KilnNode *node)
{
    const char **count = count_of(node);
    KilnStrings *dims = kiln_node_item_dims(node);
    if (count)
        *count = NULL;
    if (dims)
        dims->n = 0;
    return count || dims;
}

/* --- bounds --- */

/* Dim @d of @type, whether it has a number already or an expression alone. */
static KilnSize
extent(const KilnType *type, int d)
{
    KilnSize size = kiln_size_open(MAX(type->dims[d], 0), type->open[d]);
    size.lost |= !kiln_type_knows_dim(type, d);
    return size;
}

static KilnSize
elements(const KilnType *type)
{
    KilnSize size = kiln_size_make(1);
    size.lost = type->rank < 0;
    for (int d = 0; d < type->rank; d++)
        size = kiln_size_mul(size, extent(type, d));
    return size;
}

/* Each class of each batch keeps at most all boxes, and at most as many as it is told. */
static KilnSize
most_boxes(const KilnNode *node)
{
    const KilnType *scores = &kiln_node_operand(node, 1)->type;
    const KilnValue *stated = kiln_node_operand(node, 2);
    KilnSize most = elements(scores);
    if (scores->rank != 3)
        most.lost = true;
    if (!stated) /* no box is kept */
        return kiln_size_make(0);
    const KilnSize boxes = most.lost ? most : extent(scores, 2);
    int64_t least, upper = boxes.n, limit = -1;
    if (stated->known && stated->known->n == 1 && !stated->extents)
        limit = MAX(stated->known->v[0], 0);
    if (boxes.dim)
        kiln_dim_range(boxes.dim, &least, &upper);
    bool limits =
        limit >= 0 && (boxes.dim ? !kiln_dim_is_number(boxes.dim, &least) : limit < upper);
    if (most.lost || !limits)
        return most;
    KilnSize kept = kiln_size_make(limit);
    if (boxes.dim) {
        KilnDimTable *table = kiln_dim_table_of(boxes.dim);
        kept = kiln_size_open(MIN(boxes.n, limit),
                              kiln_dim_min(table, boxes.dim, kiln_dim_number(table, limit)));
    }
    return kiln_size_mul(kiln_size_mul(extent(scores, 0), extent(scores, 1)), kept);
}

static KilnSize
most_unique(const KilnNode *node)
{
    const KilnType *x = &kiln_node_operand(node, 0)->type;
    int64_t stated = kiln_attrs(node, unique)->axis;
    int axis = stated == G_MININT64 ? -1 : kiln_type_axis(x, stated);
    return stated == G_MININT64 || axis < 0 ? elements(x) : extent(x, axis);
}

/* Nobody knows how long a string is, unless the number of cuts is bounded. */
static KilnSize
most_parts(const KilnNode *node)
{
    int64_t cuts = kiln_attrs(node, string_split)->maxsplit;
    KilnSize most = kiln_size_make(cuts < 0 || cuts == G_MAXINT64 ? KILN_DIM_MOST : cuts + 1);
    most.lost = most.n >= KILN_DIM_MOST;
    return most;
}

static KilnSize
most_of(const KilnNode *node)
{
    switch (node->op) {
    case KILN_OP_non_max_suppression:
        return most_boxes(node);
    case KILN_OP_unique:
        return most_unique(node);
    case KILN_OP_string_split:
        return most_parts(node);
    case KILN_OP_tokenizer:
        return (KilnSize){ .n = KILN_DIM_MOST, .lost = true };
    case KILN_OP_string_normalizer: /* an empty string stands for none */
        return kiln_size_add(elements(&kiln_node_operand(node, 0)->type), kiln_size_make(1));
    default:
        return elements(&kiln_node_operand(node, 0)->type);
    }
}

static int64_t
upper(KilnSize size)
{
    int64_t least, most = size.n;
    if (size.dim)
        kiln_dim_range(size.dim, &least, &most);
    return most;
}

/* --- names --- */

char *
kiln_define_word(const char *name)
{
    GString *word = g_string_new(NULL);
    if (!g_ascii_isalpha(*name))
        g_string_append_c(word, '_');
    for (const char *c = name; *c; c++)
        g_string_append_c(word, g_ascii_isalnum(*c) ? *c : '_');
    g_string_append(word, "_n");
    return g_string_free(word, FALSE);
}

static const KilnStrings no_names = { 0 };

static const KilnStrings *
names_of(const KilnNode *node)
{
    return node->op == KILN_OP_define ? &kiln_attrs(node, define)->names : &no_names;
}

static bool
has_word(const KilnStrings *words, const char *word)
{
    for (uint32_t i = 0; words && i < words->n; i++) {
        if (strcmp(words->v[i], word) == 0)
            return true;
    }
    return false;
}

static bool
is_name(void *data, const char *name)
{
    return strcmp(data, name) == 0;
}

/* True where a dim of @type has @name in it. */
static bool
type_has_name(const KilnType *type, const char *name)
{
    for (int d = 0; d < type->rank; d++) {
        if (type->open[d] && kiln_dim_any_name(type->open[d], is_name, (void *)name))
            return true;
    }
    return false;
}

/* The function that stands for @region of @node. While types are tried on a copy of the body of a
 * loop, it is this copy, which is @at or around it. */
static const KilnFunction *
standing(const KilnFunction *at, const KilnNode *node, const KilnFunction *region)
{
    if (node->op != KILN_OP_loop && node->op != KILN_OP_scan)
        return region;
    for (; at; at = at->owner ? at->owner->function : NULL) {
        if (at->owner == node)
            return at;
    }
    return region;
}

/* True where @name is in use in @function or its subgraphs, as those around @at see them. */
static bool
is_taken(const KilnFunction *function, const KilnFunction *at, const char *name)
{
    for (guint i = 0; i < function->arguments->len; i++) {
        if (type_has_name(&kiln_function_argument(function, i)->value.type, name))
            return true;
    }
    kiln_foreach_node (node, function) {
        if (g_strcmp0(kiln_node_count(node), name) == 0 || has_word(names_of(node), name) ||
            has_word(kiln_flow_dims(node), name) || has_word(kiln_node_item_dims(node), name))
            return true;
        kiln_foreach_region (region, node) {
            if (is_taken(standing(at, node, region), at, name))
                return true;
        }
    }
    return false;
}

static bool
is_taken_in_module(const KilnFunction *at, const char *name)
{
    const GPtrArray *functions = at->module->functions;
    for (guint i = 0; i < functions->len; i++) {
        if (is_taken(g_ptr_array_index(functions, i), at, name))
            return true;
    }
    return false;
}

const char *
kiln_define_name(KilnFunction *function, const char *wanted, int64_t most)
{
    g_autoptr(GString) text = g_string_new(wanted);
    const KilnDim *name = kiln_dim_define(function->module->dims, text->str, most);
    while (is_taken_in_module(function, kiln_dim_as_name(name))) {
        g_string_append_c(text, '_');
        name = kiln_dim_define(function->module->dims, text->str, most);
    }
    return kiln_dim_as_name(name);
}

/* Names for the dims of result 0, a tensor out of a sequence, that are not known. */
static bool
define_item_dims(KilnNode *node, KilnStrings *dims)
{
    const KilnType *type = &node->results[0].type;
    KilnArena *arena = node->function->module->arena;
    if (dims->n || type->rank < 1 || kiln_type_is_known(type))
        return false;
    const char **names = kiln_arena_new0(arena, const char *, type->rank);
    for (int d = 0; d < type->rank; d++) {
        g_autofree char *word = kiln_define_word(node->results[0].name);
        g_autofree char *wanted = g_strdup_printf("%s%d", word, d);
        bool known = kiln_type_knows_dim(type, d);
        names[d] = known ? "" : kiln_define_name(node->function, wanted, KILN_DIM_MOST);
    }
    *dims = (KilnStrings){ .n = (uint32_t)type->rank, .v = names };
    return true;
}

bool
kiln_node_define(KilnNode *node)
{
    KilnStrings *dims = kiln_node_item_dims(node);
    if (dims)
        return kiln_function_root(node->function) == kiln_module_entry(node->function->module) &&
               define_item_dims(node, dims);
    const char **count = count_of(node);
    const KilnFunction *function = node->function;
    if (!count || *count || kiln_type_is_known(&node->results[0].type) ||
        kiln_function_root(function) != kiln_module_entry(function->module))
        return false;
    const KilnSize most = most_of(node);
    if (most.lost && !makes_parts(node->op))
        return false;
    g_autofree char *word = kiln_define_word(node->results[0].name);
    *count = kiln_define_name(node->function, word, upper(most));
    return true;
}

/* The element of the second operand, if there is one: all numbers but those that must be 0 add up
 * to at most so many. */
static KilnSize
whole_of(const KilnNode *node)
{
    const KilnValue *whole = kiln_node_operand(node, 1);
    const bool known = whole && whole->known && whole->known->n == 1;
    const bool open = whole && whole->extents && whole->extents->n == 1 && !whole->extents->under;
    KilnSize size = kiln_size_make(known ? whole->known->v[0] : 0);
    if (open)
        size = kiln_size_open(size.n, whole->extents->v[0]);
    size.lost |= !known && !open;
    return size;
}

static KilnSize
most_of_name(const KilnNode *node, uint32_t i, const KilnDim *name)
{
    KilnDimFacts facts;
    KilnSize by_readers = kiln_define_most_by_readers(node, i), most;
    kiln_dim_facts(name, &facts);
    most = kiln_size_make(facts.hi);
    most.lost = facts.hi == KILN_DIM_MOST;
    return by_readers.lost || (!by_readers.dim && by_readers.n > facts.hi) ? most : by_readers;
}

/* The names of results of a branch or loop. */
static uint32_t
flow_defines(const KilnNode *node, const KilnStrings *names, KilnDefined *out)
{
    const uint32_t n = MIN(names->n, (uint32_t)KILN_DEFINED_MAX);
    for (uint32_t i = 0; i < n; i++) {
        KilnDimFacts facts;
        out[i].name = kiln_dim_name(node->function->module->dims, names->v[i]);
        kiln_dim_facts(out[i].name, &facts);
        out[i].most = kiln_size_make(facts.hi);
        out[i].most.lost = facts.hi == KILN_DIM_MOST;
    }
    return n;
}

/* The names of dims of a tensor out of a sequence. */
static uint32_t
item_defines(const KilnNode *node, const KilnStrings *dims, KilnDefined *out)
{
    uint32_t n = 0;
    for (uint32_t d = 0; d < dims->n && d < KILN_MAX_RANK; d++) {
        if (!*dims->v[d])
            continue;
        out[n] = (KilnDefined){ .name = kiln_dim_name(node->function->module->dims, dims->v[d]) };
        out[n++].most.lost = true;
    }
    return n;
}

uint32_t
kiln_node_defines(const KilnNode *node, KilnDefined out[KILN_DEFINED_MAX])
{
    const KilnStrings *flow = kiln_flow_dims(node), *item = kiln_node_item_dims(node);
    if (flow || item)
        return flow ? flow_defines(node, flow, out) : item_defines(node, item, out);
    KilnDimTable *dims = node->function->module->dims;
    const char *count = kiln_node_count(node);
    if (count) {
        out[0] = (KilnDefined){ kiln_dim_name(dims, count), most_of(node) };
        return 1;
    }
    const KilnStrings *names = names_of(node);
    KilnSize whole = whole_of(node);
    for (uint32_t i = 0; i < names->n && i < KILN_DEFINED_MAX; i++) {
        out[i].name = kiln_dim_name(dims, names->v[i]);
        out[i].most = most_of_name(node, i, out[i].name);
        if (whole.lost || kiln_size_is(out[i].most, 0))
            continue;
        out[i].most = whole;
        whole = kiln_size_sub(whole, kiln_size_open(0, out[i].name));
    }
    return MIN(names->n, (uint32_t)KILN_DEFINED_MAX);
}

/* --- modules --- */

typedef bool (*NodeTest)(const KilnNode *node);

/* True where @test says so of a node of @function or of its subgraphs. */
static bool
any_node(const KilnFunction *function, NodeTest test)
{
    kiln_foreach_node (node, function) {
        if (test(node))
            return true;
        kiln_foreach_region (region, node) {
            if (any_node(region, test))
                return true;
        }
    }
    return false;
}

/* The body of a loop may have arguments of other types than the loop has operands. */
static bool
names_arguments(const KilnNode *node)
{
    uint32_t first, carried;
    if (node->op != KILN_OP_loop && node->op != KILN_OP_scan)
        return false;
    const KilnFunction *body =
        node->op == KILN_OP_loop ? kiln_attrs(node, loop)->body : kiln_attrs(node, scan)->body;
    kiln_flow_carried(node, &first, &carried);
    for (uint32_t i = first; i < first + carried; i++) {
        if (!kiln_type_equal_shape(&node->operands[i].value->type,
                                   &kiln_function_argument(body, i)->value.type))
            return true;
    }
    return false;
}

static bool
defines(const KilnNode *node)
{
    KilnDefined ignored[KILN_DEFINED_MAX];
    return kiln_node_defines(node, ignored) || names_arguments(node);
}

static bool
may_define(const KilnNode *node)
{
    return kiln_op_counts(node->op) || node->op == KILN_OP_define || kiln_op_is_flow(node->op);
}

bool
kiln_module_defines(const KilnModule *module)
{
    return any_node(kiln_module_entry(module), defines);
}

bool
kiln_module_may_define(const KilnModule *module)
{
    return any_node(kiln_module_entry(module), may_define);
}
