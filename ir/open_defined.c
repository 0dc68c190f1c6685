/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of functions whose instructions define names. */
#include "ir/define.h"
#include "ir/open.h"

#include <string.h>

static int64_t *
number_of(KilnDimBinding *binding, const char *name)
{
    for (uint32_t i = 0; i < binding->n; i++) {
        if (strcmp(binding->names[i].name, name) == 0)
            return &binding->names[i].number;
    }
    return NULL;
}

static gboolean
bound_numbers(const KilnDefines *defines, KilnDimBinding *binding, GError **error)
{
    for (guint k = 0; k < defines->instrs->len; k++) {
        const KilnInstrAttrs_define *attrs =
            kiln_instr_attrs((const KilnInstr *)g_ptr_array_index(defines->instrs, k), define);
        for (uint32_t i = 0; i < attrs->values.n; i++) {
            const KilnDim *open = kiln_ints_open(attrs->most, i);
            const char *name = kiln_dim_as_name(kiln_ints_open(attrs->values, i));
            int64_t most = attrs->most.v[i], *number = name ? number_of(binding, name) : NULL;
            if (open && !kiln_dim_evaluate(open, kiln_dim_binding_lookup, binding, &most, error))
                return FALSE;
            if (number && most >= 0)
                *number = MIN(*number, most);
        }
    }
    return TRUE;
}

KilnIRFunction *
kiln_open_copy_defined(const KilnIRFunction *function, const KilnDimBinding *binding,
                       GError **error)
{
    g_autoptr(KilnDefines) defines = kiln_defines_new(function);
    if (!defines)
        return kiln_open_copy_at(function, binding, error);
    g_autoptr(KilnIRFunction) copy = kiln_ir_function_copy(function);
    KilnDimBinding *own = copy->open->binding;
    uint64_t changed;
    kiln_memory_plan_forget(copy);
    for (uint32_t i = 0; i < binding->n; i++) {
        int64_t *number = number_of(own, binding->names[i].name);
        if (number)
            *number = binding->names[i].number;
    }
    g_autoptr(KilnOpenFields) fields = kiln_open_fields_new(copy);
    return bound_numbers(defines, own, error) && kiln_open_move(fields, own, &changed, error)
               ? g_steal_pointer(&copy)
               : NULL;
}
