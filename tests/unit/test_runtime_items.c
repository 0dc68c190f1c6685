/* SPDX-License-Identifier: Apache-2.0 */
/* Sequences, optionals and maps through kiln.h. */
#include "kiln.h"
#include "tests/unit/runtime_case.h"

#include <string.h>

static KilnItem *
vector(const float *values, int64_t n)
{
    GError *error = NULL;
    KilnItem *item = kiln_item_new_tensor(KILN_DTYPE_f32, 1, &n, values, &error);
    cr_assert(item, "%s", error ? error->message : "");
    return item;
}

/* Vectors of these lengths with the numbers 1, 2, 3, … */
static KilnItem *
vectors(size_t n, const int64_t *lengths)
{
    GError *error = NULL;
    float values[16];
    KilnItem *items[8] = { 0 };
    for (int i = 0; i < 16; i++)
        values[i] = (float)(i + 1);
    for (size_t i = 0; i < n; i++)
        items[i] = vector(values, lengths[i]);
    KilnItem *sequence = kiln_item_new_sequence(items, n, &error);
    for (size_t i = 0; i < n; i++)
        kiln_item_unref(items[i]);
    cr_assert(sequence, "%s", error ? error->message : "");
    return sequence;
}
#define VECTORS(...)                                                                               \
    vectors(sizeof((int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t), (int64_t[]){ __VA_ARGS__ })

static void
bind_item(KilnSession *session, unsigned i, KilnItem *item)
{
    GError *error = NULL;
    must(kiln_session_bind_input_item(session, i, item, &error), error);
    kiln_item_unref(item); /* the session owns it */
}

static const char picks[] = "graph @f(%s: sequence(f32[*]), %i: i64[]) {\n"
                            "  %x = sequence_at(%s, %i) : f32[*]\n"
                            "  %y = relu(%x) : f32[*]\n"
                            "  %n = sequence_length(%s) : i64[]\n"
                            "  return %y, %n\n"
                            "}\n";

Test(runtime_items, elements_of_any_shape)
{
    g_autoptr(KilnSession) session = session_of(picks);
    const float six[] = { 1, -2, 3, -4, 5, -6 };
    int64_t i = 1;
    bind(session, 1, &i, sizeof i);
    bind_item(session, 0, VECTORS(3, 2));
    run(session);
    expect_floats(session, 0, FLOATS(1, 2), DIMS(2));
    i = -2;
    run(session);
    expect_floats(session, 0, FLOATS(1, 2, 3), DIMS(3));
    KilnItem *matrix = kiln_item_new_tensor(KILN_DTYPE_f32, 2, (int64_t[]){ 2, 3 }, six, NULL);
    bind_item(session, 0, kiln_item_new_sequence(&matrix, 1, NULL));
    kiln_item_unref(matrix);
    i = 0;
    run(session);
    expect_floats(session, 0, FLOATS(1, 0, 3, 0, 5, 0), DIMS(2, 3));
    i = 1;
    run_fails(session, KILN_ERROR_RUN, "outside of the sequence");
    bind_item(session, 0, VECTORS(2, 2, 2));
    run(session);
    expect_floats(session, 0, FLOATS(1, 2), DIMS(2));
    cr_expect_eq(*(const int64_t *)kiln_session_output(session, 1, NULL, NULL), 3);
}

Test(runtime_items, wrong_ones)
{
    GError *error = NULL;
    const int64_t i = 0, one = 1;
    g_autoptr(KilnSession) session = session_of(picks);
    bind(session, 1, &i, sizeof i);
    KilnItem *number = kiln_item_new_tensor(KILN_DTYPE_i64, 1, &one, &i, NULL);
    bind_item(session, 0, kiln_item_new_sequence(&number, 1, NULL));
    run_fails(session, KILN_ERROR_TYPE, "input s: item 0: expected f32[*], found i64[1]");
    bind_item(session, 0, kiln_item_new_optional(number, NULL));
    run_fails(session, KILN_ERROR_TYPE,
              "input s: expected sequence(f32[*]), found one of type optional");
    cr_expect_not(kiln_session_bind_input_item(session, 1, number, &error));
    expect_error(&error, KILN_ERROR_USAGE, "input i: expected the data of a tensor");
    cr_expect_not(kiln_session_bind_input_item(session, 2, number, &error));
    expect_error(&error, KILN_ERROR_USAGE, "input 2");
    bind_item(session, 0, VECTORS(2));
    run(session);
    cr_expect_null(kiln_session_output_item(session, 0, &error));
    expect_error(&error, KILN_ERROR_USAGE, "output y: expected a sequence");
    kiln_item_unref(number);
}

static const char collects[] =
    "graph @f(%s: sequence(f32[?]), %n: i64[]) {\n"
    "  %r = loop(%n, _, %s) body(%i: i64[], %c: bool[], %t: sequence(f32[?])) {\n"
    "    %f = cast(%i) {to=f32} : f32[]\n"
    "    %x = sequence_at(%t, %i) : f32[?]\n"
    "    %y = add(%x, %f) : f32[?]\n"
    "    %u = sequence_insert(%t, %y) : sequence(f32[?])\n"
    "    return %c, %u\n"
    "  } : sequence(f32[?])\n"
    "  return %r\n"
    "}\n";

static void
expect_collected(KilnSession *session, size_t n)
{
    GError *error = NULL;
    g_autoptr(KilnItem) out = kiln_session_output_item(session, 0, &error);
    cr_assert(out, "%s", error ? error->message : "");
    cr_assert_eq(kiln_item_length(out), n);
    for (size_t i = 0; i < n; i++) {
        int rank;
        const KilnItem *x = kiln_item_get(out, i);
        const float *data = kiln_item_data(x);
        const int64_t length = i % 2 ? 1 : 3, *dims = kiln_item_dims(x, &rank);
        cr_assert(rank == 1 && dims[0] == length, "item %zu", i);
        float added = 0; /* of the iterations that it came through: item i comes from item i - 2 */
        for (size_t k = i; k >= 2; k -= 2)
            added += (float)(k - 2);
        for (int64_t d = 0; d < length; d++)
            cr_expect_eq(data[d], (float)(d + 1) + added, "item %zu", i);
    }
}

Test(runtime_items, carried)
{
    g_autoptr(KilnSession) session = session_of(collects);
    for (int64_t n = 0; n < 40; n += 13) {
        bind(session, 1, &n, sizeof n);
        bind_item(session, 0, VECTORS(3, 1));
        run(session);
        expect_collected(session, (size_t)n + 2);
        run(session);
        expect_collected(session, (size_t)n + 2);
    }
}

/* A clone owns what it reads. */
Test(runtime_items, clones)
{
    GError *error = NULL;
    const int64_t i = 0;
    KilnSession *session = session_of(picks);
    bind(session, 1, &i, sizeof i);
    bind_item(session, 0, VECTORS(3));
    run(session);
    g_autoptr(KilnSession) clone = kiln_session_clone(session, &error);
    cr_assert(clone, "%s", error ? error->message : "");
    bind_item(session, 0, VECTORS(2));
    run(session);
    kiln_session_free(session);
    run(clone);
    expect_floats(clone, 0, FLOATS(1, 2, 3), DIMS(3));
}

/* An output outlives the session and the next run. */
Test(runtime_items, outputs_are_owned)
{
    KilnSession *session = session_of(collects);
    int64_t n = 3;
    bind(session, 1, &n, sizeof n);
    bind_item(session, 0, VECTORS(3, 1));
    run(session);
    g_autoptr(KilnItem) first = kiln_session_output_item(session, 0, NULL);
    n = 0;
    run(session);
    g_autoptr(KilnItem) second = kiln_session_output_item(session, 0, NULL);
    kiln_session_free(session);
    cr_expect_eq(kiln_item_length(first), 5);
    cr_expect_eq(kiln_item_length(second), 2);
}

static const char optionals[] = "graph @f(%o: optional(f32[*])) {\n"
                                "  %h = optional_has_element(%o) : bool[]\n"
                                "  %y = if(%h) then {\n"
                                "    %a = optional_get_element(%o) : f32[*]\n"
                                "    return %a\n"
                                "  } else {\n"
                                "    %z = const @zero : f32[1]\n"
                                "    return %z\n"
                                "  } : f32[*]\n"
                                "  %p = optional(%y) : optional(f32[*])\n"
                                "  return %y, %p\n"
                                "}\n"
                                "constants {\n"
                                "  @zero = [0.5] : f32[1]\n"
                                "}\n";

Test(runtime_items, optionals_decide)
{
    g_autoptr(KilnSession) session = session_of(optionals);
    KilnItem *x = vector(FLOATS(1, 2, 3), 3);
    bind_item(session, 0, kiln_item_new_optional(x, NULL));
    run(session);
    expect_floats(session, 0, FLOATS(1, 2, 3), DIMS(3));
    g_autoptr(KilnItem) out = kiln_session_output_item(session, 1, NULL);
    cr_expect(kiln_item_equal(kiln_item_get(out, 0), x));
    bind_item(session, 0, NULL);
    run(session);
    expect_floats(session, 0, FLOATS(0.5f), DIMS(1));
    kiln_item_unref(x);
}

/* Texts of an item are there as long as its results are. */
Test(runtime_items, texts_outlive_iterations)
{
    g_autoptr(KilnSession) session =
        session_of("graph @f(%x: string[2], %n: i64[]) {\n"
                   "  %y = loop(%n, _, %x) body(%i: i64[], %c: bool[], %t: string[2]) {\n"
                   "    %s = sequence_construct(%t, %t) : sequence(string[2])\n"
                   "    %one = const @one : i64[]\n"
                   "    %a = sequence_at(%s, %one) : string[2]\n"
                   "    %b = string_concat(%a, %x) : string[2]\n"
                   "    return %c, %b\n"
                   "  } : string[2]\n"
                   "  return %y\n"
                   "}\n"
                   "constants {\n"
                   "  @one = [1] : i64[]\n"
                   "}\n");
    const KilnText ab = { "ab", 2 }, *const x[] = { &ab, NULL };
    const int64_t n = 3;
    bind(session, 0, x, sizeof x);
    bind(session, 1, &n, sizeof n);
    run(session);
    const KilnText *const *y = kiln_session_output(session, 0, NULL, NULL);
    cr_assert_eq(y[0]->length, 8);
    cr_expect(memcmp(y[0]->text, "abababab", 8) == 0);
}

Test(runtime_items, maps)
{
    g_autoptr(KilnSession) session =
        session_of("graph @f(%x: f32[2,3]) {\n"
                   "  %m = zip_map(%x) {classlabels_strings=[\"a\",\"b\",\"c\"]} : "
                   "sequence(map(string,f32))\n"
                   "  return %m\n"
                   "}\n");
    bind(session, 0, FLOATS(1, 2, 3, 4, 5, 6), 6 * sizeof(float));
    run(session);
    g_autoptr(KilnItem) out = kiln_session_output_item(session, 0, NULL);
    cr_assert_eq(kiln_item_length(out), 2);
    const KilnItem *map = kiln_item_get(out, 1);
    const KilnText *const *keys = kiln_item_data(kiln_item_get(map, 0));
    const float *values = kiln_item_data(kiln_item_get(map, 1));
    cr_expect_eq(keys[2]->text[0], 'c');
    cr_expect_eq(values[2], 6);
}

/* A map from @keys to halves: 0.5, 1.5, … */
static KilnItem *
halves(const int64_t *keys, int64_t n)
{
    const float values[] = { 0.5f, 1.5f, -2.5f };
    g_autoptr(KilnItem) from = kiln_item_new_tensor(KILN_DTYPE_i64, 1, &n, keys, NULL);
    g_autoptr(KilnItem) to = vector(values, n);
    return kiln_item_new_map(from, to, NULL);
}

/* Keys behind the result are passed over, and a place without a key has 0. */
Test(runtime_items, sparse_maps)
{
    g_autoptr(KilnSession) session =
        session_of("graph @f(%m: map(i64,f32)) {\n"
                   "  %x = cast_map(%m) {max_map=3} : f32[1,3]\n"
                   "  %t = cast_map(%m) {to=string, max_map=3} : string[1,3]\n"
                   "  %d = cast_map(%m) {to=string, dims=[\"\",\"n\"]} : string[1,n]\n"
                   "  return %x, %t, %d\n"
                   "}\n");
    static const char *const sparse[] = { "0.f", "1.500000", "0.f" };
    static const char *const dense[] = { "1.500000", "-2.500000", "0.500000" };
    bind_item(session, 0, halves((int64_t[]){ 7, 1, 3 }, 3));
    run(session);
    expect_floats(session, 0, FLOATS(0, 1.5f, 0), DIMS(1, 3));
    const KilnText *const *texts = kiln_session_output(session, 1, NULL, NULL);
    const KilnText *const *others = kiln_session_output(session, 2, NULL, NULL);
    for (int i = 0; i < 3; i++) {
        cr_expect(texts[i]->length == strlen(sparse[i]) &&
                  memcmp(texts[i]->text, sparse[i], texts[i]->length) == 0);
        cr_expect(others[i]->length == strlen(dense[i]) &&
                  memcmp(others[i]->text, dense[i], others[i]->length) == 0);
    }
    bind_item(session, 0, halves((int64_t[]){ -1, 1 }, 2));
    run_fails(session, KILN_ERROR_RUN, "a key of the map is below 0");
}

Test(runtime_items, are_no_constants)
{
    g_autoptr(GBytes) value = g_bytes_new_static("12345678", 8);
    for (int when = 0; when < 2; when++) {
        GError *error = NULL;
        const KilnConstantInput constant = { .input = "s",
                                             .when =
                                                 when ? KILN_CONSTANT_RUN : KILN_CONSTANT_COMPILE,
                                             .value = when ? NULL : value };
        KilnCompileOptions options = KILN_COMPILE_OPTIONS_INIT;
        options.constants = &constant;
        options.n_constants = 1;
        g_autoptr(KilnModel) model = model_of(picks);
        cr_expect_null(kiln_program_compile(model, &options, &error));
        expect_error(&error, KILN_ERROR_USAGE,
                     "constant s: expected a tensor, found sequence(f32[*])");
    }
}

/* --- what docs/sequences.md shows --- */

static gboolean
run_with_two(KilnSession *session, const float *first, const float *second, GError **error)
{
    const int64_t three = 3;
    g_autoptr(KilnItem) a = kiln_item_new_tensor(KILN_DTYPE_f32, 1, &three, first, error);
    g_autoptr(KilnItem) b =
        a ? kiln_item_new_tensor(KILN_DTYPE_f32, 1, &three, second, error) : NULL;
    g_autoptr(KilnItem) list = b ? kiln_item_new_sequence((KilnItem *[]){ a, b }, 2, error) : NULL;
    return list && kiln_session_bind_input_item(session, 0, list, error) &&
           kiln_session_run(session, error);
}

static float
sum_of_output(KilnSession *session, GError **error)
{
    float sum = 0;
    g_autoptr(KilnItem) list = kiln_session_output_item(session, 0, error);
    for (size_t i = 0; i < kiln_item_length(list); i++) {
        const KilnItem *tensor = kiln_item_get(list, i);
        const float *numbers = kiln_item_data(tensor);
        for (size_t k = 0; k < kiln_item_bytes(tensor) / sizeof *numbers; k++)
            sum += numbers[k];
    }
    return sum;
}

Test(runtime_items, as_documents_show)
{
    GError *error = NULL;
    g_autoptr(KilnSession) session = session_of("graph @f(%s: sequence(f32[3])) {\n"
                                                "  return %s\n"
                                                "}\n");
    must(run_with_two(session, FLOATS(1, 2, 3), FLOATS(4, 5, 6), &error), error);
    cr_expect_eq(sum_of_output(session, &error), 21);
}

/* Each part is an item, however few elements there are. */
Test(runtime_items, parts_without_elements_are_bounded)
{
    g_autoptr(KilnSession) session =
        session_of("graph @f(%x: f32[N,0]) {\n"
                   "  %s = split_to_sequence(%x) {axis=0} : sequence(f32[1,0])\n"
                   "  return %s\n}\n");
    const float none[1] = { 0 };
    GError *error = NULL;
    bind_shaped(session, 0, none, DIMS(3, 0));
    run(session);
    g_autoptr(KilnItem) list = kiln_session_output_item(session, 0, &error);
    cr_assert_eq(kiln_item_length(list), 3, "%s", error ? error->message : "");
    bind_shaped(session, 0, none, DIMS(2000000000, 0));
    cr_expect_not(kiln_session_run(session, &error));
    expect_error(&error, KILN_ERROR_RUN, "a tensor without elements has more than 1048575 parts");
}
