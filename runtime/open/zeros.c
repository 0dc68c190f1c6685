/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/open/zeros.h"

#include "graph/dim.h"
#include "graph/type.h"
#include "kiln.h"
#include "runtime/shapes/dims.h"

void
kiln_zeros_free(KilnZeros *zeros)
{
    g_ptr_array_unref(zeros->names);
    kiln_model_unref(zeros->model);
    g_free(zeros->refusal);
    g_free(zeros);
}

/* --- sets of names --- */

static bool
has_name(const GPtrArray *names, const char *name)
{
    return g_ptr_array_find_with_equal_func((GPtrArray *)names, name, g_str_equal, NULL);
}

static bool
has_names(const GPtrArray *names, const GPtrArray *wanted)
{
    bool all = true;
    for (guint i = 0; i < wanted->len && all; i++)
        all = has_name(names, g_ptr_array_index(wanted, i));
    return all;
}

GPtrArray *
kiln_zeros_of(const KilnInfoList *inputs, const KilnBinding *bindings)
{
    GPtrArray *names = g_ptr_array_new();
    for (unsigned i = 0; i < inputs->n; i++) {
        const KilnType *type = &inputs->types[i];
        for (int d = 0; d < type->rank && type->rank == bindings[i].rank; d++) {
            const char *name = kiln_type_dim_name(type, d);
            KilnDimFacts facts;
            if (name && bindings[i].dims[d] == 0 && kiln_dim_facts(type->open[d], &facts) &&
                facts.lo > 0 && !has_name(names, name))
                g_ptr_array_add(names, (gpointer)name);
        }
    }
    return names;
}

/* --- the list --- */

/* The last set that was not refused; NULL: there is none. */
static const KilnZeros *
last_open(const GPtrArray *list)
{
    for (guint i = list->len; i-- > 0;) {
        const KilnZeros *zeros = g_ptr_array_index(list, i);
        if (!zeros->refusal)
            return zeros;
    }
    return NULL;
}

static bool
is_refused(const GPtrArray *list, const GPtrArray *names)
{
    bool refused = false;
    for (guint i = 0; i < list->len && !refused; i++) {
        const KilnZeros *zeros = g_ptr_array_index(list, i);
        refused =
            zeros->refusal && zeros->names->len == names->len && has_names(zeros->names, names);
    }
    return refused;
}

static KilnZeros *
add(GPtrArray *list, KilnModel *model, const GPtrArray *names, GError **error)
{
    g_autoptr(KilnModel) with_zeros = kiln_model_with_zeros(model, names, error);
    if (!with_zeros)
        return NULL;
    KilnZeros *zeros = g_new0(KilnZeros, 1);
    zeros->names = g_ptr_array_new_with_free_func(g_free);
    for (guint i = 0; i < names->len; i++)
        g_ptr_array_add(zeros->names, g_strdup(g_ptr_array_index(names, i)));
    zeros->model = g_steal_pointer(&with_zeros);
    g_ptr_array_add(list, zeros);
    return zeros;
}

KilnZeros *
kiln_zeros_for(GPtrArray *list, KilnModel *model, const GPtrArray *names, GError **error)
{
    for (guint i = 0; i < list->len; i++) {
        KilnZeros *zeros = g_ptr_array_index(list, i);
        if (!zeros->refusal && has_names(zeros->names, names))
            return zeros;
    }
    const KilnZeros *last = last_open(list);
    g_autoptr(GPtrArray) all = g_ptr_array_new();
    for (guint i = 0; last && i < last->names->len; i++)
        g_ptr_array_add(all, g_ptr_array_index(last->names, i));
    for (guint i = 0; i < names->len; i++) {
        if (!has_name(all, g_ptr_array_index(names, i)))
            g_ptr_array_add(all, g_ptr_array_index(names, i));
    }
    if (!is_refused(list, all))
        return add(list, model, all, error);
    return is_refused(list, names) ? NULL : add(list, model, names, error);
}
