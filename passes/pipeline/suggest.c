/* SPDX-License-Identifier: Apache-2.0 */
/* Nearest words by edit distance. */
#include "passes/pipeline/suggest.h"

#include <string.h>

enum {
    LONGEST = 40 /* longer words get no suggestion */
};

/* Insertions, deletions, replacements and swaps of neighbours that turn @a into @b. */
static int
distance(const char *a, const char *b)
{
    int rows[3][LONGEST + 1];
    int n = (int)strlen(a), m = (int)strlen(b);
    int *before = rows[0], *last = rows[1], *now = rows[2];
    for (int j = 0; j <= m; j++)
        last[j] = before[j] = j;
    for (int i = 1; i <= n; i++) {
        now[0] = i;
        for (int j = 1; j <= m; j++) {
            int replaced = last[j - 1] + (a[i - 1] != b[j - 1]);
            now[j] = MIN(replaced, MIN(last[j], now[j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                now[j] = MIN(now[j], before[j - 2] + 1);
        }
        int *free_row = before;
        before = last;
        last = now;
        now = free_row;
    }
    return last[m];
}

char *
kiln_suggest(const char *word, const char *const *words, uint32_t n)
{
    size_t length = strlen(word);
    const char *best = NULL;
    /* Farther than this is another word, not a slip; all options begin with the same dashes. */
    int least = (int)(length - strspn(word, "-") + 1) / 3;
    for (uint32_t i = 0; i < n && length && length <= LONGEST; i++) {
        if (strlen(words[i]) > LONGEST)
            continue;
        int d = distance(word, words[i]);
        if (d < least || (d == least && !best)) {
            least = d;
            best = words[i];
        }
    }
    return best ? g_strdup_printf(" (did you mean '%s'?)", best) : g_strdup("");
}
