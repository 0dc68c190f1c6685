/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens, their positions, and names that lex back to themselves. */
#include "graph/base/names.h"
#include "graph/text/lexer.h"
#include "graph/text/text.h"

#include <criterion/criterion.h>
#include <string.h>

static void
expect(KilnLexer *lexer, KilnTokenKind kind, const char *text, uint32_t line, uint32_t column)
{
    KilnToken token = kiln_lexer_next(lexer);
    g_autofree char *found = kiln_token_text(&token);
    cr_assert_eq(token.kind, kind, "%s: kind %d", text, (int)token.kind);
    cr_assert_str_eq(found, text);
    cr_assert_eq(token.line, line, "%s: line %u", text, token.line);
    cr_assert_eq(token.column, column, "%s: column %u", text, token.column);
}

Test(lexer, tokens_have_kind_text_and_place)
{
    const char *text = "graph @a.b(%\"/l1/C 0\": f32[2,-1.5e-3]) # comment ( \"\n"
                       "  \"\xc3\xa4\\\"\\x01\" nan(0x7fc0) -> -inf ? %0";
    KilnLexer lexer;
    kiln_lexer_init(&lexer, text, strlen(text));
    expect(&lexer, KILN_TOKEN_WORD, "graph", 1, 1);
    expect(&lexer, KILN_TOKEN_SYMBOL, "a.b", 1, 7);
    expect(&lexer, KILN_TOKEN_PUNCT, "(", 1, 11);
    expect(&lexer, KILN_TOKEN_VALUE, "/l1/C 0", 1, 12);
    expect(&lexer, KILN_TOKEN_PUNCT, ":", 1, 22);
    expect(&lexer, KILN_TOKEN_WORD, "f32", 1, 24);
    expect(&lexer, KILN_TOKEN_PUNCT, "[", 1, 27);
    expect(&lexer, KILN_TOKEN_NUMBER, "2", 1, 28);
    expect(&lexer, KILN_TOKEN_PUNCT, ",", 1, 29);
    expect(&lexer, KILN_TOKEN_NUMBER, "-1.5e-3", 1, 30);
    expect(&lexer, KILN_TOKEN_PUNCT, "]", 1, 37);
    expect(&lexer, KILN_TOKEN_PUNCT, ")", 1, 38);
    expect(&lexer, KILN_TOKEN_STRING, "\xc3\xa4\"\x01", 2, 3);
    expect(&lexer, KILN_TOKEN_WORD, "nan", 2, 13);
    expect(&lexer, KILN_TOKEN_PUNCT, "(", 2, 16);
    expect(&lexer, KILN_TOKEN_NUMBER, "0x7fc0", 2, 17);
    expect(&lexer, KILN_TOKEN_PUNCT, ")", 2, 23);
    expect(&lexer, KILN_TOKEN_PUNCT, "->", 2, 25);
    expect(&lexer, KILN_TOKEN_NUMBER, "-inf", 2, 28);
    expect(&lexer, KILN_TOKEN_PUNCT, "?", 2, 33);
    expect(&lexer, KILN_TOKEN_VALUE, "0", 2, 35);
    expect(&lexer, KILN_TOKEN_END, "", 2, 37);
    expect(&lexer, KILN_TOKEN_END, "", 2, 37);
}

Test(lexer, bad_tokens_say_why)
{
    static const struct {
        const char *text, *why;
    } cases[] = {
        { "\"abc", "closing quote" },
        { "\"ab\nc\"", "closing quote" },
        { "\"\\q\"", "escape" },
        { "\"\\x00\"", "escape" },
        { "\"\\x4\"", "escape" },
        { "\"\\x80\"", "escape" },
        { "%", "sigil" },
        { "@ x", "sigil" },
        { "12ab", "number" },
        { "1.", "number" },
        { "&", "begins no token" },
        { "\xc3\xa4", "begins no token" },
        { "\\", "begins no token" },
    };
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        KilnLexer lexer;
        kiln_lexer_init(&lexer, cases[i].text, strlen(cases[i].text));
        KilnToken token = kiln_lexer_next(&lexer);
        cr_assert_eq(token.kind, KILN_TOKEN_BAD, "%s", cases[i].text);
        g_autofree char *found = kiln_token_describe(&token);
        cr_assert(strstr(found, cases[i].why), "%s: %s", cases[i].text, found);
        while (token.kind != KILN_TOKEN_END) /* and the text ends */
            token = kiln_lexer_next(&lexer);
    }
}

Test(lexer, printed_names_lex_back)
{
    static const char *const names[] = {
        "x",
        "conv1.weight",
        "0",
        "007",
        "..",
        "_",
        "",
        " ",
        "/l1/Conv_output_0",
        "a\"b",
        "a\\",
        "tab\there",
        "line\nbreak",
        "bell\x07",
        "\x7f",
        "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80",
        "%x",
        "@y",
        "#no comment",
        "inf",
        "-1",
        "1e5",
    };
    for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
        g_autoptr(GString) text = g_string_new("%");
        kiln_name_print(names[i], text);
        gsize word = text->len + 1;
        g_string_append_c(text, ' ');
        kiln_word_print(names[i], text);
        cr_assert(g_utf8_validate(text->str, -1, NULL), "%s", text->str);
        KilnLexer lexer;
        kiln_lexer_init(&lexer, text->str, text->len);
        expect(&lexer, KILN_TOKEN_VALUE, names[i], 1, 1);
        KilnToken token = kiln_lexer_next(&lexer);
        g_autofree char *found = kiln_token_text(&token);
        cr_assert_str_eq(found, names[i]);
        cr_assert(token.kind == KILN_TOKEN_WORD || token.kind == KILN_TOKEN_STRING);
        cr_assert_eq(token.start, text->str + word);
        cr_assert_eq(kiln_lexer_next(&lexer).kind, KILN_TOKEN_END);
    }
}

/* Behind the brace that closes, with its line and column; what is in quotes and comments counts
 * for nothing. */
Test(lexer, skips_braces)
{
    static const struct {
        const char *text;
        int64_t depth;
        const char *rest; /* NULL: it stays where it is */
        uint32_t line, column;
    } cases[] = {
        { "{}x", 0, "x", 1, 3 },
        { "@f(%a) {\n  %b = \"}\" # {{{\n  { $ } }, y", 0, ", y", 3, 10 },
        { "a } b", 1, " b", 1, 4 },
        { "a { } } b", 1, " b", 1, 8 },
        { "{ \"ä\\\"{\" } b", 0, " b", 1, 11 },
        { "{ { }", 0, NULL, 1, 1 },
        { "} { }", 0, NULL, 1, 1 },
        { "{ \"} \n }", 0, NULL, 1, 1 },
        { "{ # }", 0, NULL, 1, 1 },
        { "", 1, NULL, 1, 1 },
    };
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        KilnLexer lexer;
        kiln_lexer_init(&lexer, cases[i].text, strlen(cases[i].text));
        cr_expect_eq(kiln_lexer_skip_braces(&lexer, cases[i].depth), cases[i].rest != NULL, "%s",
                     cases[i].text);
        cr_expect_str_eq(lexer.at, cases[i].rest ? cases[i].rest : cases[i].text);
        cr_expect(lexer.line == cases[i].line && lexer.column == cases[i].column, "%s: %u:%u",
                  cases[i].text, lexer.line, lexer.column);
    }
}
