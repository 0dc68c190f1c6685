/* SPDX-License-Identifier: Apache-2.0 */
/* An instruction is settled if all that it reads is constant or written by settled instructions
 * alone, and the same holds of all that it writes. All settled instructions run together or not at
 * all. So their results that others read must stay as the last of them leaves them: nothing writes
 * these buffers after the first of those reads, and they share their memory with no other buffer.
 *
 * Memory that is kept is no other buffer's. What would take too much of it is computed in each
 * run. */
#include "ir/plan/settle.h"

#include "ir/instr.h"
#include "ir/open.h"
#include "ir/plan.h"
#include "ir/plugin.h"

enum {
    KEPT_BYTES = 1 << 16, /* that may always be kept, */
    KEPT_PART = 4         /* and one part of so many of what lives at once */
};

typedef struct {
    GPtrArray *instrs; /* KilnInstr* that do work, in order */
    bool *settled;     /* per instruction */
    bool *pure;        /* per buffer: settled instructions alone write it */
    bool *read;        /* per buffer: another instruction reads it */
    bool *refused;     /* per buffer: too big */
} Settling;

static KilnInstr *
instr_at(const Settling *self, guint i)
{
    return g_ptr_array_index(self->instrs, i);
}

/* The functions of a branch or loop may draw random numbers. */
static bool
may_settle(const KilnInstr *instr)
{
    bool writes = false;
    if (kiln_instr_has_effect(instr) || kiln_instr_is_flow(instr->kind) || kiln_instr_stream(instr))
        return false;
    for (uint32_t i = 0; i < instr->n_operands; i++) {
        const KilnBufferUse *use = &instr->operands[i];
        if (!use->buffer || use->access == KILN_ACCESS_IN)
            continue;
        if (kiln_dtype_is_address(use->buffer->type.dtype)) /* a run forgets its texts and items */
            return false;
        writes = true;
    }
    return writes;
}

static bool
is_constant(const KilnBuffer *origin)
{
    return origin->kind == KILN_BUFFER_WEIGHT && origin->is_const;
}

/* Takes what other instructions write out of the pure buffers. */
static void
find_pure(Settling *self, const KilnIRFunction *function)
{
    for (guint i = 0; i < function->buffers->len; i++) {
        const KilnBuffer *buffer = g_ptr_array_index(function->buffers, i);
        self->pure[i] = buffer && !self->refused[i] &&
                        (buffer->kind == KILN_BUFFER_ALLOC || is_constant(buffer));
        self->read[i] = false;
    }
    for (guint c = 0; c < self->instrs->len; c++) {
        const KilnInstr *instr = instr_at(self, c);
        for (uint32_t i = 0; i < instr->n_operands; i++) {
            if (!instr->operands[i].buffer)
                continue;
            uint32_t origin = kiln_buffer_origin(instr->operands[i].buffer)->id;
            if (self->settled[c]) /* a reader before it would see something else in a later run */
                self->pure[origin] &=
                    instr->operands[i].access == KILN_ACCESS_IN || !self->read[origin];
            else if (instr->operands[i].access == KILN_ACCESS_IN)
                self->read[origin] = true;
            else
                self->pure[origin] = false;
        }
    }
}

static bool
is_settled(const Settling *self, const KilnInstr *instr)
{
    bool settled = true;
    for (uint32_t i = 0; i < instr->n_operands && settled; i++) {
        KilnBuffer *buffer = instr->operands[i].buffer;
        settled = !buffer || self->pure[kiln_buffer_origin(buffer)->id];
    }
    return settled;
}

static void
find_settled(Settling *self, const KilnIRFunction *function)
{
    for (bool changed = true; changed;) {
        changed = false;
        find_pure(self, function);
        for (guint c = 0; c < self->instrs->len; c++) {
            if (!self->settled[c] || is_settled(self, instr_at(self, c)))
                continue;
            self->settled[c] = false;
            changed = true;
        }
    }
}

