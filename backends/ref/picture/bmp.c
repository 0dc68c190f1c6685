/* SPDX-License-Identifier: Apache-2.0 */
/* BMP: palettes of 1, 4 and 8 bits, and pixels of 16, 24 and 32 bits. Palettes of 4 and 8 bits may
 * have runs of one color. */
#include "backends/ref/picture/picture.h"

enum {
    FILE_HEAD = 14,
    OLD_HEAD = 12, /* of OS/2: extents of 16 bits, and palettes of three bytes a color */
    HEAD = 40,
    /* compression */
    RUNS_OF_8 = 1,
    RUNS_OF_4 = 2,
    MASKS = 3, /* masks say where a pixel's colors are */
};

typedef struct {
    KilnEncoded e;
    uint32_t pixels, palette, colors, entry; /* offsets; colors of the palette, bytes of each */
    int64_t height, width;
    bool down; /* rows from the top */
    bool runs;
    int bits;
    uint32_t masks[3];
} Bitmap;

bool
kiln_bmp_knows(KilnEncoded e)
{
    return e.n >= FILE_HEAD + OLD_HEAD && e.bytes[0] == 'B' && e.bytes[1] == 'M';
}

static uint32_t
number(KilnEncoded e, size_t at, int bytes)
{
    uint32_t value = 0;
    for (int i = 0; i < bytes; i++)
        value |= (uint32_t)e.bytes[at + (size_t)i] << 8 * i;
    return value;
}

static bool
read_old_head(Bitmap *b)
{
    b->width = number(b->e, 18, 2);
    b->height = number(b->e, 20, 2);
    b->bits = (int)number(b->e, 24, 2);
    b->entry = 3;
    return true;
}

static bool
read_new_head(Bitmap *b, uint32_t head)
{
    if (head < HEAD || b->e.n < FILE_HEAD + HEAD)
        return false;
    const int32_t width = (int32_t)number(b->e, 18, 4), height = (int32_t)number(b->e, 22, 4);
    const uint32_t compression = number(b->e, 30, 4);
    b->width = width;
    b->height = height < 0 ? -(int64_t)height : height;
    b->down = height < 0;
    b->bits = (int)number(b->e, 28, 2);
    b->colors = number(b->e, 46, 4);
    b->entry = 4;
    if (compression == MASKS && (b->bits == 16 || b->bits == 32) && b->e.n >= 66) {
        for (size_t c = 0; c < 3; c++)
            b->masks[c] = number(b->e, FILE_HEAD + HEAD + 4 * c, 4);
        return true;
    }
    b->runs =
        (compression == RUNS_OF_8 && b->bits == 8) || (compression == RUNS_OF_4 && b->bits == 4);
    return compression == 0 || (b->runs && !b->down); /* runs go up */
}

static bool
read_head(Bitmap *b, KilnEncoded e)
{
    const uint32_t head = number(e, FILE_HEAD, 4);
    *b = (Bitmap){ .e = e, .pixels = number(e, 10, 4) };
    if (head > e.n - FILE_HEAD || !(head == OLD_HEAD ? read_old_head(b) : read_new_head(b, head)) ||
        b->width < 1 || b->height < 1)
        return false;
    if (b->bits == 16 && !b->masks[0]) {
        b->masks[0] = 0x7c00;
        b->masks[1] = 0x03e0;
        b->masks[2] = 0x001f;
    } else if (b->bits == 24 || (b->bits == 32 && !b->masks[0])) {
        b->masks[0] = 0xff0000;
        b->masks[1] = 0x00ff00;
        b->masks[2] = 0x0000ff;
    } else if (b->bits <= 8) {
        b->palette = FILE_HEAD + head;
        b->colors = b->colors ? b->colors : 1u << b->bits;
        if (b->colors > 256 || b->palette > e.n || b->colors * b->entry > e.n - b->palette)
            return false;
    }
    return b->bits == 1 || b->bits == 4 || b->bits == 8 || b->bits == 16 || b->bits == 24 ||
           b->bits == 32;
}

bool
kiln_bmp_head(KilnEncoded e, KilnPictureSize *out)
{
    Bitmap b;
    if (!read_head(&b, e))
        return false;
    *out = (KilnPictureSize){ b.height, b.width };
    return true;
}

/* What @mask selects of @pixel, scaled to 8 bits. */
static uint8_t
masked(uint32_t pixel, uint32_t mask)
{
    if (!mask)
        return 0;
    const int shift = __builtin_ctz(mask);
    const uint64_t most = mask >> shift, value = (pixel & mask) >> shift;
    return (uint8_t)((value * 255 + most / 2) / most);
}

