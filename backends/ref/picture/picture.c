/* SPDX-License-Identifier: Apache-2.0 */
/* image_size and image_decoder: the size of an encoded picture, and its pixels. Bytes that are no
 * picture are one of no pixels, as ONNX says. */
#include "backends/ref/picture/picture.h"

#include "backends/ref/kernel.h"

/* A decoded picture of this size has 768 MB. */
#define MOST_PIXELS (INT64_C(1) << 28)

const char kiln_picture_damaged[] = "expected a whole picture, found one that is damaged";
const char kiln_picture_unusual[] =
    "expected colors that are gray, or red, green and blue, found another kind of picture";
const char kiln_picture_costly[] =
    "expected a picture that takes up to 40 bytes a pixel, found one that takes more";
_Static_assert(KILN_PICTURE_LIBRARY == 40, "the text above says this");

static bool
begins(KilnEncoded e, size_t at, const char *text, size_t n)
{
    return e.n >= at + n && memcmp(e.bytes + at, text, n) == 0;
}

bool
kiln_jpeg_knows(KilnEncoded e)
{
    return begins(e, 0, "\xff\xd8\xff", 3);
}

bool
kiln_tiff_knows(KilnEncoded e)
{
    return begins(e, 0, "II*\0", 4) || begins(e, 0, "MM\0*", 4);
}

bool
kiln_webp_knows(KilnEncoded e)
{
    return begins(e, 0, "RIFF", 4) && begins(e, 8, "WEBP", 4);
}

bool
kiln_jpeg2000_knows(KilnEncoded e)
{
    return begins(e, 4, "jP  ", 4) || begins(e, 0, "\xff\x4f\xff\x51", 4);
}

/* The library of a format may be missing where Kiln is built. */
#define BUILT_IN(id)                                                                               \
    .knows = kiln_##id##_knows, .head = kiln_##id##_head, .decode = kiln_##id##_decode
#define MISSING(test, name)                                                                        \
    .knows = test, .missing = "this build of Kiln has no decoder for " name " pictures"

static const struct {
    KilnPictureKnows knows;
    KilnPictureHead head;
    KilnPictureDecode decode;
    const char *missing;
} formats[] = {
    { BUILT_IN(png) },      { BUILT_IN(pnm) }, { BUILT_IN(bmp) },
#ifdef KILN_HAS_JPEG
    { BUILT_IN(jpeg) },
#else
    { MISSING(kiln_jpeg_knows, "JPEG") },
#endif
#ifdef KILN_HAS_WEBP
    { BUILT_IN(webp) },
#else
    { MISSING(kiln_webp_knows, "WebP") },
#endif
#ifdef KILN_HAS_TIFF
    { BUILT_IN(tiff) },
#else
    { MISSING(kiln_tiff_knows, "TIFF") },
#endif
#ifdef KILN_HAS_JPEG2000
    { BUILT_IN(jpeg2000) },
#else
    { MISSING(kiln_jpeg2000_knows, "JPEG 2000") },
#endif
};

/* The number of the format of @e; that of all formats if there is none. */
static size_t
format_of(KilnEncoded e)
{
    size_t i = 0;
    while (i < sizeof formats / sizeof *formats && !formats[i].knows(e))
        i++;
    return i;
}

/* Finds the size of @e. Returns what is wrong, or NULL. */
static const char *
measure(KilnEncoded e, KilnPictureSize *out)
{
    const size_t i = format_of(e);
    *out = (KilnPictureSize){ 0, 0 };
    if (i == sizeof formats / sizeof *formats)
        return NULL;
    if (formats[i].missing)
        return formats[i].missing;
    if (!formats[i].head(e, out) || out->height < 1 || out->width < 1)
        *out = (KilnPictureSize){ 0, 0 };
    if (out->height > MOST_PIXELS || out->width > MOST_PIXELS / (out->height + !out->height))
        return "expected a picture of at most 2^28 pixels, found more";
    return NULL;
}

static KilnEncoded
encoded(const KilnKernelArgs *args)
{
    return (KilnEncoded){ args->data[1], (size_t)ref_elements(ref_type(args, 1)) };
}

const char *
kiln_ref_image_size(const KilnKernelArgs *args)
{
    KilnPictureSize size;
    const char *error = measure(encoded(args), &size);
    ((int64_t *)args->data[0])[0] = size.height;
    ((int64_t *)args->data[0])[1] = size.width;
    return error;
}

/* --- pixels --- */

size_t
kiln_ref_image_decoder_scratch(const KilnInstr *instr, uint32_t form, int threads)
{
    (void)form;
    (void)threads;
    const KilnType *out = &kiln_instr_operand(instr, 0)->type;
    const KilnPictureSize size = { out->dims[0], out->dims[1] };
    const int64_t pixels = size.height * size.width;
    if (pixels == 0 || pixels > MOST_PIXELS)
        return 0;
    return (size_t)(pixels * KILN_PICTURE_ROOM + kiln_picture_allowance(size));
}

/* The luma of ITU-R 601-2, in 16 bits behind the point. */
static uint8_t
gray(const uint8_t *rgb)
{
    return (uint8_t)((19595u * rgb[0] + 38470u * rgb[1] + 7471u * rgb[2] + 0x8000u) >> 16);
}

const char *
kiln_ref_image_decoder(const KilnKernelArgs *args)
{
    const KilnType *out = ref_type(args, 0);
    const char *format = kiln_instr_attrs(args->instr, image_decoder)->pixel_format;
    const KilnEncoded e = encoded(args);
    const int64_t pixels = out->dims[0] * out->dims[1];
    uint8_t *to = args->data[0];
    const uint8_t *from = args->scratch;
    KilnPictureSize size;
    const char *error = measure(e, &size);
    if (error)
        return error;
    if (size.height != out->dims[0] || size.width != out->dims[1])
        return "expected a picture of the size that its head had before, found another one";
    if (pixels > 0 && (error = formats[format_of(e)].decode(e, size, args->scratch)))
        return error;
    for (int64_t i = 0; i < pixels; i++, from += 3) {
        if (format[0] == 'G')
            *to++ = gray(from);
        for (int c = 0; c < 3 && format[0] != 'G'; c++)
            *to++ = from[format[0] == 'B' ? 2 - c : c];
    }
    return NULL;
}
