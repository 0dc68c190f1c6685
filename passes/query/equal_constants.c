/* SPDX-License-Identifier: Apache-2.0 */
#include "passes/query/equal_constants.h"

#include "passes/context/context.h"
#include "passes/query/literal.h"

typedef struct {
    const KilnConstant *constant;
    uint32_t hash;
} Candidate;

/* Constants do not change, and new ones go to the end of the module's list. So the answers hold
 * until constants are removed. */
struct KilnEqualConstants {
    const KilnModule *module;
    uint64_t removed; /* the module's count when this was begun */
    GPtrArray *first; /* KilnConstant*, by number of a constant: the first that equals it */
    GHashTable *seen; /* Candidate*: the first of each value */
};

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

static KilnEqualConstants *
begin(const KilnModule *module)
{
    KilnEqualConstants *equal = g_new(KilnEqualConstants, 1);
    *equal = (KilnEqualConstants){
        .module = module,
        .removed = module->removed_constants,
        .first = g_ptr_array_new(),
        .seen = g_hash_table_new_full(candidate_hash, candidate_equal, g_free, NULL),
    };
    return equal;
}

void
kiln_equal_constants_free(KilnEqualConstants *equal)
{
    if (!equal)
        return;
    g_ptr_array_unref(equal->first);
    g_hash_table_unref(equal->seen);
    g_free(equal);
}

static void
add(KilnEqualConstants *equal, KilnConstant *constant)
{
    Candidate candidate = { constant, kiln_constant_hash(constant) };
    const Candidate *found = g_hash_table_lookup(equal->seen, &candidate);
    g_ptr_array_add(equal->first, found ? (gpointer)found->constant : constant);
    if (!found)
        g_hash_table_add(equal->seen, g_memdup2(&candidate, sizeof candidate));
}

const KilnConstant *
kiln_pass_first_equal(KilnPassContext *context, const KilnConstant *constant)
{
    const KilnModule *module = constant->module;
    KilnEqualConstants *equal = context->equal_constants;
    if (!equal || equal->module != module || equal->removed != module->removed_constants) {
        kiln_equal_constants_free(equal);
        context->equal_constants = equal = begin(module);
    }
    while (equal->first->len < module->constants->len)
        add(equal, g_ptr_array_index(module->constants, equal->first->len));
    return g_ptr_array_index(equal->first, constant->id);
}
