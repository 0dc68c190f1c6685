/* SPDX-License-Identifier: Apache-2.0 */
/* The verifier of the graph level: what must hold of a function after every pass. One walk in
 * order, linear in nodes and uses.
 *
 * A value is defined once its node was passed; the walk enters a subgraph at its node, so that what
 * it reads from around it must have been passed by then. Uses are checked from both ends: every
 * operand is linked to its neighbours in the chain of its value, and every chain is as long as the
 * number of operands that read the value. */
#include "graph/verify/verify.h"

#include "graph/module.h"
#include "graph/module/sweep.h"
#include "graph/node.h"
#include "graph/op/offload.h"
#include "graph/verify/verify_priv.h"

static bool verify_function(KilnVerify *verify, const KilnFunction *function);

bool
kiln_verify_throw(KilnVerify *verify, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    g_autofree char *message = g_strdup_vprintf(format, args);
    va_end(args);
    const KilnNode *node = verify->node;
    const char *function = verify->scope ? verify->scope->function->name : "";
    if (!*function && verify->declared) /* bodies have no names of their own */
        function = verify->declared;
    if (node)
        return kiln_throw(verify->error, KILN_ERROR_INVALID, "@%s: %s (%s): %s", function,
                          kiln_node_label(node), kiln_op_info(node->op)->name, message);
    if (verify->scope)
        return kiln_throw(verify->error, KILN_ERROR_INVALID, "@%s: %s", function, message);
    return kiln_throw(verify->error, KILN_ERROR_INVALID, "%s", message);
}

/* --- values --- */

static bool
check_name(KilnVerify *verify, const KilnValue *value)
{
    const KilnFunction *function = verify->scope->function;
    if (!value->name || !g_utf8_validate(value->name, -1, NULL))
        return kiln_verify_throw(verify, "a value without a name in UTF-8");
    const KilnValue *known = g_hash_table_lookup(function->names, value->name);
    if (known != value)
        return kiln_verify_throw(
            verify, known ? "two values are called %%%s" : "%%%s is missing in the table of names",
            value->name);
    for (const KilnVerifyScope *scope = verify->scope->outer; scope; scope = scope->outer) {
        if (g_hash_table_contains(scope->function->names, value->name))
            return kiln_verify_throw(verify,
                                     "a value of @%s, which is around it, is called %%%s "
                                     "too",
                                     scope->function->name, value->name);
    }
    return true;
}

enum {
    MAX_CONTENTS = 3 /* types inside each other: an optional of a sequence of maps */
};

/* True where @type, at most @depth deep, has contents if and only if it is one that has. */
static bool
contents_fit(const KilnType *type, int depth)
{
    const KilnContents *contents = type->contents;
    if (!kiln_dtype_is_item(type->dtype))
        return !contents;
    if (!contents || depth == 0 || type->rank != 0 || type->quant || type->layout)
        return false;
    if (type->dtype == KILN_DTYPE_map)
        return (contents->key == KILN_DTYPE_i64 || contents->key == KILN_DTYPE_string) &&
               !contents->type.contents && !kiln_dtype_is_item(contents->type.dtype);
    bool holds =
        contents->type.dtype != KILN_DTYPE_optional &&
        (type->dtype == KILN_DTYPE_optional || contents->type.dtype != KILN_DTYPE_sequence);
    return holds && contents->type.rank >= KILN_RANK_NONE &&
           contents_fit(&contents->type, depth - 1);
}

static bool
check_type(KilnVerify *verify, const KilnValue *value)
{
    const KilnType *type = &value->type;
    if ((unsigned)type->dtype >= KILN_N_DTYPES || type->rank < KILN_RANK_UNKNOWN ||
        type->rank > KILN_MAX_RANK)
        return kiln_verify_throw(verify, "%%%s has a malformed type", value->name);
    if (!contents_fit(type, MAX_CONTENTS))
        return kiln_verify_throw(
            verify, "%%%s: expected a sequence, optional or map of what it can have", value->name);
    for (int i = 0; i < type->rank; i++) {
        if (type->dims[i] < KILN_DIM_UNKNOWN)
            return kiln_verify_throw(verify,
                                     "%%%s: expected a dim of 0 or more, found %" G_GINT64_FORMAT,
                                     value->name, type->dims[i]);
    }
    if (!type->layout && kiln_type_is_static(type) && kiln_type_bytes(type) < 0) {
        g_autofree char *text = kiln_type_to_string(type);
        return kiln_verify_throw(verify, "%%%s: expected less than 2^63 bytes, found %s",
                                 value->name, text);
    }
    if (kiln_quant_check(type, verify->error))
        return true;
    kiln_prefix_error(verify->error, "@%s: %%%s: ", verify->scope->function->name, value->name);
    return false;
}

