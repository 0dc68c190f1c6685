/* SPDX-License-Identifier: Apache-2.0 */
/* Summaries of tensors: type, extremes, mean, the top five of a vector. */
#ifndef KILN_TOOLS_SUMMARY_H
#define KILN_TOOLS_SUMMARY_H

#include "graph/base/json_writer.h"
#include "graph/tensor.h"

/** Reads a label from each line of the file. The array ends with NULL. */
char **kiln_labels_load(const char *path, GError **error);
void kiln_summary_print(const char *name, const KilnTensor *tensor, char **labels);
/** Adds the summary to an array. */
void kiln_summary_write(KilnJson *json, const char *name, const KilnTensor *tensor, char **labels);

#endif
