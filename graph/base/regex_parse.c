/* SPDX-License-Identifier: Apache-2.0 */
/* Reads patterns in RE2's syntax. */
#include "graph/base/regex_priv.h"

#include "graph/error.h"
#include "graph/texts.h"

#include <string.h>

enum {
    DEEPEST = 250,       /* groups inside each other */
    MOST_REPEATS = 1000, /* of x{n,m}, also of all that are inside each other, as in RE2 */
    LAST_CHARACTER = 0x10FFFF
};

typedef struct {
    bool folds, lines, dot_all; /* (?i), (?m), (?s) */
} Flags;

typedef struct {
    const char *pattern, *at;
    KilnRegexTree *tree;
    Flags flags;
    int depth;
    bool quoted; /* between \Q and \E */
    GError **error;
} Parser;

uint32_t
kiln_regex_next(const char **at)
{
    const uint8_t *c = (const uint8_t *)*at;
    size_t n = c[0] < 0x80 ? 1 : c[0] < 0xE0 ? 2 : c[0] < 0xF0 ? 3 : 4;
    uint32_t code = n == 1 ? c[0] : c[0] & (0x7Fu >> n);
    for (size_t i = 1; i < n; i++)
        code = code << 6 | (c[i] & 0x3Fu);
    *at += n;
    return code;
}

static gboolean throw(const Parser *p, const char *expected)
{
    return kiln_throw(p->error, KILN_ERROR_INVALID, "byte %zu of '%s': expected %s",
                      (size_t)(p->at - p->pattern), p->pattern, expected);
}

static bool
accept(Parser *p, const char *word)
{
    bool is = strncmp(p->at, word, strlen(word)) == 0;
    p->at += is ? strlen(word) : 0;
    return is;
}

/* --- parts --- */

/* Patterns are data: what they take is bounded before it is a program. */
static bool
in_bounds(const Parser *p)
{
    if (p->tree->nodes->len <= 4 * KILN_REGEX_STEPS && p->tree->items->len <= KILN_REGEX_STEPS)
        return true;
    return kiln_throw(p->error, KILN_ERROR_LIMIT,
                      "byte %zu of the pattern: expected at most %d parts",
                      (size_t)(p->at - p->pattern), KILN_REGEX_STEPS);
}

static KilnRegexNode *
new_node(Parser *p, int kind, uint32_t low, uint32_t high)
{
    KilnRegexNode *node = g_new0(KilnRegexNode, 1);
    node->kind = kind;
    node->times = 1;
    node->low = low;
    node->high = high;
    g_ptr_array_add(p->tree->nodes, node);
    return node;
}

/* One node for @nodes in their order. Halves keep it flat: code walks it by calling itself. */
static KilnRegexNode *
join(Parser *p, int kind, KilnRegexNode *const *nodes, guint n)
{
    if (n == 0)
        return new_node(p, KILN_NODE_EMPTY, 0, 0);
    if (n == 1)
        return nodes[0];
    KilnRegexNode *left = join(p, kind, nodes, n / 2);
    KilnRegexNode *node = new_node(p, kind, 0, 0);
    node->left = left;
    node->right = join(p, kind, nodes + n / 2, n - n / 2);
    node->times = MAX(left->times, node->right->times);
    return node;
}

static void
add_item(Parser *p, KilnRegexItemKind kind, uint32_t low, uint32_t high, bool inverted)
{
    const KilnRegexItem item = {
        .kind = (uint16_t)kind, .inverted = inverted, .low = low, .high = high
    };
    g_array_append_val(p->tree->items, item);
}

/* A part for the items from @first on. */
static KilnRegexNode *
new_set(Parser *p, uint32_t first, bool inverted)
{
    const KilnRegexSet set = { .first = first,
                               .n = p->tree->items->len - first,
                               .folds = p->flags.folds,
                               .inverted = inverted };
    g_array_append_val(p->tree->sets, set);
    return new_node(p, KILN_NODE_SET, p->tree->sets->len - 1, 0);
}