bool
kiln_verify_value(KilnVerify *verify, const KilnValue *value)
{
    return check_name(verify, value) && check_type(verify, value);
}

/* Where the scope counts the reads of @value; NULL where it is none of the scope's values, or is
 * not defined yet. */
static uint32_t *
find_reads(const KilnVerifyScope *scope, const KilnValue *value)
{
    const KilnFunction *function = scope->function;
    uint32_t first = 0, n = function->arguments->len;
    if (value->def) {
        if (value->def->function != function || value->def->id >= function->next_id)
            return NULL;
        first = scope->first_reads[value->def->id];
        n = first ? value->def->n_results : 0;
        if (!first || value->index >= n || &value->def->results[value->index] != value)
            return NULL;
        first--;
    } else if (value->index >= n ||
               &kiln_function_argument(function, value->index)->value != value) {
        return NULL;
    }
    return &g_array_index(scope->reads, uint32_t, first + value->index);
}

/* Counts a read of a value that is defined here or around; false where it is not. */
static bool
count_read(const KilnVerify *verify, const KilnValue *value)
{
    for (const KilnVerifyScope *scope = verify->scope; scope; scope = scope->outer) {
        uint32_t *reads = find_reads(scope, value);
        if (!reads)
            continue;
        ++*reads;
        return true;
    }
    /* A subgraph that is verified on its own sees values around it whose order is not known. */
    const KilnVerifyScope *outermost = verify->scope;
    while (outermost->outer)
        outermost = outermost->outer;
    const KilnNode *owner = outermost->function->owner;
    for (; owner && value->def; owner = owner->function->owner) {
        if (value->def->function == owner->function)
            return true;
    }
    return owner != NULL;
}

bool
kiln_verify_chain(KilnVerify *verify, const KilnValue *value, uint32_t *out_n)
{
    const KilnUse *previous = NULL;
    uint32_t n = 0;
    kiln_foreach_use (use, value) {
        const KilnNode *user = use->user;
        if (use->value != value || use->previous != previous || n == value->n_uses ||
            use->index >= user->n_operands || &user->operands[use->index] != use)
            return kiln_verify_throw(verify, "the list of readers of %%%s is broken", value->name);
        previous = use;
        n++;
    }
    if (value->last_use != previous || n != value->n_uses)
        return kiln_verify_throw(verify, "the list of readers of %%%s is broken", value->name);
    *out_n = n;
    return true;
}

/* The chain is as long as the reads counted. */
static bool
check_chain(KilnVerify *verify, const KilnValue *value, uint32_t reads)
{
    uint32_t n;
    if (!kiln_verify_chain(verify, value, &n))
        return false;
    if (n != reads)
        return kiln_verify_throw(verify,
                                 "the list of readers of %%%s: expected %u, found %u that are not "
                                 "all nodes of the function",
                                 value->name, reads, n);
    return true;
}

static bool
check_chains(KilnVerify *verify, const GPtrArray *nodes)
{
    const KilnFunction *function = verify->scope->function;
    const uint32_t *reads = (const uint32_t *)verify->scope->reads->data;
    verify->node = NULL;
    for (guint i = 0; i < function->arguments->len; i++) {
        if (!check_chain(verify, &kiln_function_argument(function, i)->value, *reads++))
            return false;
    }
    for (guint k = 0; k < nodes->len; k++) {
        const KilnNode *node = g_ptr_array_index(nodes, k);
        kiln_prefetch_readers((KilnNode *const *)nodes->pdata + k, nodes->len - k);
        verify->node = node;
        for (uint32_t i = 0; i < node->n_results; i++) {
            if (!check_chain(verify, &node->results[i], *reads++))
                return false;
        }
    }
    verify->node = NULL;
    return true;
}

/* --- nodes --- */

static bool
throw_arity(KilnVerify *verify, uint32_t lowest, uint32_t highest, const char *what, uint32_t found)
{
    g_autofree char *expected = kiln_arity_text(lowest, highest);
    return kiln_verify_throw(verify, "expected %s %s, found %u", expected, what, found);
}

