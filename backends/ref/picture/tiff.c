/* SPDX-License-Identifier: Apache-2.0 */
/* TIFF, by libtiff: the first picture of the file. The library's messages go nowhere. */
#include "backends/ref/picture/picture.h"

#include <stdio.h>
#include <string.h>
#include <tiffio.h>

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
open_file(File *file)
{
    TIFFOpenOptions *options = TIFFOpenOptionsAlloc();
    if (!options)
        return NULL;
    TIFFOpenOptionsSetErrorHandlerExtR(options, ignore, NULL);
    TIFFOpenOptionsSetWarningHandlerExtR(options, ignore, NULL);
    TIFF *tiff = TIFFClientOpenExt("picture", "rm", file, read_bytes, write_bytes, seek, close_file,
                                   file_size, NULL, NULL, options);
    TIFFOpenOptionsFree(options);
    return tiff;
}

static bool
read_size(TIFF *tiff, KilnPictureSize *out)
{
    uint32_t width = 0, height = 0;
    if (!TIFFGetField(tiff, TIFFTAG_IMAGEWIDTH, &width) ||
        !TIFFGetField(tiff, TIFFTAG_IMAGELENGTH, &height))
        return false;
    *out = (KilnPictureSize){ height, width };
    return true;
}

bool
kiln_tiff_head(KilnEncoded e, KilnPictureSize *out)
{
    File file = { .e = e };
    TIFF *tiff = open_file(&file);
    const bool found = tiff && read_size(tiff, out);
    if (tiff)
        TIFFClose(tiff);
    return found;
}

/* The library gives four bytes a pixel, which become three in their place. */
bool
kiln_tiff_decode(KilnEncoded e, KilnPictureSize size, uint8_t *rgb)
{
    File file = { .e = e };
    TIFF *tiff = open_file(&file);
    const bool done =
        tiff && TIFFReadRGBAImageOriented(tiff, (uint32_t)size.width, (uint32_t)size.height,
                                          (uint32_t *)(void *)rgb, ORIENTATION_TOPLEFT, 1);
    if (tiff)
        TIFFClose(tiff);
    for (int64_t i = 0; done && i < size.height * size.width; i++) {
        uint32_t pixel;
        memcpy(&pixel, rgb + i * 4, sizeof pixel);
        rgb[i * 3] = (uint8_t)TIFFGetR(pixel);
        rgb[i * 3 + 1] = (uint8_t)TIFFGetG(pixel);
        rgb[i * 3 + 2] = (uint8_t)TIFFGetB(pixel);
    }
    return done;
}
