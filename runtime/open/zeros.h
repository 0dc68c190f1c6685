/* SPDX-License-Identifier: Apache-2.0 */
/* Open programs for dims of 0. An open program assumes that each name is at least 1 unless somebody
 * stated another bound, for expressions become simpler so. Names that were seen as 0 get a second
 * open program, which assumes nothing of them. It takes all later shapes with a 0 among these
 * names. A further name that is seen as 0 makes another one, for all names so far. So a program has
 * at most one more than it has names, whatever shapes it meets. */
#ifndef KILN_RUNTIME_OPEN_ZEROS_H
#define KILN_RUNTIME_OPEN_ZEROS_H

#include "runtime/model.h"
#include "runtime/specialise.h"

#include <glib.h>

/** Names that may be 0. */
typedef struct KilnZeros {
    GPtrArray *names; /* char* */
    KilnModel *model; /* that says so */
    char *refusal;    /* why no open program can be made of it; NULL: it may be */
} KilnZeros;

/** What a list of them frees. */
void kiln_zeros_free(KilnZeros *zeros);
/** The names of dims of @inputs that are 0 in @bindings although they are said to be more: char*,
 * which are borrowed. */
GPtrArray *kiln_zeros_of(const KilnInfoList *inputs, const KilnBinding *bindings);
/** Those of @list under which all of @names may be 0, and that were not refused. Where there are
 * none they are made of @model: for the names of the last of them, too, else for @names alone. NULL
 * where both were refused, or with an error. */
KilnZeros *kiln_zeros_for(GPtrArray *list, KilnModel *model, const GPtrArray *names,
                          GError **error);

#endif
