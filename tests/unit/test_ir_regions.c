/* SPDX-License-Identifier: Apache-2.0 */
/* Regions against sets of bytes: parts of parts, and which have bytes in common. Views in rows that
 * are none. */
#include "graph/base/random.h"
#include "ir/ir.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <string.h>

enum {
    BYTES = 96,
    CASES = 200000
};

static uint64_t counter;

static int64_t
draw(int64_t below)
{
    return (int64_t)(kiln_random_bits(11, counter++) % (uint64_t)below);
}

/* Of @size bytes, in normal form. */
static KilnRegion
random_region(int64_t size)
{
    int64_t rows = 1 + draw(5), pitch = 1 + draw(12), run = 1 + draw(pitch);
    if (rows == 1)
        run = 1 + draw(size);
    int64_t span = (rows - 1) * pitch + run;
    if (span > size)
        return kiln_region_make(0, 1, size, size);
    return kiln_region_make(draw(size - span + 1), rows, run, pitch);
}

/* The address of each byte of @region, in order; how many. */
static int
list_bytes(const KilnRegion *region, int *out)
{
    int n = 0;
    for (int64_t row = 0; row < region->rows; row++) {
        for (int64_t i = 0; i < region->run; i++)
            out[n++] = (int)(region->offset + row * region->pitch + i);
    }
    return n;
}

Test(ir_regions, part_of_a_part)
{
    unsigned found = 0, refused = 0;
    for (int k = 0; k < CASES; k++) {
        int of_whole[BYTES], of_part[BYTES], of_out[BYTES];
        KilnRegion whole = random_region(BYTES), part, out;
        int n = list_bytes(&whole, of_whole);
        part = random_region(n);
        int n_part = list_bytes(&part, of_part);
        if (!kiln_region_part(&whole, &part, &out)) {
            refused++;
            cr_assert_gt(whole.rows, 1);
            continue;
        }
        found++;
        cr_assert_eq(list_bytes(&out, of_out), n_part);
        for (int i = 0; i < n_part; i++)
            cr_assert_eq(of_out[i], of_whole[of_part[i]]);
        cr_assert(out.rows > 1 ? out.run < out.pitch : out.run == out.pitch, "normal form");
    }
    cr_assert_gt(found, CASES / 4);
    cr_assert_gt(refused, 100);
}

Test(ir_regions, meet_is_never_missed)
{
    unsigned apart = 0, beside = 0;
    for (int k = 0; k < CASES; k++) {
        bool taken[BYTES] = { false }, meet = false;
        int bytes[BYTES];
        KilnRegion a = random_region(BYTES), b = random_region(BYTES);
        for (int i = list_bytes(&a, bytes); i-- > 0;)
            taken[bytes[i]] = true;
        for (int i = list_bytes(&b, bytes); i-- > 0;)
            meet |= taken[bytes[i]];
        bool told = kiln_region_meet(&a, &b);
        cr_assert(told || !meet);
        cr_assert_eq(told, kiln_region_meet(&b, &a));
        apart += !meet;
        beside += !told && a.rows > 1 && b.rows > 1;
    }
    cr_assert_gt(apart, 1000);
    cr_assert_gt(beside, 1000);
}

