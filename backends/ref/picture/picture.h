/* SPDX-License-Identifier: Apache-2.0 */
/* The formats that image_decoder reads, a file each. Private to the folder. */
#ifndef KILN_BACKENDS_REF_PICTURE_PICTURE_H
#define KILN_BACKENDS_REF_PICTURE_PICTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** A picture as its file has it. */
typedef struct {
    const uint8_t *bytes;
    size_t n;
} KilnEncoded;

typedef struct {
    int64_t height, width;
} KilnPictureSize;

enum {
    KILN_PICTURE_ROOM = 8,        /* bytes of the result of decode() for each pixel */
    KILN_PICTURE_LIBRARY = 40,    /* bytes that a library takes for each pixel */
    KILN_PICTURE_FIXED = 1 << 22, /* and for a picture */
};

/** The bytes that a library may take. The scratch memory of image_decoder has as many more, so that
 * a limit on memory holds for them. */
static inline int64_t
kiln_picture_allowance(KilnPictureSize size)
{
    return size.height * size.width * KILN_PICTURE_LIBRARY + KILN_PICTURE_FIXED;
}

/** True where the picture begins as one of the format does. */
typedef bool (*KilnPictureKnows)(KilnEncoded e);
/** Reads the size from the head; false where that is damaged. */
typedef bool (*KilnPictureHead)(KilnEncoded e, KilnPictureSize *out);
/** Writes red, green and blue of each pixel, rows from the top. There is room for
 * KILN_PICTURE_ROOM bytes a pixel. Returns NULL, or one of the texts below. */
typedef const char *(*KilnPictureDecode)(KilnEncoded e, KilnPictureSize size, uint8_t *rgb);

extern const char kiln_picture_damaged[], kiln_picture_unusual[], kiln_picture_costly[];

#define KILN_PICTURE_FORMAT(id)                                                                    \
    bool kiln_##id##_knows(KilnEncoded e);                                                         \
    bool kiln_##id##_head(KilnEncoded e, KilnPictureSize *out);                                    \
    const char *kiln_##id##_decode(KilnEncoded e, KilnPictureSize size, uint8_t *rgb);
KILN_PICTURE_FORMAT(bmp)
KILN_PICTURE_FORMAT(jpeg)
KILN_PICTURE_FORMAT(jpeg2000)
KILN_PICTURE_FORMAT(png)
KILN_PICTURE_FORMAT(pnm)
KILN_PICTURE_FORMAT(tiff)
KILN_PICTURE_FORMAT(webp)
#undef KILN_PICTURE_FORMAT

#endif
