/* SPDX-License-Identifier: Apache-2.0 */
/* Limits for models of strangers, in the C interface. Part of kiln.h, which includes it.
 *
 * A small file can ask for any amount of memory and time. Limits are checked before work is done:
 * work beyond a limit fails with KILN_ERROR_LIMIT. Limits of kiln_model_load_with() hold while it
 * loads. Those of KilnCompileOptions hold while a program is compiled and specialised. That of
 * KilnSessionOptions holds for each run. */
#ifndef KILN_RUNTIME_KILN_LIMITS_H
#define KILN_RUNTIME_KILN_LIMITS_H

#include "graph/kiln-types.h"

G_BEGIN_DECLS

/** The limits of the kiln_*_options_untrusted(): 1 GiB, 50000 nodes, 10 seconds. */
#define KILN_UNTRUSTED_BYTES (INT64_C(1) << 30)
#define KILN_UNTRUSTED_NODES INT64_C(50000)
#define KILN_UNTRUSTED_MS INT64_C(10000)

/** How a model is loaded. */
typedef struct {
    size_t size;         /* sizeof(KilnModelOptions): set by KILN_MODEL_OPTIONS_INIT */
    int64_t total_limit; /* bytes of tensors that are made while loading; 0: no limit */
    int64_t node_limit;  /* nodes and constants of all graphs of the model, branches and bodies
                            included; 0: no limit */
    int64_t time_limit;  /* milliseconds that loading may take; 0: no limit */
    gboolean onnx_only;  /* KILN_ERROR_FORMAT for a .kiln text */
    gboolean no_external_data;    /* KILN_ERROR_FORMAT where the model names other files */
    gboolean accept_newer_opsets; /* operators of an ONNX opset newer than 28 are read as those of
                                     opset 28; else they are not supported */
} KilnModelOptions;
#define KILN_MODEL_OPTIONS_INIT KILN_STRUCT_INIT(KilnModelOptions)

G_END_DECLS

#endif
