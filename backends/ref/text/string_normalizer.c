/* SPDX-License-Identifier: Apache-2.0 */
/* string_normalizer: the strings that are no stopwords, densely from the start of operand 0, in
 * lower or upper case. Operand 1: how many these are. Where there are none it is 1: an empty
 * string.
 *
 * Each character changes by itself: one whose other case has several characters stays, and no
 * language has its own rules. */
#include "backends/ref/kernel.h"

static gunichar
keep(gunichar c)
{
    return c;
}

typedef gunichar (*ChangeFn)(gunichar c);

static ChangeFn
change_of(const char *action)
{
    return strcmp(action, "LOWER") == 0   ? g_unichar_tolower
           : strcmp(action, "UPPER") == 0 ? g_unichar_toupper
                                          : keep;
}

static bool
equal_lower(KilnText a, KilnText b)
{
    const char *x = a.text, *y = b.text, *x_end = x + a.length, *y_end = y + b.length;
    bool equal = true;
    while (equal && x < x_end && y < y_end) {
        equal = g_unichar_tolower(g_utf8_get_char(x)) == g_unichar_tolower(g_utf8_get_char(y));
        x = g_utf8_next_char(x);
        y = g_utf8_next_char(y);
    }
    return equal && x == x_end && y == y_end;
}

static bool
is_stopword(const KilnInstrAttrs_string_normalizer *attrs, KilnText text)
{
    bool found = false;
    for (uint32_t i = 0; i < attrs->stopwords.n && !found; i++) {
        const KilnText word = { attrs->stopwords.v[i], strlen(attrs->stopwords.v[i]) };
        found = attrs->is_case_sensitive
                    ? word.length == text.length && !memcmp(word.text, text.text, word.length)
                    : equal_lower(word, text);
    }
    return found;
}

/* @text in another case. @out NULL: only the length. */
static size_t
change_case(ChangeFn change, KilnText text, char *out)
{
    size_t length = 0;
    const char *end = text.text + text.length;
    for (const char *at = text.text; at < end; at = g_utf8_next_char(at))
        length += (size_t)g_unichar_to_utf8(change(g_utf8_get_char(at)), out ? out + length : NULL);
    return length;
}

const char *
kiln_ref_string_normalizer(const KilnKernelArgs *args)
{
    const KilnInstrAttrs_string_normalizer *attrs =
        kiln_instr_attrs(args->instr, string_normalizer);
    const ChangeFn change = change_of(attrs->case_change_action);
    const KilnText *const *x = args->data[2];
    const KilnText **result = args->data[0];
    int64_t kept = 0;
    for (int64_t i = 0; i < ref_elements(ref_type(args, 2)); i++) {
        const KilnText text = kiln_text_of(x[i]);
        char *bytes;
        if (is_stopword(attrs, text))
            continue;
        if (kept && i && x[i] == x[i - 1]) { /* no stopword, as the one before */
            result[kept] = result[kept - 1];
            kept++;
            continue;
        }
        if (change == keep) {
            result[kept++] = x[i];
            continue;
        }
        if (!kiln_text_new(args->texts, change_case(change, text, NULL), &result[kept], &bytes))
            return "no memory for strings";
        change_case(change, text, bytes);
        kept++;
    }
    if (!kept)
        result[kept++] = NULL;
    for (int64_t i = kept; i < ref_elements(ref_type(args, 0)); i++)
        result[i] = NULL; /* addresses of nothing are read by nobody, not even by mistake */
    *(int64_t *)args->data[1] = kept;
    return NULL;
}