static bool
put_color(const Bitmap *b, uint32_t color, uint8_t rgb[3])
{
    for (size_t c = 0; color < b->colors && c < 3; c++)
        rgb[c] = b->e.bytes[b->palette + color * b->entry + 2 - c];
    return color < b->colors;
}

/* Pixel @x of the row that begins at @row. */
static bool
read_pixel(const Bitmap *b, size_t row, int64_t x, uint8_t rgb[3])
{
    if (b->bits <= 8) {
        const int64_t bit = x * b->bits;
        const uint8_t byte = b->e.bytes[row + (size_t)(bit / 8)];
        const uint32_t color = byte >> (8 - b->bits - bit % 8) & ((1u << b->bits) - 1);
        return put_color(b, color, rgb);
    }
    const uint32_t pixel = number(b->e, row + (size_t)(x * b->bits / 8), b->bits / 8);
    for (int c = 0; c < 3; c++)
        rgb[c] = masked(pixel, b->masks[c]);
    return true;
}

/* --- runs --- */

/* Where the next pixel is, rows counted from the bottom. */
typedef struct {
    const Bitmap *b;
    uint8_t *rgb;
    size_t at; /* of the file */
    int64_t x, y;
} Pen;

/* @n pixels whose colors are at byte @from: each of its own, or in turn those of one byte where
 * @same. Pixels behind the end of a row are left out, as other readers do. */
static bool
put_pixels(Pen *pen, size_t from, int n, bool same)
{
    const Bitmap *b = pen->b;
    const int per_byte = 8 / b->bits;
    if (pen->y >= b->height)
        return false;
    for (int i = 0; i < n && pen->x < b->width; i++, pen->x++) {
        const uint8_t byte = b->e.bytes[from + (size_t)(same ? 0 : i / per_byte)];
        const uint32_t color = per_byte == 1 ? byte : i % 2 ? byte & 15u : byte >> 4;
        uint8_t *to = pen->rgb + ((b->height - 1 - pen->y) * b->width + pen->x) * 3;
        if (!put_color(b, color, to))
            return false;
    }
    return true;
}

/* Behind a 0: the end of a row, a move, or pixels of any color, padded to two bytes. */
static bool
escape(Pen *pen, int code)
{
    const KilnEncoded e = pen->b->e;
    const size_t bytes = ((size_t)(code * pen->b->bits + 7) / 8 + 1) / 2 * 2;
    if (code == 0) {
        pen->x = 0;
        pen->y++;
        return true;
    }
    if (bytes > e.n - pen->at)
        return false;
    if (code > 2 && !put_pixels(pen, pen->at, code, false))
        return false;
    if (code == 2) {
        pen->x += e.bytes[pen->at];
        pen->y += e.bytes[pen->at + 1];
    }
    pen->at += bytes;
    return true;
}

/* Pixels that no run reaches have the first color. What follows the last row may be missing. */
static bool
read_runs(const Bitmap *b, uint8_t *rgb)
{
    Pen pen = { .b = b, .rgb = rgb, .at = b->pixels };
    for (int64_t i = 0; i < b->height * b->width; i++)
        put_color(b, 0, rgb + i * 3);
    while (pen.at < b->e.n && b->e.n - pen.at >= 2) {
        const int n = b->e.bytes[pen.at], code = b->e.bytes[pen.at + 1];
        pen.at += 2;
        if (n == 0 && code == 1)
            return true;
        if (!(n ? put_pixels(&pen, pen.at - 1, n, true) : escape(&pen, code)))
            return false;
    }
    return pen.y >= b->height || (pen.y == b->height - 1 && pen.x >= b->width);
}

const char *
kiln_bmp_decode(KilnEncoded e, KilnPictureSize size, uint8_t *rgb)
{
    Bitmap b;
    if (!read_head(&b, e))
        return kiln_picture_damaged;
    if (b.runs)
        return read_runs(&b, rgb) ? NULL : kiln_picture_damaged;
    const uint64_t pitch = ((uint64_t)b.width * (uint64_t)b.bits + 31) / 32 * 4; /* bytes */
    if (b.pixels > e.n || pitch > (e.n - b.pixels) / (uint64_t)b.height)
        return kiln_picture_damaged;
    for (int64_t y = 0; y < size.height; y++) {
        const int64_t line = b.down ? y : size.height - 1 - y;
        for (int64_t x = 0; x < size.width; x++, rgb += 3) {
            if (!read_pixel(&b, b.pixels + (size_t)line * pitch, x, rgb))
                return kiln_picture_damaged;
        }
    }
    return NULL;
}
