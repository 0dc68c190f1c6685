/* SPDX-License-Identifier: Apache-2.0 */
/* Summaries of tensors: type, extremes, mean, the top five of a vector. Sequences, optionals and
 * maps have one for each tensor in them: summary_items.c. */
#ifndef KILN_TOOLS_SUMMARY_H
#define KILN_TOOLS_SUMMARY_H

#include "graph/base/json_writer.h"
#include "graph/tensor.h"
#include "kiln.h"

/** Reads a label from each line of the file. The array ends with NULL. */
char **kiln_labels_load(const char *path, GError **error);
/** @info: what is known of it before the run. */
void kiln_summary_print(const KilnTensorInfo *info, const KilnTensor *tensor, char **labels);
/** Adds the summary to an array. */
void kiln_summary_write(KilnJson *json, const KilnTensorInfo *info, const KilnTensor *tensor,
                        char **labels);

/** The same for a value of type sequence, optional or map. */
void kiln_summary_print_item(const KilnTensorInfo *info, KilnItem *item);
void kiln_summary_write_item(KilnJson *json, const KilnTensorInfo *info, KilnItem *item);
/** What stands behind the type of @tensor: " min 0 max 1 mean 0.5"; empty for strings. */
void kiln_summary_append(GString *out, const KilnTensor *tensor);
/** The members of a summary in the object that is open, but for its name. */
void kiln_summary_write_members(KilnJson *json, const KilnTensor *tensor, char **labels);

#endif
