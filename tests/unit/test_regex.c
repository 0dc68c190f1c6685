/* SPDX-License-Identifier: Apache-2.0 */
/* Patterns of RE2's syntax: what they match, and what is refused. */
#include "graph/base/regex.h"
#include "graph/base/regex_priv.h"
#include "graph/kiln-types.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

/* Texts in @yes match the whole of @pattern, those in @no do not; both end with NULL. */
static void
expect(const char *pattern, const char *const *yes, const char *const *no)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(KilnRegex) regex = kiln_regex_compile(pattern, &error);
    cr_assert(regex, "%s: %s", pattern, error ? error->message : "");
    void *copy = malloc(kiln_regex_bytes(regex)), *scratch = malloc(kiln_regex_scratch(regex));
    memcpy(copy, regex, kiln_regex_bytes(regex));
    for (; *yes; yes++)
        cr_expect(kiln_regex_matches(copy, (KilnText){ *yes, strlen(*yes) }, scratch),
                  "%s: expected '%s'", pattern, *yes);
    for (; *no; no++)
        cr_expect_not(kiln_regex_matches(copy, (KilnText){ *no, strlen(*no) }, scratch),
                      "%s: did not expect '%s'", pattern, *no);
    free(copy);
    free(scratch);
}
#define LIST(...) ((const char *const[]){ __VA_ARGS__, NULL })
#define NONE ((const char *const[]){ NULL })

static void
expect_refused(const char *pattern, KilnError code, const char *message)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(KilnRegex) regex = kiln_regex_compile(pattern, &error);
    cr_assert_null(regex, "%s", pattern);
    cr_expect_eq(error->code, (int)code, "%s: %s", pattern, error->message);
    cr_expect(strstr(error->message, message), "%s: %s", pattern, error->message);
}

Test(regex, characters_and_sets)
{
    expect("", LIST(""), LIST("a"));
    expect("a.c",
           LIST("abc", "a\xC3\xA4"
                       "c"),
           LIST("a\nc", "ac", "abcd"));
    expect("(?s)a.c", LIST("a\nc"), NONE);
    expect("[a-c-]+", LIST("a-b"), LIST("d", ""));
    expect("[]^]", LIST("]", "^"), LIST("a"));
    expect("[^a-c]", LIST("d", "\n", "\xE2\x82\xAC"), LIST("a", "dd"));
    expect("[[:alpha:][:digit:]]*", LIST("a1", ""), LIST("a b", "\xC3\xA4"));
    expect("[[:^space:]]", LIST("a", "\xC3\xA4"), LIST(" "));
    expect("\\d\\D\\s\\S\\w\\W", LIST("1a bc."), LIST("aa bc.", "1a bcd"));
    expect("[\\w.-]+", LIST("a_b.c-d"), LIST("a b"));
    expect("\\pL\\p{Lu}\\P{Greek}\\p{^Greek}",
           LIST("\xC3\xA4"
                "Aab"),
           LIST("1Aab", "aaab"));
    expect("\\p{Greek}+", LIST("\xCE\xB1\xCE\xA9"), LIST("a"));
    expect("\\x41\\x{20AC}\\101\\t\\.",
           LIST("A\xE2\x82\xAC"
                "A\t."),
           NONE);
    expect("\\Qa.b\\E+", LIST("a.bb"), LIST("axb"));
}

Test(regex, repeats_and_ways)
{
    expect("a*b+c?", LIST("b", "aabbc"), LIST("a", "bcc"));
    expect("a{2,3}", LIST("aa", "aaa"), LIST("a", "aaaa"));
    expect("a{2,}?", LIST("aa", "aaaaa"), LIST("a"));
    expect("(ab){2}", LIST("abab"), LIST("ab", "ababab"));
    expect("a{,3}{", LIST("a{,3}{"), LIST("aaa"));
    expect("cat|dog|", LIST("cat", "dog", ""), LIST("catdog"));
    expect("(?P<x>a|b)(?<y>c)(?:d)", LIST("acd", "bcd"), LIST("ac"));
    expect("(a*)*", LIST("", "aaa"), LIST("b"));
    expect("(a?){30}a{30}", LIST("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"), LIST("a"));
}

Test(regex, places_and_flags)
{
    expect("^a$", LIST("a"), LIST("a\n"));
    expect("(?m)^a$\n^b$", LIST("a\nb"), NONE);
    expect("\\Aa\\b b\\z", LIST("a b"), LIST("ab"));
    expect("a\\Bb", LIST("ab"), LIST("a b"));
    expect("(?i)stra\xC3\x9F"
           "e[a-c]",
           LIST("STRA\xC3\x9F"
                "EB"),
           LIST("strasseb"));
    expect("(?i:a)b(?i)c(?-i)d", LIST("abCd", "Abcd"), LIST("aBcd", "abcD"));
    expect("(a(?i)b)c", LIST("aBc"), LIST("aBC"));
}

