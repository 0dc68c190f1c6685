/* SPDX-License-Identifier: Apache-2.0 */
/* tensor_scatter of any element type: in place it moves the update alone. All indices are checked
 * before anything is moved. Operands: result, cache, update, indices. */
#include "backends/cpu/extents.h"
#include "backends/cpu/kernel.h"
#include "backends/cpu/parallel.h"

#include <string.h>

/* The cache is [outer, extent, row bytes], the update [outer, n, row bytes]. */
typedef struct {
    char *to;
    const char *cache, *update;
    const int64_t *at; /* NULL: all 0 */
    int64_t extent, n, row, per_sample;
} Scatter;

static int64_t
begin_of(const Scatter *s, int64_t sample)
{
    const int64_t at = s->at ? s->at[sample] % s->extent : 0;
    return at < 0 ? at + s->extent : at;
}

static const char *
check(const Scatter *s, int64_t samples, bool circular)
{
    bool inside = s->n <= s->extent;
    for (int64_t i = 0; s->at && !circular && i < samples; i++)
        inside &= s->at[i] >= 0 && s->at[i] <= s->extent - s->n;
    return inside ? NULL : "an index is out of range";
}

static void
scatter_task(const void *data, int64_t outer, int thread)
{
    (void)thread;
    const Scatter *s = data;
    char *to = s->to + outer * s->extent * s->row;
    const char *update = s->update + outer * s->n * s->row;
    if (s->to != s->cache)
        memcpy(to, s->cache + outer * s->extent * s->row, (size_t)(s->extent * s->row));
    if (s->n == 0)
        return;
    const int64_t at = begin_of(s, outer / s->per_sample), first = min_of(s->n, s->extent - at);
    memcpy(to + at * s->row, update, (size_t)(first * s->row));
    memcpy(to, update + first * s->row, (size_t)((s->n - first) * s->row));
}

const char *
kiln_cpu_tensor_scatter(const KilnKernelArgs *args)
{
    const KilnInstrAttrs_tensor_scatter *attrs = kiln_instr_attrs(args->instr, tensor_scatter);
    const KilnType *cache = cpu_type(args->instr, 1);
    const int axis = (int)attrs->axis;
    Scatter s = { .to = args->data[0],
                  .cache = args->data[1],
                  .update = args->data[2],
                  .at = cpu_type(args->instr, 3) ? args->data[3] : NULL,
                  .extent = cache->dims[axis],
                  .n = cpu_type(args->instr, 2)->dims[axis],
                  .row = (int64_t)kiln_dtype_size(cache->dtype),
                  .per_sample = 1 };
    for (int d = 1; d < cache->rank; d++)
        *(d < axis ? &s.per_sample : &s.row) *= d == axis ? 1 : cache->dims[d];
    const char *wrong = check(&s, cache->dims[0], strcmp(attrs->mode, "circular") == 0);
    if (wrong || kiln_type_elements(cache) == 0)
        return wrong;
    kiln_cpu_parallel(cache->dims[0] * s.per_sample, args->threads, scatter_task, &s);
    return NULL;
}
