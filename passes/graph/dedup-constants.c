/* SPDX-License-Identifier: Apache-2.0 */
/* dedup-constants: of several constants with equal type and equal bits, nodes read the first of the
 * module.
 *
 *     const @a   const @b          const @a   const @a
 *        |          |        =>       |          |          and cse merges the two nodes
 *
 * requires nothing, preserves nothing; class E. Equality is of types (quantization and layout
 * included) and of all bits; a hash of a few bytes only picks the candidates, so that the pages of
 * big mapped weights are touched only where two of them look alike. Generated constants are equal
 * where their generators are. `max-elements` leaves bigger constants alone (0: no limit). */
#include "graph/module/sweep.h"
#include "passes/pass.h"
#include "passes/query/literal.h"

#define OPTIONS(OPTION, CHOICE) OPTION(INT, max_elements, 0)
PASS_OPTIONS(dedup_constants, OPTIONS);

static const char rule[] = "merge-constants";

typedef struct {
    const KilnConstant *constant;
    uint32_t hash;
} Candidate;

static guint
candidate_hash(gconstpointer data)
{
    return ((const Candidate *)data)->hash;
}

static gboolean
candidate_equal(gconstpointer left, gconstpointer right)
{
    const Candidate *a = left, *b = right;
    return a->hash == b->hash && kiln_constant_same(a->constant, b->constant);
}

static bool
may_merge(const KilnConstant *constant, int64_t max_elements)
{
    return max_elements == 0 || kiln_type_elements(&constant->type) <= max_elements;
}

/* For each constant of the module the first that equals it: the same answer for every function. */
static const KilnConstant **
find_first(const KilnModule *module, int64_t max_elements)
{
    guint n = module->constants->len;
    const KilnConstant **first = g_new(const KilnConstant *, n + 1);
    g_autofree Candidate *candidates = g_new(Candidate, n + 1);
    g_autoptr(GHashTable) seen = g_hash_table_new(candidate_hash, candidate_equal);
    for (guint i = 0; i < n; i++) {
        const KilnConstant *constant = g_ptr_array_index(module->constants, i);
        first[i] = constant;
        if (!may_merge(constant, max_elements))
            continue;
        candidates[i] = (Candidate){ constant, kiln_constant_hash(constant) };
        const Candidate *found = g_hash_table_lookup(seen, &candidates[i]);
        if (found)
            first[i] = found->constant;
        else
            g_hash_table_add(seen, &candidates[i]);
    }
    return first;
}

GRAPH_PASS(dedup_constants);

gboolean
kiln_pass_dedup_constants(KilnFunction *function, KilnPassContext *context, bool *changed,
                          GError **error)
{
    (void)error;
    *changed = false;
    const Options *options = kiln_pass_options(context);
    g_autofree const KilnConstant **first = find_first(function->module, options->max_elements);
    kiln_foreach_ordered (node, function) {
        const KilnOpInfo *info = kiln_op_info(node->op);
        for (uint32_t i = 0; i < info->n_attrs; i++) {
            if (info->attrs[i].kind != KILN_ATTR_CONSTANT)
                continue;
            KilnConstant **field = (KilnConstant **)((char *)node->attrs + info->attrs[i].offset);
            if (!*field || first[(*field)->id] == *field)
                continue;
            kiln_pass_note(context, rule, "@%s equals @%s", (*field)->name,
                           first[(*field)->id]->name);
            *field = (KilnConstant *)first[(*field)->id];
            kiln_node_touch(node);
            *changed = true;
        }
    }
    return TRUE;
}
