/* SPDX-License-Identifier: Apache-2.0 */
/* TIFF, by libtiff: the first picture of the file, turned as its orientation says. An alpha channel
 * is left out; colors that are multiplied by it are divided again. The library's messages go
 * nowhere. */
#include "backends/ref/picture/picture.h"

#include <stdio.h>
#include <string.h>
#include <tiffio.h>

enum {
    MOST_OF_HEAD = 1 << 24, /* bytes of one list of the head */
    MOST_EXTRA = 16,        /* samples of a pixel beside its colors */
};

typedef struct {
    KilnEncoded e;
    uint64_t at;
} File;

static tmsize_t
read_bytes(thandle_t of, void *to, tmsize_t n)
{
    File *file = of;
    const uint64_t left = file->at < file->e.n ? file->e.n - file->at : 0;
    const uint64_t taken = n < 0 ? 0 : (uint64_t)n < left ? (uint64_t)n : left;
    if (taken)
        memcpy(to, file->e.bytes + file->at, taken);
    file->at += taken;
    return (tmsize_t)taken;
}

static tmsize_t
write_bytes(thandle_t of, void *from, tmsize_t n)
{
    (void)of;
    (void)from;
    (void)n;
    return 0;
}

static toff_t
seek(thandle_t of, toff_t to, int whence)
{
    File *file = of;
    file->at = whence == SEEK_CUR ? file->at + to : whence == SEEK_END ? file->e.n + to : to;
    return file->at;
}

static int
close_file(thandle_t of)
{
    (void)of;
    return 0;
}

static toff_t
file_size(thandle_t of)
{
    return ((const File *)of)->e.n;
}

/* The file is in memory. Some versions of the library cannot read tiles that are not mapped. */
static int
map_file(thandle_t of, void **base, toff_t *size)
{
    const File *file = of;
    *base = (void *)(uintptr_t)file->e.bytes;
    *size = file->e.n;
    return 1;
}

static void
unmap_file(thandle_t of, void *base, toff_t size)
{
    (void)of;
    (void)base;
    (void)size;
}

static int
ignore(TIFF *tiff, void *data, const char *module, const char *format, va_list arguments)
{
    (void)tiff;
    (void)data;
    (void)module;
    (void)format;
    (void)arguments;
    return 1;
}

static TIFF *
open_file(File *file, int64_t most)
{
    TIFFOpenOptions *options = TIFFOpenOptionsAlloc();
    if (!options)
        return NULL;
    TIFFOpenOptionsSetMaxSingleMemAlloc(options, most);
    TIFFOpenOptionsSetErrorHandlerExtR(options, ignore, NULL);
    TIFFOpenOptionsSetWarningHandlerExtR(options, ignore, NULL);
    TIFF *tiff = TIFFClientOpenExt("picture", "r", file, read_bytes, write_bytes, seek, close_file,
                                   file_size, map_file, unmap_file, options);
    TIFFOpenOptionsFree(options);
    return tiff;
}

typedef struct {
    uint32_t width, height; /* as it is stored */
    uint16_t orientation;
    bool associated; /* colors are multiplied by alpha */
} Layout;

/* The library multiplies colors by an alpha channel, unless that is said to be done. */
static bool
read_layout(TIFF *tiff, Layout *out)
{
    uint16_t n = 0, *types = NULL;
    *out = (Layout){ .orientation = ORIENTATION_TOPLEFT };
    if (!TIFFGetField(tiff, TIFFTAG_IMAGEWIDTH, &out->width) ||
        !TIFFGetField(tiff, TIFFTAG_IMAGELENGTH, &out->height))
        return false;
    TIFFGetFieldDefaulted(tiff, TIFFTAG_ORIENTATION, &out->orientation);
    if (out->orientation < ORIENTATION_TOPLEFT || out->orientation > ORIENTATION_LEFTBOT)
        out->orientation = ORIENTATION_TOPLEFT;
    TIFFGetFieldDefaulted(tiff, TIFFTAG_EXTRASAMPLES, &n, &types);
    if (n == 0 || !types)
        return true;
    out->associated = types[0] == EXTRASAMPLE_ASSOCALPHA;
    if (types[0] != EXTRASAMPLE_UNASSALPHA)
        return true;
    uint16_t said[MOST_EXTRA] = { EXTRASAMPLE_ASSOCALPHA };
    return n <= MOST_EXTRA && TIFFSetField(tiff, TIFFTAG_EXTRASAMPLES, n, said);
}

