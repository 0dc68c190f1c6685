/* SPDX-License-Identifier: Apache-2.0 */
/* The IR level: builders keep uses exact, and the verifier has one test per rule. */
#include "ir/ir.h"

#include <criterion/criterion.h>
#include <string.h>

typedef struct {
    KilnModule *module;
    KilnIRFunction *ir;
    KilnType type; /* f32[4] */
    KilnBuffer *x, *y;
} Fixture;

static Fixture
fixture(void)
{
    Fixture f = { .module = kiln_module_new() };
    f.ir = kiln_ir_function_new(f.module, "main");
    f.type = kiln_type_make(KILN_DTYPE_f32, 1, (int64_t[]){ 4 });
    f.x = kiln_ir_add_buffer(f.ir, KILN_BUFFER_INPUT, "x", &f.type);
    f.y = kiln_ir_add_buffer(f.ir, KILN_BUFFER_OUTPUT, "y", &f.type);
    return f;
}

static void
fixture_free(Fixture *f)
{
    kiln_ir_function_free(f->ir);
    kiln_module_free(f->module);
}

static KilnInstr *
unary(Fixture *f, KilnInstrKind kind, KilnBuffer *out, KilnBuffer *in)
{
    KilnInstr *instr =
        kiln_instr_new(f->ir, kind, (KilnBuffer *[]){ out, in }, 2, NULL, NULL, NULL);
    cr_assert_not_null(instr);
    return instr;
}

/* x → alloc a → y, the least function with every part. */
static KilnBuffer *
chain(Fixture *f)
{
    KilnBuffer *a = kiln_ir_alloc(f->ir, "a", &f->type, NULL);
    unary(f, KILN_INSTR_relu, a, f->x);
    unary(f, KILN_INSTR_neg, f->y, a);
    kiln_ir_dealloc(a, NULL);
    return a;
}

static void
expect_good(Fixture *f)
{
    g_autoptr(GError) error = NULL;
    cr_assert(kiln_ir_verify(f->ir, &error), "%s", error ? error->message : "");
}

static void
expect_bad(Fixture *f, const char *part)
{
    g_autoptr(GError) error = NULL;
    cr_assert_not(kiln_ir_verify(f->ir, &error));
    cr_assert(g_error_matches(error, KILN_ERROR, KILN_ERROR_INVALID));
    cr_assert_not_null(strstr(error->message, part), "%s", error->message);
    cr_assert_not_null(strstr(error->message, "@main"), "%s", error->message);
}

/* --- builders --- */

Test(ir, names_are_made_unique)
{
    Fixture f = fixture();
    KilnBuffer *a = kiln_ir_alloc(f.ir, "x", &f.type, NULL);
    KilnBuffer *b = kiln_ir_alloc(f.ir, "x", &f.type, NULL);
    cr_assert_str_eq(a->name, "x_1");
    cr_assert_str_eq(b->name, "x_2");
    cr_assert_eq(kiln_ir_find_buffer(f.ir, "x_2"), b);
    fixture_free(&f);
}

Test(ir, uses_follow_every_change)
{
    Fixture f = fixture();
    KilnBuffer *a = chain(&f);
    cr_assert_eq(a->n_uses, 4); /* alloc, write, read, dealloc */
    cr_assert_eq(f.x->n_uses, 1);
    KilnInstr *neg = f.ir->last->previous;
    uint64_t before = f.ir->stamp;
    kiln_instr_set_operand(neg, 1, f.x);
    cr_assert_gt(f.ir->stamp, before);
    cr_assert_eq(a->n_uses, 3);
    cr_assert_eq(f.x->n_uses, 2);
    expect_good(&f);
    fixture_free(&f);
}

Test(ir, removing_an_alloc_removes_its_buffer)
{
    Fixture f = fixture();
    KilnBuffer *a = chain(&f);
    kiln_instr_set_operand(f.ir->last->previous, 1, f.x);
    kiln_instr_remove(f.ir->last);
    kiln_instr_remove(f.ir->first->next);
    kiln_instr_remove(a->def);
    cr_assert_eq(f.ir->n_instrs, 1);
    cr_assert_null(kiln_ir_find_buffer(f.ir, "a"));
    expect_good(&f);
    fixture_free(&f);
}

