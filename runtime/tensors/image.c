/* SPDX-License-Identifier: Apache-2.0 */
/* Pictures as tensors: PNG through libpng's simplified reader, PNM by hand. */
#include "runtime/tensors/image.h"

#include "graph/base/alloc.h"
#include "runtime/tensors/file.h"

#include <png.h>
#include <string.h>

typedef struct {
    int64_t width, height;
    int channels;    /* 1 or 3, interleaved */
    uint8_t *pixels; /* of kiln_alloc */
} Picture;

enum {
    MAX_SIDE = 32768
};

static gboolean
throw_cut_off(const char *path, GError **error)
{
    return kiln_throw(error, KILN_ERROR_FORMAT, "%s: the pixels are cut off", path);
}

/* @most: samples that the rest of the file may have at all, so that a few bytes do not ask for
 * gigabytes. */
static gboolean
picture_alloc(Picture *picture, uint64_t most, const char *path, GError **error)
{
    if (picture->width < 1 || picture->height < 1 || picture->width > MAX_SIDE ||
        picture->height > MAX_SIDE)
        return kiln_throw(error, KILN_ERROR_FORMAT,
                          "%s: expected 1 to %d pixels a side, found %" G_GINT64_FORMAT
                          "x%" G_GINT64_FORMAT,
                          path, MAX_SIDE, picture->width, picture->height);
    if ((uint64_t)(picture->width * picture->height * picture->channels) > most)
        return throw_cut_off(path, error);
    picture->pixels = kiln_alloc_for("a picture", (size_t)(picture->width * picture->height),
                                     (size_t)picture->channels, error);
    return picture->pixels != NULL;
}

static gboolean
load_png(const char *path, Picture *picture, GError **error)
{
    png_image image = { .version = PNG_IMAGE_VERSION };
    g_autoptr(GBytes) bytes = kiln_file_map(path, error);
    if (!bytes)
        return FALSE;
    size_t length;
    const void *data = g_bytes_get_data(bytes, &length);
    if (!png_image_begin_read_from_memory(&image, data ? data : "", length))
        return kiln_throw(error, KILN_ERROR_FORMAT, "%s: not a readable PNG: %s", path,
                          image.message);
    bool grey = !(image.format & PNG_FORMAT_FLAG_COLOR);
    image.flags |= PNG_IMAGE_FLAG_16BIT_sRGB; /* samples of 16 bits are scaled, not bent */
    image.format = grey ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB;
    *picture = (Picture){ image.width, image.height, grey ? 1 : 3, NULL };
    /* A bit may be three samples of a palette, and deflate packs 1032 bytes into one. */
    if (!picture_alloc(picture, (uint64_t)length * 1032 * 8 * 3, path, error)) {
        png_image_free(&image);
        return FALSE;
    }
    const png_color black = { 0, 0, 0 };
    if (!png_image_finish_read(&image, &black, picture->pixels, 0, NULL)) {
        kiln_throw(error, KILN_ERROR_FORMAT, "%s: not a readable PNG: %s", path, image.message);
        return FALSE;
    }
    return TRUE;
}

/* --- PNM --- */

typedef struct {
    const char *at, *end;
} Scanner;

static bool
scan_number(Scanner *scanner, int64_t *out)
{
    while (scanner->at < scanner->end && (g_ascii_isspace(*scanner->at) || *scanner->at == '#')) {
        if (*scanner->at == '#') {
            while (scanner->at < scanner->end && *scanner->at != '\n')
                scanner->at++;
        } else {
            scanner->at++;
        }
    }
    int64_t value = 0;
    const char *start = scanner->at;
    while (scanner->at < scanner->end && g_ascii_isdigit(*scanner->at) && value <= MAX_SIDE * 2)
        value = value * 10 + (*scanner->at++ - '0');
    *out = value;
    return scanner->at > start;
}

static gboolean
read_samples(Scanner *scanner, const Picture *picture, bool binary, int64_t highest,
             const char *path, GError **error)
{
    int64_t n = picture->width * picture->height * picture->channels;
    for (int64_t i = 0; i < n; i++) {
        int64_t sample = 0;
        if (binary)
            sample = (uint8_t)*scanner->at++;
        else if (!scan_number(scanner, &sample))
            return throw_cut_off(path, error);
        picture->pixels[i] = (uint8_t)(MIN(sample, highest) * 255 / highest);
    }
    return TRUE;
}

static gboolean
load_pnm(const char *path, Picture *picture, GError **error)
{
    g_autoptr(GBytes) bytes = kiln_file_map(path, error);
    if (!bytes)
        return FALSE;
    size_t length;
    const char *data = g_bytes_get_data(bytes, &length), *text = data ? data : "";
    char kind = length > 2 && text[0] == 'P' ? text[1] : 0;
    bool binary = kind == '5' || kind == '6';
    int64_t highest = 0;
    Scanner scanner = { text + MIN(length, (size_t)2), text + length };
    *picture = (Picture){ 0, 0, kind == '3' || kind == '6' ? 3 : 1, NULL };
    if (!strchr("2356", kind) || !kind || !scan_number(&scanner, &picture->width) ||
        !scan_number(&scanner, &picture->height) || !scan_number(&scanner, &highest) ||
        highest < 1 || highest > 255)
        return kiln_throw(error, KILN_ERROR_FORMAT,
                          "%s: expected a PGM or PPM picture with at most 255 levels", path);
    scanner.at +=
        binary && scanner.at < scanner.end; /* one white-space character ends the header */
    if (!picture_alloc(picture, (uint64_t)(scanner.end - scanner.at), path, error))
        return FALSE;
    return read_samples(&scanner, picture, binary, highest, path, error);
}

