/* SPDX-License-Identifier: Apache-2.0 */
/* What a convolution or product does with its result before it stores it, as its attributes and its
 * last operand say:
 *
 *     result = activation(product + residual)
 *
 *     conv @out %y, @in %x, @in @w, @in @b, @in %r {activation="clip", activation_params=[0,6]}
 *
 * Each part rounds to the element type, so that an instruction with a tail has the bits of the
 * instructions that it stands for. The residual has the type of the result, whose bytes it may lie
 * in. An activation is an element-wise instruction of one operand; its parameters are the numbers
 * among its attributes in the order of its row, those of clip its two bounds.
 *
 * A layer or root-mean-square normalization may have a residual, too, but in front of what it does:
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

/** The fields of an instruction's attributes that say what its tail is. */
typedef struct {
    const char **activation;
    KilnFloats *params;
} KilnTailFields;

/** The operand that @kind adds to its result; 0 where instructions of the kind have no tail. */
uint32_t kiln_tail_operand(KilnInstrKind kind);
/** The operand that @kind adds, to its result as part of a tail or to the data that it normalizes;
 * 0 where instructions of the kind have no residual. */
uint32_t kiln_residual_operand(KilnInstrKind kind);
/** @attrs are those of an instruction of @kind, which may have a tail. */
KilnTailFields kiln_tail_fields(KilnInstrKind kind, void *attrs);
/** The tail of @instr, whose attributes are valid; nothing where its kind has none. */
KilnTail kiln_instr_tail(const KilnInstr *instr);
/** The name under which a tail has what the element-wise @instr computes, and the parameters that
 * stand in its attributes; NULL where it is no activation. */
const char *kiln_tail_activation(const KilnInstr *instr, float params[KILN_TAIL_PARAMS_MAX],
                                 uint32_t *n_params);

/** KILN_ERROR_INVALID where there is no such activation, or its parameters are too few or many. */
gboolean kiln_tail_check(const KilnTailFields *fields, GError **error);

#endif
