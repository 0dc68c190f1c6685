/* SPDX-License-Identifier: Apache-2.0 */
/* Columns of the state of one head through all steps; one loop per instruction set. Private to the
 * folder. */
#ifndef KILN_BACKENDS_CPU_RECURRENT_LINEAR_ATTENTION_H
#define KILN_BACKENDS_CPU_RECURRENT_LINEAR_ATTENTION_H

#include <stdbool.h>
#include <stdint.h>

enum {
    KILN_CPU_RECALL_COLUMNS = 64, /* of a state; a row of a task's part is that long */
};

/** Pointers are to what belongs to the head in its first step; the next step is `_step` floats on.
 */
typedef struct {
    int64_t steps, queries; /* heads of queries that read the state */
    int64_t depth, columns; /* of a key; of the values, at most KILN_CPU_RECALL_COLUMNS */
    const float *q, *k, *v, *decay, *rate; /* decay and rate may be NULL */
    int64_t q_step, k_step, v_step, decay_step, rate_step, out_step;
    bool decay_each; /* one for each element of a key, not for all */
    float scale;
    float *out;
    int64_t out_head; /* floats between heads of queries */
    float *state;     /* depth rows; columns behind `columns` are computed, too */
    float *kept;      /* depth floats of scratch */
} KilnCpuRecall;

extern void kiln_cpu_recall_portable(const KilnCpuRecall *r);
extern void kiln_cpu_recall_avx2(const KilnCpuRecall *r);
extern void kiln_cpu_recall_avx512(const KilnCpuRecall *r);

#endif
