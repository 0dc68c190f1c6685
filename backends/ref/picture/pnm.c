/* SPDX-License-Identifier: Apache-2.0 */
/* The portable formats: bitmaps, graymaps and pixmaps, as text (P1, P2, P3) or bytes (P4, P5, P6).
 * Samples of another maximum than 255 are scaled to it. */
#include "backends/ref/picture/picture.h"

typedef struct {
    KilnEncoded e;
    size_t at;
    int kind; /* 1 … 6 */
    int64_t height, width, most;
} Map;

bool
kiln_pnm_knows(KilnEncoded e)
{
    return e.n >= 3 && e.bytes[0] == 'P' && e.bytes[1] >= '1' && e.bytes[1] <= '6' &&
           (e.bytes[2] == '#' || e.bytes[2] == ' ' || (e.bytes[2] >= '\t' && e.bytes[2] <= '\r'));
}

static bool
is_space(uint8_t c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static bool
is_digit(uint8_t c)
{
    return c >= '0' && c <= '9';
}

/* A comment reaches to the end of its line. */
static void
skip_space(Map *m)
{
    bool comment = false;
    for (; m->at < m->e.n; m->at++) {
        const uint8_t c = m->e.bytes[m->at];
        comment = comment ? c != '\n' && c != '\r' : c == '#';
        if (!comment && !is_space(c))
            return;
    }
}

static bool
read_number(Map *m, int64_t most, int64_t *out)
{
    skip_space(m);
    if (m->at >= m->e.n || !is_digit(m->e.bytes[m->at]))
        return false;
    for (*out = 0; m->at < m->e.n && is_digit(m->e.bytes[m->at]); m->at++) {
        *out = *out * 10 + (m->e.bytes[m->at] - '0');
        if (*out > most)
            return false;
    }
    return true;
}

/* One space follows the head. */
static bool
read_head(Map *m, KilnEncoded e)
{
    *m = (Map){ .e = e, .at = 2, .kind = e.bytes[1] - '0', .most = 1 };
    const bool bits = m->kind == 1 || m->kind == 4;
    return read_number(m, INT32_MAX, &m->width) && read_number(m, INT32_MAX, &m->height) &&
           (bits || (read_number(m, UINT16_MAX, &m->most) && m->most > 0)) && m->at++ < e.n;
}

bool
kiln_pnm_head(KilnEncoded e, KilnPictureSize *out)
{
    Map m;
    if (!read_head(&m, e))
        return false;
    *out = (KilnPictureSize){ m.height, m.width };
    return true;
}

/* The digits of a bitmap need no space between them. */
static bool
read_text(Map *m, int64_t *out)
{
    if (m->kind != 1)
        return read_number(m, m->most, out);
    skip_space(m);
    if (m->at >= m->e.n || (m->e.bytes[m->at] != '0' && m->e.bytes[m->at] != '1'))
        return false;
    *out = m->e.bytes[m->at++] == '0'; /* 1 is black */
    return true;
}

/* Sample @i of the row that begins at m->at. */
static int64_t
byte_sample(const Map *m, int64_t i)
{
    const uint8_t *row = m->e.bytes + m->at;
    if (m->kind == 4)
        return !(row[i / 8] >> (7 - i % 8) & 1);
    return m->most < 256 ? row[i] : row[2 * i] << 8 | row[2 * i + 1];
}

static int64_t
row_bytes(const Map *m, int64_t samples)
{
    return m->kind == 4 ? (samples + 7) / 8 : m->most < 256 ? samples : 2 * samples;
}

static bool
read_row(Map *m, int64_t samples, uint8_t *rgb)
{
    const int64_t bytes = row_bytes(m, samples);
    const int copies = m->kind % 3 == 0 ? 1 : 3; /* pixmaps have three samples a pixel */
    if (m->kind > 3 && (m->at > m->e.n || (size_t)bytes > m->e.n - m->at))
        return false;
    for (int64_t i = 0; i < samples; i++) {
        int64_t sample;
        if (m->kind > 3)
            sample = byte_sample(m, i);
        else if (!read_text(m, &sample))
            return false;
        if (sample > m->most)
            return false;
        for (int c = 0; c < copies; c++)
            *rgb++ = (uint8_t)((sample * 255 + m->most / 2) / m->most);
    }
    m->at += m->kind > 3 ? (size_t)bytes : 0;
    return true;
}

const char *
kiln_pnm_decode(KilnEncoded e, KilnPictureSize size, uint8_t *rgb)
{
    Map m;
    if (!read_head(&m, e))
        return kiln_picture_damaged;
    for (int64_t y = 0; y < size.height; y++) {
        if (!read_row(&m, size.width * (m.kind % 3 == 0 ? 3 : 1), rgb + y * size.width * 3))
            return kiln_picture_damaged;
    }
    return NULL;
}
