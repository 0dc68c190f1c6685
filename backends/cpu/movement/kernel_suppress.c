/* SPDX-License-Identifier: Apache-2.0 */
/* non_max_suppression: a task per class of a batch. Its boxes lie in a heap, so that only those are
 * sorted that are looked at. A box is compared with a block of kept ones at a time, and with no
 * more where one of them overlaps it. Operands: result, count, boxes, scores, most, threshold,
 * least. */
#include "backends/cpu/extents.h"
#include "backends/cpu/kernel.h"
#include "backends/cpu/parallel.h"
#include "graph/base/alloc.h"

#include <string.h>

enum {
    BLOCK = 16 /* kept boxes that are compared at once */
};

typedef struct {
    float y0, x0, y1, x1, area;
} Box;

/* Kept boxes, padded to a block. */
typedef struct {
    float *y0, *x0, *y1, *x1, *area;
} Kept;

typedef struct {
    const float *boxes, *scores;
    const float *least; /* NULL: all scores count */
    float threshold;
    bool center;
    int64_t n_classes, n, limit;
    int64_t *to;     /* per task: room for as many boxes as one class may keep */
    int64_t room;    /* boxes */
    int64_t *counts; /* per task */
    char *memory;    /* per member of the team */
    size_t bytes;
} Suppression;

static inline float
least_of(float a, float b)
{
    return a < b ? a : b;
}

static inline float
most_of(float a, float b)
{
    return a > b ? a : b;
}

static Box
box_at(const float *at, bool center)
{
    float y0 = at[0], x0 = at[1], y1 = at[2], x1 = at[3];
    if (center) { /* x, y, width, height */
        y0 = at[1] - at[3] / 2;
        x0 = at[0] - at[2] / 2;
        y1 = at[1] + at[3] / 2;
        x1 = at[0] + at[2] / 2;
    }
    Box box = { least_of(y0, y1), least_of(x0, x1), most_of(y0, y1), most_of(x0, x1), 0 };
    box.area = (box.y1 - box.y0) * (box.x1 - box.x0);
    return box;
}

/* --- the heap: the box that comes first is on top --- */

static inline bool
comes_before(const float *scores, int64_t i, int64_t k)
{
    float a = scores[i], b = scores[k];
    if (a != a || b != b)
        return a == a || (b != b && i < k);
    return a > b || (a == b && i < k);
}

static void
sift(const float *scores, int64_t *heap, int64_t n, int64_t at)
{
    int64_t moved = heap[at];
    for (int64_t child; (child = 2 * at + 1) < n; at = child) {
        if (child + 1 < n && comes_before(scores, heap[child + 1], heap[child]))
            child++;
        if (!comes_before(scores, heap[child], moved))
            break;
        heap[at] = heap[child];
    }
    heap[at] = moved;
}

static int64_t
make_heap(const Suppression *self, const float *scores, int64_t *heap)
{
    int64_t n = 0;
    for (int64_t i = 0; i < self->n; i++) {
        heap[n] = i;
        n += !self->least || scores[i] > *self->least;
    }
    for (int64_t at = n / 2 - 1; at >= 0; at--)
        sift(scores, heap, n, at);
    return n;
}

/* --- overlaps --- */

static bool
overlaps(const Kept *kept, int64_t n, Box box, float threshold)
{
    for (int64_t from = 0; from < n; from += BLOCK) {
        int hits[BLOCK], any = 0;
        for (int i = 0; i < BLOCK; i++) {
            int64_t k = from + i;
            float height = least_of(box.y1, kept->y1[k]) - most_of(box.y0, kept->y0[k]);
            float width = least_of(box.x1, kept->x1[k]) - most_of(box.x0, kept->x0[k]);
            float shared = height * width, all = kept->area[k] + box.area - shared;
            hits[i] = (height > 0) & (width > 0) & (kept->area[k] > 0) & (box.area > 0) &
                      (all > 0) & (shared / all > threshold);
        }
        for (int i = 0; i < BLOCK; i++)
            any |= hits[i];
        if (any)
            return true;
    }
    return false;
}

static void
keep(const Kept *kept, int64_t k, Box box)
{
    kept->y0[k] = box.y0;
    kept->x0[k] = box.x0;
    kept->y1[k] = box.y1;
    kept->x1[k] = box.x1;
    kept->area[k] = box.area;
}

/* --- tasks --- */

