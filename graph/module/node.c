/* SPDX-License-Identifier: Apache-2.0 */
/* Building, rewriting and unlinking nodes; uses are kept exact at every step. */
#include "graph/node.h"

#include "graph/base/number.h"
#include "graph/base/random.h"
#include "graph/infer/infer.h"
#include "graph/module.h"
#include "graph/module/changes.h"
#include "graph/op/quantize.h"
#include "graph/op/random.h"
#include "graph/order.h"

#include <string.h>

const char *
kiln_node_label(const KilnNode *node)
{
    if (node->name)
        return node->name;
    return node->n_results ? node->results[0].name : kiln_op_info(node->op)->name;
}

int64_t *
kiln_node_stream(const KilnNode *node)
{
    switch (node->op) {
    case KILN_OP_random_normal:
        return kiln_attrs(node, random_normal)->seed ? NULL
                                                     : &kiln_attrs(node, random_normal)->stream;
    case KILN_OP_random_uniform:
        return kiln_attrs(node, random_uniform)->seed ? NULL
                                                      : &kiln_attrs(node, random_uniform)->stream;
    default:
        return NULL;
    }
}

bool
kiln_node_has_blocks(const KilnNode *node)
{
    switch (node->op) {
    case KILN_OP_quantize_linear:
        return kiln_attrs(node, quantize_linear)->block_size != 0;
    case KILN_OP_dequantize_linear:
        return kiln_attrs(node, dequantize_linear)->block_size != 0;
    default:
        return false;
    }
}

KilnNode *
kiln_value_def_of(const KilnValue *value, KilnOp op)
{
    return value && value->def && value->def->op == op ? value->def : NULL;
}

KilnConstant *
kiln_value_constant(const KilnValue *value)
{
    const KilnNode *node = kiln_value_def_of(value, KILN_OP_const);
    return node ? kiln_attrs(node, const)->value : NULL;
}

KilnTensor *
kiln_value_known_tensor(const KilnValue *value)
{
    const KilnKnown *known = value->known;
    if (!known || known->n != kiln_type_elements(&value->type))
        return NULL;
    KilnType type = kiln_type_make(value->type.dtype, value->type.rank, value->type.dims);
    size_t size = kiln_dtype_size(type.dtype), n = (size_t)known->n;
    uint8_t *data = g_malloc0(n * size + 1); /* of at most KILN_KNOWN_MAX elements */
    for (size_t i = 0; i < n; i++) {
        if (kiln_dtype_is_float(type.dtype) || kiln_dtype_bits(type.dtype) < 8)
            kiln_element_store_f64(type.dtype, data, (int64_t)i, (double)known->v[i]);
        else
            memcpy(data + i * size, &known->v[i], size); /* little-endian: the low bytes */
    }
    g_autoptr(GBytes) bytes = g_bytes_new_take(data, n * size);
    return kiln_tensor_compact(kiln_tensor_new_data(&type, bytes, NULL));
}

bool
kiln_value_single_use(const KilnValue *value)
{
    return value->n_uses == 1 && value->first_use->user->op != KILN_OP_return;
}

bool
kiln_value_is_returned(const KilnValue *value)
{
    kiln_foreach_use (use, value) {
        if (use->user->op == KILN_OP_return)
            return true;
    }
    return false;
}

/* --- uses --- */

static void
use_link(KilnUse *use, KilnValue *value)
{
    use->value = value;
    use->next = NULL;
    use->previous = value ? value->last_use : NULL;
    kiln_changes_add_node(use->user);
    kiln_order_relink(use);
    if (!value)
        return;
    if (value->last_use)
        value->last_use->next = use;
    else
        value->first_use = use;
    value->last_use = use;
    value->n_uses++;
    kiln_changes_add_value(value);
}

/* @node may be dead: for a sweep that then need not look at all nodes. */
static void
doubt(KilnNode *node)
{
    KilnFunction *function = node->function;
    if (!function->doubtful)
        return;
    if (function->doubtful->len > function->n_nodes)
        g_clear_pointer(&function->doubtful, g_ptr_array_unref); /* nobody sweeps */
    else
        g_ptr_array_add(function->doubtful, node);
}

