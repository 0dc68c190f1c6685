/* SPDX-License-Identifier: Apache-2.0 */
/* The interface of a vendor library: a table of functions. It says which operators the library
 * takes, and compiles a whole region of them to one kernel. Passes outline and compile regions,
 * lowering turns them into calls by name, and binding resolves the names. */
#ifndef KILN_IR_VENDOR_H
#define KILN_IR_VENDOR_H

#include "graph/dim.h"
#include "ir/compiled.h"
#include "ir/target.h"

/** Roles of an operator in a region. */
typedef enum {
    KILN_VENDOR_NONE,   /* the vendor lacks it */
    KILN_VENDOR_ANCHOR, /* worth a region of its own */
    KILN_VENDOR_TAIL,   /* applied to the result of an anchor */
    KILN_VENDOR_GLUE,   /* taken if it joins regions, never worth one */
} KilnVendorRole;

typedef struct KilnVendor {
    const char *name;
    const char *version; /* of the library, and the features of the machine that it may use */
    KilnVendorRole (*role)(const KilnNode *node);
    /** True for operators that want activations in one of n_layouts. A region has one layout for
     * all of them. */
    bool (*wants_layout)(const KilnNode *node);
    /** Layouts for activations of a region; if 0, layout_tag, layout_us and lies_in are NULL.
     * @layout_tag: the tag of a layout from 0 to n_layouts - 1; NULL if @rank has none. */
    uint32_t n_layouts;
    const char *(*layout_tag)(uint32_t layout, int rank);
    /** Microseconds on one thread, in @layout, of the operators of @body that depend on the
     * layout. */
    double (*layout_us)(const KilnFunction *body, uint32_t layout);
    /** True if @value, an argument or a result of @body, lies in @layout when the region computes
     * in it. If not, a reorder stands at that edge. If an `unpack` reads an argument in a layout,
     * or a `pack` gives a result in one, the vendor computes in that layout. */
    bool (*lies_in)(const KilnFunction *body, const KilnValue *value, uint32_t layout);
    /** Microseconds on one thread, which the partitioner compares with the time of own kernels: an
     * operator in a region, a reorder from the plain layout into another or back, and the overhead
     * of a call. */
    double (*node_us)(const KilnNode *node, uint32_t layout);
    double (*reorder_us)(const KilnType *type, uint32_t layout);
    double call_us;
    /** Microseconds to compile an anchor, and to generate its code in the first run. */
    double code_us;
    /** True if own kernels may compute @node, which has no role, as a step between the vendor's.
     * The vendor must be able to hold its operands and results. NULL: no node may. */
    bool (*takes_custom)(const KilnNode *node);
    /** Compiles a lowered region. All operators have a role, except `pack` and `unpack` at its
     * edges, and a `call` for each `custom_op`. kiln_custom_get() (exec/custom.h) makes kernels of
     * @target for the body of its declaration. @constant: one flag per input, true if its values
     * will be there to be packed. NULL and an error if the library lacks something. *@out_refused
     * is then the instruction that must go to own kernels. It does not change if no one instruction
     * is the cause. */
    KilnCompiled *(*compile)(const KilnIRFunction *region, const KilnTarget *target,
                             const bool *constant, int threads, const KilnInstr **out_refused,
                             GError **error);
    /** The tag of the layout into which @compiled packs the constant operand @i of the call
     * (results come first). A region that unpacks its argument from that layout takes it as given.
     * NULL if the layout has no tag. May be NULL itself. */
    const char *(*packed_tag)(const KilnCompiled *compiled, uint32_t i);
    /** One line per primitive: implementation, layouts, the choice and its reason. */
    void (*describe)(const KilnCompiled *compiled, GString *out);
} KilnVendor;

/** Compiles @body by the vendor of @target for @threads, or takes an equal region from the kernel
 * cache of the process. Regions are equal in operators, types, attributes, literals, and constant
 * arguments. Their constness says which arguments are constant. A region stays in the cache as long
 * as something refers to it. Thread-safe. A new reference. NULL and an error if the vendor refuses
 * @body: *@out_refused (may be NULL) is the node that it refuses, or NULL if it is none in
 * particular. */
KilnCompiled *kiln_kernel_cache_get(const KilnTarget *target, const KilnFunction *body, int threads,
                                    KilnNode **out_refused, GError **error);
/** The same for @body with the numbers that @lookup gives to its open dims. NULL, and
 * kiln_kernel_cache_get(): their hints. Fails as kiln_region_module_at(), too, and with
 * KILN_ERROR_UNSUPPORTED if a value of an open @body is empty. */
KilnCompiled *kiln_kernel_cache_get_at(const KilnTarget *target, const KilnFunction *body,
                                       KilnDimLookup lookup, void *data, int threads,
                                       KilnNode **out_refused, GError **error);
/** The key of a region: equal regions have one text, the same in every process. */
char *kiln_region_key(const KilnFunction *body, GError **error);
/** How often this process has compiled a region: for tests. */
uint64_t kiln_kernel_cache_compiled(void);

/** A copy of @body, which reads nothing around it, in a new module. Numbers the values, so that
 * equal regions become equal texts. */
KilnModule *kiln_region_module(const KilnFunction *body, GError **error);

/** The same with the numbers that @lookup gives to open dims; NULL: their hints. Fails with
 * KILN_ERROR_SHAPE if a dim has no number, or a negative one. */
KilnModule *kiln_region_module_at(const KilnFunction *body, KilnDimLookup lookup, void *data,
                                  GError **error);

/** Counts a reader for each literal that a region of @module reads, since compiling reads it. */
void kiln_offload_count_readers(const KilnModule *module, uint32_t *readers);

/** Gives every call of @ir its compiled region: from a pass, else from the cache, else compiled now
 * by @target's vendor. A call without a region becomes instructions; without a body it is
 * KILN_ERROR_UNSUPPORTED. Drops declarations that no call reads. */
gboolean kiln_offload_resolve(KilnIRModule *ir, const KilnTarget *target, int threads,
                              GError **error);

#endif