/* A part that is none: flags, or the begin of a quotation. It cannot be repeated. */
static KilnRegexNode *
no_part(Parser *p)
{
    KilnRegexNode *node = new_node(p, KILN_NODE_EMPTY, 0, 0);
    node->times = 0;
    return node;
}

static KilnRegexNode *
literal(Parser *p, uint32_t character)
{
    uint32_t first = p->tree->items->len;
    add_item(p, KILN_REGEX_RANGE, character, character, false);
    return new_set(p, first, false);
}

/* --- classes of characters --- */

/* \d, \s, \w and their complements. */
static bool
add_perl(Parser *p, char letter)
{
    static const int classes[] = { KILN_REGEX_DIGIT, KILN_REGEX_SPACE, KILN_REGEX_WORD };
    const char *names = "dsw", *at = strchr(names, g_ascii_tolower(letter));
    if (!letter || !at)
        return false;
    add_item(p, KILN_REGEX_CLASS, (uint32_t)classes[at - names], 0, g_ascii_isupper(letter));
    return true;
}

static bool
add_posix(Parser *p, bool *out_found)
{
    const char *end = strncmp(p->at, "[:", 2) == 0 ? strstr(p->at + 2, ":]") : NULL;
    *out_found = end != NULL;
    if (!end)
        return true;
    bool inverted = p->at[2] == '^';
    const char *name = p->at + 2 + inverted;
    const int class = name < end ? kiln_regex_class(name, (size_t)(end - name)) : -1;
    if (class < 0)
        return throw(p, "a class such as [:alpha:]");
    add_item(p, KILN_REGEX_CLASS, (uint32_t) class, 0, inverted);
    p->at = end + 2;
    return true;
}

#define BIT(type) (1u << G_UNICODE_##type)
static const struct {
    const char *name;
    uint32_t types;
} categories[] = {
    { "Lu", BIT(UPPERCASE_LETTER) },
    { "Ll", BIT(LOWERCASE_LETTER) },
    { "Lt", BIT(TITLECASE_LETTER) },
    { "Lm", BIT(MODIFIER_LETTER) },
    { "Lo", BIT(OTHER_LETTER) },
    { "Mn", BIT(NON_SPACING_MARK) },
    { "Mc", BIT(SPACING_MARK) },
    { "Me", BIT(ENCLOSING_MARK) },
    { "Nd", BIT(DECIMAL_NUMBER) },
    { "Nl", BIT(LETTER_NUMBER) },
    { "No", BIT(OTHER_NUMBER) },
    { "Pc", BIT(CONNECT_PUNCTUATION) },
    { "Pd", BIT(DASH_PUNCTUATION) },
    { "Ps", BIT(OPEN_PUNCTUATION) },
    { "Pe", BIT(CLOSE_PUNCTUATION) },
    { "Pi", BIT(INITIAL_PUNCTUATION) },
    { "Pf", BIT(FINAL_PUNCTUATION) },
    { "Po", BIT(OTHER_PUNCTUATION) },
    { "Sm", BIT(MATH_SYMBOL) },
    { "Sc", BIT(CURRENCY_SYMBOL) },
    { "Sk", BIT(MODIFIER_SYMBOL) },
    { "So", BIT(OTHER_SYMBOL) },
    { "Zs", BIT(SPACE_SEPARATOR) },
    { "Zl", BIT(LINE_SEPARATOR) },
    { "Zp", BIT(PARAGRAPH_SEPARATOR) },
    { "Cc", BIT(CONTROL) },
    { "Cf", BIT(FORMAT) },
    { "Co", BIT(PRIVATE_USE) },
    { "Cs", BIT(SURROGATE) },
};
static const struct {
    const char *name;
    GUnicodeScript script;
} scripts[] = {
    { "Arabic", G_UNICODE_SCRIPT_ARABIC },       { "Armenian", G_UNICODE_SCRIPT_ARMENIAN },
    { "Bengali", G_UNICODE_SCRIPT_BENGALI },     { "Bopomofo", G_UNICODE_SCRIPT_BOPOMOFO },
    { "Braille", G_UNICODE_SCRIPT_BRAILLE },     { "Cherokee", G_UNICODE_SCRIPT_CHEROKEE },
    { "Common", G_UNICODE_SCRIPT_COMMON },       { "Coptic", G_UNICODE_SCRIPT_COPTIC },
    { "Cyrillic", G_UNICODE_SCRIPT_CYRILLIC },   { "Devanagari", G_UNICODE_SCRIPT_DEVANAGARI },
    { "Ethiopic", G_UNICODE_SCRIPT_ETHIOPIC },   { "Georgian", G_UNICODE_SCRIPT_GEORGIAN },
    { "Greek", G_UNICODE_SCRIPT_GREEK },         { "Gujarati", G_UNICODE_SCRIPT_GUJARATI },
    { "Gurmukhi", G_UNICODE_SCRIPT_GURMUKHI },   { "Han", G_UNICODE_SCRIPT_HAN },
    { "Hangul", G_UNICODE_SCRIPT_HANGUL },       { "Hebrew", G_UNICODE_SCRIPT_HEBREW },
    { "Hiragana", G_UNICODE_SCRIPT_HIRAGANA },   { "Inherited", G_UNICODE_SCRIPT_INHERITED },
    { "Kannada", G_UNICODE_SCRIPT_KANNADA },     { "Katakana", G_UNICODE_SCRIPT_KATAKANA },
    { "Khmer", G_UNICODE_SCRIPT_KHMER },         { "Lao", G_UNICODE_SCRIPT_LAO },
    { "Latin", G_UNICODE_SCRIPT_LATIN },         { "Malayalam", G_UNICODE_SCRIPT_MALAYALAM },
    { "Mongolian", G_UNICODE_SCRIPT_MONGOLIAN }, { "Myanmar", G_UNICODE_SCRIPT_MYANMAR },
    { "Oriya", G_UNICODE_SCRIPT_ORIYA },         { "Sinhala", G_UNICODE_SCRIPT_SINHALA },
    { "Syriac", G_UNICODE_SCRIPT_SYRIAC },       { "Tamil", G_UNICODE_SCRIPT_TAMIL },
    { "Telugu", G_UNICODE_SCRIPT_TELUGU },       { "Thaana", G_UNICODE_SCRIPT_THAANA },
    { "Thai", G_UNICODE_SCRIPT_THAI },           { "Tibetan", G_UNICODE_SCRIPT_TIBETAN },
};

