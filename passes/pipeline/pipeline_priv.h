/* SPDX-License-Identifier: Apache-2.0 */
/* Building pipelines: what the YAML reader, the inline reader and the printer share. */
#ifndef KILN_PASSES_PIPELINE_PIPELINE_PRIV_H
#define KILN_PASSES_PIPELINE_PIPELINE_PRIV_H

#include "passes/pipeline/pipeline.h"

enum {
    KILN_MAX_ITERATIONS = 64,         /* unless an entry says otherwise */
    KILN_MAX_ITERATIONS_LIMIT = 10000 /* what an entry may say */
};

/** An entry with defaults, in the pipeline's arena; in no list yet. @pass NULL: an empty group. */
KilnPipelineEntry *kiln_pipeline_entry_new(KilnPassPipeline *pipeline, const KilnPassInfo *pass);

/** A value as a file or text gives it. */
typedef struct {
    const char *const *words; /* one, or the elements of a list */
    uint32_t n_words;
    bool is_list;
    bool quoted; /* one word in quotes: a string whatever it looks like */
} KilnOptionText;

/** Sets option @name ('-' for '_') of @entry. On failure @error has the message without a place:
 * "option 'max-bytes' of pass constant-fold: expected an integer, found 'x'". */
gboolean kiln_pipeline_set_option(KilnPassPipeline *pipeline, KilnPipelineEntry *entry,
                                  const char *name, const KilnOptionText *text, GError **error);
/** True where @entry's pass has an option of that name. */
bool kiln_pipeline_has_option(const KilnPipelineEntry *entry, const char *name);

/** The bit of a flag such as "no-signed-zeros"; 0 for another word. */
uint32_t kiln_pipeline_flag(const char *word);
const char *kiln_pipeline_flag_name(uint32_t bit);
/** The words of convergence, modes and dce; false for another word. */
bool kiln_pipeline_convergence(const char *word, KilnConvergence *out);
bool kiln_pipeline_mode(const char *word, uint32_t *out_bit);
bool kiln_pipeline_dce(const char *word, bool *out_before);
bool kiln_pipeline_iterations(const char *word, uint32_t *out);

#endif
