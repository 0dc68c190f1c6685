/* SPDX-License-Identifier: Apache-2.0 */
/* Operators of plug-ins: what may be registered, by many threads at once, and what plug-ins see. */
#include "graph/arena.h"
#include "graph/kiln-op.h"
#include "graph/plugin/plugin.h"
#include "graph/type.h"
#include "kiln.h"
#include "tests/test_operators.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <string.h>

static gboolean
infer_same(KilnOpShape *shape)
{
    kiln_op_shape_set_output_like(shape, 0, kiln_op_shape_input_dtype(shape, 0), 0);
    return TRUE;
}

static const char *
run_nothing(const KilnOpCall *call)
{
    (void)call;
    return NULL;
}

#define GOOD(name_, first, last)                                                                   \
    {                                                                                              \
        .size = sizeof(KilnOpDescription), .domain = "unit.ops", .name = (name_),                  \
        .first_opset = (first), .last_opset = (last), .min_inputs = 1, .max_inputs = 1,            \
        .min_outputs = 1, .max_outputs = 1, .flags = KILN_OP_PURE, .infer = infer_same,            \
        .run = run_nothing                                                                         \
    }

/* --- descriptions --- */

static void
refuse(const KilnOpDescription *op, const char *part)
{
    g_autoptr(GError) error = NULL;
    cr_assert_not(kiln_op_register(op, &error), "%s", part);
    cr_expect(g_error_matches(error, KILN_ERROR, KILN_ERROR_USAGE));
    cr_expect(strstr(error->message, part), "expected: %s\nfound:    %s", part, error->message);
}

Test(plugin_ops, descriptions_are_complete)
{
    static const KilnOpAttribute nameless = { .name = "" };
    static const KilnOpInPlace beyond = { 0, 5 };
    const KilnOpDescription good = GOOD("Good", 1, 0);
    KilnOpDescription op;
#define REFUSE(field, value, part)                                                                 \
    op = good;                                                                                     \
    op.field = value;                                                                              \
    refuse(&op, part)
    REFUSE(size, 8, "a description of 8 bytes, expected");
    REFUSE(domain, NULL, "without a domain or a name");
    REFUSE(name, "", "without a domain or a name");
    REFUSE(max_inputs, 0, "operator unit.ops:Good: max_inputs is less than min_inputs");
    REFUSE(min_outputs, 0, "min_outputs is 0");
    REFUSE(max_outputs, 0, "max_outputs is less than min_outputs");
    REFUSE(first_opset, 0, "first_opset is less than 1");
    REFUSE(last_opset, -1, "last_opset is less than first_opset");
    REFUSE(n_attributes, 1, "attributes is NULL");
    REFUSE(n_in_place, 1, "in_place is NULL");
    REFUSE(infer, NULL, "infer is NULL");
    REFUSE(run, NULL, "run is NULL");
    op = good;
    op.attributes = &nameless;
    op.n_attributes = 1;
    refuse(&op, "an attribute has no name");
    op = good;
    op.in_place = &beyond;
    op.n_in_place = 1;
    refuse(&op, "in_place names an input or output that it does not have");
    cr_expect_null(kiln_plugin_find("unit.ops", "Good", 1));
}

Test(plugin_ops, kiln_keeps_its_own_operators)
{
    KilnOpDescription op = GOOD("Relu", 1, 0);
    const char *const domains[] = { "", "ai.onnx" };
    for (size_t i = 0; i < G_N_ELEMENTS(domains); i++) {
        op.domain = domains[i];
        refuse(&op, "operator Relu: Kiln has it itself");
    }
    op.domain = "com.microsoft";
    op.name = "FusedMatMul";
    refuse(&op, "operator com.microsoft:FusedMatMul: Kiln has it itself");
    /* What Kiln lacks there may come from a plug-in. */
    static KilnOpDescription lacked = GOOD("Zebra", 1, 0);
    lacked.domain = "ai.onnx";
    g_autoptr(GError) error = NULL;
    cr_assert(kiln_op_register(&lacked, &error), "%s", error ? error->message : "");
    cr_expect_eq(kiln_plugin_find("", "Zebra", 28), &lacked);
}

