/* SPDX-License-Identifier: Apache-2.0 */
/* Open functions: the binding at which their numbers hold, and how they move to another one. */
#ifndef KILN_IR_OPEN_H
#define KILN_IR_OPEN_H

#include "graph/binding.h"
#include "ir/compiled.h"
#include "ir/ir.h"
#include "ir/target.h"

/** What must be equal for every run: the elements of both sides of a reshape, or a number and its
 * bound. Nothing else in the function would notice. */
typedef struct {
    const KilnDim *a, *b;
    const char *what; /* the name of the value, for messages */
} KilnOpenRule;

typedef struct KilnOpen {
    KilnDimBinding *binding;
    GArray *rules;      /* KilnOpenRule */
    GPtrArray *settled; /* KilnInstr* that need not run each time (ir/plan/settle.h), in order */
    GPtrArray *kept;    /* KilnBuffer* that keep the results of these */
    GPtrArray *regions; /* KilnDeclaration*: of calls that run a region of their own; NULL: none */
} KilnOpen;

/** The binding at which @function stands; NULL where it is static. */
static inline const KilnDimBinding *
kiln_open_binding(const KilnIRFunction *function)
{
    return function->open ? function->open->binding : NULL;
}
/** Says that @function stands at @binding. */
void kiln_open_begin(KilnIRFunction *function, const KilnDimBinding *binding);
void kiln_open_free(KilnOpen *open);
/** Notes that @a and @b must be equal, unless they are for all bindings. */
void kiln_open_require_equal(KilnIRFunction *function, KilnSize a, KilnSize b, const char *what);

/** A copy of @function, with its binding, in the same module. */
KilnIRFunction *kiln_ir_function_copy(const KilnIRFunction *function);

/** All numbers of a function that depend on its binding. */
typedef struct KilnOpenFields KilnOpenFields;

enum {
    KILN_OPEN_MASK = 64 /* expressions that a mask tells apart; the last bit stands for the rest */
};

/** Lists the open numbers of @function, which it borrows. @function must not change but by
 * kiln_open_move(). */
KilnOpenFields *kiln_open_fields_new(KilnIRFunction *function);
void kiln_open_fields_free(KilnOpenFields *fields);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(KilnOpenFields, kiln_open_fields_free)
/** Moves the function to @binding: evaluates each expression once, checks the rules, and writes the
 * numbers that changed. Checks that all sizes fit and that views lie inside their bases.
 * *@out_changed gets the mask of expressions whose number is another one. KILN_ERROR_SHAPE names
 * the expression, both sides, or the buffer: the function must be moved again before it is used
 * then. Allocates nothing but the error. */
gboolean kiln_open_move(KilnOpenFields *fields, const KilnDimBinding *binding,
                        uint64_t *out_changed, GError **error);
/** The same for what stage @stage of a run knows (ir/define.h). All else stays as it is. */
gboolean kiln_open_move_stage(KilnOpenFields *fields, const KilnDimBinding *binding, uint32_t stage,
                              uint64_t *out_changed, GError **error);
/** What instructions of the function define; NULL where none does. */
const struct KilnDefines *kiln_open_defines(const KilnOpenFields *fields);
/** Takes the expressions out of the function, which is one of numbers then. The masks of its
 * instructions must be read before. */
void kiln_open_strip(KilnOpenFields *fields);
/** Calls @visit for each list of integers of @instr that has expressions. */
void kiln_open_visit_lists(const KilnInstr *instr, void (*visit)(void *data, const KilnInts *list),
                           void *data);
/** The mask of expressions that operands, places and attributes of @instr depend on. */
uint64_t kiln_open_mask(const KilnOpenFields *fields, const KilnInstr *instr);

/** True if @instr is a call whose region is compiled for the numbers of its function: one with open
 * dims, or one from a file, which nobody has compiled yet. */
bool kiln_open_calls_region(const KilnInstr *instr);
/** Makes @call run @compiled, and no other call of its function. The function, which is open or a
 * copy of such, takes a reference. */
void kiln_open_set_region(KilnInstr *call, KilnCompiled *compiled);
/** Gives the calls of @copy the regions that the vendor of @target compiles for @binding, at which
 * @copy stands. A call of a region that the vendor refuses there gets none. */
void kiln_open_compile_regions(KilnIRFunction *copy, const KilnDimBinding *binding,
                               const KilnTarget *target, int threads);

/** Checks that @function is what lowering makes for other numbers. @other was lowered from the same
 * module at its own binding: each instruction, type and attribute of @function, moved there, must
 * be the same as in @other. KILN_ERROR_UNSUPPORTED names what is not. */
gboolean kiln_open_compare(const KilnIRFunction *function, const KilnIRFunction *other,
                           GError **error);
/** A copy of @function that stands at @binding, without expressions and places. KILN_ERROR_SHAPE as
 * kiln_open_move(). */
KilnIRFunction *kiln_open_copy_at(const KilnIRFunction *function, const KilnDimBinding *binding,
                                  GError **error);
/** The same for what stage @stage of a run knows (ir/define.h). */
KilnIRFunction *kiln_open_copy_stage(const KilnIRFunction *function, const KilnDimBinding *binding,
                                     uint32_t stage, GError **error);
/** kiln_open_copy_at() where no instruction defines a name. Else a copy that has its expressions
 * and stands at @binding, with numbers of defined names within their bounds: an interpreter finds
 * the right ones. */
KilnIRFunction *kiln_open_copy_defined(const KilnIRFunction *function,
                                       const KilnDimBinding *binding, GError **error);
/** Verifies such a copy. */
gboolean kiln_open_verify_at(const KilnIRFunction *function, const KilnDimBinding *binding,
                             GError **error);

#endif
