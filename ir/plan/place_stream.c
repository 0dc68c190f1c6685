/* SPDX-License-Identifier: Apache-2.0 */
/* Placement in the order in which lives begin: each at the lowest gap of what lives then, as an
 * allocator of memory does it. Where all sizes are equal, no plan is lower. The gaps are in a treap
 * by offset, each subtree with its largest gap, so that n lives take n log n steps however many
 * live at once. */
#include "ir/plan/place.h"

#include <stdlib.h>

enum {
    NONE = 0 /* of gap numbers */
};

/* Free bytes below the top. */
typedef struct {
    int64_t offset, size;
    int64_t largest;   /* of the subtree */
    uint32_t priority; /* greater than those below */
    uint32_t left, right;
} Gap;

typedef struct {
    Gap *gaps;                /* from 1 on */
    uint32_t root, n, unused; /* unused: a list through `right` */
    int64_t top, height;      /* where what lives now ends, and ever ended */
} Arena;

/* Numbers that look random make the treap balanced. */
static uint32_t
mix(uint32_t i)
{
    i = (i ^ (i >> 16)) * UINT32_C(0x7feb352d);
    i = (i ^ (i >> 15)) * UINT32_C(0x846ca68b);
    return i ^ (i >> 16);
}

static void
update(Arena *arena, uint32_t at)
{
    Gap *gap = &arena->gaps[at];
    int64_t left = arena->gaps[gap->left].largest, right = arena->gaps[gap->right].largest;
    gap->largest = MAX(gap->size, MAX(left, right));
}

/* Gaps in front of @offset to *left, the others to *right. */
static void
split(Arena *arena, uint32_t at, int64_t offset, uint32_t *left, uint32_t *right)
{
    if (at == NONE) {
        *left = *right = NONE;
        return;
    }
    Gap *gap = &arena->gaps[at];
    if (gap->offset < offset) {
        split(arena, gap->right, offset, &gap->right, right);
        *left = at;
    } else {
        split(arena, gap->left, offset, left, &gap->left);
        *right = at;
    }
    update(arena, at);
}

static uint32_t
join(Arena *arena, uint32_t left, uint32_t right)
{
    if (left == NONE || right == NONE)
        return left ? left : right;
    if (arena->gaps[left].priority > arena->gaps[right].priority) {
        arena->gaps[left].right = join(arena, arena->gaps[left].right, right);
        update(arena, left);
        return left;
    }
    arena->gaps[right].left = join(arena, left, arena->gaps[right].left);
    update(arena, right);
    return right;
}

static uint32_t
new_gap(Arena *arena, int64_t offset, int64_t size)
{
    uint32_t i = arena->unused;
    if (i)
        arena->unused = arena->gaps[i].right;
    else
        i = ++arena->n;
    arena->gaps[i] = (Gap){ .offset = offset, .size = size, .largest = size, .priority = mix(i) };
    return i;
}

static void
drop_gap(Arena *arena, uint32_t i)
{
    arena->gaps[i].right = arena->unused;
    arena->unused = i;
}

/* The offset of the lowest gap of at least @size, which is taken from its front, or the top. */
static int64_t
take(Arena *arena, int64_t size)
{
    uint32_t at = arena->root, below, rest;
    if (arena->gaps[at].largest < size) {
        arena->top += size;
        arena->height = MAX(arena->height, arena->top);
        return arena->top - size;
    }
    for (;;) {
        const Gap *gap = &arena->gaps[at];
        if (arena->gaps[gap->left].largest >= size)
            at = gap->left;
        else if (gap->size < size)
            at = gap->right;
        else
            break;
    }
    int64_t offset = arena->gaps[at].offset;
    split(arena, arena->root, offset, &below, &rest);
    split(arena, rest, offset + 1, &at, &rest);
    arena->gaps[at].offset += size;
    arena->gaps[at].size -= size;
    update(arena, at);
    if (arena->gaps[at].size == 0) {
        drop_gap(arena, at);
        at = NONE;
    }
    arena->root = join(arena, join(arena, below, at), rest);
    return offset;
}

static uint32_t
outermost(const Arena *arena, uint32_t at, bool right)
{
    for (uint32_t next = at; next; next = right ? arena->gaps[at].right : arena->gaps[at].left)
        at = next;
    return at;
}

/* A gap of what lay there, which becomes one with those that it touches, or lowers the top. */
static void
give_back(Arena *arena, int64_t offset, int64_t size)
{
    uint32_t below, above, touching;
    split(arena, arena->root, offset, &below, &above);
    uint32_t last = outermost(arena, below, true), first = outermost(arena, above, false);
    if (last && arena->gaps[last].offset + arena->gaps[last].size == offset) {
        offset = arena->gaps[last].offset;
        size += arena->gaps[last].size;
        split(arena, below, offset, &below, &touching);
        drop_gap(arena, touching);
    }
    if (first && arena->gaps[first].offset == offset + size) {
        size += arena->gaps[first].size;
        split(arena, above, arena->gaps[first].offset + 1, &touching, &above);
        drop_gap(arena, touching);
    }
    if (offset + size == arena->top) { /* nothing is above */
        arena->top = offset;
        arena->root = below;
        return;
    }
    arena->root = join(arena, join(arena, below, new_gap(arena, offset, size)), above);
}

/* By first step, then the greatest first. */
static int
by_first(gconstpointer a, gconstpointer b)
{
    const KilnLife *x = *(KilnLife *const *)a, *y = *(KilnLife *const *)b;
    if (x->first != y->first)
        return x->first < y->first ? -1 : 1;
    if (x->size != y->size)
        return x->size > y->size ? -1 : 1;
    return x < y ? -1 : x > y; /* of one array: the order of the lives */
}

static int
by_last(gconstpointer a, gconstpointer b)
{
    const KilnLife *x = *(KilnLife *const *)a, *y = *(KilnLife *const *)b;
    if (x->last != y->last)
        return x->last < y->last ? -1 : 1;
    return x < y ? -1 : x > y;
}

int64_t
kiln_place_stream(KilnLife *lives, uint32_t n)
{
    g_autofree KilnLife **starts = g_new(KilnLife *, n), **ends = g_new(KilnLife *, n);
    g_autofree Gap *gaps = g_new0(Gap, (gsize)n + 2);
    Arena arena = { .gaps = gaps };
    for (uint32_t i = 0; i < n; i++)
        starts[i] = ends[i] = &lives[i];
    qsort(starts, n, sizeof *starts, by_first);
    qsort(ends, n, sizeof *ends, by_last);
    for (uint32_t i = 0, gone = 0; i < n; i++) {
        for (; ends[gone]->last < starts[i]->first; gone++) {
            if (ends[gone]->size)
                give_back(&arena, ends[gone]->offset, ends[gone]->size);
        }
        starts[i]->offset = starts[i]->size ? take(&arena, starts[i]->size) : 0;
    }
    return arena.height;
}