Test(ir, move_relinks)
{
    Fixture f = fixture();
    KilnBuffer *a = chain(&f);
    KilnInstr *relu = f.ir->first->next;
    kiln_instr_move(relu, NULL);
    cr_assert_eq(f.ir->last, relu);
    kiln_instr_move(relu, relu);
    kiln_instr_move(relu, a->def);
    cr_assert_eq(f.ir->first, relu);
    cr_assert_eq(relu->next, a->def);
    cr_assert_eq(f.ir->n_instrs, 4);
    fixture_free(&f);
}

Test(ir, builder_checks_arity)
{
    Fixture f = fixture();
    struct {
        KilnInstrKind kind;
        uint32_t n;
        const char *says;
    } cases[] = { { KILN_INSTR_relu, 3, "expected 2 operands, found 3" },
                  { KILN_INSTR_add, 2, "operand 2 is required, found 2 operands" },
                  { KILN_INSTR_alloc, 1, "a builder of its own" } };
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL;
        KilnBuffer *operands[] = { f.y, f.x, f.x };
        cr_assert_null(
            kiln_instr_new(f.ir, cases[i].kind, operands, cases[i].n, NULL, NULL, &error));
        cr_assert_not_null(strstr(error->message, cases[i].says), "%s", error->message);
    }
    cr_assert_eq(f.ir->n_instrs, 0);
    cr_assert_eq(f.x->n_uses, 0);
    fixture_free(&f);
}

Test(ir, views_reach_their_origin)
{
    Fixture f = fixture();
    KilnType two = kiln_type_make(KILN_DTYPE_f32, 1, (int64_t[]){ 2 });
    KilnType bytes = kiln_type_make(KILN_DTYPE_u8, 1, (int64_t[]){ 4 });
    KilnBuffer *v = kiln_ir_view(f.ir, "v", f.x, 2, &two, NULL);
    KilnBuffer *w = kiln_ir_view(f.ir, "w", v, 1, &bytes, NULL);
    cr_assert_eq(kiln_buffer_origin(w), f.x);
    cr_assert_eq(kiln_buffer_origin_offset(w), 12);
    cr_assert_eq(kiln_buffer_origin_offset(f.x), 0);
    fixture_free(&f);
}

Test(ir, may_alias_asks_row_and_types)
{
    Fixture f = fixture();
    KilnType scalar = kiln_type_scalar(KILN_DTYPE_f32);
    KilnBuffer *s = kiln_ir_add_buffer(f.ir, KILN_BUFFER_INPUT, "s", &scalar);
    KilnInstr *add =
        kiln_instr_new(f.ir, KILN_INSTR_add, (KilnBuffer *[]){ f.y, f.x, s }, 3, NULL, NULL, NULL);
    cr_assert(kiln_instr_may_share(add, 0, 1));
    cr_assert_not(kiln_instr_may_share(add, 0, 2));
    cr_assert_not(kiln_instr_may_share(add, 0, 0));
    cr_assert_not(kiln_instr_may_share(add, 0, 7));
    fixture_free(&f);
}

Test(ir, attributes_are_copied)
{
    Fixture f = fixture();
    KilnInstrAttrs_leaky_relu attrs = { .alpha = 0.5f };
    KilnInstr *instr = kiln_instr_new(f.ir, KILN_INSTR_leaky_relu, (KilnBuffer *[]){ f.y, f.x }, 2,
                                      &attrs, NULL, NULL);
    attrs.alpha = 1;
    cr_assert_eq(kiln_instr_attrs(instr, leaky_relu)->alpha, 0.5f);
    cr_assert_eq(kiln_instr_attrs(unary(&f, KILN_INSTR_leaky_relu, f.y, f.x), leaky_relu)->alpha,
                 0.01f);
    fixture_free(&f);
}

/* --- the verifier: what is good, and one test per rule --- */

