/* SPDX-License-Identifier: Apache-2.0 */
/* The heads of a JPEG 2000 picture, read before the library sees them: it takes memory for numbers
 * that a few bytes of a head ask for. Private to the folder. */
#ifndef KILN_BACKENDS_REF_PICTURE_JPEG2000_HEAD_H
#define KILN_BACKENDS_REF_PICTURE_JPEG2000_HEAD_H

#include "backends/ref/picture/picture.h"

/** Finds the size of the picture. False where its head is damaged. */
bool kiln_jpeg2000_size(KilnEncoded e, KilnPictureSize *out);
/** Bytes that the library takes for the picture, at most. INFINITY where a head is damaged. */
double kiln_jpeg2000_bytes(KilnEncoded e);

#endif
