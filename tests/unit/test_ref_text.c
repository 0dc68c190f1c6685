/* SPDX-License-Identifier: Apache-2.0 */
/* Reference kernels of strings. */
#include "graph/attr.h"
#include "graph/kiln-types.h"
#include "graph/texts.h"
#include "ir/instr.h"
#include "tests/unit/ref_case.h"

Test(ref_text, concat_broadcasts)
{
    g_autoptr(RefCase) c = case_new(KILN_INSTR_string_concat);
    case_out(c, KILN_DTYPE_string, DIMS(2, 2));
    case_texts(c, DIMS(2, 1), TEXTS("a", ""));
    case_texts(c, DIMS(2), TEXTS("x", ""));
    case_gives_texts(c, 4, TEXTS("ax", "a", "x", ""));
}

/* Neighbours of the same strings have one result, which takes memory once. */
Test(ref_text, equal_strings_share_the_result)
{
    const KilnInstrKind kinds[] = { KILN_INSTR_string_concat, KILN_INSTR_string_normalizer,
                                    KILN_INSTR_string_split };
    for (size_t i = 0; i < G_N_ELEMENTS(kinds); i++) {
        g_autoptr(RefCase) c = case_new(kinds[i]);
        const uint32_t in = kinds[i] == KILN_INSTR_string_normalizer ? 2 : 1;
        if (kinds[i] == KILN_INSTR_string_split)
            case_out(c, KILN_DTYPE_string, DIMS(3, 1));
        else
            case_out(c, KILN_DTYPE_string, DIMS(3));
        if (kinds[i] == KILN_INSTR_string_normalizer) {
            CASE_ATTRS(c, string_normalizer)->case_change_action = "UPPER";
            case_out(c, KILN_DTYPE_i64, DIMS(1));
        }
        case_texts(c, DIMS(3), TEXTS("ab", "ab", "cd"));
        if (kinds[i] == KILN_INSTR_string_concat)
            case_texts(c, DIMS(1), TEXTS("x"));
        if (kinds[i] == KILN_INSTR_string_split) {
            CASE_ATTRS(c, string_split)->delimiter = ",";
            CASE_ATTRS(c, string_split)->maxsplit = -1;
        }
        const KilnText **x = c->data[in];
        x[1] = x[0];
        cr_assert_null(case_run(c));
        const KilnText *const *result = c->data[0];
        cr_expect_eq(result[0], result[1]);
        cr_expect_neq(result[1], result[2]);
        cr_expect(kiln_text_of(result[0]).length >= 2 && kiln_text_of(result[2]).length >= 2);
    }
}

Test(ref_text, equal_broadcasts)
{
    g_autoptr(RefCase) c = case_new(KILN_INSTR_equal);
    case_out(c, KILN_DTYPE_bool, DIMS(2, 2));
    case_texts(c, DIMS(2, 1), TEXTS("a", ""));
    case_texts(c, DIMS(2), TEXTS("a", ""));
    case_gives(c, VALUES(1, 0, 0, 1), 0);
}

/* @n strings of operand 1 become @parts, @most of each. */
static void
expect_split(const char *delimiter, int64_t maxsplit, int64_t n, const char *const *texts,
             int64_t most, const char *const *parts)
{
    g_autoptr(RefCase) counted = case_new(KILN_INSTR_string_parts);
    CASE_ATTRS(counted, string_parts)->delimiter = delimiter;
    CASE_ATTRS(counted, string_parts)->maxsplit = maxsplit;
    case_out(counted, KILN_DTYPE_i64, 1, &n);
    case_out(counted, KILN_DTYPE_i64, DIMS(1));
    case_texts(counted, 1, &n, texts);
    cr_assert_null(case_run(counted));
    case_expect(counted, 1, VALUES((double)most), 0);
    g_autoptr(RefCase) c = case_new(KILN_INSTR_string_split);
    CASE_ATTRS(c, string_split)->delimiter = delimiter;
    CASE_ATTRS(c, string_split)->maxsplit = maxsplit;
    case_out(c, KILN_DTYPE_string, DIMS(n, most));
    case_texts(c, 1, &n, texts);
    case_gives_texts(c, n * most, parts);
}

Test(ref_text, split)
{
    expect_split(",", -1, 3, TEXTS("a,,b", "", "c"), 3,
                 TEXTS("a", "", "b", "", "", "", "c", "", ""));
    expect_split(",", 1, 1, TEXTS("a,b,c"), 2, TEXTS("a", "b,c"));
    expect_split("--", 0, 1, TEXTS("a--b"), 1, TEXTS("a--b"));
    expect_split("", -1, 2, TEXTS(" a \t b\n", "  "), 2, TEXTS("a", "b", "", ""));
    expect_split("", 1, 1, TEXTS(" a b c "), 2, TEXTS("a", "b c "));
    expect_split("", -1, 1,
                 TEXTS("a\xC2\xA0"
                       "b\xE3\x80\x80"
                       "c"),
                 3, TEXTS("a", "b", "c"));
    expect_split("", -1, 1, TEXTS(""), 0, TEXTS(NULL));
}