static bool
check_arity(KilnVerify *verify, const KilnNode *node)
{
    const KilnOpInfo *info = kiln_op_info(node->op);
    uint32_t low = (uint32_t)info->min_operands, high = (uint32_t)info->max_operands;
    if (node->n_operands < low || (high != KILN_MANY && node->n_operands > high))
        return throw_arity(verify, low, high, "operands", node->n_operands);
    for (uint32_t i = 0; i < node->n_operands; i++) {
        if (!node->operands[i].value && (i < low || node->op == KILN_OP_return))
            return kiln_verify_throw(verify, "operand %u is required, found none", i);
    }
    low = (uint32_t)info->min_results, high = (uint32_t)info->max_results;
    if (node->n_results < low || (high != KILN_MANY && node->n_results > high))
        return throw_arity(verify, low, high, "results", node->n_results);
    return true;
}

bool
kiln_verify_use(KilnVerify *verify, uint32_t i)
{
    const KilnUse *use = &verify->node->operands[i];
    const KilnValue *value = use->value;
    if (use->user != verify->node || use->index != i)
        return kiln_verify_throw(verify, "operand %u does not know its node", i);
    if (!value)
        return true;
    bool front = use->previous ? use->previous->next == use : value->first_use == use;
    bool back = use->next ? use->next->previous == use : value->last_use == use;
    return (front && back) ||
           kiln_verify_throw(verify, "operand %u is not in the list of readers of %%%s", i,
                             value->name);
}

static bool
check_operand(KilnVerify *verify, const KilnUse *use, uint32_t i)
{
    const KilnValue *value = use->value;
    if (value && !count_read(verify, value))
        return kiln_verify_throw(verify, "operand %u: %%%s is not defined before it", i,
                                 value->name);
    return kiln_verify_use(verify, i);
}

/* What is compiled for a vendor, and copied to and fro, node by node; and a custom_op in it, which
 * is so, too. */
static bool
verify_vendor_region(KilnVerify *verify, const KilnFunction *body)
{
    kiln_foreach_node (node, body) {
        verify->node = node;
        if (node->op == KILN_OP_custom_op) {
            if (!verify_vendor_region(verify, kiln_attrs(node, custom_op)->body))
                return false;
        } else if (kiln_op_has(node->op, KILN_TRAIT_REGION)) {
            return kiln_verify_throw(verify,
                                     "a region for a vendor has no subgraphs but of custom_ops");
        } else if (node->op == KILN_OP_vendor_executable) {
            return kiln_verify_throw(verify, "a region for a vendor has no calls of others");
        }
    }
    return true;
}

static bool
verify_regions(KilnVerify *verify, const KilnNode *node)
{
    kiln_foreach_region (region, node) {
        if (!verify_function(verify, region) ||
            (node->op == KILN_OP_vendor_graph && !verify_vendor_region(verify, region)))
            return false;
        verify->node = node;
    }
    return true;
}

bool
kiln_verify_results(KilnVerify *verify)
{
    const KilnNode *node = verify->node;
    for (uint32_t i = 0; i < node->n_results; i++) {
        const KilnValue *value = &node->results[i];
        if (value->def != node || value->index != i)
            return kiln_verify_throw(verify, "result %u does not know its node", i);
        if (!kiln_verify_value(verify, value))
            return false;
    }
    return true;
}

/* Makes the node's results known to what follows. */
static bool
define_results(KilnVerify *verify, const KilnNode *node)
{
    KilnVerifyScope *scope = verify->scope;
    scope->first_reads[node->id] = 1 + scope->reads->len;
    g_array_set_size(scope->reads, scope->reads->len + node->n_results);
    return kiln_verify_results(verify);
}

bool
kiln_verify_node(KilnVerify *verify)
{
    const KilnNode *node = verify->node;
    const KilnFunction *function = verify->scope->function;
    if (node->op >= KILN_OP_END || !kiln_op_info(node->op)->name) {
        verify->node = NULL;
        return kiln_verify_throw(verify, "a node of an operator that does not exist");
    }
    if (node->function != function)
        return kiln_verify_throw(verify, "the node is listed in a function that is not its own");
    if (kiln_op_has(node->op, KILN_TRAIT_TERMINATOR) != (node == function->last))
        return kiln_verify_throw(verify, "expected 'return' as the last node and nowhere else");
    return check_arity(verify, node);
}

