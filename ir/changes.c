/* SPDX-License-Identifier: Apache-2.0 */
/* Notes of what was touched, so that what is valid need not be verified again whole; and places, so
 * that which of two instructions comes first is told without a walk. */
#include "ir/changes.h"

/* --- places --- */

/* Between two that are numbered anew: 32 may be put at one spot before all are once more. */
static const uint64_t GAP = UINT64_C(1) << 32;

void
kiln_ir_place_link(KilnInstr *instr)
{
    uint64_t low = instr->previous ? instr->previous->place : 0;
    uint64_t high = instr->next ? instr->next->place : low + 2 * GAP;
    instr->place = low + (high - low) / 2;
    if (high <= low || instr->place == low)
        instr->function->is_placed = false;
}

void
kiln_ir_place(KilnIRFunction *function)
{
    if (function->is_placed)
        return;
    uint64_t place = 0;
    KilnAhead ahead = { .n = 0 };
    kiln_foreach_instr (instr, function) {
        instr->place = place += GAP;
        kiln_ahead_note(&ahead, instr);
    }
    function->is_placed = true;
}

/* --- notes --- */

enum {
    FURTHER = 16 /* notes that are asked for ahead */
};

void
kiln_ir_changes_begin(KilnIRFunction *function)
{
    KilnIRChanges *changes = &function->changes;
    if (!changes->instrs) {
        changes->instrs = g_ptr_array_new();
        changes->buffers = g_ptr_array_new();
    }
    for (guint i = 0; i < changes->instrs->len; i++) {
        KilnInstr *instr = g_ptr_array_index(changes->instrs, i);
        if (i + FURTHER < changes->instrs->len)
            __builtin_prefetch(g_ptr_array_index(changes->instrs, i + FURTHER), 1);
        instr->touched = instr->rewritten = false;
    }
    for (guint i = 0; i < changes->buffers->len; i++) {
        KilnBuffer *buffer = g_ptr_array_index(changes->buffers, i);
        if (i + FURTHER < changes->buffers->len)
            __builtin_prefetch(g_ptr_array_index(changes->buffers, i + FURTHER), 1);
        buffer->touched = buffer->restated = false;
    }
    g_ptr_array_set_size(changes->instrs, 0);
    g_ptr_array_set_size(changes->buffers, 0);
    changes->known = true;
}

void
kiln_ir_changes_forget(KilnIRFunction *function)
{
    if (!function->changes.known)
        return;
    kiln_ir_changes_begin(function);
    function->changes.known = false;
}

void
kiln_ir_changes_clear(KilnIRChanges *changes)
{
    if (!changes->instrs)
        return;
    g_ptr_array_unref(changes->instrs);
    g_ptr_array_unref(changes->buffers);
}

/* Where more was touched than there is, looking at the whole costs less. */
static bool
takes_note(KilnIRFunction *function, const GPtrArray *notes, size_t most)
{
    if (!function->changes.known)
        return false;
    if (notes->len <= most)
        return true;
    kiln_ir_changes_forget(function);
    return false;
}

void
kiln_ir_changes_add_instr(KilnInstr *instr, bool rewritten)
{
    KilnIRFunction *function = instr->function;
    const KilnIRChanges *changes = &function->changes;
    if (!instr->touched) {
        if (!takes_note(function, changes->instrs, function->n_instrs))
            return;
        instr->touched = true;
        g_ptr_array_add(changes->instrs, instr);
    }
    instr->rewritten |= rewritten;
}

void
kiln_ir_changes_add_buffer(KilnBuffer *buffer, bool restated)
{
    KilnIRFunction *function = buffer->function;
    const KilnIRChanges *changes = &function->changes;
    if (!buffer->touched) {
        if (!takes_note(function, changes->buffers, function->buffers->len))
            return;
        buffer->touched = true;
        g_ptr_array_add(changes->buffers, buffer);
    }
    buffer->restated |= restated;
}
