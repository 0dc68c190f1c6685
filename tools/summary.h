/* SPDX-License-Identifier: Apache-2.0 */
/* Summaries of tensors: type, extremes, mean, the top five of a vector. */
#ifndef KILN_TOOLS_SUMMARY_H
#define KILN_TOOLS_SUMMARY_H

#include "graph/tensor.h"

#include <json-glib/json-glib.h>

/** Reads a label from each line of the file. The array ends with NULL. */
char **kiln_labels_load(const char *path, GError **error);
void kiln_summary_print(const char *name, const KilnTensor *tensor, char **labels);
JsonObject *kiln_summary_json(const char *name, const KilnTensor *tensor, char **labels);

#endif
