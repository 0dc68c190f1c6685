/* SPDX-License-Identifier: Apache-2.0 */
/* JSON, value by value: what is written, and that json-glib reads it back. */
#include "graph/base/json_writer.h"
#include "graph/kiln-types.h"
#include "graph/type.h"

#include <criterion/criterion.h>
#include <float.h>
#include <json-glib/json-glib.h>
#include <math.h>

static void
write_all(KilnJson *json)
{
    KilnType type = kiln_type_make(KILN_DTYPE_f32, 2, (int64_t[]){ 2, 3 });
    kiln_json_object(json, NULL);
    kiln_json_int(json, "int", INT64_MIN);
    kiln_json_bool(json, "bool", true);
    kiln_json_null(json, "null");
    kiln_json_type(json, "type", &type);
    kiln_json_string(json, "none", NULL);
    kiln_json_array(json, "list");
    kiln_json_string(json, NULL, "a");
    kiln_json_array(json, NULL);
    kiln_json_end_array(json);
    kiln_json_object(json, NULL);
    kiln_json_end_object(json);
    kiln_json_end_array(json);
    kiln_json_object(json, "object");
    kiln_json_int(json, "x", 1);
    kiln_json_end_object(json);
    kiln_json_end_object(json);
}

Test(json_writer, a_line_for_each_value)
{
    g_autoptr(GString) text = g_string_new(NULL);
    write_all(&(KilnJson){ .out = text, .pretty = true });
    cr_assert_str_eq(text->str, "{\n"
                                "  \"int\" : -9223372036854775808,\n"
                                "  \"bool\" : true,\n"
                                "  \"null\" : null,\n"
                                "  \"type\" : \"f32[2,3]\",\n"
                                "  \"none\" : null,\n"
                                "  \"list\" : [\n"
                                "    \"a\",\n"
                                "    [],\n"
                                "    {}\n"
                                "  ],\n"
                                "  \"object\" : {\n"
                                "    \"x\" : 1\n"
                                "  }\n"
                                "}");
}

Test(json_writer, one_line)
{
    g_autoptr(GString) text = g_string_new(NULL);
    write_all(&(KilnJson){ .out = text });
    cr_assert_str_eq(text->str, "{\"int\":-9223372036854775808,\"bool\":true,\"null\":null,"
                                "\"type\":\"f32[2,3]\",\"none\":null,\"list\":[\"a\",[],{}],"
                                "\"object\":{\"x\":1}}");
}

/* Nothing of a name reaches the terminal as a command, and each text reads back. */
Test(json_writer, strings)
{
    static const struct {
        const char *value, *written;
    } cases[] = {
        { "", "" },
        { "plain \xc3\xa4\xe2\x82\xac", "plain \xc3\xa4\xe2\x82\xac" },
        { "\"\\/", "\\\"\\\\/" },
        { "\b\f\n\r\t", "\\b\\f\\n\\r\\t" },
        { "\x1b[2J\x01\x7f", "\\u001b[2J\\u0001\\u007f" },
        { "a\xc2\x9b"
          "31m",
          "a\\u009b31m" },
        { "a\xff"
          "b",
          "a\357\277\275b" },
    };
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GString) text = g_string_new(NULL);
        KilnJson json = { .out = text };
        kiln_json_array(&json, NULL);
        kiln_json_string(&json, NULL, cases[i].value);
        kiln_json_end_array(&json);
        g_autofree char *expected = g_strconcat("[\"", cases[i].written, "\"]", NULL);
        cr_expect_str_eq(text->str, expected);
        g_autoptr(JsonNode) root = json_from_string(text->str, NULL);
        cr_assert(root, "%s", text->str);
        g_autofree char *valid = g_utf8_make_valid(cases[i].value, -1);
        cr_expect_str_eq(json_array_get_string_element(json_node_get_array(root), 0), valid);
    }
}

/* Also beside bytes that are no UTF-8. */
Test(json_writer, zeros)
{
    static const char value[] = "\0a\0\xff\0";
    g_autoptr(GString) text = g_string_new(NULL);
    KilnJson json = { .out = text };
    kiln_json_array(&json, NULL);
    kiln_json_text(&json, NULL, value, sizeof value - 1);
    kiln_json_text(&json, NULL, value, 0);
    kiln_json_end_array(&json);
    cr_expect_str_eq(text->str, "[\"\\u0000a\\u0000\357\277\275\\u0000\",\"\"]");
}

Test(json_writer, numbers)
{
    static const double values[] = { 0,      -0.0,    1,    0.1,  -2.5, 1.0 / 3,  1e300,
                                     5e-324, DBL_MAX, 1e15, 1e16, 1e17, 123456789 };
    for (size_t i = 0; i < G_N_ELEMENTS(values); i++) {
        g_autoptr(GString) text = g_string_new(NULL);
        KilnJson json = { .out = text };
        kiln_json_array(&json, NULL);
        kiln_json_number(&json, NULL, values[i]);
        kiln_json_end_array(&json);
        g_autoptr(JsonNode) root = json_from_string(text->str, NULL);
        cr_assert(root, "%s", text->str);
        JsonNode *element = json_array_get_element(json_node_get_array(root), 0);
        cr_expect_eq(json_node_get_value_type(element), G_TYPE_DOUBLE, "%s", text->str);
        cr_expect_eq(json_node_get_double(element), values[i], "%s", text->str);
    }
    g_autoptr(GString) text = g_string_new(NULL);
    KilnJson json = { .out = text };
    kiln_json_array(&json, NULL);
    kiln_json_number(&json, NULL, NAN);
    kiln_json_number(&json, NULL, -INFINITY);
    kiln_json_number(&json, NULL, 0.1);
    kiln_json_number(&json, NULL, 2);
    kiln_json_end_array(&json);
    cr_expect_str_eq(text->str, "[null,null,0.1,2.0]");
}
