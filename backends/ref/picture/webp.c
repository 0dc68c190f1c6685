/* SPDX-License-Identifier: Apache-2.0 */
/* WebP, by libwebp. An alpha channel is left out. */
#include "backends/ref/picture/picture.h"

#include <webp/decode.h>

bool
kiln_webp_head(KilnEncoded e, KilnPictureSize *out)
{
    int width, height;
    if (!WebPGetInfo(e.bytes, e.n, &width, &height))
        return false;
    *out = (KilnPictureSize){ height, width };
    return true;
}

const char *
kiln_webp_decode(KilnEncoded e, KilnPictureSize size, uint8_t *rgb)
{
    const size_t room = (size_t)(size.height * size.width * 3);
    return WebPDecodeRGBInto(e.bytes, e.n, rgb, room, (int)size.width * 3) ? NULL
                                                                           : kiln_picture_damaged;
}