Test(regex, cases_of_a_letter)
{
    expect("(?i)[^a]", LIST("b", "B", "\n"), LIST("a", "A"));
    expect("(?i)[^a-z]", LIST("1", "\xC4\xB0" /* I with a dot */, "\xC4\xB1" /* i without */),
           LIST("a", "Z", "\xE2\x84\xAA" /* sign of Kelvin */, "\xC5\xBF" /* long s */));
    expect("(?i)\xE2\x84\xAA[\xC5\xBF-\xC5\xBF]", LIST("ks", "KS"), LIST("sk"));
    expect("(?i)\\P{Lu}", LIST("1", "\xE3\x81\x82"), LIST("a", "A", "\xC3\xA4"));
    expect("(?i)\\p{Lu}[^\\P{Ll}]", LIST("aB", "\xC3\xA4\xC3\x84"), LIST("a1", "1a"));
    expect("(?i)\\w\\W", LIST("a.", "\xE2\x84\xAA."), LIST("a\xE2\x84\xAA", ".a", "a\xC5\xBF"));
    expect("(?i)[[:lower:]][[:^upper:]]", LIST("A1", "a."), LIST("Aa", "11"));
    expect("(?i)\xCF\x82", LIST("\xCE\xA3", "\xCF\x83", "\xCF\x82"), LIST("s"));
    expect("(?i)\xE1\xBA\x9E", LIST("\xC3\x9F"), LIST("ss"));
    expect("(?i)\xCE\xB9", LIST("\xCD\x85", "\xCE\x99", "\xE1\xBE\xBE"), LIST("i"));
    expect("(?i)\xE2\x85\xA0\xE2\x93\x90", LIST("\xE2\x85\xB0\xE2\x92\xB6"), LIST("ia"));
    expect("(?i)i", LIST("i", "I"), LIST("\xC4\xB0", "\xC4\xB1"));
}

/* All letters of one form are cases of each other. */
Test(regex, no_case_is_missing)
{
    for (uint32_t c = 0; c <= 0x10FFFF; c++) {
        uint32_t cases[KILN_REGEX_CASES], others[KILN_REGEX_CASES];
        const uint32_t n = kiln_regex_cases(c, cases);
        for (uint32_t i = 0; i < n; i++) {
            const uint32_t m = kiln_regex_cases(cases[i], others);
            bool found = false;
            for (uint32_t k = 0; k < m; k++)
                found |= others[k] == c;
            cr_expect(found, "%04X is a case of %04X, and not the reverse", cases[i], c);
        }
    }
}

Test(regex, long_texts_take_a_step_each)
{
    g_autoptr(GString) text = g_string_new(NULL);
    for (int i = 0; i < 20000; i++)
        g_string_append_c(text, 'a');
    expect("(a|aa|a*)*", LIST(text->str), NONE);
    expect("(a|aa|a*)*b", NONE, LIST(text->str));
}

Test(regex, what_re2_lacks_is_refused)
{
    expect_refused("(a)\\1", KILN_ERROR_INVALID,
                   "byte 4 of '(a)\\1': expected an escape that RE2 "
                   "knows, and no back-reference");
    expect_refused("(?=a)", KILN_ERROR_INVALID, "no look-around");
    expect_refused("(?<!a)", KILN_ERROR_INVALID, "no look-around");
    expect_refused("a++", KILN_ERROR_INVALID, "expected one repetition");
    expect_refused("*a", KILN_ERROR_INVALID, "expected something to repeat");
    expect_refused("(a", KILN_ERROR_INVALID, "expected )");
    expect_refused("a)", KILN_ERROR_INVALID, "expected no ) without (");
    expect_refused("[a", KILN_ERROR_INVALID, "expected ]");
    expect_refused("[b-a]", KILN_ERROR_INVALID, "expected a range whose end is not before");
    expect_refused("[[:letters:]]", KILN_ERROR_INVALID, "expected a class such as [:alpha:]");
    expect_refused("\\p{Letters}", KILN_ERROR_INVALID, "expected a category or script");
    expect_refused("a{1001}", KILN_ERROR_INVALID, "expected at most 1000 repeats");
    expect_refused("\\x{110000}", KILN_ERROR_INVALID, "expected two hexadecimal digits");
    expect_refused("a\\", KILN_ERROR_INVALID, "expected an escape");
    expect_refused("\\Z", KILN_ERROR_INVALID, "expected an escape");
    expect_refused("\xFF", KILN_ERROR_INVALID, "expected UTF-8");
    expect_refused("(?i-)a", KILN_ERROR_INVALID, "expected flags i, m, s and U behind -");
    expect_refused("a\\E", KILN_ERROR_INVALID, "expected an escape");
    expect_refused("(?i)*", KILN_ERROR_INVALID, "expected something to repeat");
    expect_refused("\\Q\\E*", KILN_ERROR_INVALID, "expected something to repeat");
    expect_refused("a{2}{3}", KILN_ERROR_INVALID, "expected one repetition");
}

