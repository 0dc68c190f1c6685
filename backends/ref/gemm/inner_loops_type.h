/* SPDX-License-Identifier: Apache-2.0 */
/* The template of the loops of inner_loops.h for one element type. It is expanded with T (the
 * stored type), NAME(x), LOAD and STORE, as in for_floats.h. FIELD is the field of RefValue that
 * sums use. There is no include guard: each use expands anew. */

static void
NAME(load)(RefValue *to, RefLane x, int64_t n)
{
    const T *from = x.at;
    for (int64_t i = 0; i < n; i++)
        to[i].FIELD = LOAD(from, i * x.step);
}

static void
NAME(store)(void *to, const RefValue *x, int64_t n)
{
    T *result = to;
    for (int64_t i = 0; i < n; i++)
        STORE(result, i, x[i].FIELD);
}

static void
NAME(add_scaled)(RefSums to, RefLane x, int64_t n, RefValue factor)
{
    const T *restrict from = x.at;
    RefValue *restrict sums = to.at;
    if (to.step == 1 && x.step == 1) {
        for (int64_t i = 0; i < n; i++)
            sums[i].FIELD += factor.FIELD * LOAD(from, i);
        return;
    }
    for (int64_t i = 0; i < n; i++)
        sums[i * to.step].FIELD += factor.FIELD * LOAD(from, i * x.step);
}

static void
NAME(dot)(RefValue *to, const RefValue *a, RefLane b, int64_t n)
{
    const T *from = b.at;
    RefValue sum = *to;
    for (int64_t i = 0; i < n; i++)
        sum.FIELD += a[i].FIELD * LOAD(from, i * b.step);
    *to = sum;
}

static void
NAME(multiply)(RefValue *to, RefLane x, int64_t n)
{
    const T *from = x.at;
    for (int64_t i = 0; i < n; i++)
        to[i].FIELD *= LOAD(from, i * x.step);
}

static void
NAME(sum)(RefValue *to, const RefValue *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        to->FIELD += x[i].FIELD;
}

static const RefRows NAME(rows) = { NAME(load), NAME(store),    NAME(add_scaled),
                                    NAME(dot),  NAME(multiply), NAME(sum) };
