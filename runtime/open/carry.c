/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/open/carry.h"

#include "graph/base/alloc.h"

#include <string.h>

enum {
    ROOM_LEAST = 64 /* elements along the axis */
};

void
kiln_carries_clear(KilnCarries *carries)
{
    for (unsigned k = 0; k < carries->n; k++) {
        kiln_free(carries->v[k].dense);
        kiln_free(carries->v[k].state);
    }
    g_clear_pointer(&carries->v, g_free);
    carries->n = 0;
}

/* Rows before the axis, and bytes of one element of it. */
static void
measure(const KilnCarry *carry, const int64_t *dims, int64_t *rows, int64_t *inner)
{
    *rows = 1;
    *inner = (int64_t)kiln_dtype_size(carry->dtype);
    for (int d = 0; d < carry->value.rank; d++) {
        if (d < carry->axis)
            *rows *= dims[d];
        else if (d > carry->axis)
            *inner *= dims[d];
    }
}

size_t
kiln_carry_bytes(const KilnCarry *carry)
{
    size_t bytes = kiln_dtype_size(carry->dtype);
    for (int d = 0; d < carry->value.rank; d++)
        bytes *= (size_t)carry->value.dims[d];
    return bytes;
}

gboolean
kiln_carry_make_dense(KilnCarry *carry, size_t bytes, GError **error)
{
    if (carry->dense && carry->dense_bytes >= bytes)
        return TRUE;
    kiln_free(carry->dense);
    carry->dense = kiln_alloc_for("a carried value", 1, bytes, error);
    carry->dense_bytes = carry->dense ? bytes : 0;
    return carry->dense != NULL;
}

/* --- the state --- */

/* Rows of the value between @state, @pitch bytes apart, and @dense. */
static void
copy_rows(const KilnCarry *carry, char *state, int64_t pitch, char *dense, bool gather)
{
    int64_t rows, inner;
    measure(carry, carry->value.dims, &rows, &inner);
    size_t run = (size_t)(carry->value.dims[carry->axis] * inner);
    for (int64_t r = 0; r < rows && run; r++, state += pitch, dense += run)
        memcpy(gather ? dense : state, gather ? state : dense, run);
}

gboolean
kiln_carry_reserve(KilnCarry *carry, const int64_t *dims, int64_t extent, int64_t most,
                   GError **error)
{
    int64_t rows, inner, bytes, room = carry->room;
    measure(carry, dims, &rows, &inner);
    if (extent > room)
        room = most ? most : MAX(MAX(extent, 2 * carry->room), ROOM_LEAST);
    bool fits = !__builtin_mul_overflow(rows, inner, &bytes) &&
                !__builtin_mul_overflow(bytes, room, &bytes);
    if (fits && room == carry->room && (size_t)bytes <= carry->state_bytes)
        return TRUE;
    char *state = kiln_alloc_for("a carried value", 1, fits ? (size_t)bytes : SIZE_MAX, error);
    if (!state)
        return FALSE;
    /* A value that was bound since may have other dims, and is copied later. */
    if (carry->place == KILN_CARRIED_STATE && !carry->is_bound) {
        size_t run = (size_t)(carry->value.dims[carry->axis] * inner);
        for (int64_t r = 0; r < rows && run; r++)
            memcpy(state + r * room * inner, carry->state + r * carry->room * inner, run);
    }
    kiln_free(carry->state);
    carry->state = state;
    carry->state_bytes = (size_t)bytes;
    carry->room = room;
    return TRUE;
}

static int64_t
pitch_of(const KilnCarry *carry)
{
    int64_t rows, inner;
    measure(carry, carry->value.dims, &rows, &inner);
    return carry->room * inner;
}

void
kiln_carry_scatter(KilnCarry *carry, const void *dense)
{
    copy_rows(carry, carry->state, pitch_of(carry), (char *)dense, false);
}

void
kiln_carry_gather(const KilnCarry *carry, void *dense)
{
    copy_rows(carry, carry->state, pitch_of(carry), dense, true);
}

void
kiln_carry_cut(KilnCarry *carry, int64_t extent)
{
    int64_t rows, inner, before = carry->value.dims[carry->axis];
    measure(carry, carry->value.dims, &rows, &inner);
    carry->value.dims[carry->axis] = extent;
    for (int64_t r = 1; carry->place == KILN_CARRIED_DENSE && r < rows && extent; r++)
        memmove((char *)carry->dense + r * extent * inner,
                (char *)carry->dense + r * before * inner, (size_t)(extent * inner));
}
