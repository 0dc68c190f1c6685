/* SPDX-License-Identifier: Apache-2.0 */
/* The instructions of instrs.def: an enum, a struct of attributes for each, and a table of facts
 * about them. */
#ifndef KILN_IR_INSTR_H
#define KILN_IR_INSTR_H

#include "graph/op.h"

G_BEGIN_DECLS

typedef enum {
#define INSTR(id, ...) KILN_INSTR_##id,
#define ATTR(...)
#include "ir/instrs.def"
    KILN_N_INSTRS
} KilnInstrKind;

#define ATTR(instr, kind, field, otherwise) KilnC_##kind field;
#define INSTR(id, signature, aliases, flags, attrs)                                                \
    typedef struct {                                                                               \
        char no_padding[0];                                                                        \
        attrs                                                                                      \
    } KilnInstrAttrs_##id;
#include "ir/instrs.def"

typedef enum {
    KILN_ACCESS_IN,
    KILN_ACCESS_OUT,
    KILN_ACCESS_INOUT,
} KilnAccess;

typedef enum {
    KILN_INSTR_DATA_PARALLEL = 1 << 0, /* element i comes from element i of (broadcast) operands */
    KILN_INSTR_BOOKKEEPING = 1 << 1,   /* alloc, dealloc, view */
    KILN_INSTR_MOVEMENT = 1 << 2,      /* moves data, computes nothing */
    KILN_INSTR_REDUCTION = 1 << 3,
    KILN_INSTR_ANCHOR = 1 << 4, /* convolution, matmul and their like: many operations per byte */
    KILN_INSTR_TRANSCENDENTAL = 1 << 5, /* computes a function such as exp of each element */
} KilnInstrFlag;

typedef struct {
    const char *name;
    const char *signature; /* a letter per operand: o @out, i @in, b @inout. '?' behind it: may be
                              absent (`_`, or left out at the end). '*' behind it: any number. "*"
                              alone: each use states its access */
    uint32_t aliases;      /* bit k: operand k may share its bytes with operand 0 if their types are
                              equal, quantization apart */
    uint32_t flags;
    const KilnAttrInfo *attrs;
    uint32_t n_attrs;
    size_t attrs_size;
} KilnInstrInfo;

const KilnInstrInfo *kiln_instr_info(KilnInstrKind kind);
bool kiln_instr_from_name(const char *name, KilnInstrKind *out);
void *kiln_instr_attrs_new(KilnInstrKind kind, KilnArena *arena);
/** How operand @i is accessed and whether it may be absent. False where the signature has no such
 * operand, and always where uses state their access. */
bool kiln_instr_access(KilnInstrKind kind, uint32_t i, KilnAccess *out_access, bool *out_optional);

/** True for `branch` and `loop`, which run other functions. */
bool kiln_instr_is_flow(KilnInstrKind kind);

/** True for `call`, `stack`, `branch`, `loop` and `plugin_op`, whose uses state their access. */
bool kiln_instr_states_access(KilnInstrKind kind);

G_END_DECLS

#endif
