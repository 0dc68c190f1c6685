/* SPDX-License-Identifier: Apache-2.0 */
/* Shapes as users write them: numbers, names and ranges of dims. */
#ifndef KILN_RUNTIME_SHAPES_TEXTS_H
#define KILN_RUNTIME_SHAPES_TEXTS_H

#include "runtime/kiln-shapes.h"
#include "runtime/model.h"
#include "runtime/program.h"

/** Both lists end with NULL, and may be NULL. */
typedef struct {
    char *const *shapes; /* of --shape: NAME=1x3x224x224, where NAME is an input or an open dim */
    char *const *hints;  /* of --shape-hint: DIM=64 */
} KilnShapeTexts;

/** @model with the names, ranges and hints that the texts give to open dims. */
KilnModel *kiln_model_with_texts(KilnModel *model, const KilnShapeTexts *given, GError **error);
/** The shapes that they give to inputs of such a model, with -1 for dims that stay open. Free them
 * with kiln_shapes_free(). */
KilnShape *kiln_shapes_of_texts(const KilnShapeTexts *given, const KilnModel *model,
                                unsigned *out_n, GError **error);
/** Fixes the dims of the inputs of a loaded program for which the texts have numbers.
 * KILN_ERROR_USAGE where all its shapes are fixed already. */
gboolean kiln_program_pin_texts(KilnProgram *program, const KilnShapeTexts *given, GError **error);
void kiln_shapes_free(KilnShape *shapes, unsigned n);

#endif
