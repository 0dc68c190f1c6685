/* SPDX-License-Identifier: Apache-2.0 */
/* Turns patterns into steps, and walks them. */
#include "graph/base/regex_priv.h"

#include "graph/error.h"

#include <string.h>

/* --- steps --- */

typedef struct {
    GArray *steps;   /* KilnRegexStep */
    uint32_t visits; /* of nodes: those without steps count, too */
    bool full;
} Writer;

static uint32_t
put(Writer *w, KilnRegexKind kind, uint32_t a, uint32_t b)
{
    const KilnRegexStep step = { .kind = (uint32_t)kind, .a = a, .b = b };
    w->full |= w->steps->len >= KILN_REGEX_STEPS;
    if (!w->full)
        g_array_append_val(w->steps, step);
    return w->steps->len - 1;
}

static KilnRegexStep *
step_at(Writer *w, uint32_t i)
{
    return &g_array_index(w->steps, KilnRegexStep, i);
}

static void put_node(Writer *w, const KilnRegexNode *node);

/*     split ─▶ left ─▶ jump ─▶ …        split ─▶ right ─▶ … */
static void
put_ways(Writer *w, const KilnRegexNode *node)
{
    uint32_t split = put(w, KILN_REGEX_SPLIT, 0, 0);
    put_node(w, node->left);
    uint32_t jump = put(w, KILN_REGEX_JUMP, 0, 0);
    step_at(w, split)->a = split + 1;
    step_at(w, split)->b = w->steps->len;
    put_node(w, node->right);
    step_at(w, jump)->a = w->steps->len;
}

/* The part at least @low times, then as often as it likes, or up to @high times. */
static void
put_repeat(Writer *w, const KilnRegexNode *node)
{
    for (uint32_t i = 0; i < node->low && !w->full; i++)
        put_node(w, node->left);
    if (node->high == UINT32_MAX) {
        uint32_t split = put(w, KILN_REGEX_SPLIT, 0, 0);
        put_node(w, node->left);
        put(w, KILN_REGEX_JUMP, split, 0);
        step_at(w, split)->a = split + 1;
        step_at(w, split)->b = w->steps->len;
        return;
    }
    /* Each further time may end: chained through b until the end is known. */
    uint32_t chain = UINT32_MAX;
    for (uint32_t i = node->low; i < node->high && !w->full; i++) {
        uint32_t split = put(w, KILN_REGEX_SPLIT, 0, chain);
        step_at(w, split)->a = split + 1;
        chain = split;
        put_node(w, node->left);
    }
    while (chain != UINT32_MAX && !w->full) {
        uint32_t next = step_at(w, chain)->b;
        step_at(w, chain)->b = w->steps->len;
        chain = next;
    }
}

static void
put_node(Writer *w, const KilnRegexNode *node)
{
    w->full |= ++w->visits > 4 * KILN_REGEX_STEPS;
    if (w->full)
        return;
    switch (node->kind) {
    case KILN_NODE_EMPTY:
        return;
    case KILN_NODE_SET:
        put(w, KILN_REGEX_SET, node->low, 0);
        return;
    case KILN_NODE_ASSERT:
        put(w, KILN_REGEX_ASSERT, node->low, 0);
        return;
    case KILN_NODE_CAT:
        put_node(w, node->left);
        put_node(w, node->right);
        return;
    case KILN_NODE_ALT:
        put_ways(w, node);
        return;
    case KILN_NODE_REPEAT:
        put_repeat(w, node);
        return;
    }
}

static KilnRegex *
new_block(const GArray *steps, const KilnRegexTree *tree)
{
    size_t of_steps = steps->len * sizeof(KilnRegexStep),
           of_sets = tree->sets->len * sizeof(KilnRegexSet),
           of_items = tree->items->len * sizeof(KilnRegexItem),
           bytes = sizeof(KilnRegex) + of_steps + of_sets + of_items;
    KilnRegex *regex = g_malloc0(bytes);
    regex->bytes = bytes;
    regex->n_steps = steps->len;
    regex->n_sets = tree->sets->len;
    regex->n_items = tree->items->len;
    char *at = (char *)(regex + 1);
    memcpy(at, steps->data, of_steps);
    if (of_sets)
        memcpy(at + of_steps, tree->sets->data, of_sets);
    if (of_items)
        memcpy(at + of_steps + of_sets, tree->items->data, of_items);
    return regex;
}

