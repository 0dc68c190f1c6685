/* SPDX-License-Identifier: Apache-2.0 */
/* What must hold of passes on any graph: the verifier is content, `changed` is honest, a second run
 * changes nothing, and the reference evaluates the result to what it evaluated the graph to, bit by
 * bit for passes of class E. At the IR level memory that is not written yet is poisoned, and each
 * function runs with a heap buffer per alloc and in its planned arena. */
#ifndef KILN_TESTS_RANDOM_PROPERTY_H
#define KILN_TESTS_RANDOM_PROPERTY_H

#include "passes/pipeline/pipeline.h"
#include "tests/random/subject.h"

typedef struct OffloadSeen OffloadSeen;
typedef struct QdqSeen QdqSeen;

typedef struct {
    char *passes;     /* inline, or the name of a shipped pipeline */
    bool shipped;     /* `passes` names a pipeline */
    bool lossy;       /* all flags set: of passes of class L types, verifier and honesty only */
    bool lean;        /* the passes see a target that lacks what `lower` can express */
    bool idempotent;  /* a second run must change nothing */
    bool ir;          /* an IR pipeline, on the graph as it was lowered */
    const char *skip; /* a pass left out; NULL: none */
    bool vendor;      /* the passes see the vendor of tests/test_vendor.h */
    bool ways;        /* none of these, but tests/random/ways.h, with this seed */
    bool offload;     /* or tests/random/offload.h */
    bool qdq;         /* or tests/random/qdq.h */
    uint64_t seed;
    OffloadSeen *seen; /* with `offload`: where graphs are counted; NULL: nowhere */
    QdqSeen *qdq_seen; /* the same with `qdq` */
    KilnPassPipeline *pipeline;
} Property;

/** That a graph computes the same bits in whatever way its constants are given. */
Property *property_new_ways(uint64_t seed);
/** That programs in which a vendor library computes are right. */
Property *property_new_offload(uint64_t seed);
/** That `default` computes what `none` does of quantized models. */
Property *property_new_qdq(uint64_t seed);
/** Parses @passes, which is copied; the class is that of the pipeline's passes. Fails for what does
 * not parse. */
Property *property_new(const char *passes, GError **error);
void property_free(Property *property);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Property, property_free)

/** FALSE and @error where the property does not hold of @subject. *@fired tells whether the passes
 * changed anything. */
gboolean property_holds(const Property *property, Subject *subject, bool *fired, GError **error);

#endif
