/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of opsets.def. */
#include "graph/onnx/opset.h"

#include "graph/onnx/converters.h"

#include "graph/op/all.h"

#include <string.h>

#define ENTRY(onnx, first, id, converter, needs)                                                   \
    { .name = #onnx,                                                                               \
      .since = first,                                                                              \
      .op = KILN_OP_##id,                                                                          \
      .convert = kiln_onnx_convert_##converter,                                                    \
      .required = needs },
#define kiln_onnx_convert_0 NULL
static const KilnOnnxRow rows[] = {
#define ROW ENTRY
#include "graph/onnx/opsets.def"
};
static const KilnOnnxRow contrib_rows[] = {
#define ROW(...)
#define CONTRIB ENTRY
#include "graph/onnx/opsets.def"
};
static const KilnOnnxRow nchwc_rows[] = {
#define ROW(...)
#define NCHWC ENTRY
#include "graph/onnx/opsets.def"
};
static const KilnOnnxRow ml_rows[] = {
#define ROW(...)
#define ML ENTRY
#include "graph/onnx/opsets.def"
};
static const KilnOnnxRow preview_rows[] = {
#define ROW(...)
#define PREVIEW ENTRY
#include "graph/onnx/opsets.def"
};
static const KilnOnnxRow training_rows[] = {
#define ROW(...)
#define TRAINING ENTRY
#include "graph/onnx/opsets.def"
};
#undef kiln_onnx_convert_0
static const KilnOnnxMoved moved[] = {
#define ROW(...)
#define MOVED(onnx, attribute, first, operand) { #onnx, #attribute, first, operand },
#include "graph/onnx/opsets.def"
};

const KilnOnnxRow *
kiln_onnx_rows(size_t *n)
{
    *n = G_N_ELEMENTS(rows);
    return rows;
}

const KilnOnnxRow *
kiln_onnx_row(const char *name, int64_t opset)
{
    /* The first row that comes after (name, opset); the one before it is the answer, if any. */
    size_t low = 0, high = G_N_ELEMENTS(rows);
    while (low < high) {
        size_t middle = (low + high) / 2;
        int order = strcmp(rows[middle].name, name);
        if (order > 0 || (order == 0 && rows[middle].since > opset))
            high = middle;
        else
            low = middle + 1;
    }
    return low > 0 && strcmp(rows[low - 1].name, name) == 0 ? &rows[low - 1] : NULL;
}

int
kiln_onnx_first_opset(const char *name)
{
    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        if (strcmp(rows[i].name, name) == 0)
            return rows[i].since;
    }
    return 0;
}

static const KilnOnnxRow *
find_by_name(const KilnOnnxRow *list, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++) {
        if (strcmp(list[i].name, name) == 0)
            return &list[i];
    }
    return NULL;
}

const KilnOnnxRow *
kiln_onnx_domain_row(const char *domain, const char *name)
{
    if (g_strcmp0(domain, "com.microsoft") == 0)
        return find_by_name(contrib_rows, G_N_ELEMENTS(contrib_rows), name);
    if (g_strcmp0(domain, "com.microsoft.nchwc") == 0)
        return find_by_name(nchwc_rows, G_N_ELEMENTS(nchwc_rows), name);
    if (g_strcmp0(domain, "ai.onnx.ml") == 0)
        return find_by_name(ml_rows, G_N_ELEMENTS(ml_rows), name);
    if (g_strcmp0(domain, "ai.onnx.preview") == 0)
        return find_by_name(preview_rows, G_N_ELEMENTS(preview_rows), name);
    if (g_strcmp0(domain, "ai.onnx.preview.training") == 0)
        return find_by_name(training_rows, G_N_ELEMENTS(training_rows), name);
    return NULL;
}

const KilnOnnxMoved *
kiln_onnx_moved(const char *op, const char *attribute, int64_t opset)
{
    for (size_t i = 0; i < G_N_ELEMENTS(moved); i++) {
        if (strcmp(moved[i].op, op) == 0 && strcmp(moved[i].attribute, attribute) == 0 &&
            moved[i].since <= opset)
            return &moved[i];
    }
    return NULL;
}
