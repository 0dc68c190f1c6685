/* SPDX-License-Identifier: Apache-2.0 */
/* Checks an instruction through the shape function of its op. The instruction becomes a node in no
 * graph, with its @in operands and its attributes. Attributes that lowering made from shape
 * operands become known operands again. The shape function must give the types of the @out
 * operands. So graph and IR cannot disagree about types that fit. */
#ifndef KILN_IR_VERIFY_CHECK_PRIV_H
#define KILN_IR_VERIFY_CHECK_PRIV_H

#include "ir/ir.h"

enum {
    KILN_CHECK_NO_OP = -1
};

typedef struct {
    const KilnInstr *instr;
    KilnArena *arena;
    KilnNode node;
} KilnCheck;

/** A check of one kind of instruction: completes the node before its types are inferred, or checks
 * without inference. Errors need no prefix. */
typedef gboolean (*KilnCheckFn)(KilnCheck *check, GError **error);

typedef struct {
    KilnCheckFn prepare; /* before inference; may be NULL */
    KilnCheckFn alone;   /* instead of inference; NULL: infer and compare */
    bool items;          /* operands may be sequences, optionals and maps */
} KilnInstrCheck;

const KilnInstrCheck *kiln_instr_check_of(KilnInstrKind kind);

static inline const KilnType *
kiln_check_type(const KilnCheck *check, uint32_t i)
{
    const KilnBuffer *buffer = kiln_instr_operand(check->instr, i);
    return buffer ? &buffer->type : NULL;
}
/** Infers the node's types and compares them with the @out operands'. */
gboolean kiln_check_infer(KilnCheck *check, GError **error);
/** The node's attribute @name, which its op must have. */
void *kiln_check_attr(KilnCheck *check, const char *name);
/** Sets operand @i of the node to an i64 list of @n known values. */
void kiln_check_known(KilnCheck *check, uint32_t i, const int64_t *values, int64_t n);
/** `expected X, found <type of operand i>`. Always FALSE. */
gboolean kiln_check_throw(const KilnCheck *check, uint32_t i, const char *expected, GError **error);
/** Checks that list attribute @name has @n elements, or none if @may_be_empty. */
gboolean kiln_check_length(const KilnCheck *check, const char *name, uint32_t n, bool may_be_empty,
                           GError **error);
/** Checks that operands @a and @b have equal dims. */
gboolean kiln_check_same_shape(const KilnCheck *check, uint32_t a, uint32_t b, GError **error);

gboolean kiln_check_stack(KilnCheck *check, GError **error);
gboolean kiln_check_call(KilnCheck *check, GError **error);
gboolean kiln_check_branch(KilnCheck *check, GError **error);
gboolean kiln_check_loop(KilnCheck *check, GError **error);
gboolean kiln_check_refuse(KilnCheck *check, GError **error);
gboolean kiln_check_take(KilnCheck *check, GError **error);
/** Of an instruction on sequences, optionals and maps. */
gboolean kiln_check_items(KilnCheck *check, GError **error);

#endif
