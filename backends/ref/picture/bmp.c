/* SPDX-License-Identifier: Apache-2.0 */
/* BMP without compression: palettes of 1, 4 and 8 bits, and pixels of 16, 24 and 32 bits. */
#include "backends/ref/picture/picture.h"

enum {
    FILE_HEAD = 14,
    OLD_HEAD = 12, /* of OS/2: extents of 16 bits, and palettes of three bytes a color */
    HEAD = 40,
    MASKS = 3, /* compression: masks say where a pixel's colors are */
};

typedef struct {
    KilnEncoded e;
    uint32_t pixels, palette, colors, entry; /* offsets; colors of the palette, bytes of each */
    int64_t height, width;
    bool down; /* rows from the top */
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
    return compression == 0;
}

static bool
read_head(Bitmap *b, KilnEncoded e)
{
    const uint32_t head = number(e, FILE_HEAD, 4);
    *b = (Bitmap){ .e = e, .pixels = number(e, 10, 4) };
    if (!(head == OLD_HEAD ? read_old_head(b) : read_new_head(b, head)) || b->width < 1 ||
        b->height < 1)
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

/* Pixel @x of the row that begins at @row. */
static bool
read_pixel(const Bitmap *b, size_t row, int64_t x, uint8_t rgb[3])
{
    if (b->bits <= 8) {
        const int64_t bit = x * b->bits;
        const uint8_t byte = b->e.bytes[row + (size_t)(bit / 8)];
        const uint32_t color = byte >> (8 - b->bits - bit % 8) & ((1u << b->bits) - 1);
        if (color >= b->colors)
            return false;
        for (size_t c = 0; c < 3; c++)
            rgb[c] = b->e.bytes[b->palette + color * b->entry + 2 - c];
        return true;
    }
    const uint32_t pixel = number(b->e, row + (size_t)(x * b->bits / 8), b->bits / 8);
    for (int c = 0; c < 3; c++)
        rgb[c] = masked(pixel, b->masks[c]);
    return true;
}

bool
kiln_bmp_decode(KilnEncoded e, KilnPictureSize size, uint8_t *rgb)
{
    Bitmap b;
    if (!read_head(&b, e))
        return false;
    const uint64_t pitch = ((uint64_t)b.width * (uint64_t)b.bits + 31) / 32 * 4; /* bytes */
    if (b.pixels > e.n || pitch > (e.n - b.pixels) / (uint64_t)b.height)
        return false;
    for (int64_t y = 0; y < size.height; y++) {
        const int64_t line = b.down ? y : size.height - 1 - y;
        for (int64_t x = 0; x < size.width; x++, rgb += 3) {
            if (!read_pixel(&b, b.pixels + (size_t)line * pitch, x, rgb))
                return false;
        }
    }
    return true;
}
