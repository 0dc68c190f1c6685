/* SPDX-License-Identifier: Apache-2.0 */
/* Random inputs of models of both levels. */
#include "runtime/tensors/tensor_file.h"

#include "exec/random_input.h"
#include "graph/binding.h"
#include "graph/module/folding.h"
#include "ir/ir.h"
#include "runtime/model.h"

/* Argument @i of a function of the model, whose readers say what it may hold. At the second level a
 * text may name functions that there are not: then what @input states counts. */
static KilnDomain
domain_of_argument(const KilnModel *model, const KilnArgument *input, const char *function, guint i,
                   const KilnDimBinding *binding)
{
    if (!model->ir)
        return kiln_argument_domain(
            kiln_function_argument(kiln_module_find_function(model->module, function), i), binding);
    const KilnIRFunction *found = kiln_ir_module_find_function(model->ir, function);
    if (found && i < found->inputs->len)
        return kiln_ir_input_domain(g_ptr_array_index(found->inputs, i));
    return kiln_argument_domain(input, binding);
}

/* Which of @n arguments takes value @number; @n where none does. */
static guint
find_number(const uint32_t *numbers, guint n, uint32_t number)
{
    guint i = 0;
    while (i < n && numbers[i] != number)
        i++;
    return i;
}

/* The domain of input @i by the first function that takes it, or by what its argument states. */
static KilnDomain
domain_of_input(const KilnModel *model, unsigned i, const KilnDimBinding *binding)
{
    const KilnFolding *folding = model->module->folding;
    const char *entry = model->ir ? ((KilnIRFunction *)g_ptr_array_index(
                                         model->ir->functions, model->ir->functions->len - 1))
                                        ->name
                                  : kiln_module_entry(model->module)->name;
    if (!folding)
        return domain_of_argument(model, NULL, entry, i, binding);
    const KilnArgument *input = g_ptr_array_index(folding->signature, i);
    guint n = folding->entry->len;
    guint at = find_number((const uint32_t *)folding->entry->data, n, i);
    if (!input->range && at < n)
        return domain_of_argument(model, input, entry, at, binding);
    for (guint f = 0; !input->range && f < folding->folds->len; f++) {
        const KilnFold *fold = g_ptr_array_index(folding->folds, f);
        at = find_number(fold->operands, fold->n_operands, i);
        if (at < fold->n_operands)
            return domain_of_argument(model, input, fold->function, at, binding);
    }
    return kiln_argument_domain(input, binding);
}

/* What @types make of the names of open dims. */
static KilnDimBinding
binding_of(const KilnModel *model, const KilnType *types)
{
    KilnDimBinding binding = { 0,
                               g_new0(KilnBoundName, (gsize)model->inputs.n * KILN_MAX_RANK + 1) };
    for (unsigned i = 0; types && i < model->inputs.n; i++) {
        const KilnType *open = &model->inputs.types[i];
        for (int d = 0; d < open->rank && types[i].rank == open->rank; d++) {
            const char *name = kiln_type_dim_name(open, d);
            if (name && types[i].dims[d] >= 0)
                binding.names[binding.n++] = (KilnBoundName){ name, types[i].dims[d] };
        }
    }
    return binding;
}

KilnTensor *
kiln_model_random_input(const KilnModel *model, unsigned i, const KilnType *type,
                        const KilnType *types, uint64_t seed, GError **error)
{
    const char *name = model->inputs.info[i].name;
    KilnDimBinding binding = binding_of(model, types);
    KilnDomain domain = domain_of_input(model, i, &binding);
    g_free(binding.names);
    KilnTensor *tensor = kiln_random_tensor(type, &domain, name, seed, error);
    if (!tensor)
        kiln_prefix_error(error, "input %s: ", name);
    return tensor;
}
