/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/open/constants.h"

#include "exec/interpret.h"
#include "graph/dim.h"
#include "ir/ir.h"
#include "ir/open.h"
#include "runtime/digest/digest.h"

#include <string.h>

static gboolean
type_at(KilnType *type, const KilnDimBinding *binding, GError **error)
{
    for (int d = 0; d < type->rank; d++) {
        if (type->open[d] && !kiln_dim_evaluate(type->open[d], kiln_dim_binding_lookup,
                                                (void *)binding, &type->dims[d], error))
            return FALSE;
        type->open[d] = NULL;
    }
    return TRUE;
}

static gboolean
add_call(KilnFolder *folder, const KilnFoldCall *call, const KilnDimBinding *binding,
         GError **error)
{
    KilnFoldCall copy = *call;
    copy.function = kiln_open_copy_at(call->function, binding, error);
    if (!copy.function) {
        kiln_prefix_error(error, "@%s: ", call->function->name);
        return FALSE;
    }
    copy.operands = g_array_copy(call->operands);
    g_ptr_array_add(folder->functions, copy.function);
    g_array_append_val(folder->left.calls, copy);
    return TRUE;
}

/* The types of results as they lie in memory. */
static gboolean
find_types(KilnFolder *folder, GError **error)
{
    const GArray *results = folder->left.results;
    folder->left.types = g_new0(KilnType, (gsize)results->len + 1);
    for (guint i = 0; i < results->len; i++) {
        uint32_t number = g_array_index(results, uint32_t, i);
        for (guint c = 0; c < folder->left.calls->len; c++) {
            const KilnFoldCall *call = &g_array_index(folder->left.calls, KilnFoldCall, c);
            uint32_t r = number - call->first_result;
            if (number < call->first_result || r >= call->function->outputs->len)
                continue;
            const KilnBuffer *output = g_ptr_array_index(call->function->outputs, r);
            if (!kiln_payload_type(&output->type, output->name, &folder->left.types[i], error))
                return FALSE;
        }
    }
    return TRUE;
}

static gboolean
copy_inputs(KilnFolder *folder, const KilnDimBinding *binding, GError **error)
{
    const KilnFolder *open = folder->open;
    gsize n = (gsize)open->n_inputs + 1;
    folder->input_names = g_memdup2(open->input_names, n * sizeof *open->input_names);
    folder->input_types = g_memdup2(open->input_types, n * sizeof *open->input_types);
    folder->reads = g_memdup2(open->reads, n * sizeof *open->reads);
    for (uint32_t i = 0; i < open->n_inputs; i++) {
        if (!type_at(&folder->input_types[i], binding, error))
            return FALSE;
    }
    return TRUE;
}

KilnFolder *
kiln_folder_at(KilnFolder *open, const KilnDimBinding *binding, GError **error)
{
    g_autoptr(KilnFolder) folder = g_new0(KilnFolder, 1);
    folder->ir = open->ir;
    folder->options = open->options;
    folder->open = open;
    folder->n_inputs = open->n_inputs;
    folder->n_values = open->n_values;
    folder->entry = g_array_copy(open->entry);
    folder->packings = kiln_late_packings_new();
    folder->functions = g_ptr_array_new_with_free_func((GDestroyNotify)kiln_ir_function_free);
    folder->left.calls = g_array_new(FALSE, FALSE, sizeof(KilnFoldCall));
    folder->left.results = g_array_copy(open->left.results);
    folder->plain = g_new0(bool, (gsize)open->left.results->len + 1);
    pthread_mutex_init(&folder->lock, NULL);
    if (!copy_inputs(folder, binding, error))
        return NULL;
    for (guint i = 0; i < open->left.calls->len; i++) {
        if (!add_call(folder, &g_array_index(open->left.calls, KilnFoldCall, i), binding, error))
            return NULL;
    }
    return find_types(folder, error) ? g_steal_pointer(&folder) : NULL;
}

bool
kiln_folder_is_same(KilnFolder *a, KilnFolder *b)
{
    KilnDigest of_a, of_b;
    return kiln_folder_code(a, &of_a, NULL) && kiln_folder_code(b, &of_b, NULL) &&
           memcmp(&of_a, &of_b, sizeof of_a) == 0;
}
