/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the verifier's files. verify.c checks structure and order, verify_changes.c checks them
 * only where something changed. verify_plan.c checks planned offsets; check*.c check operand types
 * and attributes of each instruction. */
#ifndef KILN_IR_VERIFY_VERIFY_PRIV_H
#define KILN_IR_VERIFY_VERIFY_PRIV_H

#include "ir/plan.h"

/** Fails with `@function: …`. Always FALSE. */
gboolean kiln_ir_throw(const KilnIRFunction *function, GError **error, const char *format, ...)
    G_GNUC_PRINTF(3, 4);
/** Fails with `@function: label (kind): …`. Always FALSE. */
gboolean kiln_instr_throw(const KilnInstr *instr, GError **error, const char *format, ...)
    G_GNUC_PRINTF(3, 4);

/* Prefetches fields of buffers further on in @list, whose elements may be NULL: buffers lie in no
 * order of memory. */
static inline void
kiln_prefetch_buffers(const GPtrArray *list, guint i)
{
    enum {
        FAR = 32,
        MIDDLE = 16,
        NEAR = 8,
        NEARER = 5, /* most buffers have four uses: alloc, write, read, dealloc */
        NEAREST = 2
    };
    if (i + FAR >= list->len)
        return;
    const char *far = g_ptr_array_index(list, i + FAR);
    const KilnBuffer *middle = g_ptr_array_index(list, i + MIDDLE);
    const KilnBuffer *near = g_ptr_array_index(list, i + NEAR);
    if (far) {
        __builtin_prefetch(far);
        __builtin_prefetch(far + offsetof(KilnBuffer, name));
    }
    if (middle) {
        __builtin_prefetch(middle->first_use);
        __builtin_prefetch(middle->last_use);
    }
    if (near && near->first_use) {
        __builtin_prefetch(near->first_use->user);
        __builtin_prefetch(near->first_use->next);
        __builtin_prefetch(near->last_use->user);
    }
    const KilnBuffer *nearer = g_ptr_array_index(list, i + NEARER);
    const KilnBufferUse *second = nearer && nearer->first_use ? nearer->first_use->next : NULL;
    if (second) {
        __builtin_prefetch(second->user);
        __builtin_prefetch(second->next);
    }
    const KilnBuffer *nearest = g_ptr_array_index(list, i + NEAREST);
    second = nearest && nearest->first_use ? nearest->first_use->next : NULL;
    if (second && second->next)
        __builtin_prefetch(second->next->user);
}

/** Checks that each name is defined once and not in an input, and that instructions that need its
 * number stand behind. */
gboolean kiln_defines_verify(const KilnIRFunction *function, GError **error);

/** Branches and loops of @function run functions of their own: no function runs in two places or in
 * itself, and they do not lie too deep in each other. */
gboolean kiln_flow_verify(const KilnIRFunction *function, GError **error);

/** Checks the uses of a buffer against the instructions. */
gboolean kiln_buffer_verify_uses(const KilnBuffer *buffer, GError **error);
/** The same, and the name, type and weight of a buffer of its function. */
gboolean kiln_buffer_verify(const KilnBuffer *buffer, GError **error);
/** Operands have the number and the accesses of the row, and are of the instruction's function. */
gboolean kiln_instr_verify_operands(const KilnInstr *instr, GError **error);
/** An alloc, dealloc or view and its buffer agree. */
gboolean kiln_instr_verify_bookkeeping(const KilnInstr *instr, GError **error);
/** A view lies inside its base, aligned. */
gboolean kiln_instr_verify_view(const KilnInstr *instr, GError **error);
/** Operand @i, which a compute instruction writes, is writable. It shares bytes with another
 * operand only if the row allows it. */
gboolean kiln_instr_verify_write(const KilnInstr *instr, uint32_t i, GError **error);
/** kiln_instr_check() for one of many instructions. Makes *@arena anew before it grows big. */
gboolean kiln_instr_verify_types(const KilnInstr *instr, KilnArena **arena, GError **error);

/** A function with arena_bytes >= 0 has aligned offsets inside the arena. No two buffers have the
 * same bytes at one step. */
gboolean kiln_verify_plan(const KilnIRFunction *function, GError **error);

/** Lives of @function with offsets lie inside its arena, and never share bytes at one step. */
gboolean kiln_verify_lives(const KilnIRFunction *function, KilnMemoryPlan *plan, GError **error);

/** Checks operand types and attributes of a compute instruction. A kernel that trusts them stays
 * inside its buffers, whatever they contain. @arena: memory for the check. */
gboolean kiln_instr_check(const KilnInstr *instr, KilnArena *arena, GError **error);

/* --- sets of bytes of a buffer: the written bytes --- */

typedef struct {
    int64_t begin, end; /* half-open */
} KilnByteRange;

/** An empty list of KilnByteRange. Lists are sorted, and their ranges do not meet or touch. */
GArray *kiln_ranges_new(void);
void kiln_ranges_add(GArray *list, const KilnRegion *added);
/** True if @list (NULL: empty) has all bytes of @wanted. */
bool kiln_ranges_cover(const GArray *list, const KilnRegion *wanted);

#endif
