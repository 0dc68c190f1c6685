/* SPDX-License-Identifier: Apache-2.0 */
/* Open programs: optimized once, with expressions in the place of dims. A session makes an instance
 * of it for its shapes (runtime/open/instance.h). */
#ifndef KILN_RUNTIME_OPEN_TEMPLATE_H
#define KILN_RUNTIME_OPEN_TEMPLATE_H

#include "graph/binding.h"
#include "graph/dim.h"
#include "ir/carry.h"
#include "ir/ir.h"
#include "ir/kernel.h"
#include "ir/plan/plan_open.h"
#include "ir/target.h"
#include "runtime/bind.h"
#include "runtime/fold_calls.h"
#include "runtime/open/carry.h"
#include "runtime/open/regions.h"
#include "runtime/specialise.h"

#include <pthread.h>
#include <stdatomic.h>

enum {
    KILN_MAX_FORMS = 2 /* packed forms of the weights of one call that are kept; more are packed
                          again when they are wanted, for another form gives other bits */
};

/** The weights of a call as a kernel wants them. */
typedef struct KilnPackedForm {
    const KilnKernel *kernel; /* NULL: of a region */
    uint32_t form;            /* of the kernel; of a region: kiln_regions_form() */
    GBytes *packed;           /* NULL: there is none */
    bool fitted;
} KilnPackedForm;

/** Immutable but for the weights, which instances pack when they need them first. */
typedef struct KilnTemplate {
    atomic_int references;
    struct KilnTemplate *base; /* that it was made of for carried values, and has the weights; NULL:
                                  it has them itself */
    KilnIRModule *ir;          /* that it owns; NULL: another owns the module */
    KilnIRFunction *function;  /* the entry, open */
    uint32_t *of_base;         /* per call: that of @base; UINT32_MAX: it has none */
    KilnAppend *appends;       /* per carried value; its state is NULL where it has none */
    KilnCarries pairs;         /* the outputs and inputs of these, nothing else */
    KilnDimBinding *binding;   /* its names; the numbers are those at which it stands */
    KilnDimFacts *facts;       /* per name */
    GPtrArray *bodies;         /* KilnBody*, as in KilnSpecialisation; NULL: there are none */
    KilnOpenPlan *most;        /* of all bindings, where all names have bounds; else NULL */
    const struct KilnZeros *zeros; /* names that may be 0 beside what the model says, of whose
                                      model it was made; NULL: none. Part of the key */
    bool fixed; /* made for the shapes of one binding: those of @input_types. Part of the key */
    GBytes **values;    /* the key: per input whose value shapes depend on, else NULL */
    KilnFolder *folder; /* of constants that come with the first run; NULL: there are none.
                           A template for carried values has that of its base */
    unsigned n_inputs;  /* of the program: */
    const char **input_names;
    KilnType *input_types; /* open */
    pthread_mutex_t lock;  /* guards the fields below */
    KilnPackedForm *forms; /* KILN_MAX_FORMS per call */
    uint32_t n_calls;
    KilnRegions *regions; /* of the vendor; has a lock of its own. NULL: @base has them */
    GBytes **weights;     /* per weight of the function: as an aligned view; NULL: not needed yet */
    uint32_t n_weights;
} KilnTemplate;

/** Takes @ir over, whose entry is open, and @folder, if any. @values are copied. */
KilnTemplate *kiln_template_new(KilnIRModule *ir, KilnFolder *folder, GBytes *const *values,
                                unsigned n_inputs);
/** The same for the function of a model, which must live as long, without such values. */
KilnTemplate *kiln_template_new_beside(KilnIRFunction *function, unsigned n_inputs);
/** A copy of @base whose function appends to the values of @carries where it can. */
KilnTemplate *kiln_template_new_carried(KilnTemplate *base, const KilnCarries *carries);
/** True if it was made for the outputs and inputs of @carries. */
bool kiln_template_carries(const KilnTemplate *self, const KilnCarries *carries);
/** Makes the plan for all bindings, where there is one. Call it before there are instances. */
void kiln_template_plan(KilnTemplate *self, const KilnTarget *target, int threads);
KilnTemplate *kiln_template_ref(KilnTemplate *self);
void kiln_template_unref(KilnTemplate *self);

/** Writes the numbers that @bindings give to the names into @out, which has room for all.
 * KILN_ERROR_SHAPE where a dim of an input is not what the other dims make of it, or a number
 * breaks the facts of its name: then the program is compiled for these shapes alone, or refuses
 * them. */
gboolean kiln_template_read(const KilnTemplate *self, const KilnBinding *bindings,
                            KilnDimBinding *out, GError **error);

/** The regions of the vendor, which templates for carried values share. */
KilnRegions *kiln_template_regions(const KilnTemplate *self);
/** What the weights that @call wants are kept as, without the bytes. */
KilnPackedForm kiln_template_form(const KilnBoundCall *call);
/** Adds packed weights of call @c, which stand before those that are there. */
void kiln_template_add_form(KilnTemplate *self, uint32_t c, const KilnPackedForm *form);
/** True if @call may have weights that were @fitted: with more rows than suit, such weights give
 * other bits. */
bool kiln_template_suits(const KilnBoundCall *call, bool fitted);
/** Gives @out, an instance whose kernels are chosen, the weights that it wants: those that others
 * packed before it, and what @binder packs now. */
gboolean kiln_template_weights(KilnTemplate *self, KilnBinder *binder, GError **error);

/** The instructions of @function that do work: so many calls it is bound to. */
uint32_t kiln_count_calls(const KilnIRFunction *function);

#endif