/* --- to a tensor --- */

static float
sample_at(const Picture *picture, int64_t pixel, int channel, int channels)
{
    const uint8_t *at = picture->pixels + pixel * picture->channels;
    if (picture->channels == channels)
        return at[channel];
    /* Grey to RGB repeats; RGB to grey takes the luma of ITU-R BT.601. */
    return picture->channels == 1 ? at[0] : 0.299f * at[0] + 0.587f * at[1] + 0.114f * at[2];
}

/* Where the channels, rows and columns of a picture go. */
typedef struct {
    int channels; /* 1 or 3 */
    int rank;     /* 2 (rows, columns), 3, or 4 (with one picture) */
    bool last;    /* channels behind the columns */
} Place;

static bool
is_channels(int64_t dim)
{
    return dim == 1 || dim == 3;
}

/* What @type asks for. Channels stand in front of the rows where the extent there can be one, else
 * behind the columns; where neither is known, in front, as many as the picture has. */
static gboolean
find_place(const char *path, const KilnType *type, int own_channels, Place *out, GError **error)
{
    *out = (Place){ own_channels, 4, false };
    if (!type || type->rank < 0)
        return TRUE;
    out->rank = type->rank;
    if (type->rank == 2) {
        out->channels = 1;
        return TRUE;
    }
    if (type->rank == 3 || type->rank == 4) {
        int64_t first = type->dims[type->rank - 3], last = type->dims[type->rank - 1];
        out->last = !is_channels(first) && is_channels(last);
        int64_t wanted = out->last ? last : first;
        if (is_channels(wanted))
            out->channels = (int)wanted;
        if (wanted < 0 || is_channels(wanted))
            return TRUE;
    }
    g_autofree char *text = kiln_type_to_string(type);
    return kiln_throw(error, KILN_ERROR_SHAPE,
                      "%s: expected an input that takes a picture (rank 2 to 4, 1 or 3 channels), "
                      "found %s",
                      path, text);
}

/* Numbers per channel, where more than one was stated, are as many as there are channels. */
static gboolean
check_channels(const char *path, const char *what, unsigned stated, int channels, GError **error)
{
    if (stated <= 1 || stated == (unsigned)channels)
        return TRUE;
    return kiln_throw(error, KILN_ERROR_USAGE,
                      "%s: %s: expected one number or one per channel (%d), found %u", path, what,
                      channels, stated);
}

static KilnTensor *
picture_to_tensor(const Picture *picture, const Place *place, const KilnImageOptions *options,
                  GError **error)
{
    int64_t rows = picture->height, columns = picture->width, channels = place->channels;
    int64_t first[] = { 1, channels, rows, columns }, last[] = { 1, rows, columns, channels };
    const int64_t *dims = place->last ? last : first;
    int skip = 4 - place->rank; /* rank 2 and 3 leave dims of extent 1 out */
    KilnType type = kiln_type_make(KILN_DTYPE_f32, place->rank, dims + skip);
    int64_t plane = rows * columns;
    void *elements;
    g_autoptr(GBytes) bytes =
        kiln_bytes_new((size_t)(plane * channels), sizeof(float), &elements, error);
    if (!bytes)
        return NULL;
    float *data = elements;
    for (int64_t c = 0; c < channels; c++) {
        for (int64_t i = 0; i < plane; i++) {
            double unit = sample_at(picture, i, (int)c, place->channels) / 255.0 * options->scale;
            data[place->last ? i * channels + c : c * plane + i] =
                (float)((unit - options->mean[c]) / options->std[c]);
        }
    }
    return kiln_tensor_new_data(&type, bytes, error);
}

KilnTensor *
kiln_image_load(const char *path, const KilnType *type, const KilnImageOptions *options,
                GError **error)
{
    const KilnImageOptions defaults = KILN_IMAGE_OPTIONS_INIT;
    Picture picture = { 0 };
    Place place;
    gboolean loaded = g_str_has_suffix(path, ".png") ? load_png(path, &picture, error)
                                                     : load_pnm(path, &picture, error);
    options = options ? options : &defaults;
    gboolean fits = loaded && find_place(path, type, picture.channels, &place, error) &&
                    check_channels(path, "mean", options->n_mean, place.channels, error) &&
                    check_channels(path, "std", options->n_std, place.channels, error);
    KilnTensor *tensor = fits ? picture_to_tensor(&picture, &place, options, error) : NULL;
    kiln_free(picture.pixels);
    return tensor;
}
