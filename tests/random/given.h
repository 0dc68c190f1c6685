/* SPDX-License-Identifier: Apache-2.0 */
/* Programs of random graphs. Some of their constants are given from outside. */
#ifndef KILN_TESTS_RANDOM_GIVEN_H
#define KILN_TESTS_RANDOM_GIVEN_H

#include "graph/graph.h"
#include "kiln.h"
#include "passes/manager/results.h"
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
    guint n_before;    /* inputs of the original module */
    uint64_t seed;
} Given;

/** Clones the module of @subject. With @constants, about half of its constants become arguments;
 * their names and @seed decide. */
void given_init(Given *given, const Subject *subject, uint64_t seed, bool constants);
void given_clear(Given *given);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Given, given_clear)

/** Prints @module and loads the text. */
KilnModel *given_load(const KilnModule *module, GError **error);
/** Adds the constants to @options and compiles. */
KilnProgram *given_compile(const Given *given, Way way, KilnModel *model,
                           const KilnCompileOptions *options, GError **error);
/** given_compile() and given_run() on @target with @pipeline, on one thread. @offload lets a vendor
 * take regions. */
KilnResults *given_run_under(const Given *given, Way way, KilnModel *model, KilnPipeline *pipeline,
                             const char *target, bool offload, GError **error);
/** Runs @program and returns its outputs by name. @options may be NULL. */
KilnResults *given_run(const Given *given, Way way, KilnProgram *program,
                       const KilnSessionOptions *options, GError **error);
/** Binds input @i of @session to the bytes of @tensor. @bound, of GBytes*, keeps them. */
gboolean given_bind(KilnSession *session, unsigned i, KilnTensor *tensor, GPtrArray *bound,
                    GError **error);
/** The outputs of the last run of @session by name. */
KilnResults *given_results(KilnSession *session, GError **error);
/** A number below @n. It depends on @name and @seed alone. */
uint32_t given_draw(const char *name, uint64_t seed, uint32_t n);
/** Sets option @name of @entry, as a pipeline file would. @entry must have this option. */
void given_set_option(KilnPassPipeline *passes, KilnPipelineEntry *entry, const char *name,
                      const char *value);

#endif
