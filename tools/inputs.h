/* SPDX-License-Identifier: Apache-2.0 */
/* The inputs that a command line gives to a model: files, pictures, random numbers. */
#ifndef KILN_TOOLS_INPUTS_H
#define KILN_TOOLS_INPUTS_H

#include "runtime/model.h"
#include "tools/command.h"

struct KilnInputs {
    char **files;  /* NAME=FILE */
    char **ranges; /* NAME=LOW,HIGH, or LOW,HIGH of all floats */
    char *random_text, *seed_text, *image_mean, *image_std;
    KilnImageOptions image;
    bool random;
    uint64_t seed;
    bool run_seeded;
    uint64_t run_seed; /* of random operators; 0 unless run_seeded */
};
#define KILN_INPUTS_INIT                                                                           \
    {                                                                                              \
        .image = KILN_IMAGE_OPTIONS_INIT                                                           \
    }

/** The options -i, --random, --range, --seed and --image-… that fill in @inputs. */
void kiln_inputs_add(GOptionContext *context, KilnInputs *inputs);
void kiln_inputs_clear(KilnInputs *inputs);
/** Reads the texts: before anything else is done with @inputs. */
gboolean kiln_inputs_check(KilnInputs *inputs, GError **error);
/** Each -i names an input of @model, and none twice; each --range names one. */
gboolean kiln_inputs_check_names(const KilnInputs *inputs, const KilnModel *model, GError **error);
/** The file that -i gives to the input of that name; borrowed, NULL where there is none. */
const char *kiln_inputs_file(const KilnInputs *inputs, const char *name);
/** Input @i of @model, of @type, from its file or by the seed. @out_file (may be NULL): the file,
 * borrowed, or NULL. */
KilnTensor *kiln_inputs_tensor(const KilnInputs *inputs, const KilnModel *model, unsigned i,
                               const KilnType *type, const char **out_file, GError **error);

#endif
