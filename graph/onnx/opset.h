/* SPDX-License-Identifier: Apache-2.0 */
/* Operators of ONNX by opset: the rows of opsets.def. */
#ifndef KILN_GRAPH_ONNX_OPSET_H
#define KILN_GRAPH_ONNX_OPSET_H

#include "graph/onnx/converters.h"
#include "graph/op.h"

/** A row of opsets.def. */
typedef struct {
    const char *name;
    int since;
    KilnOp op;
    KilnOnnxConvert convert;
    const char *required; /* attributes that must be there, separated by spaces */
} KilnOnnxRow;

enum {
    KILN_ONNX_LATEST = 28,    /* the newest opset of the table */
    KILN_ONNX_LATEST_IR = 14, /* the newest version of the file format that is known */
};

/** The row for an operator of the default domain in @opset; NULL if the table has none. A newer
 * opset than KILN_ONNX_LATEST is taken as that. */
const KilnOnnxRow *kiln_onnx_row(const char *name, int64_t opset);
/** The first opset with a row for @name; 0 if there is none. */
int kiln_onnx_first_opset(const char *name);
const KilnOnnxRow *kiln_onnx_rows(size_t *n);

/** An attribute of early opsets that later ones have as an input. */
typedef struct {
    const char *op, *attribute;
    int since; /* the first opset where it is an input */
    int input; /* the number of the input; the first is 0 */
} KilnOnnxMoved;
/** NULL if @attribute of @op is no input in @opset. */
const KilnOnnxMoved *kiln_onnx_moved(const char *op, const char *attribute, int64_t opset);
/** The row for an operator of another domain than the default one; NULL if there is none. These
 * have one row, which holds in all versions: ai.onnx.ml, ai.onnx.preview,
 * ai.onnx.preview.training, com.microsoft, com.microsoft.nchwc. */
const KilnOnnxRow *kiln_onnx_domain_row(const char *domain, const char *name);
/** The row for an operator that a plug-in has registered for @opset of @domain; NULL if there is
 * none. */
const KilnOnnxRow *kiln_onnx_plugin_row(const char *domain, const char *name, int64_t opset);

#endif
