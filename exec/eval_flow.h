/* SPDX-License-Identifier: Apache-2.0 */
/* An evaluation of a graph, and the nodes of it that have regions. Private to exec/eval*.c. */
#ifndef KILN_EXEC_EVAL_FLOW_H
#define KILN_EXEC_EVAL_FLOW_H

#include "exec/eval.h"
#include "graph/attr.h"
#include "graph/graph.h"
#include "graph/tensor.h"
#include "ir/target.h"

/* Values are kept until their last reader has read them. A loop reads what is around it many times,
 * and counts as a reader when it ends. */
typedef struct {
    const KilnTarget *target;
    const KilnFunction *function;
    const KilnTensor *const *inputs; /* of the function */
    GHashTable *values;              /* KilnValue* → KilnTensor*, owned */
    GHashTable *reads;               /* KilnValue* → how many of its uses were read */
    const KilnWatch *watch;          /* NULL: nobody looks */
    KilnLoweredNodes *lowered;       /* NULL until there is a loop */
    uint32_t depth;                  /* loops whose bodies run */
    uint32_t hidden;                 /* of these, those in an iteration that is not watched */
} KilnEvaluation;

const KilnTensor *kiln_evaluation_tensor(const KilnEvaluation *evaluation, const KilnValue *value);
/** Takes @tensor over. */
void kiln_evaluation_set(KilnEvaluation *evaluation, const KilnValue *value, KilnTensor *tensor);
/** @node does not need its operands any more. */
void kiln_evaluation_release_operands(KilnEvaluation *evaluation, const KilnNode *node);
/** The same for all that @region reads from @at and from around it. */
void kiln_evaluation_release_region(KilnEvaluation *evaluation, const KilnFunction *at,
                                    const KilnFunction *region);
/** Fails if @tensor does not fit the type of @argument. */
gboolean kiln_evaluation_check(const KilnValue *argument, const KilnTensor *tensor, GError **error);
/** Evaluates the nodes of @function, which may be a region. */
gboolean kiln_evaluation_nodes(KilnEvaluation *evaluation, const KilnFunction *function,
                               GError **error);
/** Evaluates @node, which has regions, and releases what it has read. */
gboolean kiln_evaluation_flow(KilnEvaluation *evaluation, const KilnNode *node, GError **error);

#endif