static void
use_unlink(KilnUse *use)
{
    KilnValue *value = use->value;
    if (!value)
        return;
    if (use->previous)
        use->previous->next = use->next;
    else
        value->first_use = use->next;
    if (use->next)
        use->next->previous = use->previous;
    else
        value->last_use = use->previous;
    if (--value->n_uses == 0 && value->def)
        doubt(value->def);
    kiln_changes_add_value(value);
    kiln_changes_add_node(use->user);
    use->value = NULL;
    use->previous = use->next = NULL;
}

/* --- the list of nodes --- */

static void
node_link(KilnFunction *function, KilnNode *node, KilnNode *before)
{
    KilnNode *after = before ? before->previous : function->last;
    node->previous = after;
    node->next = before;
    if (after)
        after->next = node;
    else
        function->first = node;
    if (before)
        before->previous = node;
    else
        function->last = node;
    kiln_order_link(node);
    kiln_changes_add_node(node);
    function->n_nodes++;
    function->n_region_nodes += kiln_op_has(node->op, KILN_TRAIT_REGION);
    function->module->n_nodes++;
    kiln_function_stamp(function);
}

static void
node_unlink(KilnNode *node)
{
    KilnFunction *function = node->function;
    if (node->previous)
        node->previous->next = node->next;
    else
        function->first = node->next;
    if (node->next)
        node->next->previous = node->previous;
    else
        function->last = node->previous;
    node->previous = node->next = NULL;
    kiln_order_unlink(node);
    kiln_changes_add_node(node);
    function->n_nodes--;
    function->n_region_nodes -= kiln_op_has(node->op, KILN_TRAIT_REGION);
    function->module->n_nodes--;
    kiln_function_stamp(function);
}

/* --- inference --- */

/* What inference found for each result. Almost every node has one: no allocation then. */
typedef struct {
    KilnType *types;
    const KilnKnown **known;
    const KilnExtents **extents;
    KilnType one_type;
    const KilnKnown *one_known;
    const KilnExtents *one_extents;
} Inferred;

static void
inferred_clear(Inferred *inferred)
{
    if (inferred->types == &inferred->one_type)
        return;
    g_free(inferred->types);
    g_free(inferred->known);
    g_free(inferred->extents);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Inferred, inferred_clear)

/* What lives longer goes into @arena. */
static gboolean
infer(Inferred *out, const KilnNode *node, KilnArena *arena, const KilnType *given, GError **error)
{
    uint32_t n = node->n_results;
    bool one = n <= 1;
    out->types = one ? &out->one_type : g_new(KilnType, n);
    out->known = one ? &out->one_known : g_new0(const KilnKnown *, n);
    out->extents = one ? &out->one_extents : g_new0(const KilnExtents *, n);
    out->one_known = NULL;
    out->one_extents = NULL;
    KilnInfer in = { .node = node,
                     .arena = arena,
                     .out = out->types,
                     .known = out->known,
                     .extents = out->extents,
                     .dims = node->function->module->dims,
                     .given = given };
    for (uint32_t i = 0; i < n; i++)
        out->types[i] = kiln_type_unranked(KILN_DTYPE_f32);
    if (kiln_infer_run(&in, error))
        return TRUE;
    kiln_prefix_error(error, "%s (%s): ", kiln_node_label(node), kiln_op_info(node->op)->name);
    return FALSE;
}

/* A stated type may say more than inference can (a name for an unknown dim, a layout), never
 * something else. How a value is quantized is told by inference alone. */
static bool
type_agrees(const KilnType *stated, const KilnType *inferred)
{
    if (stated->dtype != inferred->dtype || !kiln_quant_equal(stated->quant, inferred->quant))
        return false;
    if (inferred->rank < 0 || stated->rank < 0)
        return true;
    if (stated->rank != inferred->rank)
        return false;
    for (int i = 0; i < stated->rank; i++) {
        if (stated->dims[i] >= 0 && inferred->dims[i] >= 0 && stated->dims[i] != inferred->dims[i])
            return false;
    }
    return true;
}

/* Takes the stated type where it knows more; a stated layout always counts. */
static KilnType
type_merge(const KilnType *stated, const KilnType *inferred)
{
    KilnType type = *stated;
    if (inferred->contents) /* they say as much as is known */
        return *inferred;
    if (stated->rank < 0 && inferred->rank >= 0) {
        type = *inferred;
        type.layout = stated->layout;
        return type;
    }
    for (int i = 0; inferred->rank >= 0 && i < type.rank; i++) {
        if (type.dims[i] < 0 && (inferred->dims[i] >= 0 || !type.open[i])) {
            type.dims[i] = inferred->dims[i];
            type.open[i] = inferred->open[i];
        }
    }
    return type;
}

