/* SPDX-License-Identifier: Apache-2.0 */
/* Compares programs of branches, loops and scans with the reference. */
#ifndef KILN_TESTS_RANDOM_FLOW_H
#define KILN_TESTS_RANDOM_FLOW_H

#include "tests/random/subject.h"

enum {
    FLOW_WAYS = 5 /* a pipeline and a target */
};

/** Counts over all graphs. */
typedef struct FlowSeen {
    uint64_t graphs;
    uint64_t flows[3];            /* `if`, `loop`, `scan` in them, nested ones too */
    uint64_t nested[3];           /* of them, by depth */
    uint64_t iterations;          /* values of bodies that the reference computed */
    uint64_t programs[FLOW_WAYS]; /* that ran */
    uint64_t refused[FLOW_WAYS];  /* that Kiln cannot compile yet */
    uint64_t regions;             /* programs that call a vendor in a branch or loop */
    uint64_t saved;               /* programs that ran out of a file */
    uint64_t runs, equal, close;  /* runs; those with equal bits, and those within the bound */
    GHashTable *reasons;          /* static char* → count of refused programs */
} FlowSeen;

/** Compiles the module of @subject with `none` and with exact passes for `ref`, and with `none`,
 * `default` and `offload` for `cpu`. A session with one thread and a session with two run three
 * times, with two sets of inputs. Programs for `ref` must have the bits of the graph that was
 * evaluated node by node. So must the graph that was written as a model of ONNX and read. Programs
 * for `cpu` must be within class U, and have the same bits for each number of threads. So must a
 * program of `offload` that is saved and loaded. @seen may be NULL. *@fired tells if a program ran.
 */
gboolean flow_agrees(uint64_t seed, Subject *subject, FlowSeen *seen, bool *fired, GError **error);
/** Prints counts. False where more programs were refused than may be. */
bool flow_summarize(const FlowSeen *seen);
void flow_seen_clear(FlowSeen *seen);

#endif