Test(regex, counts_inside_each_other_are_multiplied)
{
    static const char message[] = "expected at most 1000 repeats, counts inside each other";
    expect_refused("(a{1000}){1000}", KILN_ERROR_INVALID, message);
    expect_refused("(a{10}){101}", KILN_ERROR_INVALID, message);
    expect_refused("((a{2,}){500}){2}", KILN_ERROR_INVALID, message);
    expect_refused("((b|a{501})*){2}", KILN_ERROR_INVALID, message);
    expect_refused("(((){1000}){1000}){1000}", KILN_ERROR_INVALID, message);
    expect("(a{2}b{500}?){0,2}", LIST(""), LIST("ab"));
    expect("((a{10}){10}){10}b|(a{0}){1000}|(a{1000}){0}", LIST(""), LIST("b"));
    expect_refused("(a?b?c?d?e?f?g?h?i?j?k?l?m?n?o?p?q?r?s?t?u?v?w?x?y?z?"
                   "A?B?C?D?E?F?G?H?I?J?K?L?M?N?O?P?Q?R?S?T?U?V?W?X?Y?Z?){1000}",
                   KILN_ERROR_LIMIT, "expected a pattern of at most 100000 steps");
}

/* A pattern of @n times @part. */
static void
expect_limit(const char *part, int n)
{
    g_autoptr(GString) pattern = g_string_new(NULL);
    for (int i = 0; i < n; i++)
        g_string_append(pattern, part);
    expect_refused(pattern->str, KILN_ERROR_LIMIT, "expected at most 100000 parts");
}

Test(regex, long_patterns_are_refused)
{
    expect_limit("a", 1000000);
    expect_limit("|", 1000000);
    expect_limit("()", 1000000);
    expect_limit("[ab", 1000000);
}

Test(regex, groups_inside_each_other)
{
    g_autoptr(GString) pattern = g_string_new(NULL);
    for (int i = 0; i < 300; i++)
        g_string_append_c(pattern, '(');
    expect_refused(pattern->str, KILN_ERROR_LIMIT, "at most 250 groups inside each other");
}

/* Matches in @text, one behind the other, between bars; an empty one is passed by a byte. */
static void
expect_found(const char *pattern, const char *text, const char *expected)
{
    g_autoptr(KilnRegex) regex = kiln_regex_compile(pattern, NULL);
    void *scratch = malloc(kiln_regex_scratch(regex));
    g_autoptr(GString) found = g_string_new("|");
    const KilnText all = { text, strlen(text) };
    size_t from = 0;
    KilnText match;
    while (from <= all.length && kiln_regex_find(regex, all, from, &match, scratch)) {
        g_string_append_len(found, match.text, (gssize)match.length);
        g_string_append_c(found, '|');
        from = (size_t)(match.text - text) + MAX(match.length, 1);
    }
    cr_expect_str_eq(found->str, expected, "%s in %s: expected %s, found %s", pattern, text,
                     expected, found->str);
    free(scratch);
}

Test(regex, finds_the_longest_of_the_first)
{
    expect_found("a|ab|abc", "xabcxab", "|abc|ab|");
    expect_found("b+|abbc", "abbd abbc", "|bb|abbc|");
    expect_found("abcd|bc", "abcx", "|bc|");
    expect_found("a*", "baac", "||aa|||");
    expect_found("x", "abc", "|");
    expect_found("x", "", "|");
    expect_found("", "", "||");
}

Test(regex, finds_places)
{
    expect_found("^a", "aaa", "|a|");
    expect_found("a$", "aaa", "|a|");
    expect_found("\\bab\\b", "ab abc ab", "|ab|ab|");
    expect_found("\\Bb", "ab b", "|b|");
    expect_found(".", "é€", "|é|€|");
}