bool
kiln_verify_types(KilnVerify *verify)
{
    if (kiln_node_check_types(verify->node, verify->scratch, verify->error))
        return true;
    kiln_prefix_error(verify->error, "@%s: ", verify->scope->function->name);
    return false;
}

static bool
verify_node(KilnVerify *verify, const KilnNode *node)
{
    const KilnFunction *function = verify->scope->function;
    verify->node = node;
    if (!kiln_verify_node(verify))
        return false;
    if (node->id >= function->next_id || verify->scope->first_reads[node->id])
        return kiln_verify_throw(verify, "expected an id of its own below %u, found %u",
                                 function->next_id, node->id);
    for (uint32_t i = 0; i < node->n_operands; i++) {
        if (!check_operand(verify, &node->operands[i], i))
            return false;
    }
    return kiln_verify_attrs(verify) && verify_regions(verify, node) &&
           define_results(verify, node) && kiln_verify_types(verify);
}

/* --- functions --- */

static bool
verify_arguments(KilnVerify *verify, const KilnFunction *function)
{
    g_array_set_size(verify->scope->reads, function->arguments->len);
    for (guint i = 0; i < function->arguments->len; i++) {
        const KilnArgument *argument = kiln_function_argument(function, i);
        if (argument->function != function || argument->value.index != i || argument->value.def)
            return kiln_verify_throw(verify, "argument %u does not know its place", i);
        if (!kiln_verify_value(verify, &argument->value))
            return false;
    }
    return true;
}

bool
kiln_verify_result_names(KilnVerify *verify)
{
    const KilnFunction *function = verify->scope->function;
    const KilnNode *last = function->last;
    const GPtrArray *names = function->result_names;
    if (names->len != last->n_operands)
        return kiln_verify_throw(verify, "expected a name for each of %u results, found %u",
                                 last->n_operands, names->len);
    g_autoptr(GHashTable) seen = g_hash_table_new(g_str_hash, g_str_equal);
    for (guint i = 0; i < names->len; i++) {
        char *name = g_ptr_array_index(names, i);
        /* The results of a subgraph go by their order; a model may return one of them twice. */
        if (!name || (!g_hash_table_add(seen, name) && !function->owner))
            return kiln_verify_throw(verify, "two results are called \"%s\"", name ? name : "");
    }
    return true;
}

/* Adds the nodes to @nodes. */
static bool
verify_list(KilnVerify *verify, const KilnFunction *function, GPtrArray *nodes)
{
    const KilnNode *previous = NULL;
    guint n = 0;
    kiln_foreach_node (node, function) {
        if (node->previous != previous || n == function->n_nodes)
            return kiln_verify_throw(verify, "the list of %u nodes is broken at %s",
                                     function->n_nodes, kiln_node_label(node));
        g_ptr_array_add(nodes, node);
        previous = node;
        n++;
    }
    if (n != function->n_nodes || function->last != previous)
        return kiln_verify_throw(verify, "expected %u nodes, found %u", function->n_nodes, n);
    if (!n || !kiln_op_has(previous->op, KILN_TRAIT_TERMINATOR))
        return kiln_verify_throw(verify, "expected 'return' as the last node");
    return true;
}

static bool
verify_contents(KilnVerify *verify, const KilnFunction *function)
{
    verify->node = NULL;
    if (function->module != verify->module)
        return kiln_verify_throw(verify, "the function belongs to another module");
    g_autoptr(GPtrArray) nodes = g_ptr_array_new();
    if (!verify_list(verify, function, nodes) || !verify_arguments(verify, function))
        return false;
    for (guint i = 0; i < nodes->len; i++) {
        kiln_prefetch_nodes((KilnNode *const *)nodes->pdata + i, nodes->len - i);
        kiln_prefetch_names((KilnNode *const *)nodes->pdata + i, nodes->len - i);
        if (!verify_node(verify, g_ptr_array_index(nodes, i)))
            return false;
    }
    if (!check_chains(verify, nodes))
        return false;
    if (g_hash_table_size(function->names) != verify->scope->reads->len)
        return kiln_verify_throw(verify, "expected %u names, found %u in the table",
                                 verify->scope->reads->len, g_hash_table_size(function->names));
    return kiln_verify_result_names(verify);
}

