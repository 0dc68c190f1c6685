/* SPDX-License-Identifier: Apache-2.0 */
/* Regions with open dims. The module declares them with expressions. A function at numbers has, for
 * each call, a declaration of its own with the region that is compiled for these numbers. */
#include "graph/base/shared.h"
#include "graph/module/hints.h"
#include "ir/open.h"
#include "ir/open_priv.h"
#include "ir/vendor.h"

bool
kiln_open_calls_region(const KilnInstr *instr)
{
    const KilnDeclaration *callee = instr->kind == KILN_INSTR_call ? instr->declaration : NULL;
    return callee && callee->body && (!callee->compiled || kiln_function_is_open(callee->body));
}

void
kiln_open_free_regions(KilnOpen *open)
{
    for (guint i = 0; open->regions && i < open->regions->len; i++) {
        KilnDeclaration *own = g_ptr_array_index(open->regions, i);
        g_clear_pointer(&own->compiled, kiln_shared_unref);
    }
    g_clear_pointer(&open->regions, g_ptr_array_unref);
}

/* The declaration that only @call has. */
static KilnDeclaration *
own_declaration(KilnInstr *call)
{
    KilnOpen *open = call->function->open;
    if (!open->regions)
        open->regions = g_ptr_array_new();
    for (guint i = 0; i < open->regions->len; i++) {
        if (g_ptr_array_index(open->regions, i) == call->declaration)
            return g_ptr_array_index(open->regions, i);
    }
    KilnDeclaration *own =
        kiln_arena_copy(call->function->arena, call->declaration, sizeof *call->declaration);
    own->compiled = NULL;
    g_ptr_array_add(open->regions, own);
    call->declaration = own;
    return own;
}

void
kiln_open_set_region(KilnInstr *call, KilnCompiled *compiled)
{
    KilnDeclaration *own = own_declaration(call);
    KilnShared *before = own->compiled;
    own->compiled = compiled ? kiln_shared_ref(&compiled->shared) : NULL;
    if (before)
        kiln_shared_unref(before);
}

void
kiln_open_compile_regions(KilnIRFunction *copy, const KilnDimBinding *binding,
                          const KilnTarget *target, int threads)
{
    kiln_foreach_instr (instr, copy) {
        if (!kiln_open_calls_region(instr))
            continue;
        KilnCompiled *compiled =
            target && target->vendor
                ? kiln_kernel_cache_get_at(target, instr->declaration->body,
                                           kiln_dim_binding_lookup, (void *)binding, threads, NULL,
                                           NULL)
                : NULL;
        kiln_open_set_region(instr, compiled);
        if (compiled)
            kiln_shared_unref(&compiled->shared);
    }
}
