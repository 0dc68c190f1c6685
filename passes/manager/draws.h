/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers for the names of open dims, with which a function is run to compare what it computes. A
 * fault may show for some numbers only, so there are several kinds of them. One name has one number
 * in a run, and dims that are expressions follow. */
#ifndef KILN_PASSES_MANAGER_DRAWS_H
#define KILN_PASSES_MANAGER_DRAWS_H

#include "graph/binding.h"
#include "graph/module.h"
#include "ir/ir.h"

/** What the numbers hang on. The function must outlive it. */
typedef struct {
    GPtrArray *names;     /* KilnDim*, in order of the inputs; none: the shapes are fixed */
    GPtrArray *types;     /* KilnType*: of all values */
    int64_t likely, most; /* elements of these in a run: hints are lowered until there are no
                             more than likely, and no run has more than most */
    const KilnDimBinding *stands; /* numbers that replace the hints; NULL: there are none */
} KilnOpenNames;

/** The names of the arguments of @function, or of the inputs of its module where it is the entry
 * and parts of it are folded. */
KilnOpenNames *kiln_open_names_of_graph(const KilnFunction *function);
/** The names of an open function. It stands at likely numbers, which replace the hints. */
KilnOpenNames *kiln_open_names_of_ir(const KilnIRFunction *function);
void kiln_open_names_free(KilnOpenNames *names);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(KilnOpenNames, kiln_open_names_free)

/** Runs something at @binding. FALSE with KILN_ERROR_SHAPE and others: it refuses these numbers. */
typedef gboolean (*KilnRunAtFn)(const KilnDimBinding *binding, void *data, GError **error);

/** What became of the draws. */
typedef struct {
    unsigned refused; /* choices of numbers that the function refuses, or that make it too big */
    char *last;       /* the last of them, with the reason; NULL: there is none */
} KilnDrawCount;
void kiln_draw_count_clear(KilnDrawCount *count);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(KilnDrawCount, kiln_draw_count_clear)

/** Calls @run with numbers of each kind: the hints, the least numbers from 1 on, small primes, and
 * 0 where facts allow it. Numbers that are refused are drawn anew, a few times per kind; equal ones
 * are run once. Fails if @run accepts none, or fails for a reason that is not the numbers. Without
 * names it is called once, with no numbers. */
gboolean kiln_run_at_draws(const KilnOpenNames *names, KilnRunAtFn run, void *data,
                           KilnDrawCount *count, GError **error);

/** "N=3, M=5"; "" without names. */
char *kiln_binding_to_string(const KilnDimBinding *binding);

#endif
