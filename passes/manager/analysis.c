/* SPDX-License-Identifier: Apache-2.0 */
/* The analyses that passes may require. */
#include "passes/manager/analysis.h"

#include "passes/context/options.h"
#include "passes/pass.h"
#include "passes/pipeline/pipeline.h"

struct KilnAnalyses {
    const KilnPassOptions *options;
    GHashTable *by_function; /* function → Entry; looked up, and walked only to drop what is gone */
    uint32_t computed;
};

typedef struct {
    uint32_t valid;
    KilnMemoryPlan *liveness;
    uint64_t verified;   /* the unit's stamp when it was found valid; 0: never */
    GHashTable *settled; /* KilnPipelineEntry* → uint64_t*: the stamp when it last had no effect */
} Entry;

static void
entry_free(gpointer data)
{
    Entry *entry = data;
    kiln_memory_plan_free(entry->liveness);
    g_hash_table_unref(entry->settled);
    g_free(entry);
}

KilnAnalyses *
kiln_analyses_new(const KilnPassOptions *options)
{
    KilnAnalyses *analyses = g_new0(KilnAnalyses, 1);
    analyses->options = options;
    analyses->by_function = g_hash_table_new_full(NULL, NULL, NULL, entry_free);
    return analyses;
}

void
kiln_analyses_free(KilnAnalyses *analyses)
{
    if (!analyses)
        return;
    g_hash_table_unref(analyses->by_function);
    g_free(analyses);
}

static gpointer
key_of(const KilnUnit *unit)
{
    return unit->graph ? (gpointer)unit->graph : (gpointer)unit->instrs;
}

void
kiln_analyses_assure(KilnAnalyses *analyses, const KilnUnit *unit, uint32_t required)
{
    Entry *entry = g_hash_table_lookup(analyses->by_function, key_of(unit));
    if (!entry) {
        entry = g_new0(Entry, 1);
        entry->settled = g_hash_table_new_full(NULL, NULL, NULL, g_free);
        g_hash_table_insert(analyses->by_function, key_of(unit), entry);
    }
    uint32_t missing = required & ~entry->valid;
    if (missing & KILN_ANALYSIS_ORDER) {
        kiln_unit_renumber(unit);
        analyses->computed++;
    }
    if ((missing & KILN_ANALYSIS_LIVENESS) && unit->instrs) {
        kiln_memory_plan_free(entry->liveness);
        entry->liveness =
            kiln_liveness(unit->instrs, analyses->options->target, analyses->options->threads);
        analyses->computed++;
    }
    entry->valid |= missing & (KILN_ANALYSIS_ORDER | KILN_ANALYSIS_LIVENESS);
}

void
kiln_analyses_keep_only(KilnAnalyses *analyses, const KilnUnit *unit, uint32_t preserved)
{
    /* A memory plan is no more than lives with offsets. */
    if (unit->instrs && !(preserved & KILN_ANALYSIS_LIVENESS))
        kiln_memory_plan_forget(unit->instrs);
    Entry *entry = g_hash_table_lookup(analyses->by_function, key_of(unit));
    if (!entry)
        return;
    entry->valid &= preserved;
    if (!(entry->valid & KILN_ANALYSIS_LIVENESS))
        g_clear_pointer(&entry->liveness, kiln_memory_plan_free);
}

static gboolean
is_gone(gpointer function, gpointer entry, gpointer module)
{
    (void)entry;
    return !kiln_unit_is_alive(module, function);
}

bool
kiln_analyses_is_verified(const KilnAnalyses *analyses, const KilnUnit *unit)
{
    const Entry *entry = g_hash_table_lookup(analyses->by_function, key_of(unit));
    return entry && entry->verified == kiln_unit_stamp(unit);
}

void
kiln_analyses_set_verified(KilnAnalyses *analyses, const KilnUnit *unit)
{
    Entry *entry = g_hash_table_lookup(analyses->by_function, key_of(unit));
    if (entry)
        entry->verified = kiln_unit_stamp(unit);
}

bool
kiln_analyses_is_settled(const KilnAnalyses *analyses, const KilnUnit *unit,
                         const KilnPipelineEntry *entry)
{
    const Entry *known = g_hash_table_lookup(analyses->by_function, key_of(unit));
    const uint64_t *stamp = known ? g_hash_table_lookup(known->settled, entry) : NULL;
    return unit->graph && stamp && *stamp == kiln_unit_stamp(unit);
}

void
kiln_analyses_set_settled(KilnAnalyses *analyses, const KilnUnit *unit,
                          const KilnPipelineEntry *entry)
{
    Entry *known = g_hash_table_lookup(analyses->by_function, key_of(unit));
    uint64_t stamp = kiln_unit_stamp(unit);
    if (known)
        g_hash_table_insert(known->settled, (gpointer)entry, g_memdup2(&stamp, sizeof stamp));
}

void
kiln_analyses_prune(KilnAnalyses *analyses, const KilnUnit *module)
{
    g_hash_table_foreach_remove(analyses->by_function, is_gone, (gpointer)module);
}

const KilnMemoryPlan *
kiln_analyses_liveness(const KilnAnalyses *analyses, const KilnUnit *unit)
{
    const Entry *entry = g_hash_table_lookup(analyses->by_function, key_of(unit));
    return entry ? entry->liveness : NULL;
}

uint32_t
kiln_analyses_computed(const KilnAnalyses *analyses)
{
    return analyses->computed;
}
