/* SPDX-License-Identifier: Apache-2.0 */
/* Names that instructions define: once each, and before anything needs their numbers. */
#include "ir/define.h"
#include "ir/verify/verify_priv.h"

#include <string.h>

static gboolean
check_names(const KilnIRFunction *function, const KilnDefines *defines, GError **error)
{
    for (guint i = 0; i < defines->names->len; i++) {
        const char *name = g_ptr_array_index(defines->names, i);
        for (guint k = 0; k < i; k++) {
            if (strcmp(name, g_ptr_array_index(defines->names, k)) == 0)
                return kiln_ir_throw(function, error, "dim %s is defined twice", name);
        }
    }
    for (guint i = 0; i < function->inputs->len; i++) {
        const KilnBuffer *input = g_ptr_array_index(function->inputs, i);
        if (kiln_defines_stage_of_buffer(defines, input))
            return kiln_ir_throw(function, error,
                                 "input @%s: expected dims that are known before the run",
                                 input->name);
    }
    return TRUE;
}

gboolean
kiln_defines_verify(const KilnIRFunction *function, GError **error)
{
    g_autoptr(KilnDefines) defines = kiln_defines_new(function);
    uint32_t stage = 0;
    if (!defines)
        return TRUE;
    if (!check_names(function, defines, error))
        return FALSE;
    kiln_foreach_instr (instr, function) {
        if (kiln_instr_is_bookkeeping(instr))
            continue;
        uint32_t needs = kiln_defines_stage_of_instr(defines, instr);
        if (needs > stage)
            return kiln_instr_throw(instr, error,
                                    "it needs a dim before it is defined: expected it behind "
                                    "define %u of the function",
                                    needs);
        stage += instr->kind == KILN_INSTR_define;
    }
    return TRUE;
}
