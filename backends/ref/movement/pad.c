/* SPDX-License-Identifier: Apache-2.0 */
/* pad: a border around the operand; negative pads crop it first, and what the border repeats or
 * mirrors is the cropped part. reflect mirrors at the outermost elements without repeating them and
 * goes on mirroring where the border is wider than the operand; wrap repeats it. */
#include "backends/ref/kernel.h"

typedef enum {
    CONSTANT,
    REFLECT,
    EDGE,
    WRAP,
} Mode;

static Mode
mode_of(const char *name)
{
    return strcmp(name, "reflect") == 0 ? REFLECT
           : strcmp(name, "edge") == 0  ? EDGE
           : strcmp(name, "wrap") == 0  ? WRAP
                                        : CONSTANT;
}

/* What is kept of one dim: elements [low, low + n) of the operand, from @border on in the result.
 */
typedef struct {
    int64_t low, n, border;
} Kept;

static int64_t
floor_mod(int64_t a, int64_t b)
{
    int64_t rest = a % b;
    return rest < 0 ? rest + b : rest;
}

/* The coordinate in the operand of @at in the result; -1 for the constant. */
static int64_t
source(const Kept *kept, Mode mode, int64_t at)
{
    int64_t i = at - kept->border, n = kept->n;
    if (i >= 0 && i < n)
        return kept->low + i;
    switch (mode) {
    case EDGE:
        return kept->low + (i < 0 ? 0 : n - 1);
    case WRAP:
        return kept->low + floor_mod(i, n);
    case REFLECT: {
        int64_t period = 2 * (n - 1);
        int64_t phase = period ? floor_mod(i, period) : 0;
        return kept->low + (phase < n ? phase : period - phase);
    }
    default:
        return -1;
    }
}

/* operands: result, data, value of the border (absent: zero) */
const char *
kiln_ref_pad(const KilnKernelArgs *args)
{
    const KilnInstrAttrs_pad *attrs = kiln_instr_attrs(args->instr, pad);
    const KilnType *out = ref_type(args, 0), *in = ref_type(args, 1);
    size_t size = kiln_dtype_size(out->dtype);
    static const uint8_t zero[8] = { 0 };
    const void *border = ref_has(args, 2) ? args->data[2] : zero;
    Mode mode = mode_of(attrs->mode);
    int64_t to[KILN_MAX_RANK], from[KILN_MAX_RANK], index[KILN_MAX_RANK] = { 0 };
    Kept kept[KILN_MAX_RANK];
    ref_strides(out, to);
    ref_strides(in, from);
    if (ref_elements(out) == 0)
        return NULL;
    for (int d = 0; d < in->rank; d++) {
        int64_t begin = kiln_ints_at(attrs->pads, (uint32_t)d, 0);
        int64_t end = kiln_ints_at(attrs->pads, (uint32_t)(d + in->rank), 0);
        int64_t low = begin < 0 ? -begin : 0, high = end < 0 ? -end : 0;
        kept[d] = (Kept){ low, in->dims[d] - low - high, begin > 0 ? begin : 0 };
        if (kept[d].n <= 0 && mode != CONSTANT)
            return "there is no element left to pad with";
    }
    do {
        int64_t offset = 0;
        bool inside = true;
        for (int d = 0; d < in->rank; d++) {
            int64_t at = source(&kept[d], mode, index[d]);
            inside &= at >= 0;
            offset += at * from[d];
        }
        ref_copy_element(args->data[0], ref_offset(index, to, out->rank),
                         inside ? args->data[1] : border, inside ? offset : 0, size);
    } while (ref_next(index, out->dims, out->rank));
    return NULL;
}