static gboolean
throw_stated(const KilnNode *node, uint32_t i, const KilnType *stated, const KilnType *inferred,
             GError **error)
{
    g_autofree char *found = kiln_type_to_string(stated);
    g_autofree char *expected = kiln_type_to_string(inferred);
    return kiln_throw(error, KILN_ERROR_SHAPE, "%s (%s): result %u: expected %s, found %s stated",
                      kiln_node_label(node), kiln_op_info(node->op)->name, i, expected, found);
}

/* @given is for shape functions that go by it; @stated is what the result must agree with. */
static gboolean
set_types(KilnNode *node, const KilnType *given, const KilnType *stated, GError **error)
{
    KilnArena *arena = node->function->module->arena;
    g_auto(Inferred) inferred;
    if (!infer(&inferred, node, arena, given, error))
        return FALSE;
    for (uint32_t i = 0; i < node->n_results; i++) {
        KilnType type = inferred.types[i];
        if (stated) {
            if (!type_agrees(&stated[i], &type))
                return throw_stated(node, i, &stated[i], &type, error);
            type = type_merge(&stated[i], &type);
        }
        node->results[i].type = kiln_type_copy(arena, &type);
        node->results[i].known = inferred.known[i];
        node->results[i].extents = inferred.extents[i];
    }
    return TRUE;
}

gboolean
kiln_node_reinfer(KilnNode *node, GError **error)
{
    g_autofree KilnType *given = g_new0(KilnType, node->n_results + 1);
    for (uint32_t i = 0; i < node->n_results; i++)
        given[i] = node->results[i].type;
    kiln_node_touch(node);
    return set_types(node, given, kiln_infer_function(node->op) == kiln_infer_given ? given : NULL,
                     error);
}

gboolean
kiln_node_refine(KilnNode *node, bool *refined, GError **error)
{
    g_autofree KilnType *stored = g_new0(KilnType, node->n_results + 1);
    g_autofree const KilnKnown **known = g_new0(const KilnKnown *, node->n_results + 1);
    g_autofree const KilnExtents **extents = g_new0(const KilnExtents *, node->n_results + 1);
    *refined = false;
    for (uint32_t i = 0; i < node->n_results; i++) {
        stored[i] = node->results[i].type;
        known[i] = node->results[i].known;
        extents[i] = node->results[i].extents;
    }
    if (!set_types(node, stored, stored, error))
        return FALSE;
    for (uint32_t i = 0; i < node->n_results; i++)
        *refined |= !kiln_type_equal(&stored[i], &node->results[i].type) ||
                    (!known[i] && node->results[i].known) ||
                    (!extents[i] && node->results[i].extents);
    if (*refined)
        kiln_node_touch(node);
    return TRUE;
}

gboolean
kiln_node_check_types(const KilnNode *node, KilnArena *scratch, GError **error)
{
    KilnType one;
    bool few = node->n_results <= 1;
    g_autofree KilnType *many = few ? NULL : g_new(KilnType, node->n_results);
    KilnType *stored = few ? &one : many;
    g_auto(Inferred) inferred;
    for (uint32_t i = 0; i < node->n_results; i++)
        stored[i] = node->results[i].type;
    if (!infer(&inferred, node, scratch, stored, error))
        return FALSE;
    for (uint32_t i = 0; i < node->n_results; i++) {
        const KilnKnown *mine = node->results[i].known, *found = inferred.known[i];
        if (!type_agrees(&stored[i], &inferred.types[i]))
            return throw_stated(node, i, &stored[i], &inferred.types[i], error);
        if (mine && found &&
            (mine->n != found->n ||
             memcmp(mine->v, found->v, (size_t)mine->n * sizeof *mine->v) != 0))
            return kiln_throw(
                error, KILN_ERROR_INVALID,
                "%s (%s): result %u: the known integers are not those of its operands",
                kiln_node_label(node), kiln_op_info(node->op)->name, i);
    }
    return TRUE;
}

/* --- building --- */

