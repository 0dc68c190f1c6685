/* SPDX-License-Identifier: Apache-2.0 */
#include "ir/define.h"

#include "graph/dim/dim_defined.h"

#include <string.h>

static const KilnInts *
values_of(const KilnInstr *instr)
{
    return &kiln_instr_attrs(instr, define)->values;
}

static void
add(KilnDefines *self, KilnInstr *instr)
{
    const KilnInts *values = values_of(instr);
    g_ptr_array_add(self->instrs, instr);
    for (uint32_t i = 0; i < values->n; i++) {
        const char *name = kiln_dim_as_name(kiln_ints_open(*values, i));
        uint32_t stage = self->instrs->len;
        if (!name)
            continue;
        g_ptr_array_add(self->names, (gpointer)name);
        g_array_append_val(self->stages, stage);
    }
}

KilnDefines *
kiln_defines_new(const KilnIRFunction *function)
{
    KilnDefines *self = NULL;
    kiln_foreach_instr (instr, function) {
        if (instr->kind != KILN_INSTR_define || !function->open)
            continue;
        if (!self) {
            self = g_new0(KilnDefines, 1);
            self->instrs = g_ptr_array_new();
            self->names = g_ptr_array_new();
            self->stages = g_array_new(FALSE, FALSE, sizeof(uint32_t));
        }
        add(self, instr);
    }
    if (self && !self->names->len)
        g_clear_pointer(&self, kiln_defines_free);
    return self;
}

void
kiln_defines_free(KilnDefines *defines)
{
    if (!defines)
        return;
    g_ptr_array_unref(defines->instrs);
    g_ptr_array_unref(defines->names);
    g_array_unref(defines->stages);
    g_free(defines);
}

bool
kiln_defines_any(const GPtrArray *functions)
{
    bool any = false;
    for (guint i = 0; i < functions->len && !any; i++) {
        g_autoptr(KilnDefines) defines = kiln_defines_new(g_ptr_array_index(functions, i));
        any = defines != NULL;
    }
    return any;
}

/* --- stages --- */

typedef struct {
    const KilnDefines *defines;
    uint32_t stage;
} Search;

/* Looks at all names: it never says that one is found. */
static bool
see_name(void *data, const char *name)
{
    Search *search = data;
    for (guint i = 0; i < search->defines->names->len; i++) {
        if (strcmp(g_ptr_array_index(search->defines->names, i), name) == 0)
            search->stage = MAX(search->stage, g_array_index(search->defines->stages, uint32_t, i));
    }
    return false;
}

uint32_t
kiln_defines_stage(const KilnDefines *defines, const KilnDim *dim)
{
    Search search = { defines, 0 };
    kiln_dim_any_name(dim, see_name, &search);
    return search.stage;
}

/* The bound of a number may hang on those before it in one definition. */
static uint32_t
stage_of_bounds(const KilnDefines *defines, const KilnInstr *instr)
{
    const KilnInts *most = &kiln_instr_attrs(instr, define)->most;
    const char *name = kiln_dim_as_name(kiln_ints_open(*values_of(instr), 0));
    uint32_t own = name ? kiln_defines_stage(defines, kiln_ints_open(*values_of(instr), 0)) : 0;
    uint32_t stage = 0;
    for (uint32_t i = 0; most->open && i < most->n; i++) {
        uint32_t needs = kiln_defines_stage(defines, most->open[i]);
        stage = MAX(stage, own > 0 && needs == own ? own - 1 : needs);
    }
    return stage;
}

static uint32_t
stage_of_list(const KilnDefines *defines, const KilnInts *list)
{
    uint32_t stage = 0;
    for (uint32_t i = 0; list->open && i < list->n; i++)
        stage = MAX(stage, kiln_defines_stage(defines, list->open[i]));
    return stage;
}

uint32_t
kiln_defines_stage_of_buffer(const KilnDefines *defines, const KilnBuffer *buffer)
{
    uint32_t stage = 0;
    for (const KilnBuffer *at = buffer; at; at = at->kind == KILN_BUFFER_VIEW ? at->base : NULL) {
        for (int d = 0; d < at->type.rank; d++)
            stage = MAX(stage, kiln_defines_stage(defines, at->type.open[d]));
        if (!at->view_open)
            continue;
        stage = MAX(stage, kiln_defines_stage(defines, at->view_open->offset));
        stage = MAX(stage, kiln_defines_stage(defines, at->view_open->rows));
        stage = MAX(stage, kiln_defines_stage(defines, at->view_open->pitch));
    }
    return stage;
}

uint32_t
kiln_defines_stage_of_instr(const KilnDefines *defines, const KilnInstr *instr)
{
    const KilnInstrInfo *info = kiln_instr_info(instr->kind);
    uint32_t stage = 0;
    for (uint32_t i = 0; i < instr->n_operands; i++)
        stage = MAX(stage, kiln_defines_stage_of_buffer(defines, instr->operands[i].buffer));
    if (instr->kind == KILN_INSTR_define)
        return MAX(stage, stage_of_bounds(defines, instr));
    for (uint32_t i = 0; i < info->n_attrs; i++) {
        const KilnInts *list =
            (const KilnInts *)((const char *)instr->attrs + info->attrs[i].offset);
        if (info->attrs[i].kind == KILN_ATTR_INTS)
            stage = MAX(stage, stage_of_list(defines, list));
    }
    return stage;
}

bool
kiln_defines_in_time(const KilnDefines *defines, const KilnInstr *instr, const KilnBuffer *buffer)
{
    return !defines || kiln_defines_stage_of_instr(defines, instr) <=
                           kiln_defines_stage_of_buffer(defines, buffer);
}
