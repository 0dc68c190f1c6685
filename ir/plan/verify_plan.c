/* SPDX-License-Identifier: Apache-2.0 */
/* The verifier's look at a memory plan: a sweep over the steps with the living buffers in order of
 * offset, where only neighbours can collide. */
#include "ir/verify/verify_priv.h"

#include "graph/base/alloc.h"
#include "ir/plan.h"

static int
by_offset(gconstpointer a, gconstpointer b, gpointer data)
{
    const KilnLife *x = a, *y = b;
    (void)data;
    return x->offset < y->offset ? -1 : x->offset > y->offset;
}

static int
by_first(gconstpointer a, gconstpointer b)
{
    const KilnLife *x = *(KilnLife *const *)a, *y = *(KilnLife *const *)b;
    return x->first < y->first ? -1 : x->first > y->first;
}

static int
by_last(gconstpointer a, gconstpointer b)
{
    const KilnLife *x = *(KilnLife *const *)a, *y = *(KilnLife *const *)b;
    return x->last < y->last ? -1 : x->last > y->last;
}

static gboolean
throw_overlap(const KilnLife *a, const KilnLife *b, GError **error)
{
    g_autofree char *first = kiln_life_name(a), *second = kiln_life_name(b);
    return kiln_throw(error, KILN_ERROR_INVALID,
                      "%s at %" G_GINT64_FORMAT " and %s at %" G_GINT64_FORMAT
                      " live at once and overlap",
                      first, a->offset, second, b->offset);
}

/* Two buffers at one offset collide too: the tree must never hold equal keys. */
static gboolean
insert(GTree *alive, KilnLife *life, GError **error)
{
    GTreeNode *above = g_tree_lower_bound(alive, life);
    const KilnLife *next = above ? g_tree_node_key(above) : NULL;
    GTreeNode *below = above ? g_tree_node_previous(above) : g_tree_node_last(alive);
    const KilnLife *previous = below ? g_tree_node_key(below) : NULL;
    if (next && life->offset + life->size > next->offset)
        return throw_overlap(life, next, error);
    if (previous && previous->offset + previous->size > life->offset)
        return throw_overlap(previous, life, error);
    g_tree_insert(alive, life, life);
    return TRUE;
}

static gboolean
sweep(KilnMemoryPlan *plan, GError **error)
{
    g_autoptr(GPtrArray) starts = g_ptr_array_new(), ends = g_ptr_array_new();
    for (uint32_t i = 0; i < plan->n_lives; i++) {
        if (plan->lives[i].size) {
            g_ptr_array_add(starts, &plan->lives[i]);
            g_ptr_array_add(ends, &plan->lives[i]);
        }
    }
    g_ptr_array_sort(starts, by_first);
    g_ptr_array_sort(ends, by_last);
    GTree *alive = g_tree_new_full(by_offset, NULL, NULL, NULL);
    gboolean good = TRUE;
    for (guint i = 0, gone = 0; good && i < starts->len; i++) {
        KilnLife *life = g_ptr_array_index(starts, i);
        for (; ((KilnLife *)g_ptr_array_index(ends, gone))->last < life->first; gone++)
            g_tree_remove(alive, g_ptr_array_index(ends, gone));
        good = insert(alive, life, error);
    }
    g_tree_unref(alive);
    return good;
}

/* What no instruction touches has an offset, but needs no room. */
static gboolean
check_offsets(const KilnIRFunction *function, GError **error)
{
    for (guint i = 0; i < function->buffers->len; i++) {
        const KilnBuffer *buffer = g_ptr_array_index(function->buffers, i);
        if (!buffer || buffer->kind != KILN_BUFFER_ALLOC)
            continue;
        if (function->arena_bytes < 0 && buffer->offset >= 0)
            return kiln_throw(error, KILN_ERROR_INVALID,
                              "@%s: %%%s lies at %" G_GINT64_FORMAT " of no arena", function->name,
                              buffer->name, buffer->offset);
        if (function->arena_bytes >= 0 && (buffer->offset < 0 || buffer->offset % KILN_ALIGNMENT))
            return kiln_throw(error, KILN_ERROR_INVALID,
                              "@%s: %%%s at %" G_GINT64_FORMAT ": expected a multiple of %d",
                              function->name, buffer->name, buffer->offset, KILN_ALIGNMENT);
    }
    return TRUE;
}

static gboolean
check_bounds(const KilnIRFunction *function, const KilnMemoryPlan *plan, GError **error)
{
    for (uint32_t i = 0; i < plan->n_lives; i++) {
        const KilnLife *life = &plan->lives[i];
        if (life->offset >= 0 && life->offset <= function->arena_bytes - life->size)
            continue;
        g_autofree char *name = kiln_life_name(life);
        return kiln_throw(error, KILN_ERROR_INVALID,
                          "%s at %" G_GINT64_FORMAT
                          ": expected to lie inside an arena of %" G_GINT64_FORMAT " bytes",
                          name, life->offset, function->arena_bytes);
    }
    return TRUE;
}

gboolean
kiln_verify_lives(const KilnIRFunction *function, KilnMemoryPlan *plan, GError **error)
{
    if (check_bounds(function, plan, error) && sweep(plan, error))
        return TRUE;
    kiln_prefix_error(error, "@%s: ", function->name);
    return FALSE;
}

gboolean
kiln_verify_plan(const KilnIRFunction *function, GError **error)
{
    if (!check_offsets(function, error))
        return FALSE;
    if (function->arena_bytes < 0)
        return TRUE;
    g_autoptr(KilnMemoryPlan) plan = kiln_liveness(function, NULL, 1);
    for (uint32_t i = 0; i < plan->n_lives; i++)
        plan->lives[i].offset = plan->lives[i].buffer->offset;
    return kiln_verify_lives(function, plan, error);
}
