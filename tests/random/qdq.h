/* SPDX-License-Identifier: Apache-2.0 */
/* That `default` means what ONNX says of quantized models: it computes what `none` computes on the
 * reference, but for ties. */
#ifndef KILN_TESTS_RANDOM_QDQ_H
#define KILN_TESTS_RANDOM_QDQ_H

#include "tests/random/subject.h"

/** What all graphs came to. */
typedef struct QdqSeen {
    uint64_t graphs, elements; /* elements of results */
    uint64_t different;        /* of these, not what the reference has */
    uint64_t touched;          /* graphs with such elements */
    uint64_t ties;             /* elements on the way that were rounded the other way */
} QdqSeen;

/** Compiles @subject's module under `default` for `cpu`, with and without the vendor library, and
 * under `none` for `ref`. Results have the same integers, and floats within class U. Where they do
 * not, the program is compiled again with all that it stores among its results. The reference is
 * evaluated on what was stored: each number that differs must be a tie then. With these ties
 * rounded the other way it must come to the first results, too, up to a few more ties, which are
 * tried one after the other. So every stored number is judged on what was really stored before it,
 * and a tie that grows on its way is one tie. @seen may be NULL. *@fired tells whether anything
 * differed. */
gboolean qdq_agrees(Subject *subject, QdqSeen *seen, bool *fired, GError **error);

#endif
