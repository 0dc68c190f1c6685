/* SPDX-License-Identifier: Apache-2.0 */
/* Values that a session carries from an output of a run to an input of the next one. */
#ifndef KILN_RUNTIME_OPEN_CARRY_H
#define KILN_RUNTIME_OPEN_CARRY_H

#include "graph/kiln-types.h"
#include "runtime/specialise.h"

/** Where a carried value lies. */
typedef enum {
    KILN_CARRIED_NOWHERE, /* no run has made one: the caller binds the input */
    KILN_CARRIED_OUTPUT,  /* in the memory of the output */
    KILN_CARRIED_DENSE,   /* in memory of its own, without gaps */
    KILN_CARRIED_STATE,   /* in a state that the program appends to */
} KilnCarriedPlace;

typedef struct {
    unsigned output, input;
    KilnDType dtype;
    int axis;      /* along which runs append; -1: they do not */
    bool is_bound; /* the caller bound the input since a run made the value */
    KilnCarriedPlace place;
    KilnBinding value;     /* its dims */
    const void *output_at; /* in the memory of the output: where that is */
    void *dense;
    size_t dense_bytes;
    char *state;
    size_t state_bytes;
    int64_t room; /* elements along the axis that the state has */
} KilnCarry;

typedef struct KilnCarries {
    unsigned n;
    KilnCarry *v;
} KilnCarries;

void kiln_carries_clear(KilnCarries *carries);
/** Makes the state big enough for a value of @dims, @extent elements along the axis. Keeps the
 * value that it has. @most is an upper bound of the extent, which it makes room for at once; 0:
 * none. */
gboolean kiln_carry_reserve(KilnCarry *carry, const int64_t *dims, int64_t extent, int64_t most,
                            GError **error);
/** Copies a value of @carry's dims from @dense into the state. */
void kiln_carry_scatter(KilnCarry *carry, const void *dense);
/** Copies the value from the state to @dense. */
void kiln_carry_gather(const KilnCarry *carry, void *dense);
/** Bytes of the value without gaps. */
size_t kiln_carry_bytes(const KilnCarry *carry);
/** Gives the dense memory room for the value. */
gboolean kiln_carry_make_dense(KilnCarry *carry, size_t bytes, GError **error);
/** Cuts the value to @extent elements along the axis. It lies in the state or in dense memory. */
void kiln_carry_cut(KilnCarry *carry, int64_t extent);

#endif
