/* SPDX-License-Identifier: Apache-2.0 */
/* token_count finds the most tokens that a string has, and tokenizer writes them. Tokens of a
 * string are, in this order of precedence:
 *
 *     separators    what lies between matches of the first pattern, cut by the second one, and so
 * on tokenexp      matches: the first one, then the first one behind it neither       characters
 *
 * A match is the longest one that begins first. An empty one eats the next character. A match of
 * tokenexp with too few characters is no token, and the next one may begin behind its first. */
#include "backends/ref/kernel.h"
#include "graph/base/regex.h"

typedef struct {
    KilnStrings separators;
    const char *tokenexp;
    int64_t least; /* characters of a token */
    bool mark;
} Rule;

static Rule
rule_of(const KilnInstr *instr)
{
    if (instr->kind == KILN_INSTR_token_count) {
        const KilnInstrAttrs_token_count *attrs = kiln_instr_attrs(instr, token_count);
        return (Rule){ attrs->separators, attrs->tokenexp, attrs->mincharnum, attrs->mark };
    }
    const KilnInstrAttrs_tokenizer *attrs = kiln_instr_attrs(instr, tokenizer);
    return (Rule){ attrs->separators, attrs->tokenexp, attrs->mincharnum, attrs->mark };
}

/* --- patterns, one behind the other --- */

enum {
    ALIGNMENT = 8
};