static int64_t
padded(int64_t n)
{
    return ceil_div(n, BLOCK) * BLOCK;
}

static void
class_task(const void *data, int64_t task, int thread)
{
    const Suppression *self = data;
    const float *boxes = self->boxes + task / self->n_classes * self->n * 4;
    const float *scores = self->scores + task * self->n;
    int64_t *heap = (int64_t *)(self->memory + (size_t)thread * self->bytes);
    int64_t *to = self->to + task * self->room * 3, found = 0, each = padded(self->room);
    float *at = (float *)(heap + self->n + 1);
    Kept kept = { at, at + each, at + 2 * each, at + 3 * each, at + 4 * each };
    int64_t n = self->limit > 0 ? make_heap(self, scores, heap) : 0;
    memset(kept.area, 0, (size_t)each * sizeof(float)); /* nothing overlaps the padding */
    memset(at, 0, (size_t)each * 4 * sizeof(float));
    while (n > 0 && found < self->limit) {
        int64_t i = heap[0];
        Box box = box_at(boxes + i * 4, self->center);
        heap[0] = heap[--n];
        if (n > 0)
            sift(scores, heap, n, 0);
        if (overlaps(&kept, found, box, self->threshold))
            continue;
        keep(&kept, found, box);
        to[3 * found] = task / self->n_classes;
        to[3 * found + 1] = task % self->n_classes;
        to[3 * found + 2] = i;
        found++;
    }
    self->counts[task] = found;
}

/* --- the kernel --- */

bool
kiln_cpu_non_max_suppression_supports(const KilnInstr *instr)
{
    return !cpu_type(instr, 2)->layout && !cpu_type(instr, 3)->layout;
}

/* Boxes that one class may keep. */
static int64_t
room_of(const KilnInstr *instr)
{
    const KilnType *scores = cpu_type(instr, 3);
    int64_t classes = scores->dims[0] * scores->dims[1];
    return classes ? cpu_type(instr, 0)->dims[0] / classes : 0;
}

static size_t
member_bytes(const KilnInstr *instr)
{
    int64_t n = cpu_type(instr, 3)->dims[2] + 1;
    size_t bytes = (size_t)n * sizeof(int64_t) + (size_t)padded(room_of(instr)) * sizeof(Box);
    return kiln_align_up(bytes);
}

size_t
kiln_cpu_non_max_suppression_scratch(const KilnInstr *instr, uint32_t form, int threads)
{
    const KilnType *scores = cpu_type(instr, 3);
    (void)form;
    if (kiln_type_elements(scores) == 0)
        return 0;
    return member_bytes(instr) * (size_t)(threads > 1 ? threads : 1) +
           (size_t)(scores->dims[0] * scores->dims[1]) * sizeof(int64_t);
}

const char *
kiln_cpu_non_max_suppression(const KilnKernelArgs *args)
{
    const KilnInstr *instr = args->instr;
    const KilnType *scores = cpu_type(instr, 3);
    int64_t classes = scores->dims[0] * scores->dims[1], found = 0;
    int64_t most = cpu_type(instr, 4) ? *(const int64_t *)args->data[4] : 0;
    if (most <= 0 || kiln_type_elements(scores) == 0) {
        *(int64_t *)args->data[1] = 0;
        return NULL;
    }
    Suppression self = {
        .boxes = args->data[2],
        .scores = args->data[3],
        .least = cpu_type(instr, 6) ? args->data[6] : NULL,
        .threshold = cpu_type(instr, 5) ? *(const float *)args->data[5] : 0,
        .center = kiln_instr_attrs(instr, non_max_suppression)->center_point_box,
        .n_classes = scores->dims[1],
        .n = scores->dims[2],
        .to = args->data[0],
        .room = room_of(instr),
        .bytes = member_bytes(instr),
    };
    self.limit = most < self.room ? most : self.room;
    self.memory = args->scratch;
    self.counts = (int64_t *)(self.memory + self.bytes * (size_t)MAX(args->threads, 1));
    kiln_cpu_parallel(classes, args->threads, class_task, &self);
    for (int64_t c = 0; c < classes; c++) {
        memmove(self.to + 3 * found, self.to + 3 * c * self.room,
                (size_t)self.counts[c] * 3 * sizeof(int64_t));
        found += self.counts[c];
    }
    *(int64_t *)args->data[1] = found;
    return NULL;
}
