/* SPDX-License-Identifier: Apache-2.0 */
/* Programs of random graphs, some of whose constants are given from outside. */
#ifndef KILN_TESTS_RANDOM_GIVEN_H
#define KILN_TESTS_RANDOM_GIVEN_H

#include "kiln.h"
#include "passes/pipeline/pipeline.h"
#include "tests/random/subject.h"

/** How a constant is given to a program; the first two are values of KilnConstantWhen. */
typedef enum {
    WAY_COMPILE = KILN_CONSTANT_COMPILE,
    WAY_RUN = KILN_CONSTANT_RUN,
    WAY_INPUT,
    WAY_MIXED, /* each in one of these ways */
    N_WAYS,
} Way;

typedef struct {
    KilnModule *module;
    GPtrArray *inputs; /* KilnTensor*, per argument of the module; borrowed */
    guint n_before;    /* of them the module has anyway */
    uint64_t seed;
} Given;

/** A clone of @subject's module; where @constants, about half of its constants become arguments:
 * which ones hangs on their names and @seed. */
void given_init(Given *given, const Subject *subject, uint64_t seed, bool constants);
void given_clear(Given *given);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Given, given_clear)

/** By way of its text. */
KilnModel *given_load(const KilnModule *module, GError **error);
/** @options has all but the constants. */
KilnProgram *given_compile(const Given *given, Way way, KilnModel *model,
                           const KilnCompileOptions *options, GError **error);
/** given_compile() and given_run() on @target under @pipeline, on one thread, with a vendor's
 * regions where @offload. */
KilnResults *given_run_under(const Given *given, Way way, KilnModel *model, KilnPipeline *pipeline,
                             const char *target, bool offload, GError **error);
/** Outputs by name. @options: of the session; may be NULL. */
KilnResults *given_run(const Given *given, Way way, KilnProgram *program,
                       const KilnSessionOptions *options, GError **error);
/** A number below @n that hangs on @name and @seed alone. */
uint32_t given_draw(const char *name, uint64_t seed, uint32_t n);
/** Sets option @name of @entry, which has it, as a pipeline file would. */
void given_set_option(KilnPassPipeline *passes, KilnPipelineEntry *entry, const char *name,
                      const char *value);

#endif