Test(plugin_ops, opsets_do_not_overlap)
{
    static const KilnOpDescription early = GOOD("Same", 2, 4), late = GOOD("Same", 5, 0),
                                   both = GOOD("Same", 4, 5), first = GOOD("Same", 1, 1);
    g_autoptr(GError) error = NULL;
    cr_assert(kiln_op_register(&early, &error) && kiln_op_register(&late, &error));
    cr_assert(kiln_op_register(&early, &error), "again");
    refuse(&both, "operator unit.ops:Same of opset 4: the program has registered it already");
    cr_assert(kiln_op_register(&first, &error));
    cr_expect_eq(kiln_plugin_find("unit.ops", "Same", 1), &first);
    cr_expect_eq(kiln_plugin_find("unit.ops", "Same", 4), &early);
    cr_expect_eq(kiln_plugin_find("unit.ops", "Same", 100), &late);
    cr_expect_null(kiln_plugin_find("unit.ops", "Other", 1));
    g_autofree char *opsets = kiln_plugin_opsets("unit.ops", "Same");
    cr_expect_str_eq(opsets, "the program has it from opset 2 on, up to 4; the program has it from "
                             "opset 5 on; the program has it from opset 1 on, up to 1");
}

Test(plugin_ops, a_table_is_registered_whole_or_not_at_all)
{
    static KilnOpDescription table[] = { GOOD("One", 1, 0), GOOD("Two", 1, 0), GOOD("One", 3, 0) };
    g_autoptr(GError) error = NULL;
    cr_assert_not(kiln_plugin_register(table, G_N_ELEMENTS(table), "a table", &error));
    cr_expect_str_eq(
        error->message,
        "a table: operator unit.ops:One of opset 3: a table has registered it already");
    cr_expect_null(kiln_plugin_find("unit.ops", "One", 1));
    cr_expect_null(kiln_plugin_find("unit.ops", "Two", 1));
}

/* --- threads --- */

enum {
    N_THREADS = 4,
    N_OPS = 64
};

static KilnOpDescription many[N_OPS];
static char names[N_OPS][16];

static void *
register_and_load(void *unused)
{
    static const char text[] = "graph @f(%x: f32[2]) {\n"
                               "  %y = plugin_op(%x) {domain=\"test.ops\", op_type=\"Half\"} : "
                               "f32[2]\n"
                               "  return %y\n"
                               "}\n";
    (void)unused;
    for (int i = 0; i < N_OPS; i++) {
        g_autoptr(GError) error = NULL;
        if (!kiln_op_register(&many[i], &error) ||
            kiln_plugin_find("unit.ops", names[i], 1) != &many[i])
            return "not registered";
        g_autoptr(GBytes) bytes = g_bytes_new_static(text, strlen(text));
        g_autoptr(KilnModel) model = kiln_model_load_bytes(bytes, "text.kiln", &error);
        if (!model)
            return "not loaded";
    }
    return NULL;
}

Test(plugin_ops, threads_register_while_models_are_loaded)
{
    pthread_t threads[N_THREADS];
    test_operators_register();
    for (int i = 0; i < N_OPS; i++) {
        g_snprintf(names[i], sizeof names[i], "Op%d", i);
        many[i] = (KilnOpDescription)GOOD(names[i], 1, 0);
    }
    for (int t = 0; t < N_THREADS; t++)
        cr_assert_eq(pthread_create(&threads[t], NULL, register_and_load, NULL), 0);
    for (int t = 0; t < N_THREADS; t++) {
        void *why;
        pthread_join(threads[t], &why);
        cr_expect_null(why, "%s", (const char *)why);
    }
    g_autoptr(GPtrArray) list = kiln_plugin_list();
    guint n = 0;
    for (guint i = 0; i < list->len; i++)
        n += strcmp(((const KilnOpDescription *)g_ptr_array_index(list, i))->domain, "unit.ops") ==
             0;
    cr_expect_eq(n, N_OPS);
}

