/* SPDX-License-Identifier: Apache-2.0 */
/* The block of a pattern: steps, sets of characters, and the items of the sets. */
#ifndef KILN_GRAPH_BASE_REGEX_PRIV_H
#define KILN_GRAPH_BASE_REGEX_PRIV_H

#include "graph/base/regex.h"

#include <glib.h>

typedef enum {
    KILN_REGEX_MATCH,  /* the end of all ways */
    KILN_REGEX_SET,    /* a character of set @a, then the next step */
    KILN_REGEX_SPLIT,  /* steps @a and @b */
    KILN_REGEX_JUMP,   /* step @a */
    KILN_REGEX_ASSERT, /* the next step, where KilnRegexPlace @a holds */
} KilnRegexKind;

typedef enum {
    KILN_REGEX_TEXT_BEGIN,
    KILN_REGEX_TEXT_END,
    KILN_REGEX_LINE_BEGIN,
    KILN_REGEX_LINE_END,
    KILN_REGEX_WORD_EDGE,
    KILN_REGEX_NO_WORD_EDGE,
} KilnRegexPlace;

typedef struct {
    uint32_t kind, a, b;
} KilnRegexStep;

/** Items [@first, @first + @n). @folds: letters match in any case. @inverted: all others match. */
typedef struct {
    uint32_t first, n;
    bool folds, inverted;
} KilnRegexSet;

typedef enum {
    KILN_REGEX_RANGE,    /* code points @low to @high */
    KILN_REGEX_CATEGORY, /* GUnicodeType is a bit of @low */
    KILN_REGEX_SCRIPT,   /* GUnicodeScript is @low */
    KILN_REGEX_CLASS,    /* of the class @low of regex_sets.c */
} KilnRegexItemKind;

typedef struct {
    uint16_t kind;
    bool inverted;
    uint32_t low, high;
} KilnRegexItem;

struct KilnRegex {
    size_t bytes;
    uint32_t n_steps, n_sets, n_items;
    /* steps, sets, items */
};

static inline const KilnRegexStep *
kiln_regex_steps(const KilnRegex *regex)
{
    return (const KilnRegexStep *)(const void *)(regex + 1);
}
static inline const KilnRegexSet *
kiln_regex_sets(const KilnRegex *regex)
{
    return (const KilnRegexSet *)(const void *)(kiln_regex_steps(regex) + regex->n_steps);
}
static inline const KilnRegexItem *
kiln_regex_items(const KilnRegex *regex)
{
    return (const KilnRegexItem *)(const void *)(kiln_regex_sets(regex) + regex->n_sets);
}

/** Classes that have no name between [: and :], or another one. */
enum {
    KILN_REGEX_SPACE, /* \s */
    KILN_REGEX_DIGIT, /* \d, [:digit:] */
    KILN_REGEX_WORD,  /* \w, [:word:] */
};

/** The class of a name such as "alpha", or -1. */
int kiln_regex_class(const char *name, size_t length);

/** True if character @c is in @set. */
bool kiln_regex_set_has(const KilnRegex *regex, const KilnRegexSet *set, uint32_t c);

enum {
    KILN_REGEX_CASES = 8, /* no letter has more forms */
};

/** Writes the characters that differ from @c by their case alone, and @c. Returns their number. */
uint32_t kiln_regex_cases(uint32_t c, uint32_t out[KILN_REGEX_CASES]);

/** A part of a pattern, as the parser reads it. */
typedef struct KilnRegexNode KilnRegexNode;
struct KilnRegexNode {
    enum {
        KILN_NODE_EMPTY,
        KILN_NODE_SET,    /* @low is the set */
        KILN_NODE_ASSERT, /* @low is the place */
        KILN_NODE_CAT,    /* @left, then @right */
        KILN_NODE_ALT,    /* @left or @right */
        KILN_NODE_REPEAT, /* @left, @low to @high times; @high UINT32_MAX: no bound */
    } kind;
    uint32_t low, high;
    uint32_t times; /* the greatest product of counts inside each other; 0: no part at all */
    KilnRegexNode *left, *right;
};

/** What a pattern became. Nodes are in @nodes, which frees them. */
typedef struct {
    GPtrArray *nodes;
    GArray *sets, *items; /* KilnRegexSet, KilnRegexItem */
    KilnRegexNode *root;
} KilnRegexTree;

gboolean kiln_regex_parse(const char *pattern, KilnRegexTree *tree, GError **error);

/** Reads the character at *@at, which is UTF-8, and moves behind it. */
uint32_t kiln_regex_next(const char **at);

#endif