Test(ir, verify_accepts_a_chain)
{
    Fixture f = fixture();
    chain(&f);
    expect_good(&f);
    fixture_free(&f);
}

Test(ir, verify_accepts_in_place)
{
    Fixture f = fixture();
    KilnBuffer *a = kiln_ir_alloc(f.ir, "a", &f.type, NULL);
    unary(&f, KILN_INSTR_relu, a, f.x);
    unary(&f, KILN_INSTR_neg, a, a);
    kiln_instr_new(f.ir, KILN_INSTR_add, (KilnBuffer *[]){ a, a, a }, 3, NULL, NULL, NULL);
    unary(&f, KILN_INSTR_copy, f.y, a);
    kiln_ir_dealloc(a, NULL);
    expect_good(&f);
    fixture_free(&f);
}

Test(ir, verify_names)
{
    Fixture f = fixture();
    KilnBuffer *a = chain(&f);
    a->name = "x";
    expect_bad(&f, "two buffers have this name");
    fixture_free(&f);
}

Test(ir, verify_lists)
{
    Fixture f = fixture();
    chain(&f);
    g_ptr_array_add(f.ir->inputs, f.y);
    expect_bad(&f, "expected input of this function, found output");
    fixture_free(&f);
}

Test(ir, verify_uses)
{
    Fixture f = fixture();
    KilnBuffer *a = chain(&f);
    a->n_uses++;
    expect_bad(&f, "expected 5 uses, found 4");
    a->n_uses = 2;
    expect_bad(&f, "its list of uses is broken");
    fixture_free(&f);
}

Test(ir, verify_places)
{
    Fixture f = fixture();
    KilnBuffer *a = chain(&f);
    KilnInstr *relu = a->def->next;
    relu->previous = NULL;
    expect_bad(&f, "the list of instructions is broken at a");
    relu->previous = a->def;
    a->def = relu;
    expect_bad(&f, "a is not what it allocates");
    a->def = relu->previous;
    g_ptr_array_set_size(f.ir->outputs, 0);
    expect_bad(&f, "expected 2 weights, inputs and outputs, found 1 listed");
    fixture_free(&f);
}

Test(ir, verify_static_types)
{
    Fixture f = fixture();
    KilnBuffer *a = chain(&f);
    a->type.dims[0] = KILN_DIM_UNKNOWN;
    expect_bad(&f, "expected a static type, found f32[?]");
    fixture_free(&f);
}

static void
expect_refused(const char *text, const char *message)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(KilnIRModule) ir = kiln_ir_module_parse(text, strlen(text), "case", &error);
    cr_assert_null(ir, "%s", text);
    cr_expect(strstr(error->message, message), "expected '%s', found '%s'", message,
              error->message);
}

/* Nothing makes an address of a number. */
Test(ir, verify_strings)
{
    expect_refused("func @f {\n  input @x : i64[2]\n  output @y : string[2]\n"
                   "  %v = view @x : string[2]\n  copy @out @y, @in %v\n}\n",
                   "only numbers may be seen as another type: expected i64, found string");
    expect_refused("func @f {\n  input @x : sequence(f32[2])\n  output @y : string[]\n"
                   "  %v = view @x : string[]\n  copy @out @y, @in %v\n}\n",
                   "only numbers may be seen as another type: expected sequence, found string");
    expect_refused("func @f {\n  input @x : i64[2]\n  output @y : string[2]\n"
                   "  copy @out @y, @in @x\n}\n",
                   "copy");
    expect_refused("func @f {\n  input @x : i64[2]\n  output @y : string[2]\n"
                   "  stack @out @y, @in @x { cast : string }\n}\n",
                   "expected numbers, found strings");
    expect_refused("func @f {\n  weight @w = _ : string[2]\n  input @x : string[2]\n"
                   "  copy @out @w, @in @x\n}\n",
                   "writes strings to @w, which outlives the run");
}

Test(ir, verify_layout)
{
    Fixture f = fixture();
    KilnBuffer *a = chain(&f);
    a->type.layout = "aBcd16b";
    expect_bad(&f, "expected a layout that fits");
    fixture_free(&f);
}

