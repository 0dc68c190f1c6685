/* SPDX-License-Identifier: Apache-2.0 */
/* string_parts counts the parts of strings, and string_split writes them, with empty strings behind
 * the last. As Python's split(): a delimiter cuts wherever it stands. Without one, runs of white
 * space cut, and none is left at the ends. `maxsplit` cuts are made at most; the last part has the
 * rest. */
#include "backends/ref/kernel.h"

typedef struct {
    KilnText delimiter;
    int64_t cuts; /* that may still be made; below 0: any number */
    const char *at, *end;
    bool over;
} Splitter;

static Splitter
splitter_new(const char *delimiter, int64_t maxsplit, KilnText text)
{
    return (Splitter){ .delimiter = { delimiter, strlen(delimiter) },
                       .cuts = maxsplit,
                       .at = text.text,
                       .end = text.text + text.length };
}

/* Bytes of the white space at @at; 0: there is none. */
static size_t
space_at(const char *at, const char *end)
{
    const gunichar c = at < end ? g_utf8_get_char(at) : 0;
    bool separates = c >= 0x1C && c <= 0x1F; /* as Python has it */
    return c && (separates || c == 0x85 || g_unichar_isspace(c))
               ? (size_t)g_unichar_to_utf8(c, NULL)
               : 0;
}

static void
skip_space(Splitter *s)
{
    size_t n;
    while ((n = space_at(s->at, s->end)))
        s->at += n;
}

static bool
next_word(Splitter *s, KilnText *out)
{
    skip_space(s);
    const char *begin = s->at;
    if (begin == s->end)
        return false;
    if (s->cuts == 0)
        s->at = s->end;
    while (s->at < s->end && !space_at(s->at, s->end))
        s->at = g_utf8_next_char(s->at);
    *out = (KilnText){ begin, (size_t)(s->at - begin) };
    s->cuts--;
    return true;
}

static bool
next_part(Splitter *s, KilnText *out)
{
    if (!s->delimiter.length)
        return next_word(s, out);
    const char *begin = s->at;
    const size_t length = s->delimiter.length;
    if (s->over)
        return false;
    while ((size_t)(s->end - s->at) >= length && s->cuts != 0) {
        if (memcmp(s->at, s->delimiter.text, length) == 0) {
            *out = (KilnText){ begin, (size_t)(s->at - begin) };
            s->at += length;
            s->cuts--;
            return true;
        }
        s->at++;
    }
    *out = (KilnText){ begin, (size_t)(s->end - begin) };
    s->over = true;
    return true;
}

const char *
kiln_ref_string_parts(const KilnKernelArgs *args)
{
    const KilnInstrAttrs_string_parts *attrs = kiln_instr_attrs(args->instr, string_parts);
    const KilnText *const *x = args->data[2];
    int64_t *lengths = args->data[0], most = 0;
    for (int64_t i = 0; i < ref_elements(ref_type(args, 2)); i++) {
        Splitter s = splitter_new(attrs->delimiter, attrs->maxsplit, kiln_text_of(x[i]));
        KilnText part;
        lengths[i] = 0;
        while (next_part(&s, &part))
            lengths[i]++;
        most = MAX(most, lengths[i]);
    }
    *(int64_t *)args->data[1] = most;
    return NULL;
}

const char *
kiln_ref_string_split(const KilnKernelArgs *args)
{
    const KilnInstrAttrs_string_split *attrs = kiln_instr_attrs(args->instr, string_split);
    const KilnType *out = ref_type(args, 0);
    const KilnText *const *x = args->data[1];
    const KilnText **result = args->data[0];
    const int64_t most = out->dims[out->rank - 1];
    for (int64_t i = 0; i < ref_elements(ref_type(args, 1)); i++) {
        Splitter s = splitter_new(attrs->delimiter, attrs->maxsplit, kiln_text_of(x[i]));
        if (i && x[i] == x[i - 1]) {
            for (int64_t k = i * most; k < (i + 1) * most; k++)
                result[k] = result[k - most];
            continue;
        }
        for (int64_t k = 0; k < most; k++) {
            KilnText part = { "", 0 };
            next_part(&s, &part);
            if (!kiln_text_new_copy(args->texts, part.text, part.length, &result[i * most + k]))
                return "no memory for strings";
        }
    }
    return NULL;
}
