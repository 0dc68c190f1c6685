/* SPDX-License-Identifier: Apache-2.0 */
/* non_max_suppression, from the specification: of each class of each batch the boxes in the order
 * of their scores, without those that overlap one before them by more than the threshold. Of equal
 * scores the lower index is first, and NaN comes last. Overlaps are computed in f32. */
#include "backends/ref/kernel.h"
#include "graph/type.h"

typedef struct {
    float y0, x0, y1, x1; /* in order */
} Box;

static Box
box_at(const float *at, bool center)
{
    Box box = { at[0], at[1], at[2], at[3] };
    if (center) /* x, y, width, height */
        box = (Box){ at[1] - at[3] / 2, at[0] - at[2] / 2, at[1] + at[3] / 2, at[0] + at[2] / 2 };
    return (Box){ MIN(box.y0, box.y1), MIN(box.x0, box.x1), MAX(box.y0, box.y1),
                  MAX(box.x0, box.x1) };
}

static float
area_of(Box box)
{
    return (box.y1 - box.y0) * (box.x1 - box.x0);
}

static bool
overlap(Box a, Box b, float threshold)
{
    Box both = { MAX(a.y0, b.y0), MAX(a.x0, b.x0), MIN(a.y1, b.y1), MIN(a.x1, b.x1) };
    if (!(both.y1 > both.y0 && both.x1 > both.x0))
        return false;
    float shared = area_of(both), all = area_of(a) + area_of(b) - shared;
    return area_of(a) > 0 && area_of(b) > 0 && all > 0 && shared / all > threshold;
}

/* Whether box @i comes before box @k. */
static bool
comes_before(const float *scores, int64_t i, int64_t k)
{
    if (scores[i] != scores[i] || scores[k] != scores[k])
        return scores[i] == scores[i] || (scores[k] != scores[k] && i < k);
    return scores[i] > scores[k] || (scores[i] == scores[k] && i < k);
}

/* The next box behind box @last; -1: there is none. */
static int64_t
next_box(const float *scores, int64_t n, int64_t last, const float *threshold)
{
    int64_t best = -1;
    for (int64_t i = 0; i < n; i++) {
        if ((threshold && !(scores[i] > *threshold)) ||
            (last >= 0 && !comes_before(scores, last, i)))
            continue;
        if (best < 0 || comes_before(scores, i, best))
            best = i;
    }
    return best;
}

const char *
kiln_ref_non_max_suppression(const KilnKernelArgs *args)
{
    const bool center = kiln_instr_attrs(args->instr, non_max_suppression)->center_point_box;
    const KilnType *type = ref_type(args, 3);
    const float *boxes = args->data[2], *scores = args->data[3];
    int64_t n_classes = type->dims[1], n = type->dims[2], *to = args->data[0], found = 0;
    int64_t limit = ref_has(args, 4) ? *(const int64_t *)args->data[4] : 0;
    float threshold = ref_has(args, 5) ? *(const float *)args->data[5] : 0;
    const float *least = ref_has(args, 6) ? args->data[6] : NULL;
    if (limit <= 0 || ref_elements(type) == 0)
        n_classes = 0; /* no class keeps a box */
    for (int64_t c = 0; c < type->dims[0] * n_classes; c++) {
        const float *of_batch = boxes + c / n_classes * n * 4, *of_class = scores + c * n;
        int64_t first = found, i = -1;
        while (found - first < limit && (i = next_box(of_class, n, i, least)) >= 0) {
            bool kept = true;
            for (int64_t k = first; k < found && kept; k++)
                kept = !overlap(box_at(of_batch + to[3 * k + 2] * 4, center),
                                box_at(of_batch + i * 4, center), threshold);
            if (!kept)
                continue;
            to[3 * found] = c / n_classes;
            to[3 * found + 1] = c % n_classes;
            to[3 * found + 2] = i;
            found++;
        }
    }
    *(int64_t *)args->data[1] = found;
    return NULL;
}