Test(ir, verify_quantization)
{
    Fixture f = fixture();
    KilnBuffer *a = chain(&f);
    KilnQuant quant = {
        .axis = 0, .n = 2, .scales = (float[]){ 1, 2 }, .zero_points = (int32_t[]){ 0, 0 }
    };
    a->type.dtype = KILN_DTYPE_i8;
    a->type.quant = &quant;
    expect_bad(&f, "one scale per index");
    quant = (KilnQuant){ -1, 1, (float[]){ 0 }, (int32_t[]){ 0 } };
    expect_bad(&f, "expected a finite scale above 0, found 0");
    quant = (KilnQuant){ -1, 1, (float[]){ 1 }, (int32_t[]){ 128 } };
    expect_bad(&f, "expected a zero point of i8, found 128");
    a->type.dtype = KILN_DTYPE_i64;
    expect_bad(&f, "expected a quantized type of i8, u8, i16, u16 or i32, found i64");
    fixture_free(&f);
}

Test(ir, verify_weight_type)
{
    Fixture f = fixture();
    chain(&f);
    KilnBuffer *w = kiln_ir_add_buffer(f.ir, KILN_BUFFER_WEIGHT, "w", &f.type);
    w->is_const = true;
    expect_bad(&f, "a const weight needs a constant");
    KilnType two = kiln_type_make(KILN_DTYPE_f32, 1, (int64_t[]){ 2 });
    w->constant = kiln_module_add_constant(f.module, "w", kiln_tensor_new_splat(&two, 1), NULL);
    expect_bad(&f, "expected the constant's type f32[2], found f32[4]");
    fixture_free(&f);
}

Test(ir, verify_access)
{
    Fixture f = fixture();
    chain(&f);
    f.ir->first->next->operands[1].access = KILN_ACCESS_INOUT;
    expect_bad(&f, "its access is not that of the row");
    fixture_free(&f);
}

Test(ir, verify_required_operands)
{
    Fixture f = fixture();
    chain(&f);
    kiln_instr_set_operand(f.ir->first->next, 1, NULL);
    expect_bad(&f, "operand 1 is required, found none");
    fixture_free(&f);
}

Test(ir, verify_definition_before_use)
{
    Fixture f = fixture();
    KilnBuffer *a = chain(&f);
    kiln_instr_move(a->def, NULL);
    expect_bad(&f, "%a is used before it is defined");
    fixture_free(&f);
}

Test(ir, verify_use_after_dealloc_through_a_view)
{
    Fixture f = fixture();
    KilnBuffer *a = kiln_ir_alloc(f.ir, "a", &f.type, NULL);
    unary(&f, KILN_INSTR_relu, a, f.x);
    KilnBuffer *v = kiln_ir_view(f.ir, "v", a, 0, &f.type, NULL);
    kiln_ir_dealloc(a, NULL);
    unary(&f, KILN_INSTR_neg, f.y, v);
    expect_bad(&f, "%a is used after its dealloc");
    fixture_free(&f);
}

Test(ir, verify_one_dealloc)
{
    Fixture f = fixture();
    KilnBuffer *a = chain(&f);
    kiln_ir_dealloc(a, NULL);
    expect_bad(&f, "%a is used after its dealloc");
    kiln_instr_remove(f.ir->last);
    kiln_instr_remove(f.ir->last);
    expect_bad(&f, "%a has no dealloc");
    fixture_free(&f);
}

Test(ir, verify_dealloc_of_allocs_only)
{
    Fixture f = fixture();
    chain(&f);
    kiln_ir_dealloc(f.x, NULL);
    expect_bad(&f, "expected an alloc, found input x");
    fixture_free(&f);
}

Test(ir, verify_initialisation)
{
    Fixture f = fixture();
    chain(&f);
    kiln_instr_remove(f.ir->first->next);
    expect_bad(&f, "a is read before it is written");
    fixture_free(&f);
}