/* Results of settled instructions that others read. */
static GPtrArray *
list_kept(const Settling *self, const KilnIRFunction *function)
{
    GPtrArray *kept = g_ptr_array_new();
    g_autofree bool *listed = g_new0(bool, (gsize)function->buffers->len + 1);
    for (guint c = 0; c < self->instrs->len; c++) {
        const KilnInstr *instr = instr_at(self, c);
        for (uint32_t i = 0; i < instr->n_operands && self->settled[c]; i++) {
            if (!instr->operands[i].buffer || instr->operands[i].access == KILN_ACCESS_IN)
                continue;
            KilnBuffer *origin = kiln_buffer_origin(instr->operands[i].buffer);
            if (self->read[origin->id] && !listed[origin->id])
                g_ptr_array_add(kept, origin);
            listed[origin->id] = true;
        }
    }
    return kept;
}

/* Refuses the buffers of @kept for which there is no room. */
static bool
refuse_big(Settling *self, const GPtrArray *kept, int64_t room)
{
    bool refused = false;
    for (guint i = 0; i < kept->len; i++) {
        const KilnBuffer *buffer = g_ptr_array_index(kept, i);
        int64_t bytes = kiln_buffer_bytes_planned(buffer);
        if (bytes <= room) {
            room -= bytes;
            continue;
        }
        self->refused[buffer->id] = refused = true;
    }
    return refused;
}

static int64_t
room_of(const KilnIRFunction *function)
{
    g_autofree int64_t *none = g_new0(int64_t, (gsize)function->n_instrs + 1);
    KilnMemoryPlan *plan = kiln_liveness_of(function, none, 0);
    int64_t room = KEPT_BYTES + plan->lb_live / KEPT_PART;
    kiln_memory_plan_free(plan);
    return room;
}

void
kiln_open_unsettle(KilnIRFunction *function)
{
    g_ptr_array_set_size(function->open->settled, 0);
    g_ptr_array_set_size(function->open->kept, 0);
}

/* KilnInstr*: those that do work. None where data decides dims: each run finds them anew, and what
 * is computed of them follows. */
static GPtrArray *
list_instrs(const KilnIRFunction *function)
{
    GPtrArray *instrs = g_ptr_array_new();
    bool defines = false;
    kiln_foreach_instr (instr, function) {
        defines |= instr->kind == KILN_INSTR_define;
        if (!kiln_instr_is_bookkeeping(instr))
            g_ptr_array_add(instrs, instr);
    }
    if (defines)
        g_ptr_array_set_size(instrs, 0);
    return instrs;
}

void
kiln_open_settle(KilnIRFunction *function)
{
    KilnOpen *open = function->open;
    gsize n_buffers = (gsize)function->buffers->len + 1;
    g_autoptr(GPtrArray) instrs = list_instrs(function);
    kiln_open_unsettle(function);
    g_autofree bool *settled = g_new0(bool, (gsize)instrs->len + 1);
    g_autofree bool *pure = g_new0(bool, n_buffers);
    g_autofree bool *read = g_new0(bool, n_buffers);
    g_autofree bool *refused = g_new0(bool, n_buffers);
    Settling self = { instrs, settled, pure, read, refused };
    for (guint c = 0; c < instrs->len; c++)
        settled[c] = may_settle(g_ptr_array_index(instrs, c));
    int64_t room = room_of(function);
    g_autoptr(GPtrArray) kept = NULL;
    do {
        g_clear_pointer(&kept, g_ptr_array_unref);
        find_settled(&self, function);
        kept = list_kept(&self, function);
    } while (refuse_big(&self, kept, room));
    for (guint c = 0; c < instrs->len; c++) {
        if (settled[c])
            g_ptr_array_add(open->settled, g_ptr_array_index(instrs, c));
    }
    for (guint i = 0; i < kept->len; i++)
        g_ptr_array_add(open->kept, g_ptr_array_index(kept, i));
}

bool
kiln_open_keeps(const KilnIRFunction *function, const KilnBuffer *buffer)
{
    bool keeps = false;
    for (guint i = 0; function->open && i < function->open->kept->len && !keeps; i++)
        keeps = g_ptr_array_index(function->open->kept, i) == buffer;
    return keeps;
}
