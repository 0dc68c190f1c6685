/* SPDX-License-Identifier: Apache-2.0 */
/* What the middle of Kiln sees of a vendor library: a table of functions that says which operators
 * it takes, and makes one kernel of a whole region of them. The offload road meets here: passes
 * outline and compile regions, lowering turns them into calls by name, binding resolves the names.
 */
#ifndef KILN_IR_VENDOR_H
#define KILN_IR_VENDOR_H

#include "ir/compiled.h"
#include "ir/target.h"

/** What an operator may be in a region. */
typedef enum {
    KILN_VENDOR_NONE,   /* the vendor lacks it */
    KILN_VENDOR_ANCHOR, /* worth a region of its own */
    KILN_VENDOR_TAIL,   /* computed on the way out of an anchor */
    KILN_VENDOR_GLUE,   /* taken where it joins regions, never worth one */
} KilnVendorRole;

typedef struct KilnVendor {
    const char *name;
    const char *version; /* of the library, with what it may use of the machine */
    KilnVendorRole (*role)(const KilnNode *node);
    /** True for operators that have a layout of their own for activations: of one region it is the
     * same, one of n_layouts. */
    bool (*wants_layout)(const KilnNode *node);
    /** In how many layouts activations of a region may lie; where there are none, what follows is
     * NULL. Layout 0 to @n_layouts - 1 of a rank: its tag, NULL where that rank has none. */
    uint32_t n_layouts;
    const char *(*layout_tag)(uint32_t layout, int rank);
    /** Microseconds on one thread of what depends on the layout in a region that computes in it. */
    double (*layout_us)(const KilnFunction *body, uint32_t layout);
    /** True where @value, an argument or a result of @body, lies in @layout if the region computes
     * in it: else a reorder stands at that edge. An argument in a layout is what an `unpack` reads,
     * a result in one what a `pack` gives; the vendor computes in that layout then. */
    bool (*lies_in)(const KilnFunction *body, const KilnValue *value, uint32_t layout);
    /** What the partitioner weighs against the time of own kernels, in microseconds on one thread:
     * of an operator in a region, of bringing a value from the plain layout into another or back,
     * and of a call beside what it computes. */
    double (*node_us)(const KilnNode *node, uint32_t layout);
    double (*reorder_us)(const KilnType *type, uint32_t layout);
    double call_us;
    /** Whether @node, which has no role, may be computed by own kernels among the vendor's: as a
     * step that reads and gives what the vendor can hold. NULL: none may. */
    bool (*takes_custom)(const KilnNode *node);
    /** Compiles a lowered region, all of whose operators have a role, but for `pack` and `unpack`
     * at its edges, and for those of a `custom_op`: that is a `call`, of whose declaration's body
     * kiln_custom_get() (exec/custom.h) makes kernels of @target. @constant: one flag per input,
     * true where its values will be there to be packed. NULL and an error where the library lacks
     * something, and *@out_refused says for which instruction (else it stays as it is): that one
     * goes to own kernels, the rest may stay the vendor's. */
    KilnCompiled *(*compile)(const KilnIRFunction *region, const KilnTarget *target,
                             const bool *constant, int threads, const KilnInstr **out_refused,
                             GError **error);
    /** The layout in which @compiled wants operand @i of the call (results come first), a constant
     * that it packs now: a region whose argument is unpacked from that takes it as it is given.
     * NULL where that has no tag. May be NULL itself. */
    const char *(*packed_tag)(const KilnCompiled *compiled, uint32_t i);
    /** One line per primitive: implementation, layouts, what was chosen and why. */
    void (*describe)(const KilnCompiled *compiled, GString *out);
} KilnVendor;

/** @body compiled by the vendor of @target for @threads: from the kernel cache of the process where
 * an equal region (operators, types, attributes, literals, which arguments are constant) lies
 * there, else made and put there. A region stays in the cache as long as something refers to it.
 * Arguments are constant where their constness says so. Thread-safe. A new reference. NULL and an
 * error, which names the node of @body that the vendor refuses: *@out_refused (may be NULL) is that
 * node, NULL where it is none in particular. */
KilnCompiled *kiln_kernel_cache_get(const KilnTarget *target, const KilnFunction *body, int threads,
                                    KilnNode **out_refused, GError **error);
/** The text by which regions are equal: the same in every process. */
char *kiln_region_key(const KilnFunction *body, GError **error);
/** How often something was compiled by this process: for tests. */
uint64_t kiln_kernel_cache_compiled(void);

/** A copy of @body, which reads nothing around it, in a module of its own: values are numbered, so
 * that equal regions become equal texts. */
KilnModule *kiln_region_module(const KilnFunction *body, GError **error);

/** Counts a reader for each literal that a region of @module reads: compiling it asks for them. */
void kiln_offload_count_readers(const KilnModule *module, uint32_t *readers);

/** Gives every call of @ir its compiled region: what a pass compiled, else what the cache has or
 * @target's vendor compiles now. A call that has none goes inline, in instructions; one without
 * body is KILN_ERROR_UNSUPPORTED. Declarations that no call reads are dropped. */
gboolean kiln_offload_resolve(KilnIRModule *ir, const KilnTarget *target, int threads,
                              GError **error);

#endif
