/* SPDX-License-Identifier: Apache-2.0 */
/* What the verifier's files share: structure and order in verify.c, planned offsets in
 * verify_plan.c, operand types and attributes per instruction in check*.c. */
#ifndef KILN_IR_VERIFY_PRIV_H
#define KILN_IR_VERIFY_PRIV_H

#include "ir/plan.h"

/** Fails with `@function: label (kind): …`. Always FALSE. */
gboolean kiln_instr_throw(const KilnInstr *instr, GError **error, const char *format, ...)
    G_GNUC_PRINTF(3, 4);

/** The plan of a function with arena_bytes >= 0: offsets aligned, inside the arena, and never the
 * same for two buffers at one step. */
gboolean kiln_verify_plan(const KilnIRFunction *function, GError **error);

/** Lives of @function that have offsets: inside its arena, and never the same bytes at one step. */
gboolean kiln_verify_lives(const KilnIRFunction *function, KilnMemoryPlan *plan, GError **error);

/** Operand types and attributes of a compute instruction, tight enough that a kernel which trusts
 * them stays inside its buffers whatever their contents. @arena: for what the check needs. */
gboolean kiln_instr_check(const KilnInstr *instr, KilnArena *arena, GError **error);

#endif
