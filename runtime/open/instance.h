/* SPDX-License-Identifier: Apache-2.0 */
/* Instances of open programs: a copy of the function that one session moves from shape to shape.
 * Kernels are chosen and prepared, and buffers are placed, for what changed. */
#ifndef KILN_RUNTIME_OPEN_INSTANCE_H
#define KILN_RUNTIME_OPEN_INSTANCE_H

#include "runtime/bind.h"
#include "runtime/open/template.h"
#include "runtime/specialise.h"

/** What a specialisation has that is an instance. */
typedef struct KilnInstance KilnInstance;

/** A specialisation for @bindings, one per input of the program. @options are copied. NULL with an
 * error where the shapes do not fit; KILN_ERROR_SHAPE where another program may take them. */
KilnSpecialisation *kiln_instance_new(KilnTemplate *origin, const KilnBindOptions *options,
                                      const KilnBinding *bindings, GError **error);
/** The state that carried value @k lies in; UINT32_MAX where it lies in none. */
uint32_t kiln_instance_state(const KilnSpecialisation *made, unsigned k);
/** True if @made is an instance whose names @bindings give numbers to. */
bool kiln_instance_takes(KilnSpecialisation *made, const KilnBinding *bindings);
/** Moves @made to @bindings, which it takes. On failure it has no shapes, and must be moved again
 * before it runs. */
gboolean kiln_instance_move(KilnSpecialisation *made, const KilnBinding *bindings, GError **error);
/** An instance of a function that a branch or loop runs. It stands nowhere yet. */
KilnSpecialisation *kiln_instance_new_body(KilnTemplate *origin, const KilnBindOptions *options);
/** Moves such an instance: name @at[i] of its binding gets number @numbers[i]. *@out_changed is
 * false where it stands there already. */
gboolean kiln_instance_move_names(KilnSpecialisation *made, const uint32_t *at,
                                  const int64_t *numbers, uint32_t n, bool *out_changed,
                                  GError **error);
/** The options that @made was made with. */
const KilnBindOptions *kiln_instance_options(const KilnSpecialisation *made);
/** What the data of @made decides in a run; NULL where it decides no dim. */
const struct KilnDefinitions *kiln_instance_definitions(const KilnSpecialisation *made);
/** Bytes that output @i needs at most, as far as that is known before its dims are decided. */
int64_t kiln_instance_output_room(const KilnSpecialisation *made, unsigned i);
/** True where data decides the shape of output @i. */
bool kiln_instance_decides_output(const KilnSpecialisation *made, unsigned i);
/** Definition @k has the @numbers: calls that wait for them are made ready. *@out_changed is false
 * where nothing is to be done, as after the same numbers. After a failure @made is of no use. */
gboolean kiln_instance_define(KilnSpecialisation *made, uint32_t k, const int64_t *numbers,
                              bool *out_changed, GError **error);
/** Per call of @made: true if it computes from weights and dims alone, so that its results of an
 * earlier run are those of the next one. NULL where no call does, and for others than instances. */
const bool *kiln_instance_settled(const KilnSpecialisation *made);
/** True if the constants of the first run are those of before the last move. */
bool kiln_instance_same_constants(const KilnSpecialisation *made);
/** True if such results are valid after the last move, where they were valid before it and the
 * arena stayed the same. */
bool kiln_instance_keeps(const KilnSpecialisation *made);

#endif
