/* SPDX-License-Identifier: Apache-2.0 */
/* The functions that branches and loops run, as a program has them. Several branches and loops may
 * run one function, which is bound once. */
#ifndef KILN_RUNTIME_FLOW_BODIES_H
#define KILN_RUNTIME_FLOW_BODIES_H

#include "ir/ir.h"

#include <stdbool.h>

struct KilnSpecialisation;
struct KilnTemplate;

/** A function that a branch or loop runs. */
typedef struct KilnBody {
    KilnIRFunction *function;
    struct KilnSpecialisation *made;      /* of a static program; NULL: */
    struct KilnTemplate *origin;          /* of an open one: each session makes an instance of it */
    void (*clear)(struct KilnBody *body); /* lets go of these */
    bool draws;                           /* it draws random numbers, or what it runs does */
    bool again; /* another branch or loop has it first: sessions are made when it runs, for a nest
                   of such functions may have more places than anybody can count */
} KilnBody;

/** The functions that the branches and loops of @function name, in order: KilnBody*, to be filled.
 * NULL where there are none. */
GPtrArray *kiln_bodies_new(const KilnIRFunction *function);
/** True where an instruction of @function or one of its @bodies, which may be NULL, draws random
 * numbers. */
bool kiln_bodies_draw(const KilnIRFunction *function, const GPtrArray *bodies);

#endif
