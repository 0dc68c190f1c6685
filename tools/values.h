/* SPDX-License-Identifier: Apache-2.0 */
/* All values of a model as a pipeline leaves it: of the optimized graph, node by node, and of the
 * outputs as the whole road gives them. A folder holds them as a file each. */
#ifndef KILN_TOOLS_VALUES_H
#define KILN_TOOLS_VALUES_H

#include "passes/context/report.h"
#include "runtime/model.h"
#include "runtime/pipeline.h"
#include "runtime/program.h"
#include "tools/command.h"

typedef struct {
    const char *name, *op; /* "output NAME" and "output" for what the program returned */
    const char *type;      /* with quantization, which the tensor lacks; NULL: read from a file */
    KilnTensor *tensor;    /* borrowed */
} KilnNamedValue;
typedef gboolean (*KilnNamedValueFn)(const KilnNamedValue *value, void *data, GError **error);

/** The graph of @model, which must be at the graph level, optimized for @inputs (KilnTensor*, one
 * per input). @report may be NULL. */
KilnModule *kiln_values_optimize(KilnOptions *options, const KilnModel *model,
                                 const KilnPipeline *pipeline, const GPtrArray *inputs,
                                 KilnPassReport *report, GError **error);
/** Evaluates that graph on the options' backend, each node alone: @see gets every value but
 * constants, in order. */
gboolean kiln_values_of_graph(const KilnOptions *options, const KilnModel *model,
                              const KilnModule *module, const GPtrArray *inputs,
                              KilnNamedValueFn see, void *data, GError **error);
/** Outputs of @program called as their values are, after an "output ". */
gboolean kiln_values_of_outputs(const KilnProgram *program, const GPtrArray *outputs,
                                KilnNamedValueFn see, void *data, GError **error);

/** A folder that values are written to: NNNN-NAME.npy, counted from 0; .pb where NumPy lacks the
 * type. What file systems may mind in a name is written %XX. */
typedef struct {
    const char *dir;
    unsigned n;
} KilnValueDump;
/** Makes the folder; KILN_ERROR_IO where it holds anything. */
gboolean kiln_value_dump_open(KilnValueDump *dump, const char *dir, GError **error);
/** A KilnNamedValueFn for a KilnValueDump. */
gboolean kiln_value_dump_write(const KilnNamedValue *value, void *dump, GError **error);
/** Reads the .npy and .pb files of a folder in order of their names; a number in front counts for
 * the order only. */
gboolean kiln_values_of_folder(const char *dir, KilnNamedValueFn see, void *data, GError **error);

#endif
