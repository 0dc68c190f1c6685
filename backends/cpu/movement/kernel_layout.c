/* SPDX-License-Identifier: Apache-2.0 */
/* pack and unpack of any element type: the same elements in another layout, as nests of loops. A
 * dim whose last block is not full is copied in two parts, whole blocks and the rest; padding is 0.
 * Operands: result, data. Either may be plain. */
#include "backends/cpu/kernel.h"
#include "backends/cpu/movement/strided.h"
#include "graph/module/layout.h"

#include <string.h>

/* One step along a dim: by @divisor elements, and what that is in either memory. */
typedef struct {
    int64_t divisor, to, from;
} Stride;

/* A dim as both sides cut it, from the coarsest step to that of one element. */
typedef struct {
    int n;
    Stride strides[2 * KILN_MAX_RANK];
} Cut;

typedef struct {
    int rank;
    int64_t dims[KILN_MAX_RANK];
    Cut cuts[KILN_MAX_RANK];
} Relayout;

/* The loops of @layout over dim @d, from the outermost: how many elements each steps over, and how
 * far. */
static int
loops_over(const KilnLayout *layout, int d, int64_t *divisors, int64_t *strides)
{
    int n = 0;
    int64_t divisor = 1, stride = 1;
    int64_t reversed[2][2 * KILN_MAX_RANK];
    for (int l = layout->rank - 1; l >= 0; l--) {
        if (layout->dim[l] == d) {
            reversed[0][n] = divisor;
            reversed[1][n++] = stride;
            divisor *= layout->extent[l];
        }
        stride *= layout->extent[l];
    }
    for (int i = 0; i < n; i++) {
        divisors[i] = reversed[0][n - 1 - i];
        strides[i] = reversed[1][n - 1 - i];
    }
    return n;
}

/* How far a step over @divisor elements is: by the coarsest loop that is no coarser; 0 where no
 * number of its steps is that. */
static int64_t
distance(const int64_t *divisors, const int64_t *strides, int n, int64_t divisor)
{
    for (int i = 0; i < n; i++) {
        if (divisors[i] <= divisor)
            return divisor % divisors[i] ? 0 : divisor / divisors[i] * strides[i];
    }
    return 0;
}

static bool
cut(const KilnLayout *to, const KilnLayout *from, int d, int64_t size, Cut *out)
{
    int64_t to_divisors[2 * KILN_MAX_RANK], to_strides[2 * KILN_MAX_RANK];
    int64_t from_divisors[2 * KILN_MAX_RANK], from_strides[2 * KILN_MAX_RANK];
    int n_to = loops_over(to, d, to_divisors, to_strides);
    int n_from = loops_over(from, d, from_divisors, from_strides);
    out->n = 0;
    for (int i = 0, k = 0; i < n_to || k < n_from;) {
        int64_t a = i < n_to ? to_divisors[i] : 0, b = k < n_from ? from_divisors[k] : 0;
        int64_t divisor = MAX(a, b);
        i += a == divisor;
        k += b == divisor;
        Stride *stride = &out->strides[out->n++];
        *stride = (Stride){ divisor, distance(to_divisors, to_strides, n_to, divisor),
                            distance(from_divisors, from_strides, n_from, divisor) };
        bool nested = out->n == 1 || out->strides[out->n - 2].divisor % divisor == 0;
        if (!stride->to || !stride->from || !nested)
            return false;
    }
    return out->n <= 2 || size % out->strides[0].divisor == 0;
}

static bool
relayout_of(const KilnInstr *instr, Relayout *out)
{
    const KilnType *to = cpu_type(instr, 0), *from = cpu_type(instr, 1);
    KilnLayout to_layout, from_layout;
    int loops = 0;
    if (!kiln_layout_of(to, &to_layout) || !kiln_layout_of(from, &from_layout))
        return false;
    out->rank = to->rank;
    for (int d = 0; d < to->rank; d++) {
        out->dims[d] = to->dims[d];
        if (!cut(&to_layout, &from_layout, d, to->dims[d], &out->cuts[d]))
            return false;
        loops += out->cuts[d].n;
    }
    return loops <= KILN_CPU_MAX_LOOPS;
}

bool
kiln_cpu_relayout_supports(const KilnInstr *instr)
{
    Relayout relayout;
    return relayout_of(instr, &relayout);
}

/* Bit d of @rest: of dim d what does not fill a block, else whole blocks. False where that is
 * nothing. */
static bool
part(const Relayout *relayout, uint32_t rest, KilnCpuNest *nest, int64_t *to, int64_t *from)
{
    *nest = (KilnCpuNest){ 0 };
    *to = *from = 0;
    for (int d = 0; d < relayout->rank; d++) {
        const Cut *cut = &relayout->cuts[d];
        const Stride *outer = &cut->strides[0];
        int64_t whole = relayout->dims[d] / outer->divisor;
        if (rest >> d & 1) {
            const Stride *inner = &cut->strides[cut->n - 1];
            int64_t left = relayout->dims[d] % outer->divisor;
            if (!left)
                return false;
            *to += whole * outer->to;
            *from += whole * outer->from;
            kiln_cpu_nest_add(nest, left, inner->to, inner->from);
            continue;
        }
        if (!whole)
            return false;
        kiln_cpu_nest_add(nest, whole, outer->to, outer->from);
        for (int i = 1; i < cut->n; i++)
            kiln_cpu_nest_add(nest, cut->strides[i - 1].divisor / cut->strides[i].divisor,
                              cut->strides[i].to, cut->strides[i].from);
    }
    return true;
}

const char *
kiln_cpu_relayout(const KilnKernelArgs *args)
{
    Relayout relayout;
    const KilnType *type = cpu_type(args->instr, 0);
    int64_t size = (int64_t)kiln_dtype_size(type->dtype);
    relayout_of(args->instr, &relayout);
    if (kiln_type_elements(type) == 0)
        return NULL;
    if (kiln_type_bytes(type) > kiln_type_elements(type) * size)
        memset(args->data[0], 0, (size_t)kiln_type_bytes(type));
    for (uint32_t rest = 0; rest < 1u << relayout.rank; rest++) {
        KilnCpuNest nest;
        int64_t to, from;
        if (part(&relayout, rest, &nest, &to, &from))
            kiln_cpu_nest_copy(&nest,
                               &(KilnCpuEnds){ .to = (char *)args->data[0] + to * size,
                                               .from = (const char *)args->data[1] + from * size,
                                               .size = (size_t)size,
                                               .threads = args->threads });
    }
    return NULL;
}