/* --- attributes --- */

Test(plugin_ops, attributes_survive_their_columns)
{
    static const KilnOpAttribute rows[] = {
        { .name = "odd name", .kind = KILN_OP_ATTRIBUTE_INTS },
        { .name = "real", .kind = KILN_OP_ATTRIBUTE_FLOAT, .otherwise_float = 4 },
        { .name = "text", .kind = KILN_OP_ATTRIBUTE_STRING, .otherwise_text = "none" },
        { .name = "t", .kind = KILN_OP_ATTRIBUTE_TENSOR },
        { .name = "scalar", .kind = KILN_OP_ATTRIBUTE_TENSOR },
        { .name = "number", .kind = KILN_OP_ATTRIBUTE_INT, .otherwise_int = -3 },
        { .name = "empty", .kind = KILN_OP_ATTRIBUTE_FLOATS },
    };
    const KilnOpDescription op = { .attributes = rows, .n_attributes = G_N_ELEMENTS(rows) };
    const int64_t ints[] = { INT64_MIN, 5 };
    const uint8_t bytes[] = { 1, 2, 3, 250, 255 };
    const double scalar = 0.1;
    const KilnType vector = kiln_type_make(KILN_DTYPE_u8, 1, (int64_t[]){ 5 }),
                   point = kiln_type_scalar(KILN_DTYPE_f64);
    g_autoptr(KilnArena) arena = kiln_arena_new();
    KilnPluginWriter writer;
    kiln_plugin_writer_init(&writer, arena);
    kiln_plugin_write_tensor(&writer, "t", &vector, bytes);
    kiln_plugin_write_ints(&writer, "odd name", KILN_OP_ATTRIBUTE_INTS, ints, 2);
    kiln_plugin_write_floats(&writer, "empty", KILN_OP_ATTRIBUTE_FLOATS, NULL, 0);
    kiln_plugin_write_tensor(&writer, "scalar", &point, &scalar);
    const KilnPluginColumns columns = kiln_plugin_writer_columns(&writer);
    g_autoptr(GError) error = NULL;
    cr_assert(kiln_plugin_check_attributes(&columns, &op, &error), "%s",
              error ? error->message : "");
    g_autofree void *memory = g_malloc0(kiln_op_attributes_bytes(&columns, true));
    KilnOpAttributes read;
    kiln_op_attributes_init(&read, &op, &columns, memory, true);
    unsigned n;
    const int64_t *found = kiln_op_attribute_ints(&read, "odd name", &n);
    cr_assert_eq(n, 2u);
    cr_expect_arr_eq(found, ints, sizeof ints);
    cr_expect_null(kiln_op_attribute_floats(&read, "empty", &n));
    cr_expect(n == 0 && kiln_op_attribute_is_stated(&read, "empty"));
    cr_expect_not(kiln_op_attribute_is_stated(&read, "real"));
    cr_expect_eq(kiln_op_attribute_float(&read, "real"), 4);
    cr_expect_eq(kiln_op_attribute_int(&read, "number"), -3);
    cr_expect_str_eq(kiln_op_attribute_text(&read, "text"), "none");
    const KilnOpTensor *t = kiln_op_attribute_tensor(&read, "t");
    cr_assert(t && t->rank == 1 && t->dims[0] == 5 && t->elements == 5);
    cr_expect_arr_eq(t->data, bytes, sizeof bytes);
    const KilnOpTensor *s = kiln_op_attribute_tensor(&read, "scalar");
    cr_expect(s && s->rank == 0 && *(const double *)s->data == scalar);
    kiln_plugin_writer_clear(&writer);
}