/* Pieces written through views, in any order, add up to the whole. */
Test(ir, verify_initialisation_in_pieces)
{
    Fixture f = fixture();
    KilnType one = kiln_type_make(KILN_DTYPE_f32, 1, (int64_t[]){ 1 });
    KilnBuffer *s = kiln_ir_add_buffer(f.ir, KILN_BUFFER_INPUT, "s", &one);
    KilnBuffer *a = kiln_ir_alloc(f.ir, "a", &f.type, NULL);
    int64_t order[] = { 2, 0, 3, 1 };
    for (int i = 0; i < 4; i++) {
        KilnBuffer *v = kiln_ir_view(f.ir, "v", a, order[i], &one, NULL);
        unary(&f, KILN_INSTR_relu, v, s);
    }
    KilnInstr *last = f.ir->last;
    unary(&f, KILN_INSTR_neg, f.y, a);
    kiln_ir_dealloc(a, NULL);
    expect_good(&f);
    kiln_instr_remove(last);
    expect_bad(&f, "a is read before it is written");
    fixture_free(&f);
}

Test(ir, verify_outputs_are_written)
{
    Fixture f = fixture();
    KilnBuffer *a = chain(&f);
    kiln_instr_remove(f.ir->last->previous);
    expect_bad(&f, "output @y is not written");
    KilnType two = kiln_type_make(KILN_DTYPE_f32, 1, (int64_t[]){ 2 });
    KilnBuffer *v = kiln_ir_view(f.ir, "v", f.y, 0, &two, NULL);
    KilnBuffer *half = kiln_ir_view(f.ir, "h", f.x, 0, &two, NULL);
    unary(&f, KILN_INSTR_relu, v, half);
    expect_bad(&f, "output @y is not written");
    (void)a;
    fixture_free(&f);
}

Test(ir, verify_no_write_to_inputs_and_const_weights)
{
    Fixture f = fixture();
    chain(&f);
    KilnBuffer *w = kiln_ir_add_buffer(f.ir, KILN_BUFFER_WEIGHT, "w", &f.type);
    w->constant = kiln_module_add_constant(f.module, "w", kiln_tensor_new_splat(&f.type, 1), NULL);
    KilnBuffer *v = kiln_ir_view(f.ir, "v", w, 0, &f.type, NULL);
    KilnInstr *write = unary(&f, KILN_INSTR_relu, v, f.x);
    expect_good(&f); /* a mutable weight */
    w->is_const = true;
    expect_bad(&f, "writes const weight @w");
    kiln_instr_set_operand(write, 0, f.x);
    expect_bad(&f, "writes input @x");
    fixture_free(&f);
}

Test(ir, verify_aliasing)
{
    Fixture f = fixture();
    KilnType mask = kiln_type_make(KILN_DTYPE_bool, 1, (int64_t[]){ 4 });
    KilnType three = kiln_type_make(KILN_DTYPE_f32, 1, (int64_t[]){ 3 });
    KilnBuffer *a = kiln_ir_alloc(f.ir, "a", &f.type, NULL);
    unary(&f, KILN_INSTR_relu, a, f.x);
    KilnBuffer *bits = kiln_ir_view(f.ir, "bits", a, 0, &mask, NULL);
    KilnInstr *bad = unary(&f, KILN_INSTR_is_nan, bits, a); /* other types: the row says no */
    unary(&f, KILN_INSTR_neg, f.y, a);
    kiln_ir_dealloc(a, NULL);
    expect_bad(&f, "operand 1 (a) may not share bytes with operand 0 (bits)");

    KilnBuffer *low = kiln_ir_view(f.ir, "low", a, 0, &three, bad);
    KilnBuffer *high = kiln_ir_view(f.ir, "high", a, 1, &three, bad);
    kiln_instr_remove(bad);
    kiln_instr_new(f.ir, KILN_INSTR_relu, (KilnBuffer *[]){ low, high }, 2, NULL,
                   f.ir->last->previous, NULL);
    expect_bad(&f, "operand 1 (high) may not share bytes with operand 0 (low)");
    fixture_free(&f);
}

