/* SPDX-License-Identifier: Apache-2.0 */
/* The functions that branches and loops run, as a program has them. */
#ifndef KILN_RUNTIME_FLOW_BODIES_H
#define KILN_RUNTIME_FLOW_BODIES_H

#include "ir/ir.h"

struct KilnSpecialisation;
struct KilnTemplate;

/** A function that a branch or loop runs. */
typedef struct KilnBody {
    KilnIRFunction *function;
    struct KilnSpecialisation *made;      /* of a static program; NULL: */
    struct KilnTemplate *origin;          /* of an open one: each session makes an instance of it */
    void (*clear)(struct KilnBody *body); /* lets go of these */
} KilnBody;

/** The functions that the branches and loops of @function name, in order: KilnBody*, to be filled.
 * NULL where there are none. */
GPtrArray *kiln_bodies_new(const KilnIRFunction *function);

#endif