/* Regions of the bytes of f32[2,2*N] at N = 7. They are apart only if they are for every N. */
Test(ir_regions, open_regions_meet_for_some_binding)
{
    g_autoptr(KilnDimTable) dims = kiln_dim_table_new();
    const KilnDim *n = kiln_dim_name(dims, "N");
    KilnSize zero = kiln_size_make(0), one = kiln_size_make(1), two = kiln_size_make(2);
    KilnSize half = kiln_size_mul(kiln_size_open(7, n), kiln_size_make(4));
    KilnSize row = kiln_size_mul(half, two), fixed = kiln_size_make(28);
    KilnRegion left = kiln_region_of_sizes(zero, two, half, row);
    KilnRegion right = kiln_region_of_sizes(half, two, half, row);
    KilnRegion first = kiln_region_of_sizes(zero, one, row, row);
    KilnRegion second = kiln_region_of_sizes(row, one, row, row);
    KilnRegion late = kiln_region_of_sizes(fixed, two, kiln_size_make(4), row);
    KilnRegion one_late = kiln_region_of_sizes(fixed, one, kiln_size_make(4), row);
    KilnRegion lost = right;
    lost.lost = true;
    const struct {
        const KilnRegion *a, *b;
        bool here, ever;
    } pairs[] = {
        { &left, &left, true, true },      { &left, &right, false, false },
        { &first, &second, false, false }, { &left, &second, true, true },
        { &left, &late, false, true },     { &left, &lost, false, true },
        { &left, &one_late, false, true },
    };
    for (size_t i = 0; i < G_N_ELEMENTS(pairs); i++) {
        cr_expect_eq(kiln_region_meet_here(pairs[i].a, pairs[i].b), pairs[i].here, "%zu", i);
        cr_expect_eq(kiln_region_meet(pairs[i].a, pairs[i].b), pairs[i].ever, "%zu", i);
        cr_expect_eq(kiln_region_meet(pairs[i].b, pairs[i].a), pairs[i].ever, "%zu", i);
    }
}

/* Parts of the left half of f32[2,2*N], whose data have 2*N elements. */
Test(ir_regions, parts_of_open_regions)
{
    g_autoptr(KilnDimTable) dims = kiln_dim_table_new();
    const KilnDim *n = kiln_dim_name(dims, "N");
    KilnSize zero = kiln_size_make(0), one = kiln_size_make(1), two = kiln_size_make(2);
    KilnSize four = kiln_size_make(4), half = kiln_size_mul(kiln_size_open(7, n), four);
    KilnSize row = kiln_size_mul(half, two);
    KilnRegion left = kiln_region_of_sizes(zero, two, half, row), out;
    KilnRegion second = kiln_region_of_sizes(half, one, half, half);
    KilnRegion whole_second = kiln_region_of_sizes(row, one, half, half);
    cr_assert(kiln_region_part(&left, &second, &out));
    cr_expect(kiln_region_equal(&out, &whole_second));
    KilnRegion column = kiln_region_of_sizes(zero, two, four, half);
    KilnRegion whole_column = kiln_region_of_sizes(zero, two, four, row);
    cr_assert(kiln_region_part(&left, &column, &out));
    cr_expect(kiln_region_equal(&out, &whole_column));
    /* It ends inside the first row at N = 7, and not for smaller numbers. */
    KilnSize most = kiln_size_make(24);
    KilnRegion fixed = kiln_region_of_sizes(four, one, most, most);
    cr_assert(kiln_region_part(&left, &fixed, &out));
    cr_expect(out.lost && out.offset == 4 && out.rows == 1 && out.run == 24);
}

Test(ir_regions, columns_are_apart)
{
    KilnRegion left = kiln_region_make(0, 4, 12, 32), right = kiln_region_make(12, 4, 20, 32);
    KilnRegion row = kiln_region_make(32, 1, 32, 32), gap = kiln_region_make(44, 1, 20, 20);
    cr_assert_not(kiln_region_meet(&left, &right));
    cr_assert(kiln_region_meet(&left, &row));
    cr_assert_not(kiln_region_meet(&left, &gap));
    cr_assert(kiln_region_meet(&right, &gap));
}

static void
expect_error(const char *view, const char *message)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *text =
        g_strdup_printf("func @f {\n  input @x : f32[4,8]\n  output @y : f32[8]\n"
                        "  %%w = view @x {rows=4, pitch=8} : f32[4,4]\n"
                        "  %%v = view %s\n  relu @out @y, @in %%v\n}\n",
                        view);
    g_autoptr(KilnIRModule) ir = kiln_ir_module_parse(text, strlen(text), "test", &error);
    cr_assert_null(ir, "%s", view);
    cr_assert(strstr(error->message, message), "%s: %s", view, error->message);
}