/* The item of \p{@name}. */
static bool
add_property(Parser *p, const char *name, bool inverted)
{
    uint32_t types = 0;
    for (size_t i = 0; *name && i < G_N_ELEMENTS(categories); i++) {
        bool whole = !name[1] && name[0] == categories[i].name[0];
        types |= whole || strcmp(name, categories[i].name) == 0 ? categories[i].types : 0;
    }
    if (types) {
        add_item(p, KILN_REGEX_CATEGORY, types, 0, inverted);
        return true;
    }
    if (strcmp(name, "Any") == 0) {
        add_item(p, KILN_REGEX_RANGE, 0, LAST_CHARACTER, inverted);
        return true;
    }
    for (size_t i = 0; i < G_N_ELEMENTS(scripts); i++) {
        if (strcmp(name, scripts[i].name) == 0) {
            add_item(p, KILN_REGEX_SCRIPT, (uint32_t)scripts[i].script, 0, inverted);
            return true;
        }
    }
    return throw(p, "a category or script of Unicode such as Lu or Greek");
}

/* Behind \p or \P: a letter, or a name in braces. */
static bool
parse_property(Parser *p, bool inverted)
{
    char name[32] = "";
    if (*p->at == '{') {
        const char *end = strchr(p->at, '}');
        bool not = p->at[1] == '^';
        size_t length = end ? (size_t)(end - p->at) - 1 - not : 0;
        if (!end || length >= sizeof name)
            return throw(p, "a name in braces");
        memcpy(name, p->at + 1 + not, length);
        if (!add_property(p, name, inverted != not ))
            return false;
        p->at = end + 1;
        return true;
    }
    name[0] = *p->at;
    if (!add_property(p, name, inverted))
        return false;
    p->at++;
    return true;
}

/* --- escapes of one character --- */

