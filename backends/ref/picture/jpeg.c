/* SPDX-License-Identifier: Apache-2.0 */
/* JPEG, by libjpeg. Its errors jump to where it was called; it prints nothing. */
#include "backends/ref/picture/picture.h"

#include <setjmp.h>
#include <stdio.h>

#include <jpeglib.h>

_Static_assert(sizeof(FILE *) > 0, "jpeglib.h names a type that it does not declare");

typedef struct {
    struct jpeg_decompress_struct jpeg;
    struct jpeg_error_mgr errors;
    jmp_buf failed;
} Reader;

_Noreturn static void
fail(j_common_ptr jpeg)
{
    Reader *r = jpeg->client_data;
    longjmp(r->failed, 1);
}

static void
ignore(j_common_ptr jpeg, int level)
{
    (void)jpeg;
    (void)level;
}

/* The caller destroys what is made, also where it fails. */
static bool
begin(Reader *r, KilnEncoded e)
{
    r->jpeg.err = jpeg_std_error(&r->errors);
    r->jpeg.client_data = r;
    r->errors.error_exit = fail;
    r->errors.emit_message = ignore;
    r->jpeg.mem = NULL;
    if (setjmp(r->failed))
        return false;
    jpeg_create_decompress(&r->jpeg);
    r->jpeg.client_data = r;
    jpeg_mem_src(&r->jpeg, e.bytes, e.n);
    jpeg_read_header(&r->jpeg, TRUE);
    return true;
}

bool
kiln_jpeg_head(KilnEncoded e, KilnPictureSize *out)
{
    Reader r;
    const bool begun = begin(&r, e);
    if (begun)
        *out = (KilnPictureSize){ r.jpeg.image_height, r.jpeg.image_width };
    jpeg_destroy_decompress(&r.jpeg);
    return begun;
}

static bool
read_rows(Reader *r, KilnPictureSize size, uint8_t *rgb)
{
    if (setjmp(r->failed))
        return false;
    r->jpeg.mem->max_memory_to_use = (long)kiln_picture_allowance(size);
    r->jpeg.out_color_space = JCS_RGB;
    jpeg_start_decompress(&r->jpeg);
    if (r->jpeg.output_width != size.width || r->jpeg.output_height != size.height ||
        r->jpeg.output_components != 3)
        return false;
    while (r->jpeg.output_scanline < r->jpeg.output_height) {
        JSAMPROW row = rgb + (int64_t)r->jpeg.output_scanline * size.width * 3;
        jpeg_read_scanlines(&r->jpeg, &row, 1);
    }
    return r->errors.num_warnings == 0;
}

/* Four inks have no one way to be colors of light. */
const char *
kiln_jpeg_decode(KilnEncoded e, KilnPictureSize size, uint8_t *rgb)
{
    Reader r;
    const bool begun = begin(&r, e), usual = begun && r.jpeg.num_components <= 3;
    const bool done = usual && read_rows(&r, size, rgb);
    jpeg_destroy_decompress(&r.jpeg);
    return done ? NULL : begun && !usual ? kiln_picture_unusual : kiln_picture_damaged;
}
