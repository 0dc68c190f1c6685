/* SPDX-License-Identifier: Apache-2.0 */
/* Checks that `default` follows ONNX for quantized models. It must give the results of `none` on
 * the reference, except at ties. */
#ifndef KILN_TESTS_RANDOM_QDQ_H
#define KILN_TESTS_RANDOM_QDQ_H

#include "tests/random/subject.h"

/** Counts over all graphs. */
typedef struct QdqSeen {
    uint64_t graphs, elements; /* elements of results */
    uint64_t different;        /* of these, unlike the reference */
    uint64_t touched;          /* graphs with such elements */
    uint64_t ties;             /* elements on the way that were rounded the other way */
} QdqSeen;

/** Compiles the module of @subject with `default` for `cpu`, with and without the vendor library,
 * and with `none` for `ref`. Results must have equal integers, and floats within class U. If they
 * differ, the program is compiled again with all stored values as results. The reference then
 * computes each stored value from the values that the program stored before it. Each number that
 * differs must be a tie. With these ties rounded the other way, the reference must also reach the
 * first results; a few more ties are tried one by one. So a tie counts once, even if its error
 * grows on the way. @seen may be NULL. *@fired tells whether anything differed. */
gboolean qdq_agrees(Subject *subject, QdqSeen *seen, bool *fired, GError **error);

#endif