static bool
parse_hex(Parser *p, uint32_t *out)
{
    bool braces = *p->at == '{';
    const char *digits = p->at + braces;
    size_t n = 0;
    *out = 0;
    for (; g_ascii_isxdigit(digits[n]) && (braces ? *out <= LAST_CHARACTER : n < 2); n++)
        *out = *out * 16 + (uint32_t)g_ascii_xdigit_value(digits[n]);
    if (!n || (braces ? digits[n] != '}' : n != 2) || *out > LAST_CHARACTER)
        return throw(p, "two hexadecimal digits, or {…} with a code point");
    p->at = digits + n + braces;
    return true;
}

/* The character of an escape; the backslash is behind. */
static bool
parse_escape(Parser *p, uint32_t *out)
{
    static const char letters[] = "aftnrv", characters[] = "\a\f\t\n\r\v";
    const char c = *p->at;
    const char *known = c ? strchr(letters, c) : NULL;
    if (known) {
        *out = (uint8_t)characters[known - letters];
        p->at++;
        return true;
    }
    if (c == 'x') {
        p->at++;
        return parse_hex(p, out);
    }
    bool octal = c == '0' || (c > '0' && c < '8' && p->at[1] >= '0' && p->at[1] < '8');
    if (octal) {
        *out = 0;
        for (int n = 0; n < 3 && *p->at >= '0' && *p->at < '8'; n++)
            *out = *out * 8 + (uint32_t)(*p->at++ - '0');
        return true;
    }
    if (!c || g_ascii_isalnum(c) || (uint8_t)c >= 0x80)
        return throw(p, "an escape that RE2 knows, and no back-reference");
    *out = (uint8_t)c;
    p->at++;
    return true;
}

/* --- brackets --- */

static bool
parse_bound(Parser *p, uint32_t *out)
{
    if (!*p->at)
        return throw(p, "]");
    if (*p->at == '\\') {
        p->at++;
        return parse_escape(p, out);
    }
    *out = kiln_regex_next(&p->at);
    return true;
}

/* A class inside brackets, such as \d or [:alpha:]. */
static bool
parse_named(Parser *p, bool *out_found)
{
    if (!add_posix(p, out_found))
        return false;
    if (*out_found)
        return true;
    if (p->at[0] != '\\')
        return true;
    if (p->at[1] == 'p' || p->at[1] == 'P') {
        p->at += 2;
        *out_found = true;
        return parse_property(p, p->at[-1] == 'P');
    }
    *out_found = add_perl(p, p->at[1]);
    p->at += *out_found ? 2 : 0;
    return true;
}

static KilnRegexNode *
parse_brackets(Parser *p)
{
    uint32_t first = p->tree->items->len;
    bool inverted = accept(p, "^");
    for (bool begins = true; (begins || *p->at != ']') && in_bounds(p); begins = false) {
        bool named;
        uint32_t low = 0, high;
        if (!parse_named(p, &named))
            return NULL;
        if (named)
            continue;
        if (!parse_bound(p, &low))
            return NULL;
        high = low;
        if (p->at[0] == '-' && p->at[1] && p->at[1] != ']') {
            p->at++;
            if (!parse_bound(p, &high))
                return NULL;
        }
        if (low > high) {
            throw(p, "a range whose end is not before its begin");
            return NULL;
        }
        add_item(p, KILN_REGEX_RANGE, low, high, false);
    }
    p->at++;
    return new_set(p, first, inverted);
}

/* --- atoms --- */

static KilnRegexNode *
assertion(Parser *p, KilnRegexPlace place)
{
    return new_node(p, KILN_NODE_ASSERT, (uint32_t)place, 0);
}

