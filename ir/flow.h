/* SPDX-License-Identifier: Apache-2.0 */
/* Branches and loops whose way a run decides. Each subgraph is a function of its own in the module
 * of the IR, compiled once. Operands, in this order:
 *
 *     branch @out results…, [@out counts, @out held,] @in condition, @in captures…
 *     loop   @out results…, [@out counts, @out held,] [@in limit,] [@in condition,]
 *            @in first values of what is carried…, @in scanned…, @in captures…
 *
 * Inputs of the functions of a branch are the captures. Inputs of the body of a loop are the number
 * of the iteration (i64), the condition (bool), what is carried, a slice of each scanned operand
 * along its dim 0, and the captures. It returns the condition where the loop `asks`, what is
 * carried, and values that are stacked along a new dim 0. `backwards` has a flag for each scanned
 * operand, then for each stacked result.
 *
 * Results whose dims a run decides are *held*: `decided` lists their dims, as pairs of result and
 * dim. The instruction writes these dims to `counts`, and to `held` the address of a KilnHeld for
 * each. `define` makes numbers of names of the counts, and `take` copies a held result.
 *
 * `names` are the names of dims that the functions need, and `numbers` their numbers. Other names
 * in the inputs of a body get the dims of what it is given in each iteration. */
#ifndef KILN_IR_FLOW_H
#define KILN_IR_FLOW_H

#include "ir/ir.h"
#include "ir/kernel.h"

/** Where the operands of a branch or loop begin. */
typedef struct {
    uint32_t n_results;    /* of the functions, but for the condition that a body returns */
    uint32_t n_direct;     /* that are operands: the first ones */
    uint32_t n_held;       /* the others */
    uint32_t counts, held; /* operands; only where n_held > 0 */
    uint32_t limit;        /* UINT32_MAX: there is none */
    uint32_t condition;    /* the same */
    uint32_t carried, n_carried;
    uint32_t scanned, n_scanned;
    uint32_t captures, n_captures;
} KilnFlowOperands;

/** A held result. It belongs to who runs the instruction, up to its next run. */
typedef struct {
    const void *data;
    size_t bytes;
} KilnHeld;

KilnFlowOperands kiln_flow_operands(const KilnInstr *instr);
/** True where result @r is held. */
bool kiln_flow_is_held(const KilnInstr *instr, uint32_t r);
/** How many functions @instr runs: two of a branch, one of a loop, 0 of others. */
static inline int
kiln_flow_n_functions(const KilnInstr *instr)
{
    return instr->kind == KILN_INSTR_branch ? 2 : instr->kind == KILN_INSTR_loop;
}
/** The function that @instr runs: the body of a loop, or a branch (@otherwise: where the condition
 * is false). NULL where the module has none of that name. */
KilnIRFunction *kiln_flow_function(const KilnInstr *instr, bool otherwise);
/** The pairs of result and dim that a run decides. */
const KilnInts *kiln_flow_decided(const KilnInstr *instr);
const KilnStrings *kiln_flow_names(const KilnInstr *instr);
const KilnInts *kiln_flow_numbers(const KilnInstr *instr);
/** True where the scanned operand or stacked result @i, counted together, goes from the last to the
 * first. */
bool kiln_flow_goes_backwards(const KilnInstr *instr, uint32_t i);

/** Finds the length that @instr, a loop, scans; INT64_MAX where it scans nothing. KILN_ERROR_SHAPE
 * where its scanned operands have several. */
gboolean kiln_flow_scanned_length(const KilnInstr *instr, int64_t *out, GError **error);

/** What runs a branch or loop for whoever executes its function. kiln_flow_kernel() expects its
 * address as `prepared`. The scratch memory of the call has room for the arena of a static
 * function, which must have a memory plan before. */
typedef struct KilnFlowRunner {
    /** Returns NULL, or a text: kiln_flow_failed where the runner has the error. */
    const char *(*run)(struct KilnFlowRunner *self, const KilnKernelArgs *args);
} KilnFlowRunner;
extern const char kiln_flow_failed[];
const KilnKernel *kiln_flow_kernel(KilnInstrKind kind);

/** The seed of iteration @i of a loop in a run with @seed. */
static inline uint64_t
kiln_flow_seed(uint64_t seed, int64_t i)
{
    return seed + 0x9e3779b97f4a7c15u * ((uint64_t)i + 1);
}

#endif