KilnRegex *
kiln_regex_compile(const char *pattern, GError **error)
{
    g_autoptr(GPtrArray) nodes = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GArray) sets = g_array_new(FALSE, FALSE, sizeof(KilnRegexSet));
    g_autoptr(GArray) items = g_array_new(FALSE, FALSE, sizeof(KilnRegexItem));
    g_autoptr(GArray) steps = g_array_new(FALSE, FALSE, sizeof(KilnRegexStep));
    KilnRegexTree tree = { .nodes = nodes, .sets = sets, .items = items };
    Writer writer = { .steps = steps };
    if (!kiln_regex_parse(pattern, &tree, error))
        return NULL;
    put_node(&writer, tree.root);
    put(&writer, KILN_REGEX_MATCH, 0, 0);
    if (writer.full)
        return kiln_throw_null(error, KILN_ERROR_LIMIT, "expected a pattern of at most %d steps",
                               KILN_REGEX_STEPS);
    return new_block(steps, &tree);
}

void
kiln_regex_free(KilnRegex *regex)
{
    g_free(regex);
}

size_t
kiln_regex_bytes(const KilnRegex *regex)
{
    return regex->bytes;
}

size_t
kiln_regex_scratch(const KilnRegex *regex)
{
    return (size_t)regex->n_steps * (2 * sizeof(size_t) + 4 * sizeof(uint32_t));
}

/* --- a match --- */

enum {
    NOTHING = -1 /* before the text, and behind it */
};

static bool
is_word(int64_t c)
{
    return c >= 0 && c < 0x80 && (g_ascii_isalnum((char)c) || c == '_');
}

static bool
holds(KilnRegexPlace place, int64_t before, int64_t behind)
{
    switch (place) {
    case KILN_REGEX_TEXT_BEGIN:
        return before == NOTHING;
    case KILN_REGEX_TEXT_END:
        return behind == NOTHING;
    case KILN_REGEX_LINE_BEGIN:
        return before == NOTHING || before == '\n';
    case KILN_REGEX_LINE_END:
        return behind == NOTHING || behind == '\n';
    case KILN_REGEX_WORD_EDGE:
        return is_word(before) != is_word(behind);
    case KILN_REGEX_NO_WORD_EDGE:
        return is_word(before) == is_word(behind);
    }
    return false;
}

/* The steps that all ways stand at, each once, and where these ways began; @round says when a step
 * was last reached. */
typedef struct {
    const KilnRegex *regex;
    size_t *began, *begins; /* of those here and ahead */
    uint32_t *here, *ahead, *reached, *stack;
    uint32_t n_here, n_ahead, round;
} Ways;

static Ways
ways_new(const KilnRegex *regex, void *scratch)
{
    const size_t n = regex->n_steps;
    size_t *begins = scratch;
    uint32_t *lists = (uint32_t *)(begins + 2 * n);
    memset(lists + 2 * n, 0, n * sizeof *lists);
    return (Ways){ .regex = regex,
                   .began = begins,
                   .begins = begins + n,
                   .here = lists,
                   .ahead = lists + n,
                   .reached = lists + 2 * n,
                   .stack = lists + 3 * n,
                   .round = 1 };
}

/* Follows all steps that read no character, from @first on, to those of @ahead. @begin: where the
 * way began. */
