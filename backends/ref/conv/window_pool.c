/* SPDX-License-Identifier: Apache-2.0 */
/* max_pool, average_pool, lp_pool, max_unpool.
 *
 * Where a window hangs over the end of the padded operand (ceil_mode), what lies there is no
 * element: average_pool counts padding if told to, but never what lies beyond it. Padding is never
 * the greatest of a window, a NaN in it always is. A window without any element gives the least
 * value of the type (max_pool, index -1), or zero. */
#include "backends/ref/conv/window.h"
#include "backends/ref/kernel.h"
#include "ir/kernel.h"

#include <math.h>

/* One window: its elements inside the operand, in row-major order. */
typedef struct {
    const RefWindow *window;
    const int64_t *at;              /* which window */
    int64_t strides[KILN_MAX_RANK]; /* of the operand's plane */
    int64_t k[KILN_MAX_RANK];
    int64_t counted; /* elements and padding seen so far */
    bool done;
} Walk;

static Walk
walk_begin(const RefWindow *window, const int64_t *at)
{
    Walk walk = { .window = window, .at = at };
    int64_t stride = 1;
    for (int d = window->rank - 1; d >= 0; d--) {
        walk.strides[d] = stride;
        stride *= window->large[d];
    }
    walk.done = ref_count(window->kernel, 0, window->rank) == 0;
    return walk;
}

/* The offset in the plane of the next element; -1 after the last one. */
static int64_t
walk_next(Walk *walk)
{
    const RefWindow *window = walk->window;
    while (!walk->done) {
        int64_t offset = 0;
        bool inside = true, padding = true;
        for (int d = 0; d < window->rank; d++) {
            int64_t i = ref_window_at(window, d, walk->at[d], walk->k[d]);
            inside &= i >= 0 && i < window->large[d];
            padding &= i < window->large[d] + window->pad_end[d];
            offset += i * walk->strides[d];
        }
        walk->counted += padding;
        walk->done = !ref_next(walk->k, window->kernel, window->rank);
        if (inside)
            return offset;
    }
    return -1;
}

/* The greatest element of a window, the first of equals. A NaN is greater than all: it is never
 * lost. @offset is -1 for a window without elements. */
static int64_t
walk_max(Walk *walk, KilnDType dtype, const void *data, int64_t plane)
{
    int64_t best = -1;
    double greatest = 0;
    for (int64_t i = walk_next(walk); i >= 0; i = walk_next(walk)) {
        double value = kiln_element_as_f64(dtype, data, plane + i);
        if (best < 0 || value > greatest || (isnan(value) && !isnan(greatest))) {
            best = i;
            greatest = value;
        }
    }
    return best;
}

/* The index of ONNX's second result: within the whole operand; column-major order (storage_order 1)
 * exchanges the spatial dims' order only. */
static int64_t
argument(const RefWindow *window, int64_t offset, int64_t plane, bool column_major)
{
    if (!column_major)
        return plane + offset;
    int64_t result = 0, index[KILN_MAX_RANK];
    for (int d = window->rank - 1; d >= 0; d--) {
        index[d] = offset % window->large[d];
        offset /= window->large[d];
    }
    for (int d = window->rank - 1; d >= 0; d--)
        result = result * window->large[d] + index[d];
    return plane + result;
}

static void
store_least(KilnDType dtype, void *data, int64_t i)
{
    kiln_element_store_f64(dtype, data, i, -INFINITY);
}

/* operands: result, data, indices (a second result, may be absent). All types of max_pool are exact
 * in a double. */
