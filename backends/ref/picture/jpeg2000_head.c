/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the heads of JPEG 2000: of the boxes of a file, of the codestream, and of its tiles. */
#include "backends/ref/picture/jpeg2000_head.h"

#include <math.h>
#include <string.h>

/* Markers. */
enum {
    SIZ = 0xff51,
    COD = 0xff52,
    COC = 0xff53,
    SOT = 0xff90,
    SOD = 0xff93,
    EOC = 0xffd9,
};

/* What the library takes for one of them, rounded up. */
enum {
    OF_TILE = 8192,
    OF_TILE_COMPONENT = 1280,
    OF_SAMPLE = 2 * 4, /* of the tile, and of the picture */
    OF_BLOCK = 640,
    OF_PRECINCT = 512,
    OF_PLACE = 2, /* a precinct of a resolution, in a layer */
    BANDS = 3,
};

typedef struct {
    KilnEncoded e; /* the codestream */
    double tiles, tile_width, tile_height, samples, components;
    double precincts, blocks, places; /* at most, of a component of a tile */
    double layers;
    KilnPictureSize size;
} Scan;

static uint32_t
number(KilnEncoded e, size_t at, int bytes)
{
    uint32_t value = 0;
    for (int i = 0; i < bytes; i++)
        value = value << 8 | e.bytes[at + (size_t)i];
    return value;
}

static KilnEncoded
part(KilnEncoded e, size_t at, size_t n)
{
    return (KilnEncoded){ e.bytes + at, n };
}

/* --- boxes --- */

/* The content of the first box of @type in @e. False if there is none. */
static bool
find_box(KilnEncoded e, const char *type, KilnEncoded *out)
{
    size_t at = 0;
    while (e.n - at >= 8) {
        uint64_t length = number(e, at, 4), head = 8;
        if (length == 1 && e.n - at >= 16) {
            length = (uint64_t)number(e, at + 8, 4) << 32 | number(e, at + 12, 4);
            head = 16;
        }
        if (length == 0 || length > e.n - at)
            length = e.n - at;
        if (length < head)
            return false;
        *out = part(e, at + head, length - head);
        if (memcmp(e.bytes + at + 4, type, 4) == 0)
            return true;
        at += length;
    }
    return false;
}

/* A palette makes other components of those that are there. Pictures have up to four. */
static bool
has_usual_palette(KilnEncoded e)
{
    KilnEncoded head, palette;
    return !find_box(e, "jp2h", &head) || !find_box(head, "pclr", &palette) ||
           (palette.n >= 3 && number(palette, 2, 1) <= 4);
}

static bool
find_codestream(KilnEncoded e, KilnEncoded *out)
{
    *out = e;
    return e.bytes[0] != 0 || (has_usual_palette(e) && find_box(e, "jp2c", out));
}

/* --- segments --- */

static bool
read_size(Scan *s, KilnEncoded e)
{
    if (e.n < 36 || e.n < 36 + 3 * (size_t)number(e, 34, 2))
        return false;
    const double x1 = number(e, 2, 4), y1 = number(e, 6, 4), x0 = number(e, 10, 4);
    const double y0 = number(e, 14, 4), tile_x0 = number(e, 26, 4), tile_y0 = number(e, 30, 4);
    s->tile_width = number(e, 18, 4);
    s->tile_height = number(e, 22, 4);
    s->components = number(e, 34, 2);
    if (x1 <= x0 || y1 <= y0 || s->tile_width < 1 || s->tile_height < 1 || s->components < 1 ||
        tile_x0 > x0 || tile_y0 > y0)
        return false;
    s->tiles = ceil((x1 - tile_x0) / s->tile_width) * ceil((y1 - tile_y0) / s->tile_height);
    s->tile_width = fmin(s->tile_width, x1 - x0);
    s->tile_height = fmin(s->tile_height, y1 - y0);
    for (size_t c = 0; c < (size_t)s->components; c++) {
        const double dx = number(e, 36 + 3 * c + 1, 1), dy = number(e, 36 + 3 * c + 2, 1);
        if (dx < 1 || dy < 1)
            return false;
        const double width = ceil(x1 / dx) - ceil(x0 / dx);
        const double height = ceil(y1 / dy) - ceil(y0 / dy);
        s->samples += width * height;
        if (c == 0)
            s->size = (KilnPictureSize){ (int64_t)height, (int64_t)width };
    }
    return true;
}

/* Resolution @r of @last: adds its precincts and blocks. @side has the exponents of a precinct,
 * @block those of a block. */