static bool
verify_function(KilnVerify *verify, const KilnFunction *function)
{
    KilnVerifyScope scope = { .function = function,
                              .outer = verify->scope,
                              .first_reads = g_new0(uint32_t, (gsize)function->next_id + 1),
                              .reads = g_array_new(FALSE, TRUE, sizeof(uint32_t)) };
    verify->scope = &scope;
    bool ok = verify_contents(verify, function);
    verify->scope = scope.outer;
    g_free(scope.first_reads);
    g_array_unref(scope.reads);
    return ok;
}

/* --- modules --- */

static bool
verify_constants(KilnVerify *verify, const KilnModule *module)
{
    for (guint i = 0; i < module->constants->len; i++) {
        const KilnConstant *constant = g_ptr_array_index(module->constants, i);
        if (constant->id != i || constant->module != module || !constant->tensor)
            return kiln_verify_throw(verify, "constant @%s does not know its place",
                                     constant->name);
        if (kiln_module_find_constant(module, constant->name) != constant)
            return kiln_verify_throw(verify, "two constants are called @%s", constant->name);
        KilnType plain = constant->type;
        plain.layout = NULL;
        plain.quant = NULL;
        if (kiln_type_equal(&plain, &constant->tensor->type))
            continue;
        g_autofree char *expected = kiln_type_to_string(&plain);
        g_autofree char *found = kiln_type_to_string(&constant->tensor->type);
        return kiln_verify_throw(verify, "constant @%s: expected a tensor of %s, found %s",
                                 constant->name, expected, found);
    }
    return true;
}

/* A declared region sees nothing around it, and has the signature that is declared. */
static bool
verify_declaration(KilnVerify *verify, const KilnDeclaration *declaration)
{
    const KilnFunction *body = declaration->body;
    if (!body)
        return true;
    verify->declared = declaration->name;
    if (!verify_function(verify, body) || !verify_vendor_region(verify, body))
        return false;
    const KilnNode *results = kiln_function_return(body);
    bool fits = body->arguments->len == declaration->n_operands &&
                results->n_operands == declaration->n_results;
    for (uint32_t i = 0; fits && i < declaration->n_operands; i++)
        fits = kiln_type_equal(&declaration->operands[i],
                               &kiln_function_argument(body, i)->value.type);
    for (uint32_t i = 0; fits && i < declaration->n_results; i++)
        fits = kiln_type_equal(&declaration->results[i], &results->operands[i].value->type);
    verify->node = NULL;
    verify->declared = NULL;
    return fits || kiln_verify_throw(verify, "@%s: its body has another signature than is declared",
                                     declaration->name);
}

static bool
verify_module(KilnVerify *verify, const KilnModule *module)
{
    if (!verify_constants(verify, module))
        return false;
    g_autoptr(GHashTable) names = g_hash_table_new(g_str_hash, g_str_equal);
    for (guint i = 0; i < module->functions->len; i++) {
        const KilnFunction *function = g_ptr_array_index(module->functions, i);
        if (!g_hash_table_add(names, (char *)function->name))
            return kiln_verify_throw(verify, "two graphs are called @%s", function->name);
        if (function->owner)
            return kiln_verify_throw(verify, "@%s is listed, but it is a subgraph", function->name);
        if (!verify_function(verify, function))
            return false;
    }
    for (guint i = 0; i < module->declarations->len; i++) {
        if (!verify_declaration(verify, g_ptr_array_index(module->declarations, i)))
            return false;
    }
    verify->node = NULL;
    return kiln_folding_verify(module, verify->error);
}

gboolean
kiln_module_verify_at(const KilnModule *module, const KilnNode **out_node, GError **error)
{
    g_autoptr(KilnArena) scratch = kiln_arena_new();
    KilnVerify verify = { .module = module, .scratch = scratch, .error = error };
    bool ok = verify_module(&verify, module);
    *out_node = ok ? NULL : verify.node;
    return ok;
}

gboolean
kiln_module_verify(const KilnModule *module, GError **error)
{
    const KilnNode *node;
    return kiln_module_verify_at(module, &node, error);
}

gboolean
kiln_function_verify(const KilnFunction *function, GError **error)
{
    g_autoptr(KilnArena) scratch = kiln_arena_new();
    KilnVerify verify = { .module = function->module, .scratch = scratch, .error = error };
    return verify_function(&verify, function);
}