static gboolean
check_arity(const KilnNodeSpec *spec, uint32_t n_results, GError **error)
{
    const KilnOpInfo *info = kiln_op_info(spec->op);
    bool named = spec->result_names && n_results;
    const char *label = spec->name          ? spec->name
                        : named             ? spec->result_names[0]
                        : spec->result_name ? spec->result_name
                                            : info->name;
    uint32_t lowest = (uint32_t)info->min_operands, highest = (uint32_t)info->max_operands;
    if (spec->n_operands < lowest || (highest != KILN_MANY && spec->n_operands > highest)) {
        g_autofree char *expected = kiln_arity_text(lowest, highest);
        return kiln_throw(error, KILN_ERROR_INVALID, "%s (%s): expected %s operands, found %u",
                          label, info->name, expected, spec->n_operands);
    }
    for (uint32_t i = 0; i < lowest; i++) {
        if (!spec->operands[i])
            return kiln_throw(error, KILN_ERROR_INVALID,
                              "%s (%s): operand %u is required, found none", label, info->name, i);
    }
    lowest = (uint32_t)info->min_results, highest = (uint32_t)info->max_results;
    if (n_results < lowest || (highest != KILN_MANY && n_results > highest)) {
        g_autofree char *expected = kiln_arity_text(lowest, highest);
        return kiln_throw(error, KILN_ERROR_INVALID, "%s (%s): expected %s results, found %u",
                          label, info->name, expected, n_results);
    }
    return TRUE;
}

static void
name_results(KilnNode *node, const KilnNodeSpec *spec)
{
    KilnFunction *function = node->function;
    const char *base = spec->result_name ? spec->result_name : kiln_op_info(node->op)->name;
    for (uint32_t i = 0; i < node->n_results; i++) {
        KilnValue *value = &node->results[i];
        g_autofree char *wanted = spec->result_names ? g_strdup(spec->result_names[i])
                                  : i                ? g_strdup_printf("%s_%u", base, i)
                                                     : g_strdup(base);
        value->name = kiln_function_unique_name(function, wanted);
        value->made_up = strcmp(value->name, wanted) != 0;
        value->made_up |= !spec->result_name && !spec->result_names;
        kiln_function_enter_name(function, value);
    }
}

/* Random operators draw from a stream of their own. It has its number from the name that the first
 * result is born with, and keeps it whatever passes make of names. */
static void
set_stream(KilnNode *node)
{
    int64_t *stream = kiln_node_stream(node);
    if (stream && !*stream)
        *stream = kiln_random_stream(node->results[0].name);
}

KilnNode *
kiln_node_new(KilnFunction *function, const KilnNodeSpec *spec, GError **error)
{
    const KilnOpInfo *info = kiln_op_info(spec->op);
    KilnArena *arena = function->module->arena;
    uint32_t n_results = spec->n_results ? spec->n_results : info->max_results == 0 ? 0 : 1;
    if (!check_arity(spec, n_results, error))
        return NULL;

    KilnModule *module = function->module;
    KilnNode *node = kiln_arena_new0(module->nodes, KilnNode, 1);
    module->made_nodes++;
    node->op = spec->op;
    node->function = function;
    node->name = kiln_arena_strdup(arena, spec->name);
    node->n_operands = spec->n_operands;
    node->n_results = n_results;
    node->operands = kiln_arena_new0(module->uses, KilnUse, spec->n_operands);
    node->results = kiln_arena_new0(module->values, KilnValue, n_results);
    for (uint32_t i = 0; i < n_results; i++) {
        node->results[i].def = node;
        node->results[i].index = i;
        node->results[i].name = spec->result_names  ? spec->result_names[i]
                                : spec->result_name ? spec->result_name
                                                    : info->name; /* for messages */
    }
    node->attrs = kiln_op_attrs_new(spec->op, arena);
    if (spec->attrs)
        kiln_attrs_copy(info->attrs, info->n_attrs, node->attrs, spec->attrs, arena);
    for (uint32_t i = 0; i < spec->n_operands; i++) {
        node->operands[i].user = node;
        node->operands[i].index = i;
        node->operands[i].value = spec->operands[i]; /* visible to inference; linked below */
    }
    if (!set_types(node, spec->types, spec->types, error))
        return NULL;

    for (uint32_t i = 0; i < spec->n_operands; i++)
        use_link(&node->operands[i], spec->operands[i]);
    node->id = function->next_id++;
    name_results(node, spec);
    set_stream(node);
    for (uint32_t i = 0; i < info->n_attrs; i++) {
        KilnFunction **region = (KilnFunction **)((char *)node->attrs + info->attrs[i].offset);
        if (info->attrs[i].kind != KILN_ATTR_FUNCTION || !*region)
            continue;
        (*region)->owner = node;
        kiln_function_settle_names(*region);
    }
    KilnNode *before = spec->before;
    if (!before && function->last && function->last->op == KILN_OP_return)
        before = function->last;
    node_link(function, node, before);
    doubt(node);
    return node;
}