static KilnRegexNode *
parse_backslash(Parser *p)
{
    static const char letters[] = "AzbB";
    static const KilnRegexPlace places[] = { KILN_REGEX_TEXT_BEGIN, KILN_REGEX_TEXT_END,
                                             KILN_REGEX_WORD_EDGE, KILN_REGEX_NO_WORD_EDGE };
    uint32_t first = p->tree->items->len, character;
    const char c = *p->at;
    const char *place = c ? strchr(letters, c) : NULL;
    if (place) {
        p->at++;
        return assertion(p, places[place - letters]);
    }
    if (c == 'Q') {
        p->at++;
        p->quoted = true;
        return no_part(p);
    }
    if (c == 'p' || c == 'P') {
        p->at++;
        return parse_property(p, c == 'P') ? new_set(p, first, false) : NULL;
    }
    if (add_perl(p, c)) {
        p->at++;
        return new_set(p, first, false);
    }
    return parse_escape(p, &character) ? literal(p, character) : NULL;
}

static KilnRegexNode *
any_character(Parser *p)
{
    uint32_t first = p->tree->items->len;
    if (p->flags.dot_all)
        add_item(p, KILN_REGEX_RANGE, 0, LAST_CHARACTER, false);
    else
        add_item(p, KILN_REGEX_RANGE, '\n', '\n', true);
    return new_set(p, first, false);
}

static KilnRegexNode *parse_ways(Parser *p);

/* Behind (?: flags, up to ':' or ')', which *@closes says. */
static bool
parse_flags(Parser *p, bool *closes)
{
    Flags flags = p->flags;
    bool on = true;
    for (;; p->at++) {
        if (!on && p->at[-1] == '-' && !strchr("imsU", *p->at))
            return throw(p, "flags i, m, s and U behind -");
        switch (*p->at) {
        case 'i':
            flags.folds = on;
            break;
        case 'm':
            flags.lines = on;
            break;
        case 's':
            flags.dot_all = on;
            break;
        case 'U': /* which way is tried first does not matter */
            break;
        case '-':
            if (!on)
                return throw(p, "flags i, m, s and U");
            on = false;
            break;
        case ':':
        case ')':
            *closes = *p->at == ')';
            p->at++;
            p->flags = flags;
            return true;
        default:
            return throw(p, "flags i, m, s and U, and no look-around");
        }
    }
}

/* Behind (?P< or (?<. */
static bool
parse_name(Parser *p)
{
    const char *begin = p->at;
    while (g_ascii_isalnum(*p->at) || *p->at == '_')
        p->at++;
    if (p->at == begin || *p->at != '>')
        return throw(p, "a name of letters, digits and _ with > behind it, and no look-around");
    p->at++;
    return true;
}

static KilnRegexNode *
parse_group(Parser *p)
{
    const Flags outer = p->flags;
    bool closes = false;
    if (++p->depth > DEEPEST) {
        kiln_throw(p->error, KILN_ERROR_LIMIT, "expected at most %d groups inside each other",
                   DEEPEST);
        return NULL;
    }
    if (accept(p, "?P<") || accept(p, "?<")) {
        if (!parse_name(p))
            return NULL;
    } else if (accept(p, "?")) {
        if (!parse_flags(p, &closes))
            return NULL;
    }
    if (closes) { /* (?i): the rest of the group around it */
        p->depth--;
        return no_part(p);
    }
    KilnRegexNode *inside = parse_ways(p);
    if (!inside)
        return NULL;
    if (!accept(p, ")")) {
        throw(p, ")");
        return NULL;
    }
    p->flags = outer;
    p->depth--;
    return inside;
}

static KilnRegexNode *
parse_atom(Parser *p)
{
    if (p->quoted)
        return literal(p, kiln_regex_next(&p->at));
    if (accept(p, "("))
        return parse_group(p);
    if (accept(p, "["))
        return parse_brackets(p);
    if (accept(p, "."))
        return any_character(p);
    if (accept(p, "^"))
        return assertion(p, p->flags.lines ? KILN_REGEX_LINE_BEGIN : KILN_REGEX_TEXT_BEGIN);
    if (accept(p, "$"))
        return assertion(p, p->flags.lines ? KILN_REGEX_LINE_END : KILN_REGEX_TEXT_END);
    if (accept(p, "\\"))
        return parse_backslash(p);
    if (strchr("*+?", *p->at)) {
        throw(p, "something to repeat");
        return NULL;
    }
    return literal(p, kiln_regex_next(&p->at));
}

/* --- repetition --- */