Test(ir, verify_views_lie_inside)
{
    Fixture f = fixture();
    chain(&f);
    KilnBuffer *v = kiln_ir_view(f.ir, "v", f.x, 1, &f.type, NULL);
    expect_bad(&f, "f32[4] at element 1 does not lie inside f32[4]");
    v->view_offset = INT64_MAX;
    expect_bad(&f, "does not lie inside");
    v->view_offset = -1;
    expect_bad(&f, "does not lie inside");
    v->view_offset = 0;
    expect_good(&f);
    fixture_free(&f);
}

Test(ir, verify_views_are_aligned)
{
    Fixture f = fixture();
    chain(&f);
    KilnType bytes = kiln_type_make(KILN_DTYPE_u8, 1, (int64_t[]){ 16 });
    KilnType one = kiln_type_make(KILN_DTYPE_f32, 1, (int64_t[]){ 1 });
    KilnBuffer *b = kiln_ir_view(f.ir, "b", f.x, 0, &bytes, NULL);
    kiln_ir_view(f.ir, "v", b, 2, &one, NULL);
    expect_bad(&f, "byte 2 is misaligned for f32");
    fixture_free(&f);
}

Test(ir, verify_instruction_list)
{
    Fixture f = fixture();
    chain(&f);
    f.ir->n_instrs++;
    expect_bad(&f, "expected 5 instructions, found 4");
    fixture_free(&f);
}

Test(ir, verify_zero_extents)
{
    Fixture f = fixture();
    KilnType none = kiln_type_make(KILN_DTYPE_f32, 2, (int64_t[]){ 0, 3 });
    chain(&f);
    KilnBuffer *out = kiln_ir_add_buffer(f.ir, KILN_BUFFER_OUTPUT, "empty", &none);
    KilnBuffer *a = kiln_ir_alloc(f.ir, "none", &none, NULL);
    unary(&f, KILN_INSTR_relu, out, a);
    kiln_ir_dealloc(a, NULL);
    expect_good(&f);
    fixture_free(&f);
}

/* --- planned offsets --- */

Test(ir, verify_offsets)
{
    Fixture f = fixture();
    KilnBuffer *a = kiln_ir_alloc(f.ir, "a", &f.type, NULL);
    KilnBuffer *b = kiln_ir_alloc(f.ir, "b", &f.type, NULL);
    unary(&f, KILN_INSTR_relu, a, f.x);
    unary(&f, KILN_INSTR_neg, b, a);
    unary(&f, KILN_INSTR_abs, f.y, b);
    kiln_ir_dealloc(a, NULL);
    kiln_ir_dealloc(b, NULL);
    a->offset = 0;
    b->offset = 64;
    expect_bad(&f, "%a lies at 0 of no arena");
    f.ir->arena_bytes = 128;
    expect_good(&f);
    b->offset = 32;
    expect_bad(&f, "%b at 32: expected a multiple of 64");
    b->offset = 128;
    expect_bad(&f, "inside an arena of 128 bytes");
    b->offset = 0;
    expect_bad(&f, "live at once and overlap");
    fixture_free(&f);
}

Test(ir, verify_offsets_may_coincide_one_after_the_other)
{
    Fixture f = fixture();
    KilnBuffer *a = kiln_ir_alloc(f.ir, "a", &f.type, NULL);
    KilnBuffer *b = kiln_ir_alloc(f.ir, "b", &f.type, NULL);
    KilnBuffer *z = kiln_ir_add_buffer(f.ir, KILN_BUFFER_OUTPUT, "z", &f.type);
    unary(&f, KILN_INSTR_relu, a, f.x);
    unary(&f, KILN_INSTR_neg, f.y, a);
    unary(&f, KILN_INSTR_relu, b, f.x);
    unary(&f, KILN_INSTR_neg, z, b);
    kiln_ir_dealloc(a, NULL);
    kiln_ir_dealloc(b, NULL);
    a->offset = b->offset = 0;
    f.ir->arena_bytes = 64;
    expect_good(&f);
    fixture_free(&f);
}