KilnValue *
kiln_build(KilnFunction *function, KilnNode *before, KilnOp op, const void *attrs,
           KilnValue *const *operands, uint32_t n_operands, GError **error)
{
    KilnNode *node = kiln_node_new(function,
                                   &(KilnNodeSpec){ .op = op,
                                                    .operands = operands,
                                                    .n_operands = n_operands,
                                                    .attrs = attrs,
                                                    .before = before },
                                   error);
    return node ? &node->results[0] : NULL;
}

KilnValue *
kiln_build_typed(KilnNode *before, KilnOp op, const void *attrs, KilnValue *const *operands,
                 uint32_t n_operands, const KilnType *type, GError **error)
{
    KilnNode *node = kiln_node_new(before->function,
                                   &(KilnNodeSpec){ .op = op,
                                                    .operands = operands,
                                                    .n_operands = n_operands,
                                                    .attrs = attrs,
                                                    .types = type,
                                                    .before = before },
                                   error);
    return node ? &node->results[0] : NULL;
}

KilnValue *
kiln_build_constant_as(KilnFunction *function, KilnNode *before, const char *base_name,
                       KilnTensor *tensor, const KilnType *type)
{
    KilnConstant *constant = kiln_module_add_constant(function->module, base_name, tensor, type);
    KilnAttrs_const attrs = { .value = constant };
    KilnNode *node = kiln_node_new(
        function,
        &(KilnNodeSpec){
            .op = KILN_OP_const, .attrs = &attrs, .before = before, .result_name = base_name },
        NULL);
    return &node->results[0]; /* without operands nothing fails */
}

KilnValue *
kiln_build_constant(KilnFunction *function, KilnNode *before, const char *base_name,
                    KilnTensor *tensor)
{
    return kiln_build_constant_as(function, before, base_name, tensor, NULL);
}

KilnValue *
kiln_build_ints(KilnFunction *function, KilnNode *before, const int64_t *values, uint32_t n)
{
    KilnType type = kiln_type_make(KILN_DTYPE_i64, 1, (int64_t[]){ n });
    g_autoptr(GBytes) bytes = g_bytes_new(values, n * sizeof *values);
    KilnTensor *tensor = kiln_tensor_new_data(&type, bytes, NULL);
    return kiln_build_constant(function, before, "ints", tensor);
}

/* --- rewriting --- */

void
kiln_node_set_operand(KilnNode *node, uint32_t i, KilnValue *value)
{
    use_unlink(&node->operands[i]);
    use_link(&node->operands[i], value);
    kiln_function_stamp(node->function);
}

/* The same type, or one that says more: in a branch that is never taken, types may be open which
 * those around it are not. Assertions ask. */
static G_GNUC_UNUSED bool
says_as_much(const KilnType *type, const KilnType *than)
{
    KilnType filled = *than;
    if (than->rank < 0) {
        filled = *type;
        filled.dtype = than->dtype;
        filled.layout = than->layout;
        filled.quant = than->quant;
    }
    for (int d = 0; than->rank == type->rank && d < than->rank; d++) {
        if (than->dims[d] >= 0)
            continue;
        filled.dims[d] = type->dims[d];
        filled.open[d] = type->open[d];
    }
    return kiln_type_equal(&filled, type);
}

void
kiln_value_replace(KilnValue *from, KilnValue *to)
{
    g_assert(from != to);
    g_assert(says_as_much(&to->type, &from->type));
    kiln_foreach_use_safe (use, from) {
        kiln_function_stamp(use->user->function);
        use_unlink(use);
        use_link(use, to);
    }
    if (to->def && to->made_up && from->def && !from->made_up &&
        from->def->function == to->def->function) {
        KilnFunction *function = to->def->function;
        const char *name = from->name;
        from->name = to->name;
        to->name = name;
        from->made_up = true;
        to->made_up = false;
        g_hash_table_insert(function->names, (char *)from->name, from);
        g_hash_table_insert(function->names, (char *)to->name, to);
        kiln_changes_add_value(from);
        kiln_changes_add_value(to);
    }
}

