/* SPDX-License-Identifier: Apache-2.0 */
/* Properties of passes on any graph: the verifier accepts the result, `changed` is honest, and a
 * second run changes nothing. The reference gives the same results for both graphs, bit by bit for
 * class E. At the IR level, unwritten memory is poisoned, and each function runs both with a heap
 * buffer per alloc and in its planned arena. */
#ifndef KILN_TESTS_RANDOM_PROPERTY_H
#define KILN_TESTS_RANDOM_PROPERTY_H

#include "passes/pipeline/pipeline.h"
#include "tests/random/subject.h"

typedef struct OffloadSeen OffloadSeen;
typedef struct OpenSeen OpenSeen;
typedef struct QdqSeen QdqSeen;
typedef struct FlowSeen FlowSeen;

typedef struct {
    char *passes;     /* inline, or the name of a shipped pipeline */
    bool shipped;     /* `passes` names a pipeline */
    bool lossy;       /* all flags set; class L is checked for types, verifier and `changed` only */
    bool lean;        /* the passes see the target of tests/lean_target.h */
    bool idempotent;  /* a second run must change nothing */
    bool ir;          /* an IR pipeline, on the graph as it was lowered */
    const char *skip; /* a pass left out; NULL: none */
    bool vendor;      /* the passes see the vendor of tests/test_vendor.h */
    bool ways;        /* tests/random/ways.h with @seed, in place of all above */
    bool offload;     /* the same for tests/random/offload.h */
    bool qdq;         /* the same for tests/random/qdq.h */
    bool open;        /* the same for tests/random/open_shapes.h */
    bool flow;        /* the same for tests/random/flow.h */
    uint64_t seed;
    OffloadSeen *seen;   /* counts graphs of `offload`; may be NULL */
    QdqSeen *qdq_seen;   /* counts graphs of `qdq`; may be NULL */
    OpenSeen *open_seen; /* counts graphs of `open`; may be NULL */
    FlowSeen *flow_seen; /* counts graphs of `flow`; may be NULL */
    KilnPassPipeline *pipeline;
} Property;

/** A graph computes the same bits however its constants are given. */
Property *property_new_ways(uint64_t seed);
/** Programs that use a vendor library are right. */
Property *property_new_offload(uint64_t seed);
/** `default` and `none` give the same results for quantized models. */
Property *property_new_qdq(uint64_t seed);
/** One open program computes what programs for numbers do. */
Property *property_new_open(uint64_t seed);
/** Branches, loops and scans run as the reference says. */
Property *property_new_flow(uint64_t seed);
/** The same of any other graph. */
Property *property_new_programs(uint64_t seed);
/** Parses and copies @passes. The numerics class is that of these passes. Fails if they do not
 * parse. */
Property *property_new(const char *passes, GError **error);
void property_free(Property *property);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Property, property_free)

/** FALSE and @error if the property does not hold of @subject. *@fired tells whether the passes
 * changed anything. */
gboolean property_holds(const Property *property, Subject *subject, bool *fired, GError **error);

#endif