static size_t
aligned(size_t bytes)
{
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static uint32_t
n_patterns(const Rule *rule)
{
    return rule->separators.n ? rule->separators.n : *rule->tokenexp ? 1 : 0;
}

/* Compiles pattern @i, which is sound: the verifier has compiled it. */
static KilnRegex *
pattern_of(const Rule *rule, uint32_t i)
{
    return kiln_regex_compile(rule->separators.n ? rule->separators.v[i] : rule->tokenexp, NULL);
}

size_t
kiln_ref_tokenizer_prepared(const KilnInstr *instr)
{
    const Rule rule = rule_of(instr);
    size_t bytes = 0;
    for (uint32_t i = 0; i < n_patterns(&rule); i++) {
        g_autoptr(KilnRegex) regex = pattern_of(&rule, i);
        bytes += regex ? aligned(kiln_regex_bytes(regex)) : 0;
    }
    return bytes;
}

void
kiln_ref_tokenizer_prepare(const KilnInstr *instr, void *prepared)
{
    const Rule rule = rule_of(instr);
    char *at = prepared;
    for (uint32_t i = 0; i < n_patterns(&rule); i++) {
        g_autoptr(KilnRegex) regex = pattern_of(&rule, i);
        if (!regex)
            return;
        memcpy(at, regex, kiln_regex_bytes(regex));
        at += aligned(kiln_regex_bytes(regex));
    }
}

/* --- tokens --- */

/* What is left of a part that pattern `regex` cuts. */
typedef struct {
    const KilnRegex *regex;
    KilnText text;
    size_t from;
    bool open;
} Level;

typedef struct {
    Rule rule;
    uint32_t n;    /* patterns */
    Level *levels; /* n + 1: the first one is the whole string */
    void *scratch; /* of a match */
} Tokens;

size_t
kiln_ref_tokenizer_scratch(const KilnInstr *instr, uint32_t form, int threads)
{
    (void)form;
    (void)threads;
    const Rule rule = rule_of(instr);
    size_t bytes = 0;
    for (uint32_t i = 0; i < n_patterns(&rule); i++) {
        g_autoptr(KilnRegex) regex = pattern_of(&rule, i);
        bytes = MAX(bytes, regex ? kiln_regex_scratch(regex) : 0);
    }
    return bytes + ((size_t)n_patterns(&rule) + 1) * sizeof(Level);
}

size_t
kiln_ref_token_count_prepared(const KilnInstr *instr)
{
    return kiln_ref_tokenizer_prepared(instr);
}

void
kiln_ref_token_count_prepare(const KilnInstr *instr, void *prepared)
{
    kiln_ref_tokenizer_prepare(instr, prepared);
}

size_t
kiln_ref_token_count_scratch(const KilnInstr *instr, uint32_t form, int threads)
{
    return kiln_ref_tokenizer_scratch(instr, form, threads);
}

static Tokens
tokens_new(const KilnKernelArgs *args)
{
    Tokens t = { .rule = rule_of(args->instr), .levels = args->scratch };
    const char *at = args->prepared;
    t.n = n_patterns(&t.rule);
    t.scratch = t.levels + t.n + 1;
    for (uint32_t i = 1; i <= t.n; i++) {
        t.levels[i].regex = (const KilnRegex *)(const void *)at;
        at += aligned(kiln_regex_bytes(t.levels[i].regex));
    }
    return t;
}

static void
begin(Tokens *t, KilnText text)
{
    for (uint32_t i = 0; i <= t->n; i++)
        t->levels[i].open = false;
    Level *first = &t->levels[t->rule.separators.n ? 0 : t->n];
    first->text = text;
    first->from = 0;
    first->open = text.length > 0;
}

/* Where the character at byte @at of @text ends. */
static size_t
character_end(KilnText text, size_t at)
{
    return (size_t)(g_utf8_next_char(text.text + at) - text.text);
}

/* The next match of @level; false: there is none. */
static bool
find(const Tokens *t, const Level *level, size_t *out_begin, size_t *out_end)
{
    KilnText match;
    if (!kiln_regex_find(level->regex, level->text, level->from, &match, t->scratch))
        return false;
    *out_begin = (size_t)(match.text - level->text.text);
    *out_end = *out_begin + match.length;
    return true;
}

/* Goes on at byte @from. */
static void
go_on(Level *level, size_t from)
{
    level->from = from;
    level->open = from < level->text.length;
}

/* The next part that is not empty behind the cuts of the first @n patterns. */
static bool
next_part(Tokens *t, uint32_t n, KilnText *out)
{
    Level *level = &t->levels[n];
    for (;;) {
        size_t from = level->from, to, end;
        if (!level->open && (n == 0 || !next_part(t, n - 1, &level->text)))
            return false;
        if (n == 0) {
            level->open = false;
            *out = level->text;
            return true;
        }
        from = level->open ? from : 0;
        level->from = from;
        if (!find(t, level, &to, &end) || to == level->text.length)
            to = end = level->text.length;
        else if (end == to)
            end = character_end(level->text, to);
        go_on(level, end);
        *out = (KilnText){ level->text.text + from, to - from };
        if (out->length)
            return true;
    }
}

static bool
is_long_enough(const Tokens *t, KilnText token)
{
    return g_utf8_strlen(token.text, (gssize)token.length) >= t->rule.least;
}

static bool
next_match(Tokens *t, KilnText *out)
{
    Level *level = &t->levels[t->n];
    size_t from, end;
    while (level->open) {
        if (!t->n) { /* characters */
            from = level->from;
            end = character_end(level->text, from);
        } else if (!find(t, level, &from, &end) || from == level->text.length) {
            return false;
        }
        *out = (KilnText){ level->text.text + from, end - from };
        const bool counts = out->length && is_long_enough(t, *out);
        go_on(level, counts ? end : character_end(level->text, from));
        if (counts)
            return true;
    }
    return false;
}

static bool
next_token(Tokens *t, KilnText *out)
{
    if (!t->rule.separators.n)
        return next_match(t, out);
    while (next_part(t, t->n, out)) {
        if (is_long_enough(t, *out))
            return true;
    }
    return false;
}

const char *
kiln_ref_token_count(const KilnKernelArgs *args)
{
    const KilnText *const *x = args->data[1];
    Tokens t = tokens_new(args);
    int64_t most = 0;
    for (int64_t i = 0; i < ref_elements(ref_type(args, 1)); i++) {
        KilnText token;
        int64_t n = 0;
        begin(&t, kiln_text_of(x[i]));
        while (next_token(&t, &token))
            n++;
        most = MAX(most, n);
    }
    *(int64_t *)args->data[0] = most && t.rule.mark ? most + 2 : most;
    return NULL;
}

/* Writes the tokens of @x to the @most elements of @out. */
static bool
write_tokens(const KilnKernelArgs *args, Tokens *t, KilnText x, const KilnText **out, int64_t most)
{
    const char *pad = kiln_instr_attrs(args->instr, tokenizer)->pad_value;
    const KilnText start = { "\x02", 1 }, end = { "\x03", 1 }, padding = { pad, strlen(pad) };
    bool ended = !t->rule.mark;
    begin(t, x);
    for (int64_t k = 0; k < most; k++) {
        KilnText token = padding;
        if (k == 0 && t->rule.mark) {
            token = start;
        } else if (!next_token(t, &token)) {
            token = ended ? padding : end;
            ended = true;
        }
        if (!kiln_text_new_copy(args->texts, token.text, token.length, &out[k]))
            return false;
    }
    return true;
}

const char *
kiln_ref_tokenizer(const KilnKernelArgs *args)
{
    const KilnType *out = ref_type(args, 0);
    const KilnText *const *x = args->data[1];
    const KilnText **result = args->data[0];
    const int64_t most = out->dims[out->rank - 1];
    Tokens t = tokens_new(args);
    for (int64_t i = 0; i < ref_elements(ref_type(args, 1)); i++, result += most) {
        if (!write_tokens(args, &t, kiln_text_of(x[i]), result, most))
            return "no memory for strings";
    }
    return NULL;
}
