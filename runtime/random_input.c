/* SPDX-License-Identifier: Apache-2.0 */
/* Random inputs of models of both levels. */
#include "runtime/tensor_file.h"

#include "ir/random_input.h"

KilnTensor *
kiln_model_random_input(const KilnModel *model, unsigned i, const KilnType *type, uint64_t seed,
                        GError **error)
{
    const char *name = model->inputs.info[i].name;
    KilnDomain domain;
    if (model->ir) {
        const GPtrArray *functions = model->ir->functions;
        const KilnIRFunction *entry = g_ptr_array_index(functions, functions->len - 1);
        domain = kiln_ir_input_domain(g_ptr_array_index(entry->inputs, i));
    } else {
        domain = kiln_argument_domain(kiln_function_argument(kiln_module_entry(model->module), i));
    }
    KilnTensor *tensor = kiln_random_tensor(type, &domain, name, seed, error);
    if (!tensor)
        g_prefix_error(error, "input %s: ", name);
    return tensor;
}