void
kiln_node_remove(KilnNode *node)
{
    KilnFunction *function = node->function;
    for (uint32_t i = 0; i < node->n_results; i++) {
        g_assert(node->results[i].n_uses == 0);
        if (g_hash_table_lookup(function->names, node->results[i].name) == &node->results[i])
            g_hash_table_remove(function->names, node->results[i].name);
    }
    for (uint32_t i = 0; i < node->n_operands; i++)
        use_unlink(&node->operands[i]);
    const KilnOpInfo *info = kiln_op_info(node->op);
    for (uint32_t i = 0; i < info->n_attrs; i++)
        function->module->doubtful_constants |= info->attrs[i].kind == KILN_ATTR_CONSTANT;
    /* The nodes of a subgraph die with it: they may read values around it. */
    kiln_foreach_region (region, node) {
        if (region->owner != node)
            continue;
        kiln_foreach_node_reverse (inner, region)
            kiln_node_remove(inner);
    }
    node_unlink(node);
}

void
kiln_node_move(KilnNode *node, KilnNode *before)
{
    KilnFunction *function = node->function;
    if (node == before)
        return;
    node_unlink(node);
    node_link(function, node, before);
}

/* What reads its results has types that hang on them. */
void
kiln_node_touch(KilnNode *node)
{
    kiln_changes_add_node(node);
    for (uint32_t i = 0; i < node->n_results; i++) {
        kiln_foreach_use (use, &node->results[i])
            kiln_changes_add_node(use->user);
    }
    node->function->module->doubtful_constants = true;
    kiln_function_stamp(node->function);
}

bool
kiln_node_is_dead(const KilnNode *node)
{
    if (kiln_op_info(node->op)->traits & (KILN_TRAIT_SIDE_EFFECT | KILN_TRAIT_STATE))
        return false;
    for (uint32_t i = 0; i < node->n_results; i++) {
        if (node->results[i].n_uses)
            return false;
    }
    return true;
}

/* True where @value is made, or taken, in a subgraph of @node. */
static bool
is_inside(const KilnValue *value, const KilnNode *node)
{
    const KilnFunction *function = kiln_value_function(value);
    for (; function->owner; function = function->owner->function) {
        if (function->owner == node)
            return true;
    }
    return false;
}

static void
add_captures(const KilnNode *node, const KilnFunction *function, GPtrArray *out)
{
    kiln_foreach_node (inner, function) {
        for (uint32_t i = 0; i < inner->n_operands; i++) {
            KilnValue *value = inner->operands[i].value;
            if (value && !is_inside(value, node))
                g_ptr_array_add(out, value);
        }
        kiln_foreach_region (region, inner)
            add_captures(node, region, out);
    }
}

void
kiln_node_add_captures(const KilnNode *node, GPtrArray *out)
{
    kiln_foreach_region (region, node)
        add_captures(node, region, out);
}

static void
add_captured_nodes(const KilnNode *node, GPtrArray *work)
{
    if (!kiln_op_has(node->op, KILN_TRAIT_REGION))
        return;
    g_autoptr(GPtrArray) captures = g_ptr_array_new();
    kiln_node_add_captures(node, captures);
    for (guint i = 0; i < captures->len; i++) {
        const KilnValue *value = g_ptr_array_index(captures, i);
        if (value->def)
            g_ptr_array_add(work, value->def);
    }
}

void
kiln_node_remove_if_dead(KilnNode *node)
{
    g_autoptr(GPtrArray) work = g_ptr_array_new();
    g_ptr_array_add(work, node);
    while (work->len) {
        KilnNode *top = g_ptr_array_remove_index(work, work->len - 1);
        if (!kiln_node_is_linked(top) || !kiln_node_is_dead(top))
            continue;
        for (uint32_t i = 0; i < top->n_operands; i++) {
            const KilnValue *value = top->operands[i].value;
            if (value && value->def)
                g_ptr_array_add(work, value->def);
        }
        add_captured_nodes(top, work);
        kiln_node_remove(top);
    }
}