static void
reach(Ways *ways, uint32_t first, size_t begin, int64_t before, int64_t behind)
{
    const KilnRegexStep *steps = kiln_regex_steps(ways->regex);
    uint32_t depth = 0;
#define GO(i)                                                                                      \
    do {                                                                                           \
        uint32_t to = (i);                                                                         \
        if (ways->reached[to] != ways->round) {                                                    \
            ways->reached[to] = ways->round;                                                       \
            ways->stack[depth++] = to;                                                             \
        }                                                                                          \
    } while (0)
    GO(first);
    while (depth) {
        const uint32_t at = ways->stack[--depth];
        const KilnRegexStep *step = &steps[at];
        switch ((KilnRegexKind)step->kind) {
        case KILN_REGEX_MATCH:
        case KILN_REGEX_SET:
            ways->begins[ways->n_ahead] = begin;
            ways->ahead[ways->n_ahead++] = at;
            break;
        case KILN_REGEX_SPLIT:
            GO(step->a);
            GO(step->b);
            break;
        case KILN_REGEX_JUMP:
            GO(step->a);
            break;
        case KILN_REGEX_ASSERT:
            if (holds((KilnRegexPlace)step->a, before, behind))
                GO(at + 1);
            break;
        }
    }
#undef GO
}

/* What was ahead is here. */
static void
turn(Ways *ways)
{
    uint32_t *here = ways->here;
    size_t *began = ways->began;
    ways->here = ways->ahead;
    ways->began = ways->begins;
    ways->begins = began;
    ways->n_here = ways->n_ahead;
    ways->ahead = here;
    ways->n_ahead = 0;
    ways->round++;
}

static int64_t
look(const char *at, const char *end)
{
    return at < end ? (int64_t)kiln_regex_next(&at) : NOTHING;
}

/* The ways read @character, and go on to where @behind is next. */
static void
read_character(Ways *ways, int64_t character, int64_t behind)
{
    const KilnRegexStep *steps = kiln_regex_steps(ways->regex);
    const KilnRegexSet *sets = kiln_regex_sets(ways->regex);
    for (uint32_t i = 0; i < ways->n_here; i++) {
        const KilnRegexStep *step = &steps[ways->here[i]];
        if (step->kind == KILN_REGEX_SET &&
            kiln_regex_set_has(ways->regex, &sets[step->a], (uint32_t)character))
            reach(ways, ways->here[i] + 1, ways->began[i], character, behind);
    }
}

/* A way that is at the end of the pattern; n_here: none. */
static uint32_t
find_end(const Ways *ways)
{
    const KilnRegexStep *steps = kiln_regex_steps(ways->regex);
    uint32_t i = 0;
    while (i < ways->n_here && steps[ways->here[i]].kind != KILN_REGEX_MATCH)
        i++;
    return i;
}

bool
kiln_regex_matches(const KilnRegex *regex, KilnText text, void *scratch)
{
    Ways ways = ways_new(regex, scratch);
    const char *at = text.text, *end = at + text.length;
    int64_t character = look(at, end);
    reach(&ways, 0, 0, NOTHING, character);
    turn(&ways);
    while (at < end && ways.n_here) {
        kiln_regex_next(&at);
        const int64_t behind = look(at, end);
        read_character(&ways, character, behind);
        turn(&ways);
        character = behind;
    }
    return at == end && find_end(&ways) < ways.n_here;
}

/* The character that ends at @at. */
static int64_t
look_back(const char *begin, const char *at)
{
    const char *last = at;
    while (last > begin && ((uint8_t) * --last & 0xC0) == 0x80)
        continue;
    return last < at ? look(last, at) : NOTHING;
}

/* Ways stand in the order of where they began: the first at the end of the pattern began first. A
 * longer match of it takes the place of a shorter one. */
bool
kiln_regex_find(const KilnRegex *regex, KilnText text, size_t from, KilnText *out, void *scratch)
{
    Ways ways = ways_new(regex, scratch);
    const char *at = text.text + from, *end = text.text + text.length;
    int64_t before = look_back(text.text, at), character = look(at, end);
    bool found = false;
    for (;;) {
        if (!found)
            reach(&ways, 0, (size_t)(at - text.text), before, character);
        turn(&ways);
        const uint32_t way = find_end(&ways);
        if (way < ways.n_here) {
            const size_t begin = ways.began[way];
            *out = (KilnText){ text.text + begin, (size_t)(at - text.text) - begin };
            found = true;
            while (ways.n_here && ways.began[ways.n_here - 1] > begin)
                ways.n_here--;
        }
        if (at == end || (found && !ways.n_here))
            return found;
        kiln_regex_next(&at);
        const int64_t behind = look(at, end);
        read_character(&ways, character, behind);
        before = character;
        character = behind;
    }
}
