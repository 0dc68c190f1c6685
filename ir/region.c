/* SPDX-License-Identifier: Apache-2.0 */
#include "ir/region.h"

/* --- the parts of a region --- */

KilnSize
kiln_region_offset(const KilnRegion *region)
{
    return (KilnSize){ region->offset, region->open_offset, region->lost };
}

KilnSize
kiln_region_rows(const KilnRegion *region)
{
    return (KilnSize){ region->rows, region->open_rows, region->lost };
}

KilnSize
kiln_region_run(const KilnRegion *region)
{
    return (KilnSize){ region->run, region->open_run, region->lost };
}

KilnSize
kiln_region_pitch(const KilnRegion *region)
{
    return (KilnSize){ region->pitch, region->open_pitch, region->lost };
}

static KilnRegion
of_sizes(KilnSize offset, KilnSize rows, KilnSize run, KilnSize pitch)
{
    return (KilnRegion){ offset.n, rows.n,     run.n,
                         pitch.n,  offset.dim, rows.dim,
                         run.dim,  pitch.dim,  offset.lost || rows.lost || run.lost || pitch.lost };
}

static bool
is_open(const KilnRegion *region)
{
    return region->open_offset || region->open_rows || region->open_run || region->open_pitch;
}

/* --- construction --- */

KilnRegion
kiln_region_make(int64_t offset, int64_t rows, int64_t run, int64_t pitch)
{
    if (rows == 1 || rows * run == 0 || run == pitch)
        return (KilnRegion){ .offset = offset, .rows = 1, .run = rows * run, .pitch = rows * run };
    return (KilnRegion){ .offset = offset, .rows = rows, .run = run, .pitch = pitch };
}

/* What makes it one row here must do so for all bindings. */
KilnRegion
kiln_region_of_sizes(KilnSize offset, KilnSize rows, KilnSize run, KilnSize pitch)
{
    if (rows.n != 1 && rows.n * run.n != 0 && run.n != pitch.n)
        return of_sizes(offset, rows, run, pitch);
    KilnSize all = kiln_size_mul(rows, run);
    KilnRegion region = of_sizes(offset, kiln_size_make(1), all, all);
    region.lost |= pitch.lost || !(kiln_size_is(rows, 1) || kiln_size_equal(run, pitch));
    return region;
}

/* --- parts --- */

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

/* The expressions of what find_part() found: the same steps, each of which must be certain. */
static KilnRegion
open_part(const KilnRegion *whole, const KilnRegion *part)
{
    KilnSize offset = kiln_region_offset(part), run = kiln_region_run(part);
    KilnSize length = kiln_region_run(whole), pitch = kiln_region_pitch(whole);
    KilnRegion lost = { .lost = true };
    if (whole->rows == 1)
        return kiln_region_of_sizes(kiln_size_add(kiln_region_offset(whole), offset),
                                    kiln_region_rows(part), run, kiln_region_pitch(part));
    KilnSize row = kiln_size_make(0), in_row = offset;
    if (offset.n >= length.n) {
        row = kiln_size_divide(offset, length);
        in_row = kiln_size_make(0);
    }
    bool inside = kiln_size_at_most(kiln_size_add(in_row, run), length);
    offset =
        kiln_size_add(kiln_region_offset(whole), kiln_size_add(kiln_size_mul(row, pitch), in_row));
    if (part->rows == 1 && !inside && kiln_size_is(in_row, 0))
        return kiln_region_of_sizes(offset, kiln_size_divide(run, length), length, pitch);
    if (!inside)
        return lost;
    KilnSize step = part->rows == 1
                        ? run
                        : kiln_size_mul(kiln_size_divide(kiln_region_pitch(part), length), pitch);
    return kiln_region_of_sizes(offset, kiln_region_rows(part), run, step);
}

bool
kiln_region_part(const KilnRegion *whole, const KilnRegion *part, KilnRegion *out)
{
    KilnRegion found; /* @out may be one of the two */
    bool is_region = find_part(whole, part, &found);
    if (is_region && (is_open(whole) || is_open(part) || whole->lost || part->lost)) {
        KilnRegion open = open_part(whole, part);
        bool same = open.offset == found.offset && open.rows == found.rows &&
                    open.run == found.run && open.pitch == found.pitch;
        found.lost = true;
        if (same && !open.lost)
            found = open;
    }
    *out = found;
    return is_region;
}

/* --- questions --- */

bool
kiln_region_equal(const KilnRegion *a, const KilnRegion *b)
{
    return kiln_size_equal(kiln_region_offset(a), kiln_region_offset(b)) &&
           kiln_size_equal(kiln_region_rows(a), kiln_region_rows(b)) &&
           kiln_size_equal(kiln_region_run(a), kiln_region_run(b)) &&
           kiln_size_equal(kiln_region_pitch(a), kiln_region_pitch(b));
}

bool
kiln_region_is_aligned(const KilnRegion *region, int64_t unit)
{
    return kiln_size_is_multiple(kiln_region_offset(region), unit) &&
           (region->rows == 1 || kiln_size_is_multiple(kiln_region_pitch(region), unit));
}

/* The bytes from the first to the last one. */
static int64_t
span(const KilnRegion *region)
{
    return (region->rows - 1) * region->pitch + region->run;
}

bool
kiln_region_meet_here(const KilnRegion *a, const KilnRegion *b)
{
    if (a->run == 0 || b->run == 0 || a->offset >= b->offset + span(b) ||
        b->offset >= a->offset + span(a))
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

/* The end of the last run. */
static KilnSize
end_of(const KilnRegion *region)
{
    KilnSize before = kiln_size_mul(kiln_size_sub(kiln_region_rows(region), kiln_size_make(1)),
                                    kiln_region_pitch(region));
    return kiln_size_add(kiln_region_offset(region),
                         kiln_size_add(before, kiln_region_run(region)));
}

/* Whether @b certainly lies behind @a, as a whole or in each row. */
static bool
is_behind(const KilnRegion *a, const KilnRegion *b)
{
    KilnSize from = kiln_region_offset(a), to = kiln_region_offset(b);
    if (kiln_size_at_most(end_of(a), to))
        return true;
    KilnSize pitch = kiln_region_pitch(a->rows > 1 ? a : b), behind = kiln_size_sub(to, from);
    bool same = (a->rows == 1 || kiln_size_equal(kiln_region_pitch(a), pitch)) &&
                (b->rows == 1 || kiln_size_equal(kiln_region_pitch(b), pitch));
    return (a->rows > 1 || b->rows > 1) && same && kiln_size_at_most(kiln_region_run(a), behind) &&
           kiln_size_at_most(kiln_size_add(behind, kiln_region_run(b)), pitch);
}

bool
kiln_region_meet(const KilnRegion *a, const KilnRegion *b)
{
    if (kiln_region_meet_here(a, b))
        return true;
    bool numbers = !is_open(a) && !is_open(b) && !a->lost && !b->lost;
    return !numbers && !is_behind(a, b) && !is_behind(b, a);
}