/* What is left of two strings. */
static void
expect_normal(const char *action, bool is_case_sensitive, const char *stopword,
              const char *const *texts, int64_t n, const char *const *left)
{
    g_autoptr(RefCase) c = case_new(KILN_INSTR_string_normalizer);
    KilnInstrAttrs_string_normalizer *attrs = CASE_ATTRS(c, string_normalizer);
    attrs->case_change_action = action;
    attrs->is_case_sensitive = is_case_sensitive;
    attrs->stopwords = (KilnStrings){ stopword ? 1 : 0, &stopword };
    case_out(c, KILN_DTYPE_string, DIMS(3));
    case_out(c, KILN_DTYPE_i64, DIMS(1));
    case_texts(c, DIMS(2), texts);
    case_gives_texts(c, n, left);
    case_expect(c, 1, VALUES((double)n), 0);
}

Test(ref_text, normalizer)
{
    expect_normal("NONE", true, "a", TEXTS("a", "A"), 1, TEXTS("A"));
    expect_normal("NONE", false, "a", TEXTS("A", "b"), 1, TEXTS("b"));
    expect_normal("UPPER", true, "b", TEXTS("a\xC3\xA4\xC3\x9F", "B"), 2,
                  TEXTS("A\xC3\x84\xC3\x9F", "B"));
    expect_normal("LOWER", true, NULL, TEXTS("\xC4\xB0", "AB"), 2, TEXTS("i", "ab"));
    expect_normal("LOWER", false, "x", TEXTS("x", "X"), 1, TEXTS(""));
    expect_normal("LOWER", false,
                  "stra\xC3\x9F"
                  "e",
                  TEXTS("STRA\xC3\x9F"
                        "E",
                        "\xC3\x84"),
                  1, TEXTS("\xC3\xA4"));
}

Test(ref_text, full_match)
{
    g_autoptr(RefCase) c = case_new(KILN_INSTR_regex_full_match);
    CASE_ATTRS(c, regex_full_match)->pattern = "[a-c]+";
    case_out(c, KILN_DTYPE_bool, DIMS(3));
    case_texts(c, DIMS(3), TEXTS("abc", "abcd", ""));
    case_gives(c, VALUES(1, 0, 0), 0);
}

Test(ref_text, labels)
{
    g_autoptr(RefCase) c = case_new(KILN_INSTR_label_encoder);
    case_out(c, KILN_DTYPE_string, DIMS(3));
    case_texts(c, DIMS(3), TEXTS("a", "c", ""));
    case_texts(c, DIMS(3), TEXTS("a", "", "a"));
    case_texts(c, DIMS(3), TEXTS("first", "empty", "last"));
    case_texts(c, DIMS(1), TEXTS("none"));
    case_gives_texts(c, 3, TEXTS("last", "none", "empty"));
}

Test(ref_text, unique_sorts_bytes)
{
    g_autoptr(RefCase) c = case_new(KILN_INSTR_unique);
    case_out(c, KILN_DTYPE_string, DIMS(4));
    case_out(c, KILN_DTYPE_i64, DIMS(1));
    case_out(c, KILN_DTYPE_i64, DIMS(4));
    case_absent(c);
    case_absent(c);
    case_texts(c, DIMS(4), TEXTS("b", "a", "B", "b"));
    case_gives_texts(c, 3, TEXTS("B", "a", "b"));
    case_expect(c, 1, VALUES(3), 0);
}

/* @n strings of operand 1 become tokens, @most of each. */
static void
expect_tokens(KilnInstrAttrs_tokenizer rule, int64_t n, const char *const *texts, int64_t most,
              const char *const *tokens)
{
    g_autoptr(RefCase) counted = case_new(KILN_INSTR_token_count);
    *CASE_ATTRS(counted, token_count) = (KilnInstrAttrs_token_count){
        .separators = rule.separators,
        .tokenexp = rule.tokenexp,
        .mincharnum = rule.mincharnum,
        .mark = rule.mark,
    };
    case_out(counted, KILN_DTYPE_i64, DIMS(1));
    case_texts(counted, 1, &n, texts);
    case_gives(counted, VALUES((double)most), 0);
    g_autoptr(RefCase) c = case_new(KILN_INSTR_tokenizer);
    *CASE_ATTRS(c, tokenizer) = rule;
    case_out(c, KILN_DTYPE_string, DIMS(n, most));
    case_texts(c, 1, &n, texts);
    case_gives_texts(c, n * most, tokens);
}

Test(ref_text, tokens)
{
    const char *two[] = { " ", ",+" };
    const KilnStrings separators = { 2, two };
    KilnInstrAttrs_tokenizer rule = {
        .separators = separators, .tokenexp = "", .mincharnum = 1, .pad_value = "#"
    };
    expect_tokens(rule, 2, TEXTS("ab c,,d", ",x "), 3, TEXTS("ab", "c", "d", "x", "#", "#"));
    rule.mincharnum = 2;
    rule.mark = true;
    expect_tokens(rule, 2, TEXTS("ab c,,d", ""), 3,
                  TEXTS("\x02", "ab", "\x03", "\x02", "\x03", "#"));
    expect_tokens(rule, 2, TEXTS("", " , "), 0, TEXTS(NULL));
    rule = (KilnInstrAttrs_tokenizer){ .tokenexp = "ab|bccc", .mincharnum = 3, .pad_value = "" };
    expect_tokens(rule, 1, TEXTS("abccc"), 1, TEXTS("bccc"));
    rule = (KilnInstrAttrs_tokenizer){
        .tokenexp = "", .mincharnum = 1, .mark = true, .pad_value = ""
    };
    expect_tokens(rule, 2, TEXTS("a\xC3\xA9", ""), 4,
                  TEXTS("\x02", "a", "\xC3\xA9", "\x03", "\x02", "\x03", "", ""));
}
