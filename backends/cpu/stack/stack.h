/* SPDX-License-Identifier: Apache-2.0 */
/* A stack as the cpu backend runs it: a list of loops over one tile after the other, compiled once,
 * when the program is bound. A tile is small enough for everything that lives in it to stay in the
 * first level of cache. Plain data without owned memory. Private to the folder. */
#ifndef KILN_BACKENDS_CPU_STACK_STACK_H
#define KILN_BACKENDS_CPU_STACK_STACK_H

#include "backends/cpu/reduce/group_sums.h"
#include "backends/cpu/stack/stack_fused.h"
#include "backends/cpu/elementwise/typed.h"
#include "ir/stack.h"

enum {
    KILN_CPU_STACK_SCALARS = 2 * KILN_STACK_STEPS_MAX,
    KILN_CPU_STACK_ROWS_MAX = 8, /* of KilnCpuStack.rows */
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
    KILN_CPU_STACK_QUANT, /* both ways: scale and zero */
    KILN_CPU_STACK_RESCALE,
    KILN_CPU_STACK_PAIR,
    KILN_CPU_STACK_CHOICE,
    KILN_CPU_STACK_COPY,
    KILN_CPU_STACK_FILL, /* with the one element of the operand */
} KilnCpuStackKind;

/** A loop over a tile: places in, place out. */
typedef struct {
    KilnCpuStackKind kind;
    bool once; /* all operands are one element, so is the result */
    uint8_t out, in[3];
    uint8_t fixed;        /* bit per operand that is one element for the whole tile */
    uint8_t size;         /* COPY, FILL: bytes of an element */
    int32_t zeros[2];     /* of quantized types: of the operand, of the result */
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
    KILN_CPU_STACK_REDUCED,   /* takes one element of each row when its last tile is done */
} KilnCpuStackAccess;

typedef struct {
    KilnCpuStackAccess access;
    uint8_t size;                   /* bytes of an element */
    bool writes;                    /* it is a result */
    bool repeats;                   /* SPREAD_IN: every tile is the same */
    int64_t strides[KILN_MAX_RANK]; /* per dim of the space, in bytes */
} KilnCpuStackOperand;

/** A reduction: what lies at @from is reduced row by row. */
typedef struct {
    KilnInstrKind kind;
    KilnCpuReduction by;
    uint8_t from; /* a place */
    uint8_t out;  /* an operand */
} KilnCpuStackReduction;

/** Dims are those of the space, merged where all operands walk through them in step. Tiles are
 * pieces of rows (dims[rank - 1] elements), or bundles of whole rows. Where there are reductions
 * a row is what they make one element of. */
typedef struct {
    int rank;
    int64_t dims[KILN_MAX_RANK];
    int64_t n; /* elements */
    bool bundles;
    int64_t tile;   /* elements; the last tile of a row, or of all, may have less */
    int64_t tiles;  /* of a row; where they are bundles, of the space */
    int64_t batch;  /* tiles of a task; rows, where there are reductions and no bundles */
    int64_t pieces; /* of a row of a reduction: tasks, if it is a long one */
    int64_t part;   /* elements of a tile that is reduced that steps do at once */
    int64_t rows;   /* that are computed before they are reduced, if they are short ones */
    int64_t slot;   /* bytes of a result, aligned, and of a row of it */
    int64_t row_bytes;
    int n_slots;
    uint8_t slots[KILN_CPU_STACK_FIRST_SCALAR]; /* per place of a result or of what is spread */
    uint32_t n_operands, n_ops, n_scalars;
    KilnCpuStackOperand operands[KILN_STACK_OPERANDS_MAX];
    uint64_t scalars[KILN_CPU_STACK_SCALARS];
    KilnCpuStackOp ops[2 * KILN_STACK_STEPS_MAX];
    uint32_t n_reductions;
    KilnCpuStackReduction
        reductions[KILN_STACK_OPERANDS_MAX]; /* when all ops are done with a tile */
} KilnCpuStack;

/** The loops of @instr, a verified `stack`. False where some step has none. */
bool kiln_cpu_stack_compile(const KilnInstr *instr, KilnCpuStack *out);

/* The parts of it. */

/** What the steps walk through: dims, and how each operand meets them. False where rows are not
 * what the reductions take together. */
bool kiln_cpu_stack_set_space(const KilnInstr *instr, KilnCpuStack *out);
/** Where results lie in the scratch memory, and the sizes of tiles and tasks. */
void kiln_cpu_stack_set_tiles(const KilnInstr *instr, KilnCpuStack *out);

#endif
