/* SPDX-License-Identifier: Apache-2.0 */
/* Packed weights of branches and loops in the file of a program of fixed shapes. Section FORMS
 * lists them as those of an open program: call by call, the calls numbered through the functions of
 * the text. The entry, which is the last function, has its own sections. */
#ifndef KILN_RUNTIME_BODY_FORMS_H
#define KILN_RUNTIME_BODY_FORMS_H

#include "ir/ir.h"
#include "runtime/bind.h"

/** The section FORMS of what the bodies of @made have packed, NULL where that is nothing. Adds the
 * packed bytes (GBytes*, borrowed) to @out_packed. @ir has the functions. */
GBytes *kiln_body_forms(const KilnIRModule *ir, const KilnSpecialisation *made,
                        GPtrArray *out_packed);
/** The bound function of branches and loops below @made: KilnIRFunction* → KilnSpecialisation*,
 * both borrowed. To be freed. */
GHashTable *kiln_bound_bodies(const KilnSpecialisation *made);
/** Gives the calls of @binder, whose function is no entry, weights out of @file that are packed as
 * their kernels want them. KILN_ERROR_UNSUPPORTED where a kernel packs otherwise,
 * KILN_ERROR_INVALID where it cannot read what there is. */
gboolean kiln_body_forms_take(KilnBinder *binder, const struct KilnProgramFile *file,
                              GError **error);
/** Checks the sections of @file that are said above. @entry is the last function. *@out_n is how
 * many packed weights there are. */
gboolean kiln_body_forms_check(const struct KilnProgramFile *file, const KilnIRFunction *entry,
                               uint32_t *out_n, GError **error);

#endif
