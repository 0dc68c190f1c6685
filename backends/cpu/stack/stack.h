/* SPDX-License-Identifier: Apache-2.0 */
/* A stack as the cpu backend runs it: a list of loops over one tile after the other. It is compiled
 * once, when the program is bound. A tile is so small that its values stay in the first level of
 * cache. This is plain data without owned memory. Private to the folder. */
#ifndef KILN_BACKENDS_CPU_STACK_STACK_H
#define KILN_BACKENDS_CPU_STACK_STACK_H

#include "backends/cpu/elementwise/elementwise.h"
#include "backends/cpu/reduce/reduce.h"
#include "backends/cpu/stack/stack_fused.h"
#include "backends/cpu/elementwise/typed.h"
#include "ir/stack.h"

enum {
    KILN_CPU_STACK_SCALARS = 2 * KILN_STACK_STEPS_MAX,
    KILN_CPU_STACK_ROWS_MAX = 8, /* maximum of KilnCpuStack.rows */
    /* Places are numbered: operands, results of steps, operands spread over the tile, scalars. */
    KILN_CPU_STACK_RESULTS = KILN_STACK_OPERANDS_MAX,
    KILN_CPU_STACK_SPREAD = KILN_CPU_STACK_RESULTS + KILN_STACK_STEPS_MAX,
    KILN_CPU_STACK_FIRST_SCALAR = KILN_CPU_STACK_SPREAD + KILN_STACK_OPERANDS_MAX,
    KILN_CPU_STACK_PLACES = KILN_CPU_STACK_FIRST_SCALAR + KILN_CPU_STACK_SCALARS,
};

typedef enum {
    KILN_CPU_STACK_UNARY,
    KILN_CPU_STACK_CLIP, /* bounds are the second and third operand */
    KILN_CPU_STACK_BINARY,
    KILN_CPU_STACK_COMPARE,
    KILN_CPU_STACK_SELECT,
    KILN_CPU_STACK_FUSED,
    KILN_CPU_STACK_CAST,
    KILN_CPU_STACK_QUANT, /* quantize and dequantize, with scale and zero point */
    KILN_CPU_STACK_RESCALE,
    KILN_CPU_STACK_PAIR,
    KILN_CPU_STACK_CHOICE,
    KILN_CPU_STACK_COPY,
    KILN_CPU_STACK_FILL, /* with the one element of the operand */
} KilnCpuStackKind;

/** A loop over a tile. It reads the places in[] and writes the place out. */
typedef struct {
    KilnCpuStackKind kind;
    bool once; /* all operands and the result are one element */
    uint8_t out, in[3];
    uint8_t fixed;        /* bit per operand that is one element for the whole tile */
    uint8_t size;         /* COPY, FILL: bytes of an element */
    int32_t zeros[2];     /* zero points of the operand and of the result */
    KilnCpuParams params; /* QUANT, RESCALE: a is the scale or factor */
    union {
        KilnCpuUnaryRow unary;
        KilnCpuBinaryRow binary;
        KilnCpuCompareRow compare;
        KilnCpuSelectRow select;
        KilnCpuFusedRow fused;
        KilnCpuCastRow cast;
        KilnCpuQuantRow quant;
        KilnCpuRescaleRow rescale;
        KilnCpuPairRow pair;
        KilnCpuChoiceRow choice;
    } row;
} KilnCpuStackOp;

/** Which of its two operands is one element. */
static inline KilnCpuFixed
kiln_cpu_stack_fixed(const KilnCpuStackOp *op)
{
    return op->once        ? KILN_CPU_NONE_FIXED
           : op->fixed & 1 ? KILN_CPU_FIRST_FIXED
           : op->fixed & 2 ? KILN_CPU_SECOND_FIXED
                           : KILN_CPU_NONE_FIXED;
}

typedef enum {
    KILN_CPU_STACK_DENSE,     /* has every element of the space */
    KILN_CPU_STACK_ONE,       /* has one */
    KILN_CPU_STACK_ROWS,      /* a row of it, or one element of it, meets each row of the space */
    KILN_CPU_STACK_SPREAD_IN, /* copied to a tile of its own, where rows are short */
    KILN_CPU_STACK_REDUCED,   /* receives one element of each row after the last tile of the row */
} KilnCpuStackAccess;

typedef struct {
    KilnCpuStackAccess access;
    uint8_t size;                   /* bytes of an element */
    bool writes;                    /* it is a result */
    bool repeats;                   /* SPREAD_IN: every tile is the same */
    int64_t strides[KILN_MAX_RANK]; /* per dim of the space, in bytes */
} KilnCpuStackOperand;

/** A reduction of the place @from, row by row. */
typedef struct {
    KilnInstrKind kind;
    KilnCpuReduction by;
    uint8_t from; /* a place */
    uint8_t out;  /* an operand */
} KilnCpuStackReduction;

/** dims are those of the space, merged where all operands walk through them in step. A tile is a
 * piece of a row (dims[rank - 1] elements) or a bundle of whole rows. A reduction makes one element
 * of each row. */
typedef struct {
    int rank;
    int64_t dims[KILN_MAX_RANK];
    int64_t n; /* elements */
    bool bundles;
    int64_t tile;   /* elements; the last tile of a row, or of all, may have less */
    int64_t tiles;  /* of a row; bundles: of the space */
    int64_t batch;  /* tiles of a task; rows of a task if there are reductions and no bundles */
    int64_t pieces; /* of a row that is reduced; if several, each is a task */
    int64_t part;   /* reductions: elements of a tile that the steps compute at once */
    int64_t rows;   /* short rows that are computed before the first is reduced */
    int64_t slot;   /* bytes of a result, aligned; row_bytes: of one row of it */
    int64_t row_bytes;
    int n_slots;
    uint8_t slots[KILN_CPU_STACK_FIRST_SCALAR]; /* by place, for results and spread operands */
    uint32_t n_operands, n_ops, n_scalars;
    KilnCpuStackOperand operands[KILN_STACK_OPERANDS_MAX];
    uint64_t scalars[KILN_CPU_STACK_SCALARS];
    KilnCpuStackOp ops[2 * KILN_STACK_STEPS_MAX];
    uint32_t n_reductions;
    KilnCpuStackReduction reductions[KILN_STACK_OPERANDS_MAX]; /* run after all ops of a tile */
} KilnCpuStack;

/** Compiles @instr, a verified `stack`. False if some step has no loop. */
bool kiln_cpu_stack_compile(const KilnInstr *instr, KilnCpuStack *out);

/* The parts of kiln_cpu_stack_compile(). */

/** Sets the dims of the space and how each operand meets them. False if the elements that a
 * reduction joins are not a row. */
bool kiln_cpu_stack_set_space(const KilnInstr *instr, KilnCpuStack *out);
/** Sets the places of results in scratch memory, and the sizes of tiles and tasks. */
void kiln_cpu_stack_set_tiles(const KilnInstr *instr, KilnCpuStack *out);

#endif
