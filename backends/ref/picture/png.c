/* SPDX-License-Identifier: Apache-2.0 */
/* PNG, by libpng: 8 bits of red, green and blue. An alpha channel is left out, and of 16 bits the
 * higher ones are taken. Errors of the library jump to where it was called. */
#include "backends/ref/picture/picture.h"

#include <png.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    KilnEncoded rest;
    int64_t allowance; /* bytes that the library may still take */
    png_structp png;
    png_infop info;
    jmp_buf failed;
} Reader;

static void
read_bytes(png_structp png, png_bytep to, size_t n)
{
    Reader *r = png_get_io_ptr(png);
    if (n > r->rest.n)
        png_error(png, "too short");
    memcpy(to, r->rest.bytes, n);
    r->rest.bytes += n;
    r->rest.n -= n;
}

/* A block begins with its size. */
static png_voidp
take(png_structp png, png_alloc_size_t n)
{
    Reader *r = png_get_mem_ptr(png);
    if (n > (uint64_t)r->allowance)
        return NULL;
    max_align_t *block = malloc(sizeof *block + n);
    if (!block)
        return NULL;
    memcpy(block, &n, sizeof n);
    r->allowance -= (int64_t)n;
    return block + 1;
}

static void
give(png_structp png, png_voidp memory)
{
    Reader *r = png_get_mem_ptr(png);
    png_alloc_size_t n;
    max_align_t *block = (max_align_t *)memory - 1;
    memcpy(&n, block, sizeof n);
    r->allowance += (int64_t)n;
    free(block);
}

_Noreturn static void
fail(png_structp png, png_const_charp message)
{
    Reader *r = png_get_error_ptr(png);
    (void)message;
    longjmp(r->failed, 1);
}

static void
ignore(png_structp png, png_const_charp message)
{
    (void)png;
    (void)message;
}

bool
kiln_png_knows(KilnEncoded e)
{
    return e.n >= 8 && png_sig_cmp(e.bytes, 0, 8) == 0;
}

/* Reads the head. The caller destroys what is made, also where it fails. */
static bool
begin(Reader *r, KilnEncoded e, KilnPictureSize size)
{
    r->rest = e;
    r->allowance = kiln_picture_allowance(size);
    r->info = NULL;
    r->png = png_create_read_struct_2(PNG_LIBPNG_VER_STRING, r, fail, ignore, r, take, give);
    if (!r->png)
        return false;
    if (setjmp(r->failed))
        return false;
    r->info = png_create_info_struct(r->png);
    if (!r->info)
        return false;
    png_set_read_fn(r->png, r, read_bytes);
    png_read_info(r->png, r->info);
    return true;
}

static void
end(Reader *r)
{
    png_destroy_read_struct(&r->png, &r->info, NULL);
}

bool
kiln_png_head(KilnEncoded e, KilnPictureSize *out)
{
    Reader r;
    const bool begun = begin(&r, e, (KilnPictureSize){ 0, 0 });
    if (begun) {
        out->height = png_get_image_height(r.png, r.info);
        out->width = png_get_image_width(r.png, r.info);
    }
    end(&r);
    return begun;
}

/* Interlaced pictures come in several passes, each of which has all rows. */
static bool
read_rows(Reader *r, KilnPictureSize size, uint8_t *rgb)
{
    if (setjmp(r->failed))
        return false;
    png_set_expand(r->png);
    png_set_strip_16(r->png);
    png_set_gray_to_rgb(r->png);
    png_set_strip_alpha(r->png);
    const int passes = png_set_interlace_handling(r->png);
    png_read_update_info(r->png, r->info);
    if (png_get_rowbytes(r->png, r->info) != (size_t)size.width * 3)
        return false;
    for (int pass = 0; pass < passes; pass++) {
        for (int64_t y = 0; y < size.height; y++)
            png_read_row(r->png, rgb + y * size.width * 3, NULL);
    }
    return true;
}

const char *
kiln_png_decode(KilnEncoded e, KilnPictureSize size, uint8_t *rgb)
{
    Reader r;
    const bool done = begin(&r, e, size) && read_rows(&r, size, rgb);
    end(&r);
    return done ? NULL : kiln_picture_damaged;
}
