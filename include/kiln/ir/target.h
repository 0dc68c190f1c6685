/* SPDX-License-Identifier: Apache-2.0 */
/* A backend as the rest of Kiln sees it: a table of kernels, found by instruction, element type,
 * layout and instruction set. Passes and backends meet here and nowhere else. */
#ifndef KILN_IR_TARGET_H
#define KILN_IR_TARGET_H

#include "ir/kernel.h"

G_BEGIN_DECLS

/** Microseconds on one thread for work that no kernel has a model for; fitted to a machine. */
typedef struct {
    double flop, byte, call; /* by kiln_instr_cost(): operations or bytes, whichever take longer */
    double tail_flop, tail_byte;         /* on the way out of a product; bytes of a residual */
    double relayout_byte, relayout_call; /* for a value that changes its layout */
} KilnRates;

typedef struct KilnTarget KilnTarget;
struct KilnTarget {
    const char *name;
    const char *summary;
    const KilnKernel *kernels; /* in order of preference */
    uint32_t n_kernels;
    KilnIsa isa;                     /* of the machine, found at run time */
    const KilnRates *rates;          /* NULL: those of the fallback, or general ones */
    const KilnTarget *fallback;      /* has the kernels that this one lacks; NULL: none */
    const struct KilnVendor *vendor; /* compiles regions, see ir/vendor.h; NULL: none */
};

/** The first kernel that takes @instr, here or in the fallbacks; NULL where there is none. */
const KilnKernel *kiln_target_find(const KilnTarget *target, const KilnInstr *instr);
/** The target whose table has @kernel: @target or a fallback; NULL for a vendor's region. */
const KilnTarget *kiln_target_owner(const KilnTarget *target, const KilnKernel *kernel);
/** How many fallbacks of @target come before the one that has @kernel. */
int kiln_target_depth(const KilnTarget *target, const KilnKernel *kernel);
/** True where the kernel of @instr works on operand @i in @rows runs without a copy. */
bool kiln_target_takes_strided(const KilnTarget *target, const KilnInstr *instr, uint32_t i,
                               int64_t rows);
/** An algorithm that a target has for an instruction. */
typedef struct {
    const char *algorithm; /* as the attribute names it */
    const KilnKernel *kernel;
    double cost; /* estimated microseconds on one thread; negative where no model says */
} KilnChoice;
enum {
    KILN_MAX_CHOICES = 2
};
/** Stores the algorithms for @instr, a convolution, the direct one first; returns their number. 0
 * where @target lacks the instruction, or its kind has nothing to choose. */
uint32_t kiln_target_choices(const KilnTarget *target, KilnInstr *instr,
                             KilnChoice choices[KILN_MAX_CHOICES]);

/** Work of an instruction, from its types: for choosing one thread or all, and for reports. */
typedef struct {
    int64_t flops;
    int64_t bytes; /* read and written */
} KilnCost;
KilnCost kiln_instr_cost(const KilnInstr *instr);
/** False where one thread is faster than waking the others. */
bool kiln_cost_is_parallel(const KilnCost *cost);
/** The same for the cost of @instr. */
bool kiln_instr_is_parallel(const KilnInstr *instr);
const KilnRates *kiln_target_rates(const KilnTarget *target);
/** Estimated microseconds on one thread for @work without a model of its own. */
double kiln_target_work_us(const KilnTarget *target, const KilnCost *work);
/** Estimated microseconds of a run of @instr by @kernel on up to @threads threads. It tells seconds
 * from hours. */
double kiln_kernel_us(const KilnTarget *target, const KilnKernel *kernel, const KilnInstr *instr,
                      int threads);
/** Estimated microseconds on one thread of the instruction that @node lowers to. Takes the fastest
 * algorithm of @target if @any_algorithm, else the direct one. Constants count as packed weights. 0
 * for views, for nodes that known integers decide, and where a type is open. */
double kiln_node_us(const KilnTarget *target, const KilnNode *node, bool any_algorithm);
/** Work of the instruction that @node lowers to; zeros where kiln_node_us() gives 0. */
KilnCost kiln_node_cost(const KilnNode *node);

G_END_DECLS

#endif
