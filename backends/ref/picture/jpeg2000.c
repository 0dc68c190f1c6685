/* SPDX-License-Identifier: Apache-2.0 */
/* JPEG 2000, by OpenJPEG: pictures of gray, or of red, green and blue, all of one size. */
#include "backends/ref/picture/jpeg2000_head.h"
#include "backends/ref/picture/picture.h"

#include <math.h>
#include <openjpeg.h>
#include <string.h>

typedef struct {
    KilnEncoded e;
    size_t at;
} File;

typedef struct {
    File file;
    opj_codec_t *codec;
    opj_stream_t *stream;
    opj_image_t *image;
} Reader;

static OPJ_SIZE_T
read_bytes(void *to, OPJ_SIZE_T n, void *of)
{
    File *file = of;
    const size_t left = file->e.n - file->at, taken = n < left ? n : left;
    if (taken == 0)
        return (OPJ_SIZE_T)-1;
    memcpy(to, file->e.bytes + file->at, taken);
    file->at += taken;
    return taken;
}

static OPJ_BOOL
seek(OPJ_OFF_T to, void *of)
{
    File *file = of;
    if (to < 0 || (size_t)to > file->e.n)
        return OPJ_FALSE;
    file->at = (size_t)to;
    return OPJ_TRUE;
}

static OPJ_OFF_T
skip(OPJ_OFF_T n, void *of)
{
    const File *file = of;
    return seek((OPJ_OFF_T)file->at + n, of) ? n : -1;
}

/* Reads the head. The caller ends what has begun, also where it fails. */
static bool
begin(Reader *r, KilnEncoded e)
{
    opj_dparameters_t parameters;
    const bool boxed = e.bytes[0] == 0; /* in a file of boxes, or as it is */
    *r = (Reader){ .file = { .e = e } };
    opj_set_default_decoder_parameters(&parameters);
    r->codec = opj_create_decompress(boxed ? OPJ_CODEC_JP2 : OPJ_CODEC_J2K);
    r->stream = opj_stream_default_create(OPJ_TRUE);
    if (!r->codec || !r->stream || !opj_setup_decoder(r->codec, &parameters))
        return false;
    opj_stream_set_read_function(r->stream, read_bytes);
    opj_stream_set_skip_function(r->stream, skip);
    opj_stream_set_seek_function(r->stream, seek);
    opj_stream_set_user_data(r->stream, &r->file, NULL);
    opj_stream_set_user_data_length(r->stream, e.n);
    return opj_read_header(r->stream, r->codec, &r->image) && r->image->numcomps > 0;
}

static void
end(Reader *r)
{
    if (r->image)
        opj_image_destroy(r->image);
    if (r->stream)
        opj_stream_destroy(r->stream);
    if (r->codec)
        opj_destroy_codec(r->codec);
}

bool
kiln_jpeg2000_head(KilnEncoded e, KilnPictureSize *out)
{
    return kiln_jpeg2000_size(e, out);
}

/* Sample @i of @part in 8 bits. */
static uint8_t
sample(const opj_image_comp_t *part, int64_t i)
{
    const int64_t most = (INT64_C(1) << part->prec) - 1;
    int64_t value = part->data[i];
    if (part->sgnd)
        value += INT64_C(1) << (part->prec - 1);
    value = value < 0 ? 0 : value > most ? most : value;
    return (uint8_t)((value * 255 + most / 2) / most);
}

static bool
is_usual(const opj_image_t *image, KilnPictureSize size)
{
    const uint32_t colors = image->numcomps < 3 ? 1 : 3;
    if (image->color_space == OPJ_CLRSPC_SYCC || image->color_space == OPJ_CLRSPC_EYCC ||
        image->color_space == OPJ_CLRSPC_CMYK)
        return false;
    for (uint32_t c = 0; c < colors; c++) {
        const opj_image_comp_t *part = &image->comps[c];
        if (!part->data || part->w != size.width || part->h != size.height || part->prec < 1 ||
            part->prec > 31)
            return false;
    }
    return true;
}

const char *
kiln_jpeg2000_decode(KilnEncoded e, KilnPictureSize size, uint8_t *rgb)
{
    Reader r;
    const double bytes = kiln_jpeg2000_bytes(e);
    if (bytes > (double)kiln_picture_allowance(size))
        return bytes < INFINITY ? kiln_picture_costly : kiln_picture_damaged;
    const bool done = begin(&r, e) && opj_decode(r.codec, r.stream, r.image) &&
                      opj_end_decompress(r.codec, r.stream);
    const bool usual = done && is_usual(r.image, size);
    for (int64_t i = 0; usual && i < size.height * size.width; i++) {
        for (int c = 0; c < 3; c++)
            *rgb++ = sample(&r.image->comps[r.image->numcomps < 3 ? 0 : c], i);
    }
    end(&r);
    return usual ? NULL : done ? kiln_picture_unusual : kiln_picture_damaged;
}