static void
add_resolution(Scan *cut, int r, int last, uint8_t side, const uint8_t block[2])
{
    const double scale = ldexp(1, last - r), bands = r ? BANDS : 1;
    const double extents[] = { cut->tile_width / scale, cut->tile_height / scale };
    const int exponents[] = { side & 15, side >> 4 };
    double precincts = 1, blocks = bands;
    for (int d = 0; d < 2; d++) {
        const int most = exponents[d] > 0 ? exponents[d] - 1 : 0, wanted = (block[d] & 15) + 2;
        const double across = ceil(extents[d] / ldexp(1, exponents[d])) + 1;
        precincts *= across;
        blocks *= extents[d] / (r ? 2 : 1) / ldexp(1, wanted < most ? wanted : most) + 2;
    }
    cut->precincts += precincts;
    cut->blocks += blocks;
    cut->places = fmax(cut->places, precincts * (last + 1));
}

/* How a component is cut. @e begins with the number of decompositions. */
static bool
read_cut(Scan *s, KilnEncoded e, bool own_precincts)
{
    Scan cut = { .tile_width = s->tile_width, .tile_height = s->tile_height };
    if (e.n < 5 || e.bytes[0] > 32 || e.n < 5 + (own_precincts ? (size_t)e.bytes[0] + 1 : 0))
        return false;
    for (int r = 0; r <= e.bytes[0]; r++)
        add_resolution(&cut, r, e.bytes[0], own_precincts ? e.bytes[5 + r] : 0xff, e.bytes + 1);
    s->precincts = fmax(s->precincts, cut.precincts);
    s->blocks = fmax(s->blocks, cut.blocks);
    s->places = fmax(s->places, cut.places);
    return true;
}

static bool
read_segment(Scan *s, uint32_t marker, KilnEncoded e)
{
    const size_t wide = s->components > 256 ? 2 : 1;
    if (marker == SIZ)
        return s->components == 0 && read_size(s, e);
    if (s->components == 0)
        return false; /* SIZ is first */
    if (marker == COD && e.n >= 5) {
        s->layers = fmax(s->layers, number(e, 2, 2));
        return read_cut(s, part(e, 5, e.n - 5), e.bytes[0] & 1);
    }
    if (marker == COC && e.n > wide)
        return read_cut(s, part(e, wide + 1, e.n - wide - 1), e.bytes[wide] & 1);
    return marker != COD && marker != COC;
}

/* Segments from *@at up to the marker @end, behind which *@at is then. */
static bool
read_segments(Scan *s, size_t *at, uint32_t end)
{
    while (s->e.n - *at >= 4) {
        const uint32_t marker = number(s->e, *at, 2);
        if (marker == end) {
            *at += 2;
            return true;
        }
        const size_t n = number(s->e, *at + 2, 2);
        if (marker < 0xff50 || marker > 0xff7f || n < 2 || n > s->e.n - *at - 2 ||
            !read_segment(s, marker, part(s->e, *at + 4, n - 2)))
            return false;
        *at += 2 + n;
    }
    return false;
}

/* Behind the first SOT: tiles up to the end of the file, which may be cut off. */
static bool
read_tiles(Scan *s, size_t at)
{
    for (;;) {
        if (s->e.n - at < 10)
            return true;
        const size_t first = at - 2, length = number(s->e, at + 4, 4);
        at += 10;
        if (length != 12 && !read_segments(s, &at, SOD))
            return false;
        if (length == 0 || length > s->e.n - first)
            return true;
        if (length < at - first)
            return false;
        at = first + length;
        if (s->e.n - at < 2 || number(s->e, at, 2) == EOC)
            return true;
        if (number(s->e, at, 2) != SOT)
            return false;
        at += 2;
    }
}

bool
kiln_jpeg2000_size(KilnEncoded e, KilnPictureSize *out)
{
    Scan s = { 0 };
    size_t at = 2;
    if (!find_codestream(e, &s.e) || s.e.n < 4 || !read_segments(&s, &at, SOT))
        return false;
    *out = s.size;
    return true;
}

double
kiln_jpeg2000_bytes(KilnEncoded e)
{
    Scan s = { 0 };
    size_t at = 2;
    if (!find_codestream(e, &s.e) || s.e.n < 4 || !read_segments(&s, &at, SOT) ||
        !read_tiles(&s, at))
        return INFINITY;
    const double of_tile = s.blocks * OF_BLOCK + s.precincts * BANDS * OF_PRECINCT +
                           (s.layers + 1) * s.places * OF_PLACE;
    return s.samples * OF_SAMPLE + s.tiles * (OF_TILE + s.components * OF_TILE_COMPONENT) +
           s.components * of_tile;
}