static bool
parse_number(const char **at, uint32_t *out)
{
    const char *begin = *at;
    *out = 0;
    for (; g_ascii_isdigit(**at); (*at)++)
        *out = MIN(*out * 10 + (uint32_t)(**at - '0'), (uint32_t)MOST_REPEATS + 1);
    return *at > begin;
}

/* {n}, {n,} or {n,m}. Other braces are characters. */
static bool
accept_counts(Parser *p, uint32_t *low, uint32_t *high)
{
    const char *at = p->at + 1;
    if (*p->at != '{' || !parse_number(&at, low))
        return false;
    *high = *low;
    if (*at == ',') {
        at++;
        if (!parse_number(&at, high))
            *high = UINT32_MAX;
    }
    if (*at != '}')
        return false;
    p->at = at + 1;
    return true;
}

static bool
accept_repeat(Parser *p, uint32_t *low, uint32_t *high)
{
    *low = 0;
    *high = UINT32_MAX;
    if (accept(p, "*"))
        return true;
    if (accept(p, "?")) {
        *high = 1;
        return true;
    }
    *low = 1;
    return accept(p, "+") || accept_counts(p, low, high);
}

static KilnRegexNode *
repeated(Parser *p, KilnRegexNode *atom, uint32_t low, uint32_t high, bool counted)
{
    const uint32_t most = high == UINT32_MAX ? low : high;
    if (!atom->times) {
        throw(p, "something to repeat");
        return NULL;
    }
    if (low > most || most > MOST_REPEATS) {
        throw(p, "at most 1000 repeats, and the lesser number first");
        return NULL;
    }
    KilnRegexNode *node = new_node(p, KILN_NODE_REPEAT, low, high);
    node->left = atom;
    node->times = atom->times * (counted && most ? most : 1);
    if (node->times > MOST_REPEATS) {
        throw(p, "at most 1000 repeats, counts inside each other multiplied");
        return NULL;
    }
    return node;
}

static KilnRegexNode *
parse_repeat(Parser *p)
{
    KilnRegexNode *atom = parse_atom(p);
    uint32_t low = 0, high = 0;
    bool counted = false;
    if (p->quoted && accept(p, "\\E"))
        p->quoted = false;
    if (!atom || p->quoted)
        return atom;
    counted = *p->at == '{';
    if (!accept_repeat(p, &low, &high))
        return atom;
    accept(p, "?"); /* which way is tried first does not matter */
    KilnRegexNode *node = repeated(p, atom, low, high, counted);
    if (node && accept_repeat(p, &low, &high)) {
        throw(p, "one repetition");
        return NULL;
    }
    return node;
}

/* --- ways --- */

static KilnRegexNode *
parse_row(Parser *p)
{
    g_autoptr(GPtrArray) parts = g_ptr_array_new();
    while (*p->at) {
        if (!p->quoted && (*p->at == '|' || *p->at == ')'))
            break;
        KilnRegexNode *next = parse_repeat(p);
        if (!next || !in_bounds(p))
            return NULL;
        if (next->times)
            g_ptr_array_add(parts, next);
    }
    return join(p, KILN_NODE_CAT, (KilnRegexNode *const *)parts->pdata, parts->len);
}

static KilnRegexNode *
parse_ways(Parser *p)
{
    g_autoptr(GPtrArray) ways = g_ptr_array_new();
    do {
        KilnRegexNode *row = parse_row(p);
        if (!row || !in_bounds(p))
            return NULL;
        g_ptr_array_add(ways, row);
    } while (accept(p, "|"));
    return join(p, KILN_NODE_ALT, (KilnRegexNode *const *)ways->pdata, ways->len);
}

gboolean
kiln_regex_parse(const char *pattern, KilnRegexTree *tree, GError **error)
{
    Parser p = { .pattern = pattern, .at = pattern, .tree = tree, .error = error };
    if (!kiln_text_is_utf8(pattern, strlen(pattern)))
        return kiln_throw(error, KILN_ERROR_INVALID, "expected UTF-8, found other bytes");
    if (!(tree->root = parse_ways(&p)))
        return FALSE;
    return !*p.at || throw(&p, "no ) without (");
}