static bool
is_turned(const Layout *layout)
{
    return layout->orientation >= ORIENTATION_LEFTTOP;
}

bool
kiln_tiff_head(KilnEncoded e, KilnPictureSize *out)
{
    File file = { .e = e };
    Layout layout;
    TIFF *tiff = open_file(&file, MOST_OF_HEAD);
    const bool found = tiff && read_layout(tiff, &layout);
    if (tiff)
        TIFFClose(tiff);
    if (found && is_turned(&layout))
        *out = (KilnPictureSize){ layout.width, layout.height };
    else if (found)
        *out = (KilnPictureSize){ layout.height, layout.width };
    return found;
}

/* Numbers without a sign, and colors that have one way to be red, green and blue. */
static bool
is_usual(TIFF *tiff)
{
    uint16_t format = SAMPLEFORMAT_UINT, colors = PHOTOMETRIC_RGB, bits = 1;
    TIFFGetFieldDefaulted(tiff, TIFFTAG_BITSPERSAMPLE, &bits);
    TIFFGetFieldDefaulted(tiff, TIFFTAG_SAMPLEFORMAT, &format);
    TIFFGetField(tiff, TIFFTAG_PHOTOMETRIC, &colors);
    return bits <= 16 && (format == SAMPLEFORMAT_UINT || format == SAMPLEFORMAT_VOID) &&
           (colors == PHOTOMETRIC_MINISWHITE || colors == PHOTOMETRIC_MINISBLACK ||
            colors == PHOTOMETRIC_RGB || colors == PHOTOMETRIC_PALETTE ||
            colors == PHOTOMETRIC_YCBCR);
}

/* Four bytes a pixel, in the order in which they are stored. */
static bool
read_raster(TIFF *tiff, const Layout *layout, uint32_t *raster)
{
    TIFFRGBAImage image;
    char message[1024];
    if (!TIFFRGBAImageBegin(&image, tiff, 1, message))
        return false;
    image.req_orientation = image.orientation;
    const int done = TIFFRGBAImageGet(&image, raster, layout->width, layout->height);
    TIFFRGBAImageEnd(&image);
    return done;
}

static uint8_t
color(uint32_t value, uint32_t alpha, bool associated)
{
    if (!associated || alpha == 255)
        return (uint8_t)value;
    const uint32_t whole = alpha ? value * 255 / alpha : 0;
    return (uint8_t)(whole < 255 ? whole : 255);
}

/* Where pixel (@y, @x) of the picture is stored. */
static int64_t
stored_at(const Layout *layout, KilnPictureSize size, int64_t y, int64_t x)
{
    const int to = layout->orientation;
    const bool flip_y = to == ORIENTATION_BOTRIGHT || to == ORIENTATION_BOTLEFT ||
                        to == ORIENTATION_RIGHTBOT || to == ORIENTATION_LEFTBOT;
    const bool flip_x = to == ORIENTATION_TOPRIGHT || to == ORIENTATION_BOTRIGHT ||
                        to == ORIENTATION_RIGHTTOP || to == ORIENTATION_RIGHTBOT;
    y = flip_y ? size.height - 1 - y : y;
    x = flip_x ? size.width - 1 - x : x;
    return is_turned(layout) ? x * layout->width + y : y * layout->width + x;
}

const char *
kiln_tiff_decode(KilnEncoded e, KilnPictureSize size, uint8_t *rgb)
{
    File file = { .e = e };
    Layout layout;
    uint32_t *raster = (uint32_t *)(void *)(rgb + size.height * size.width * 4);
    TIFF *tiff = open_file(&file, kiln_picture_allowance(size));
    const bool usual = !tiff || is_usual(tiff);
    const bool done =
        tiff && usual && read_layout(tiff, &layout) && read_raster(tiff, &layout, raster);
    if (tiff)
        TIFFClose(tiff);
    for (int64_t i = 0; done && i < size.height * size.width; i++) {
        const uint32_t pixel = raster[stored_at(&layout, size, i / size.width, i % size.width)];
        const uint32_t alpha = TIFFGetA(pixel);
        *rgb++ = color(TIFFGetR(pixel), alpha, layout.associated);
        *rgb++ = color(TIFFGetG(pixel), alpha, layout.associated);
        *rgb++ = color(TIFFGetB(pixel), alpha, layout.associated);
    }
    return done ? NULL : usual ? kiln_picture_damaged : kiln_picture_unusual;
}
