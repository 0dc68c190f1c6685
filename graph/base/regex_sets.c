/* SPDX-License-Identifier: Apache-2.0 */
/* Which characters a set has, also where letters match in any case. */
#include "graph/base/regex_priv.h"

#include <string.h>

/* --- classes --- */

typedef struct {
    const char *name;
    uint8_t ranges[8]; /* pairs of bounds; all further pairs are of zero */
} Class;

static const Class classes[] = {
    [KILN_REGEX_SPACE] = { "", { '\t', '\n', '\f', '\r', ' ', ' ' } },
    [KILN_REGEX_DIGIT] = { "digit", { '0', '9' } },
    [KILN_REGEX_WORD] = { "word", { '0', '9', 'A', 'Z', '_', '_', 'a', 'z' } },
    { "alnum", { '0', '9', 'A', 'Z', 'a', 'z' } },
    { "alpha", { 'A', 'Z', 'a', 'z' } },
    { "ascii", { 0, 0x7f } },
    { "blank", { '\t', '\t', ' ', ' ' } },
    { "cntrl", { 0, 0x1f, 0x7f, 0x7f } },
    { "graph", { '!', '~' } },
    { "lower", { 'a', 'z' } },
    { "print", { ' ', '~' } },
    { "punct", { '!', '/', ':', '@', '[', '`', '{', '~' } },
    { "space", { '\t', '\r', ' ', ' ' } },
    { "upper", { 'A', 'Z' } },
    { "xdigit", { '0', '9', 'A', 'F', 'a', 'f' } },
};

int
kiln_regex_class(const char *name, size_t length)
{
    for (size_t i = 0; i < G_N_ELEMENTS(classes); i++) {
        if (length && strlen(classes[i].name) == length &&
            memcmp(classes[i].name, name, length) == 0)
            return (int)i;
    }
    return -1;
}

static bool
class_has(const Class *class, uint32_t c)
{
    bool has = false;
    for (size_t i = 0; i < sizeof class->ranges; i += 2)
        has |= class->ranges[i + 1] && c >= class->ranges[i] && c <= class->ranges[i + 1];
    return has;
}

/* --- cases --- */

/* Letters that are not the upper, lower or title form of the lower form that they have. */
static const uint32_t further_forms[] = {
    0x017F, 0x0345, 0x03C2, 0x03D0, 0x03D1, 0x03D5, 0x03D6, 0x03F0, 0x03F1,
    0x03F4, 0x03F5, 0x00B5, 0x1C80, 0x1C81, 0x1C82, 0x1C83, 0x1C84, 0x1C85,
    0x1C86, 0x1C87, 0x1C88, 0x1E9B, 0x1E9E, 0x1FBE, 0x2126, 0x212A, 0x212B,
};

/* Upper forms @first to @last that are no letters, with their lower forms @by behind them. */
static const struct {
    uint32_t first, last, by;
} numerals[] = {
    { 0x2160, 0x216F, 16 }, /* Roman numerals */
    { 0x24B6, 0x24CF, 26 }, /* letters in circles */
};

static bool
is_without_cases(uint32_t c)
{
    return c == 0x0130 || c == 0x0131; /* I with a dot, i without one */
}

/* The form that all cases of a letter share, as Unicode's simple case folding has them. */
static uint32_t
folded(uint32_t c)
{
    for (size_t i = 0; i < G_N_ELEMENTS(numerals); i++) {
        if (c >= numerals[i].first && c <= numerals[i].last)
            return c + numerals[i].by;
    }
    if (c == 0x0345) /* an iota below */
        return 0x03B9;
    return is_without_cases(c) ? c : g_unichar_tolower(g_unichar_toupper(c));
}

static uint32_t
upper_form(uint32_t form)
{
    for (size_t i = 0; i < G_N_ELEMENTS(numerals); i++) {
        if (form >= numerals[i].first + numerals[i].by && form <= numerals[i].last + numerals[i].by)
            return form - numerals[i].by;
    }
    return g_unichar_toupper(form);
}

uint32_t
kiln_regex_cases(uint32_t c, uint32_t out[KILN_REGEX_CASES])
{
    const uint32_t form = folded(c);
    uint32_t n = 0;
    out[n++] = c;
    if (is_without_cases(c))
        return n;
    out[n++] = form;
    out[n++] = upper_form(form);
    out[n++] = g_unichar_totitle(form);
    for (size_t i = 0; i < G_N_ELEMENTS(further_forms) && n < KILN_REGEX_CASES; i++) {
        if (folded(further_forms[i]) == form)
            out[n++] = further_forms[i];
    }
    return n;
}

/* --- sets --- */

static bool
item_covers(const KilnRegexItem *item, uint32_t c)
{
    switch ((KilnRegexItemKind)item->kind) {
    case KILN_REGEX_RANGE:
        return c >= item->low && c <= item->high;
    case KILN_REGEX_CATEGORY:
        return item->low >> g_unichar_type(c) & 1;
    case KILN_REGEX_SCRIPT:
        return (uint32_t)g_unichar_get_script(c) == item->low;
    case KILN_REGEX_CLASS:
        return class_has(&classes[item->low], c);
    }
    return false;
}

/* Items that are inverted have what none of the cases is in. */
bool
kiln_regex_set_has(const KilnRegex *regex, const KilnRegexSet *set, uint32_t c)
{
    const KilnRegexItem *items = kiln_regex_items(regex) + set->first;
    uint32_t cases[KILN_REGEX_CASES] = { c };
    const uint32_t n_cases = set->folds ? kiln_regex_cases(c, cases) : 1;
    bool has = false;
    for (uint32_t i = 0; i < set->n && !has; i++) {
        bool covered = false;
        for (uint32_t k = 0; k < n_cases && !covered; k++)
            covered = item_covers(&items[i], cases[k]);
        has = covered != items[i].inverted;
    }
    return has != set->inverted;
}
