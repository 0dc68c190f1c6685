/* SPDX-License-Identifier: Apache-2.0 */
/* The inputs of a model from the command line: files, pictures, random numbers. */
#ifndef KILN_TOOLS_INPUTS_H
#define KILN_TOOLS_INPUTS_H

#include "graph/arena.h"
#include "graph/binding.h"
#include "graph/tensor.h"
#include "runtime/model.h"
#include "runtime/tensors/image.h"
#include "tools/command.h"

struct KilnInputs {
    char **files;  /* NAME=FILE */
    char **ranges; /* NAME=LOW,HIGH, or LOW,HIGH for all floats */
    char *random_text, *seed_text, *image_mean, *image_std;
    KilnImageOptions image;
    bool random;
    uint64_t seed;
    bool run_seeded;
    uint64_t run_seed; /* for random operators; 0 unless run_seeded */
};
#define KILN_INPUTS_INIT                                                                           \
    {                                                                                              \
        .image = KILN_IMAGE_OPTIONS_INIT                                                           \
    }

/** Adds the options -i, --random, --range, --seed and --image-…, which fill in @inputs. */
void kiln_inputs_add(GOptionContext *context, KilnInputs *inputs);
void kiln_inputs_clear(KilnInputs *inputs);
/** Parses the texts of the options. Call it before other functions on @inputs. */
gboolean kiln_inputs_check(KilnInputs *inputs, GError **error);
/** Checks that each -i names an input of @model, none twice, and that each --range names one. */
gboolean kiln_inputs_check_names(const KilnInputs *inputs, const KilnModel *model, GError **error);
/** Returns the file that -i gives to the input of that name, or NULL. Borrowed. */
const char *kiln_inputs_file(const KilnInputs *inputs, const char *name);
/** Returns input @i of @model from its file or from the seed. @types: of all inputs. @out_file (may
 * be NULL) receives the file, borrowed, or NULL. */
KilnTensor *kiln_inputs_tensor(const KilnInputs *inputs, const KilnModel *model, unsigned i,
                               const KilnType *types, const char **out_file, GError **error);
/** The numbers that @inputs (KilnTensor*, one per input) give to the open dims of @model. Then
 * those that @shapes (of --shape, or NULL) gave to names before. Lives in @arena and @model. */
KilnDimBinding kiln_inputs_numbers(KilnArena *arena, const KilnModel *model,
                                   const GPtrArray *inputs, char **shapes);

#endif
