/* SPDX-License-Identifier: Apache-2.0 */
/* The frame of a branch or loop, for frame.c, which makes it, and run.c, which runs it.
 */
#ifndef KILN_RUNTIME_FLOW_FRAME_H
#define KILN_RUNTIME_FLOW_FRAME_H

#include "graph/type.h"
#include "ir/flow.h"
#include "ir/ir.h"
#include "ir/kernel.h"
#include "runtime/flow/bodies.h"
#include "runtime/session.h"

/** A name that gets the extent of what is carried. */
typedef struct {
    uint32_t carried;
    int dim;
} KilnOwnName;

/** A function of the call, in a session of its own. */
typedef struct {
    const KilnBody *body;
    KilnSession *outer;
    KilnSession *session; /* NULL: not made yet, see KilnBody */
    uint32_t *edges;      /* slots of inputs and outputs, whose addresses change */
    uint32_t n_edges;
    uint32_t *at;     /* per name: its place in the binding of the instance */
    int64_t *numbers; /* per name */
    uint32_t n_names; /* 0: no instance */
    KilnOwnName *own; /* of the last names; those before are numbers of the instruction */
    uint32_t n_own;
    bool ready; /* the calls have the memory and the addresses for the numbers of the instance */
} KilnInner;

/** Memory of a frame. */
typedef struct {
    void *data;
    size_t bytes;
    bool borrowed; /* of the outer session */
} KilnRoom;

/** A value that a loop carries. */
typedef struct {
    const void *data;
    int64_t dims[KILN_MAX_RANK];
    size_t bytes;
    KilnRoom rooms[2];
    int room;      /* where it lies; -1: in the operand */
    bool in_place; /* an iteration may write where it lies: room 0 is enough (in_place.c) */
} KilnCarriedValue;

typedef struct {
    KilnFlowRunner runner; /* first: the kernel has its address */
    const KilnInstr *instr;
    KilnFlowOperands at;
    KilnInner inner[2]; /* of a loop: the first one */
    KilnCarriedValue *carried;
    KilnRoom *stacks;                  /* per stacked result: where it grows, if it is held */
    size_t *stacked_bytes;             /* per stacked result: of one element */
    int64_t (*stacked)[KILN_MAX_RANK]; /* per stacked result: dims of an element */
    KilnHeld *held;                    /* per held result, for who takes it */
    KilnItem **items;                  /* room for those that an iteration carries on */
    bool draws;
    GError *error;
} KilnFlowFrame;

/** A KilnFlowRunner. */
const char *kiln_flow_run_branch(KilnFlowRunner *runner, const KilnKernelArgs *args);
const char *kiln_flow_run_loop(KilnFlowRunner *runner, const KilnKernelArgs *args);

/** Makes the session of @inner, which has none. */
gboolean kiln_inner_make(KilnInner *inner, const KilnFlowFrame *frame, GError **error);
/** Marks the carried values of the loop of @frame that its @body changes in place. */
void kiln_flow_find_in_place(KilnFlowFrame *frame, const KilnIRFunction *body);
/** Lists the slots of @inner again: its instance moved. */
void kiln_inner_find_edges(KilnInner *inner);

#endif