const char *
kiln_ref_max_pool(const KilnKernelArgs *args)
{
    const KilnInstrAttrs_max_pool *attrs = kiln_instr_attrs(args->instr, max_pool);
    const KilnType *out = ref_type(args, 0), *in = ref_type(args, 1);
    RefWindow window = ref_window(REF_WINDOW_ATTRS(attrs), out, in);
    size_t size = kiln_dtype_size(out->dtype);
    int64_t *indices = ref_has(args, 2) ? args->data[2] : NULL;
    int64_t planes = ref_count(out->dims, 0, 2), i = 0;
    int64_t plane_size = ref_count(window.large, 0, window.rank);
    if (ref_elements(out) == 0)
        return NULL;
    for (int64_t p = 0; p < planes; p++) {
        int64_t at[KILN_MAX_RANK] = { 0 }, plane = p * plane_size;
        do {
            Walk walk = walk_begin(&window, at);
            int64_t best = walk_max(&walk, in->dtype, args->data[1], plane);
            if (best >= 0)
                ref_copy_element(args->data[0], i, args->data[1], plane + best, size);
            else
                store_least(out->dtype, args->data[0], i);
            if (indices)
                indices[i] = best < 0 ? -1 : argument(&window, best, plane, attrs->storage_order);
            i++;
        } while (ref_next(at, window.small, window.rank));
    }
    return NULL;
}

/* Both remaining pools reduce a window to a sum. */
typedef struct {
    RefWindow window;
    bool average, count_padding;
    double p;
} Pool;

static double
reduce_window(const Pool *pool, Walk *walk, const KilnKernelArgs *args, int64_t plane)
{
    KilnDType dtype = ref_type(args, 1)->dtype;
    double sum = pool->average ? -0.0 : 0; /* a window of nothing but -0 is -0 */
    int64_t n = 0;
    for (int64_t i = walk_next(walk); i >= 0; i = walk_next(walk), n++) {
        double value = ref_load_float(dtype, args->data[1], plane + i);
        sum += pool->average ? value : pow(fabs(value), pool->p);
    }
    if (!pool->average)
        return pow(sum, 1 / pool->p);
    int64_t count = pool->count_padding ? walk->counted : n;
    return n ? sum / (double)count : 0;
}

static const char *
run_pool(const KilnKernelArgs *args, const Pool *pool)
{
    const KilnType *out = ref_type(args, 0);
    int64_t planes = ref_count(out->dims, 0, 2), i = 0;
    int64_t plane_size = ref_count(pool->window.large, 0, pool->window.rank);
    if (ref_elements(out) == 0)
        return NULL;
    for (int64_t p = 0; p < planes; p++) {
        int64_t at[KILN_MAX_RANK] = { 0 };
        do {
            Walk walk = walk_begin(&pool->window, at);
            ref_store_float(out->dtype, args->data[0], i++,
                            reduce_window(pool, &walk, args, p * plane_size));
        } while (ref_next(at, pool->window.small, pool->window.rank));
    }
    return NULL;
}

const char *
kiln_ref_average_pool(const KilnKernelArgs *args)
{
    const KilnInstrAttrs_average_pool *attrs = kiln_instr_attrs(args->instr, average_pool);
    return run_pool(args, &(Pool){ .window = ref_window(REF_WINDOW_ATTRS(attrs), ref_type(args, 0),
                                                        ref_type(args, 1)),
                                   .average = true,
                                   .count_padding = attrs->count_include_pad });
}

/* The p-th root of the sum of |x|^p: padding adds nothing. */
const char *
kiln_ref_lp_pool(const KilnKernelArgs *args)
{
    const KilnInstrAttrs_lp_pool *attrs = kiln_instr_attrs(args->instr, lp_pool);
    return run_pool(args, &(Pool){ .window = ref_window(REF_WINDOW_ATTRS(attrs), ref_type(args, 0),
                                                        ref_type(args, 1)),
                                   .p = (double)attrs->p });
}

/* operands: result, data, indices into the whole result. The rest of the result is zero; of
 * duplicates the last one stays. */
const char *
kiln_ref_max_unpool(const KilnKernelArgs *args)
{
    const KilnType *out = ref_type(args, 0);
    size_t size = kiln_dtype_size(out->dtype);
    const int64_t *indices = args->data[2];
    int64_t n = ref_elements(ref_type(args, 1)), room = ref_elements(out);
    if (room > 0)
        memset(args->data[0], 0, (size_t)room * size);
    for (int64_t i = 0; i < n; i++) {
        if (indices[i] < 0 || indices[i] >= room)
            return "an index is out of range";
        ref_copy_element(args->data[0], indices[i], args->data[1], i, size);
    }
    return NULL;
}