Test(ir_regions, verifier_names_what_is_no_view)
{
    expect_error("@x {rows=3, pitch=8} : f32[8]",
                 "rows that divide the elements of f32[8], found 3");
    expect_error("@x {rows=2, pitch=3} : f32[8]", "pitch 3 does not hold a row of f32[8]");
    expect_error("@x {offset=1, rows=4, pitch=10} : f32[8]", "does not lie inside f32[4,8]");
    expect_error("@x {rows=2, pitch=9223372036854775807} : f32[8]", "does not hold a row");
    expect_error("@x {rows=0, pitch=8} : f32[8]", "expected an integer from 1");
    expect_error("@x {rows=2} : f32[8]", "expected ','");
    expect_error("%w {offset=2} : f32[8]", "its bytes are no rows of w, which has gaps");
    expect_error("%w {rows=2, pitch=6} : f32[8]", "its bytes are no rows of w");
    expect_error("@x {rows=1, pitch=9223372036854775807} : f32[8]", "expected no pitch of one row");
    expect_error("@x {rows=1, pitch=8} : f32[8]", "expected no pitch of one row, found 8");
}

/* Every row is aligned to what is read from it, not only the first. */
Test(ir_regions, verifier_names_rows_that_are_misaligned)
{
    static const char text[] = "func @f {\n  input @x : i8[2,33]\n  output @y : i16[2,16]\n"
                               "  %v = view @x {rows=2, pitch=33} : i8[2,32]\n"
                               "  %w = view %v : i16[2,16]\n  slice @out @y, @in %w\n}\n";
    g_autoptr(GError) error = NULL;
    g_autoptr(KilnIRModule) ir = kiln_ir_module_parse(text, strlen(text), "test", &error);
    cr_assert_null(ir);
    cr_assert(strstr(error->message, "a pitch of 33 bytes misaligns i16"), "%s", error->message);
}

enum {
    DEPTH = 3000
};

static void *
find_region(void *buffer)
{
    static KilnRegion region;
    region = kiln_buffer_region(buffer);
    return &region;
}

/* However many views of views a text has, as here on a stack that has no room for a call each. */
Test(ir_regions, views_nest_to_any_depth)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GString) text = g_string_new("func @f {\n  input @x : f32[4,8192]\n"
                                           "  output @y : f32[4,2]\n"
                                           "  %v0 = view @x {rows=4, pitch=8192} : f32[4,8000]\n");
    for (int i = 1; i <= DEPTH; i++)
        g_string_append_printf(text,
                               "  %%v%d = view %%v%d {offset=1, rows=4, pitch=%d} : f32[4,%d]\n", i,
                               i - 1, 8002 - 2 * i, 8000 - 2 * i);
    g_string_append_printf(text, "  %%v = view %%v%d {rows=4, pitch=%d} : f32[4,2]\n", DEPTH,
                           8000 - 2 * DEPTH);
    g_string_append(text, "  relu @out @y, @in %v\n}\n");
    g_autoptr(KilnIRModule) ir = kiln_ir_module_parse(text->str, text->len, "test", &error);
    cr_assert(ir, "%s", error ? error->message : "");
    KilnBuffer *last = kiln_ir_find_buffer(g_ptr_array_index(ir->functions, 0), "v");
    pthread_attr_t attributes;
    pthread_t thread;
    void *found;
    cr_assert_eq(pthread_attr_init(&attributes), 0);
    cr_assert_eq(pthread_attr_setstacksize(&attributes, 128 * 1024), 0);
    cr_assert_eq(pthread_create(&thread, &attributes, find_region, last), 0);
    cr_assert_eq(pthread_join(thread, &found), 0);
    pthread_attr_destroy(&attributes);
    const KilnRegion expected = kiln_region_make(4 * DEPTH, 4, 8, 4 * 8192);
    cr_assert(kiln_region_equal(found, &expected));
}
