/* SPDX-License-Identifier: Apache-2.0 */
#include "ir/region.h"

KilnRegion
kiln_region_make(int64_t offset, int64_t rows, int64_t run, int64_t pitch)
{
    if (rows == 1 || rows * run == 0)
        return (KilnRegion){ offset, 1, rows * run, rows * run };
    if (run == pitch)
        return (KilnRegion){ offset, 1, rows * run, rows * run };
    return (KilnRegion){ offset, rows, run, pitch };
}

int64_t
kiln_region_span(const KilnRegion *region)
{
    return (region->rows - 1) * region->pitch + region->run;
}

/* What is dense in @whole, whose rows have a gap: inside one of them, or some of them. */
static bool
find_dense(const KilnRegion *whole, const KilnRegion *part, KilnRegion *found)
{
    int64_t in_row = part->offset % whole->run;
    if (in_row + part->run <= whole->run) {
        *found = kiln_region_make(found->offset, 1, part->run, part->run);
        return true;
    }
    *found = kiln_region_make(found->offset, part->run / whole->run, whole->run, whole->pitch);
    return in_row == 0 && part->run % whole->run == 0;
}

static bool
find_part(const KilnRegion *whole, const KilnRegion *part, KilnRegion *found)
{
    if (whole->rows == 1 || part->run == 0) {
        int64_t offset = whole->offset + (part->run ? part->offset : 0);
        *found = kiln_region_make(offset, part->rows, part->run, part->pitch);
        return true;
    }
    int64_t row = part->offset / whole->run, in_row = part->offset % whole->run;
    found->offset = whole->offset + row * whole->pitch + in_row;
    if (part->rows == 1)
        return find_dense(whole, part, found);
    *found = kiln_region_make(found->offset, part->rows, part->run,
                              part->pitch / whole->run * whole->pitch);
    return part->pitch % whole->run == 0 && in_row + part->run <= whole->run;
}

bool
kiln_region_part(const KilnRegion *whole, const KilnRegion *part, KilnRegion *out)
{
    KilnRegion found; /* @out may be one of the two */
    bool is_region = find_part(whole, part, &found);
    *out = found;
    return is_region;
}

bool
kiln_region_equal(const KilnRegion *a, const KilnRegion *b)
{
    return a->offset == b->offset && a->rows == b->rows && a->run == b->run && a->pitch == b->pitch;
}

bool
kiln_region_is_aligned(const KilnRegion *region, int64_t unit)
{
    return region->offset % unit == 0 && (region->rows == 1 || region->pitch % unit == 0);
}

bool
kiln_region_meet(const KilnRegion *a, const KilnRegion *b)
{
    if (a->run == 0 || b->run == 0 || a->offset >= b->offset + kiln_region_span(b) ||
        b->offset >= a->offset + kiln_region_span(a))
        return false;
    if (a->rows == 1 && b->rows == 1)
        return true;
    int64_t pitch = a->rows > 1 ? a->pitch : b->pitch;
    if (b->rows > 1 && b->pitch != pitch)
        return true;
    /* Beside each other in every row: @b begins behind @a's run and ends before the next one. */
    int64_t behind = ((b->offset - a->offset) % pitch + pitch) % pitch;
    return behind < a->run || behind + b->run > pitch;
}
