/* SPDX-License-Identifier: Apache-2.0 */
/* Running a model on tensors. */
#include "tools/execute.h"

#include "graph/base/write_file.h"
#include "kiln.h"
#include "runtime/model.h"
#include "runtime/tensors/tensor_file.h"

void
kiln_execution_clear(KilnExecution *execution)
{
    g_clear_pointer(&execution->session, kiln_session_free);
    g_clear_pointer(&execution->program, kiln_program_unref);
    g_clear_pointer(&execution->views, g_ptr_array_unref);
}

gboolean
kiln_execution_open(KilnExecution *execution, KilnModel *model, const KilnCompileOptions *options,
                    const KilnSessionOptions *session, GError **error)
{
    execution->views = g_ptr_array_new_with_free_func((GDestroyNotify)g_bytes_unref);
    if (!execution->program)
        execution->program = kiln_program_compile(model, options, error);
    if (!execution->program)
        return FALSE;
    execution->session = kiln_session_new(execution->program, session, error);
    return execution->session != NULL;
}

gboolean
kiln_execution_bind(KilnExecution *execution, unsigned i, const KilnTensor *tensor, GError **error)
{
    const KilnTensorInfo *info = kiln_program_input(execution->program, i);
    if (info->dtype != tensor->type.dtype) {
        g_autofree char *found = kiln_type_to_string(&tensor->type);
        return kiln_throw(error, KILN_ERROR_TYPE, "input %s: expected %s, found %s", info->name,
                          kiln_dtype_name(info->dtype), found);
    }
    if (kiln_dtype_is_item(info->dtype))
        return kiln_session_bind_input_item(execution->session, i, kiln_tensor_item(tensor), error);
    GBytes *view = kiln_tensor_view(tensor, error);
    if (!view)
        return FALSE;
    g_ptr_array_add(execution->views, view);
    /* Of an empty tensor any aligned address will do. */
    static const double nothing;
    const void *data = g_bytes_get_size(view) ? g_bytes_get_data(view, NULL) : &nothing;
    return kiln_session_bind_input_shaped(execution->session, i, data, tensor->type.rank,
                                          tensor->type.dims, error);
}

gboolean
kiln_execution_run(KilnExecution *execution, unsigned n, GError **error)
{
    gint64 start = g_get_monotonic_time();
    gboolean ran = TRUE;
    for (unsigned i = 0; ran && i < n; i++)
        ran = kiln_session_run(execution->session, error);
    execution->run_ms = (double)(g_get_monotonic_time() - start) / 1000.0 / MAX(n, 1);
    return ran;
}

static KilnTensor *
output_item(KilnExecution *execution, unsigned i, GError **error)
{
    g_autoptr(KilnItem) item = kiln_session_output_item(execution->session, i, error);
    return item ? kiln_tensor_new_item(&execution->program->outputs.types[i], item) : NULL;
}

KilnTensor *
kiln_execution_output(KilnExecution *execution, unsigned i, GError **error)
{
    if (kiln_dtype_is_item(execution->program->outputs.info[i].dtype))
        return output_item(execution, i, error);
    KilnTensorInfo info = KILN_TENSOR_INFO_INIT;
    const void *data = kiln_session_output(execution->session, i, &info, error);
    if (!data)
        return NULL;
    KilnType type = kiln_type_make(info.dtype, info.rank, info.dims);
    return kiln_tensor_new_copy(&type, data, error);
}

GPtrArray *
kiln_execution_outputs(KilnExecution *execution, GError **error)
{
    g_autoptr(GPtrArray) outputs = g_ptr_array_new_with_free_func((GDestroyNotify)kiln_tensor_free);
    for (unsigned i = 0; i < execution->program->outputs.n; i++) {
        KilnTensor *tensor = kiln_execution_output(execution, i, error);
        if (!tensor)
            return NULL;
        g_ptr_array_add(outputs, tensor);
    }
    return g_steal_pointer(&outputs);
}

/* --- files --- */

gboolean
kiln_tensors_write(const GPtrArray *paths, const KilnInfoList *names, const GPtrArray *tensors,
                   GError **error)
{
    g_autofree KilnFileContent *files = g_new0(KilnFileContent, tensors->len + 1);
    g_autoptr(GPtrArray) kept = g_ptr_array_new_with_free_func((GDestroyNotify)g_byte_array_unref);
    for (unsigned i = 0; i < tensors->len; i++) {
        const char *path = g_ptr_array_index(paths, i);
        GByteArray *bytes = g_byte_array_new();
        g_ptr_array_add(kept, bytes);
        if (!kiln_tensor_file_encode(path, names->info[i].name, g_ptr_array_index(tensors, i),
                                     bytes, error))
            return FALSE;
        files[i] = (KilnFileContent){ path, bytes->data, bytes->len };
    }
    return kiln_files_write(files, tensors->len, error);
}

const char *
kiln_tensor_ending(KilnDType dtype, bool npy)
{
    return npy && !kiln_dtype_is_item(dtype) ? "npy" : "pb";
}
