/* SPDX-License-Identifier: Apache-2.0 */
/* All values of an optimized model: of its graph, node by node, and of the outputs of its program.
 * A folder holds a file for each value. */
#ifndef KILN_TOOLS_VALUES_H
#define KILN_TOOLS_VALUES_H

#include "exec/eval.h"
#include "graph/graph.h"
#include "passes/context/report.h"
#include "runtime/model.h"
#include "runtime/pipeline.h"
#include "runtime/program.h"
#include "tools/command.h"

/** A tensor. Of a sequence, optional or map NAME there are its parts: NAME.length and NAME[0], …,
 * or NAME.keys and NAME.values. */
typedef struct {
    const char *name, *op; /* "output NAME" and "output" for outputs of the program */
    const char *of;        /* the value that this is a part of: @name, where it is a tensor */
    const char *type;      /* with quantization, which tensors lack; NULL: read from a file */
    KilnTensor *tensor;    /* borrowed */
} KilnNamedValue;
typedef gboolean (*KilnNamedValueFn)(const KilnNamedValue *value, void *data, GError **error);
typedef struct {
    KilnNamedValueFn see;
    void *data;
    KilnIterations *only; /* of the loops of the graph; NULL: every iteration */
} KilnValueWatcher;

/** Optimizes the graph of @model for @inputs (KilnTensor*, one per input), as a program does: dims
 * that --shape leaves open stay so where there is code for them. @model must be at the graph level.
 * @report may be NULL. */
KilnModule *kiln_values_optimize(KilnOptions *options, const KilnModel *model,
                                 const KilnPipeline *pipeline, const GPtrArray *inputs,
                                 KilnPassReport *report, GError **error);
/** Evaluates that graph node by node on the backend of @options. @watcher gets every value but
 * constants, in order. */
gboolean kiln_values_of_graph(const KilnOptions *options, const KilnModel *model,
                              const KilnModule *module, const GPtrArray *inputs,
                              const KilnValueWatcher *watcher, GError **error);
/** Passes the outputs of @program to @see, with the name "output NAME". */
gboolean kiln_values_of_outputs(const KilnProgram *program, const GPtrArray *outputs,
                                KilnNamedValueFn see, void *data, GError **error);

/** A folder of values: NNNN-NAME.npy, counted from 0; .pb if NumPy lacks the type. %XX replaces
 * characters that file systems may reject. */
typedef struct {
    const char *dir;
    unsigned n;
} KilnValueDump;
/** Makes the folder; KILN_ERROR_IO if it is not empty. */
gboolean kiln_value_dump_open(KilnValueDump *dump, const char *dir, GError **error);
/** A KilnNamedValueFn for a KilnValueDump. */
gboolean kiln_value_dump_write(const KilnNamedValue *value, void *dump, GError **error);
/** Reads the .npy and .pb files of a folder in order of their names. A number in front is no part
 * of the name of the value. */
gboolean kiln_values_of_folder(const char *dir, KilnNamedValueFn see, void *data, GError **error);

#endif
