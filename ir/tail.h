/* SPDX-License-Identifier: Apache-2.0 */
/* The tail of a convolution or product changes its result before the result is stored. The
 * attributes and the last operand describe it:
 *
 *     result = activation(product + residual)
 *
 *     conv @out %y, @in %x, @in @w, @in @b, @in %r {activation="clip", activation_params=[0,6]}
 *
 * Each part rounds to the element type, so the bits are those of separate instructions. The
 * residual has the type of the result and may lie in its bytes. An activation is an element-wise
 * instruction of one operand. Its parameters are the numbers among its attributes, in the order of
 * its row; for clip, the two bounds.
 *
 * A layer or root-mean-square normalization may have a residual, too. It adds that to its input:
 *
 *     result = normalization(data + residual) */
#ifndef KILN_IR_TAIL_H
#define KILN_IR_TAIL_H

#include "ir/ir.h"

enum {
    KILN_TAIL_PARAMS_MAX = 2
};

/** Attributes of any activation. */
typedef union {
    KilnInstrAttrs_elu elu;
    KilnInstrAttrs_gelu gelu;
    KilnInstrAttrs_hard_sigmoid hard_sigmoid;
    KilnInstrAttrs_leaky_relu leaky_relu;
    KilnInstrAttrs_swish swish;
} KilnTailAttrs;

typedef struct {
    KilnBuffer *residual;     /* NULL: none */
    KilnInstrKind activation; /* KILN_N_INSTRS: none */
    float params[KILN_TAIL_PARAMS_MAX];
    KilnTailAttrs attrs; /* of the activation, as its instruction has them */
} KilnTail;

/** The fields of an instruction's attributes that describe its tail. */
typedef struct {
    const char **activation;
    KilnFloats *params;
} KilnTailFields;

/** The operand that @kind adds to its result; 0 if instructions of the kind have no tail. */
uint32_t kiln_tail_operand(KilnInstrKind kind);
/** The operand that @kind adds to its result, as part of a tail, or to the data that it normalizes.
 * 0 if instructions of the kind have no residual. */
uint32_t kiln_residual_operand(KilnInstrKind kind);
/** @attrs are of an instruction of @kind, which may have a tail. */
KilnTailFields kiln_tail_fields(KilnInstrKind kind, void *attrs);
/** The tail of @instr, whose attributes are valid; empty if its kind has none. */
KilnTail kiln_instr_tail(const KilnInstr *instr);
/** The name that a tail uses for the element-wise @instr, and the parameters from its attributes.
 * NULL if it is no activation. */
const char *kiln_tail_activation(const KilnInstr *instr, float params[KILN_TAIL_PARAMS_MAX],
                                 uint32_t *n_params);

/** KILN_ERROR_INVALID if there is no such activation, or its parameters are too few or many. */
gboolean kiln_tail_check(const KilnTailFields *fields, GError **error);

#endif
