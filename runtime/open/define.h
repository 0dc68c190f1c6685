/* SPDX-License-Identifier: Apache-2.0 */
/* Instances whose data decides dims. The way of a count through the levels:
 *
 * - graph/module/define.c gives the dim a name, with bounds from 0 to what inference knows. Types
 *   behind it have expressions of the name.
 * - Lowering emits the instruction, whose result has room for the most elements, then `define`,
 *   then a view of the result (ir/lower/lower_define.c).
 * - The `define` instructions cut a run into stages (ir/define.h). A stage knows the names of those
 *   before it. The verifier refuses what needs a name earlier, and passes ask before they move it.
 * - An instance makes the calls of stage 0 ready when it moves. In a run the session makes the
 *   calls up to a `define`, and reads its numbers (runtime/open/session_define.c).
 * - kiln_instance_define() writes them to the fields of this stage, and makes its calls ready. It
 *   does nothing for the numbers of the run before.
 * - Buffers have places for the bounds of such names, so they do not move. Where something does not
 *   fit, only what begins later gets a new place (kiln_first_fit_place_behind()).
 * - Memory for outputs has room for the bounds, too. Memory of the caller needs room for what is
 *   found. */
#ifndef KILN_RUNTIME_OPEN_DEFINE_H
#define KILN_RUNTIME_OPEN_DEFINE_H

#include "graph/binding.h"
#include "ir/open.h"
#include "ir/plan.h"
#include "runtime/bind.h"

/** A name that a call defines. */
typedef struct {
    uint32_t name; /* its place in the binding */
    KilnSize most; /* lost: nothing bounds it */
    int64_t bound; /* the same at the numbers of the inputs, and of names that are defined earlier
                      and that nothing bounds; -1: nothing bounds it */
} KilnDefinedName;

typedef struct {
    uint32_t call; /* before which the names get their numbers */
    uint32_t n;
    KilnDefinedName *names;
    GBytes *constant; /* what is read, where passes found that out; NULL: the call's operand */
} KilnDefinition;

typedef struct KilnDefinitions {
    uint32_t n; /* stages beside stage 0 */
    KilnDefinition *items;
    uint32_t *stages; /* per call: the stage that prepares it */
    uint32_t
        *life_dims;    /* per life of the plan: whether its size hangs on these names; the place in
                          @sizes + 1, or 0 */
    GArray *sizes;     /* KilnSize: of bytes */
    int64_t *room;     /* per life: bytes at its place */
    KilnSize *outputs; /* per output: its bytes; without an expression where it hangs on none */
    uint64_t changed;  /* expressions that changed since all stages were ready for the last time */
} KilnDefinitions;

/** Those of @made, whose calls and plan exist and whose function has its expressions still. NULL
 * where data decides no dim. */
KilnDefinitions *kiln_definitions_new(const KilnSpecialisation *made, const KilnOpenFields *fields,
                                      const KilnDimBinding *binding);
void kiln_definitions_free(KilnDefinitions *self);

/** Finds the bounds of all names at the numbers of @binding. */
void kiln_definitions_bound(KilnDefinitions *self, const KilnDimBinding *binding);
/** The most bytes that @size, in which defined names occur, can be at the numbers of @binding. What
 * nothing bounds has its number there. */
int64_t kiln_definitions_most(const KilnDefinitions *self, const KilnDimBinding *binding,
                              KilnSize size);
/** Gives the names of definition @k the @numbers. *@out_changed says whether one is another than
 * before. Bounds of later names that hang on them are found anew. KILN_ERROR_RUN, and no name
 * changes, where one is out of bounds. */
gboolean kiln_definitions_set(KilnDefinitions *self, uint32_t k, KilnDimBinding *binding,
                              const int64_t *numbers, bool *out_changed, GError **error);

#endif
