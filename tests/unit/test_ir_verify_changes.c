/* SPDX-License-Identifier: Apache-2.0 */
/* Verifying what changed of a function of the IR: what a pass breaks through the functions of ir/
 * is found without looking at the whole function. */
#include "graph/base/random.h"
#include "ir/changes.h"
#include "ir/ir.h"

#include <criterion/criterion.h>
#include <string.h>

static const char text[] =
    "func @f {\n"
    "  weight @w : f32[2,3] const\n"
    "  weight @state : f32[2,3]\n"
    "  input @x : f32[2,3]\n"
    "  input @z : f32[3,2]\n"
    "  output @y : f32[2,3]\n"
    "  %a = alloc : f32[2,3]\n"
    "  add @out %a, @in @x, @in @w\n"
    "  %v = view %a : f32[6]\n"
    "  %h = view %v {offset=3} : f32[3]\n"
    "  %b = alloc : f32[2,3]\n"
    "  %lo = view %b : f32[3]\n"
    "  %hi = view %b {offset=3} : f32[3]\n"
    "  relu @out %lo, @in %h\n"
    "  neg @out %hi, @in %h\n"
    "  dealloc %a\n"
    "  %c = alloc : f32[2,3]\n"
    "  mul @out %c, @in %b, @in @state\n"
    "  transpose @out @y, @in %c {perm=[0,1]}\n"
    "  copy @out @state, @in %c\n"
    "  dealloc %b\n"
    "  dealloc %c\n"
    "}\n"
    "constants { @w = splat(1.5) : f32[2,3] @state = splat(0.5) : f32[2,3] }\n";

static KilnIRModule *ir;
static KilnIRFunction *function;

static void
expect_fine(void)
{
    g_autoptr(GError) error = NULL;
    cr_assert(kiln_ir_verify_changes(function, &error), "%s", error ? error->message : "");
    cr_assert(function->changes.known);
    cr_assert_eq(function->changes.instrs->len, 0);
    cr_assert_eq(function->changes.buffers->len, 0);
    kiln_foreach_instr (instr, function)
        cr_assert(!instr->touched && !instr->rewritten);
}

static void
setup(void)
{
    g_autoptr(GError) error = NULL;
    ir = kiln_ir_module_parse(text, strlen(text), "changes.kiln", &error);
    cr_assert(ir, "%s", error ? error->message : "");
    function = g_ptr_array_index(ir->functions, 0);
    expect_fine();
}

static void
teardown(void)
{
    kiln_ir_module_free(ir);
}

TestSuite(ir_verify_changes, .init = setup, .fini = teardown);

/* Found by the short way, and it is something that the whole verifier finds. */
static void
expect(const char *message)
{
    g_autoptr(GError) error = NULL;
    cr_expect_not(kiln_ir_verify(function, NULL));
    cr_assert(function->changes.known);
    cr_assert_not(kiln_ir_verify_changes(function, &error), "expected: %s", message);
    cr_expect(strstr(error->message, message), "expected: %s\nfound:    %s", message,
              error->message);
}

static KilnBuffer *
buffer(const char *name)
{
    KilnBuffer *found = kiln_ir_find_buffer(function, name);
    cr_assert(found, "%s", name);
    return found;
}

/* The first instruction of that kind. */
static KilnInstr *
first(KilnInstrKind kind)
{
    kiln_foreach_instr (instr, function) {
        if (instr->kind == kind)
            return instr;
    }
    cr_assert_fail("there is no %s", kiln_instr_info(kind)->name);
    return NULL;
}

static KilnInstr *
dealloc_of(const char *name)
{
    kiln_foreach_buffer_use (use, buffer(name)) {
        if (use->user->kind == KILN_INSTR_dealloc)
            return use->user;
    }
    cr_assert_fail("%s has no dealloc", name);
    return NULL;
}

static KilnInstr *
build(KilnInstrKind kind, const char *out, const char *in, KilnInstr *before)
{
    KilnBuffer *operands[] = { buffer(out), buffer(in) };
    KilnInstr *instr = kiln_instr_new(function, kind, operands, 2, NULL, before, NULL);
    cr_assert(instr);
    return instr;
}

/* The first instruction of that kind gets another operand. */
static void
expect_operand(KilnInstrKind kind, uint32_t i, const char *name, const char *message)
{
    kiln_instr_set_operand(first(kind), i, buffer(name));
    expect(message);
}

/* --- order --- */

Test(ir_verify_changes, a_read_moved_before_the_write)
{
    kiln_instr_move(first(KILN_INSTR_transpose), first(KILN_INSTR_mul));
    expect("@f: y (transpose): c is read before it is written");
}

Test(ir_verify_changes, a_write_moved_behind_a_read)
{
    kiln_instr_move(first(KILN_INSTR_mul), dealloc_of("b"));
    expect("c is read before it is written");
}

Test(ir_verify_changes, a_write_of_a_part_moved_behind_a_read)
{
    kiln_instr_move(first(KILN_INSTR_neg), first(KILN_INSTR_transpose));
    expect("@f: c (mul): b is read before it is written");
}

Test(ir_verify_changes, a_list_of_instructions_that_is_broken)
{
    kiln_instr_touch(first(KILN_INSTR_mul));
    first(KILN_INSTR_mul)->next = dealloc_of("c");
    expect("@f: the list of instructions is broken at c");
}

Test(ir_verify_changes, a_use_moved_before_the_alloc)
{
    kiln_instr_move(first(KILN_INSTR_mul), buffer("c")->def);
    expect("%c is used before it is defined");
}

Test(ir_verify_changes, an_alloc_moved_behind_a_use)
{
    kiln_instr_move(buffer("c")->def, dealloc_of("b"));
    expect("%c is used before it is defined");
}

Test(ir_verify_changes, a_view_moved_behind_a_use)
{
    kiln_instr_move(buffer("h")->def, first(KILN_INSTR_neg));
    expect("@f: lo (relu): %h is used before it is defined");
}

Test(ir_verify_changes, a_view_moved_before_its_base)
{
    kiln_instr_move(buffer("v")->def, function->first);
    expect("@f: v (view): %a is used before it is defined");
}

Test(ir_verify_changes, a_dealloc_moved_before_a_use)
{
    kiln_instr_move(dealloc_of("c"), first(KILN_INSTR_transpose));
    expect("%c is used after its dealloc");
}

Test(ir_verify_changes, a_dealloc_moved_before_a_use_through_views)
{
    kiln_instr_move(dealloc_of("a"), first(KILN_INSTR_neg));
    expect("@f: hi (neg): %a is used after its dealloc");
}

Test(ir_verify_changes, a_dealloc_moved_before_a_view)
{
    kiln_instr_remove(first(KILN_INSTR_relu));
    kiln_instr_remove(first(KILN_INSTR_neg));
    build(KILN_INSTR_copy, "b", "x", first(KILN_INSTR_mul));
    expect_fine();
    kiln_instr_move(dealloc_of("a"), buffer("h")->def);
    expect("@f: h (view): %a is used after its dealloc");
}

Test(ir_verify_changes, an_alloc_moved_behind_its_dealloc)
{
    kiln_ir_alloc(function, "e", &buffer("c")->type, NULL);
    kiln_ir_dealloc(buffer("e"), NULL);
    expect_fine();
    kiln_instr_move(buffer("e")->def, NULL);
    expect("%e is used before it is defined");
}

Test(ir_verify_changes, a_use_moved_behind_the_dealloc)
{
    kiln_instr_move(first(KILN_INSTR_mul), NULL);
    expect("@f: c (mul): %");
}

/* --- what is there --- */

Test(ir_verify_changes, a_write_that_was_removed)
{
    kiln_instr_remove(first(KILN_INSTR_add));
    expect("@f: lo (relu): h is read before it is written");
}

Test(ir_verify_changes, a_write_of_an_output_that_was_removed)
{
    kiln_instr_remove(first(KILN_INSTR_transpose));
    expect("@f: output @y is not written");
}

Test(ir_verify_changes, a_dealloc_that_was_removed)
{
    kiln_instr_remove(dealloc_of("b"));
    expect("@f: %b has no dealloc");
}

Test(ir_verify_changes, a_second_dealloc)
{
    kiln_ir_dealloc(buffer("b"), NULL);
    expect("%b is used after its dealloc");
}

Test(ir_verify_changes, a_dealloc_of_a_view)
{
    kiln_ir_dealloc(buffer("h"), NULL);
    expect("expected an alloc, found view h");
}

Test(ir_verify_changes, an_alloc_without_dealloc)
{
    kiln_ir_alloc(function, "e", &buffer("c")->type, first(KILN_INSTR_mul));
    expect("@f: %e has no dealloc");
}

Test(ir_verify_changes, an_output_that_nothing_writes)
{
    kiln_ir_add_buffer(function, KILN_BUFFER_OUTPUT, "more", &buffer("c")->type);
    expect("@f: output @more is not written");
}

Test(ir_verify_changes, a_new_instruction_before_what_it_reads)
{
    build(KILN_INSTR_exp, "y", "c", first(KILN_INSTR_mul));
    expect("@f: y (exp): c is read before it is written");
}

Test(ir_verify_changes, a_new_view_that_lies_outside)
{
    KilnType type = kiln_type_make(KILN_DTYPE_f32, 1, (int64_t[]){ 3 });
    kiln_ir_view(function, "far", buffer("a"), 4, &type, dealloc_of("a"));
    expect("@f: far (view): f32[3] at element 4 does not lie inside f32[2,3]");
}

Test(ir_verify_changes, a_new_view_that_is_misaligned)
{
    KilnType bytes = kiln_type_make(KILN_DTYPE_u8, 1, (int64_t[]){ 24 }),
             words = kiln_type_make(KILN_DTYPE_f32, 1, (int64_t[]){ 3 });
    KilnBuffer *as_bytes = kiln_ir_view(function, "bytes", buffer("a"), 0, &bytes, dealloc_of("a"));
    kiln_ir_view(function, "odd", as_bytes, 2, &words, dealloc_of("a"));
    expect("@f: odd (view): byte 2 is misaligned for f32");
}

/* --- operands --- */

Test(ir_verify_changes, an_operand_that_is_missing)
{
    kiln_instr_set_operand(first(KILN_INSTR_mul), 2, NULL);
    expect("@f: c (mul): operand 2 is required, found none");
}

Test(ir_verify_changes, an_operand_that_is_dead)
{
    expect_operand(KILN_INSTR_mul, 1, "a", "@f: c (mul): %a is used after its dealloc");
}

Test(ir_verify_changes, an_operand_that_comes_later)
{
    expect_operand(KILN_INSTR_relu, 1, "c", "@f: lo (relu): %c is used before it is defined");
}

Test(ir_verify_changes, an_operand_that_is_not_written)
{
    expect_operand(KILN_INSTR_neg, 0, "lo", "@f: c (mul): b is read before it is written");
}

Test(ir_verify_changes, an_operand_of_another_function)
{
    g_autoptr(KilnIRFunction) other = kiln_ir_function_new(ir->module, "other");
    KilnBuffer *far = kiln_ir_add_buffer(other, KILN_BUFFER_INPUT, "far", &buffer("c")->type);
    kiln_instr_set_operand(first(KILN_INSTR_mul), 1, far);
    expect("@f: c (mul): operand 1 is of another function");
    kiln_instr_set_operand(first(KILN_INSTR_mul), 1, buffer("b"));
}

Test(ir_verify_changes, an_operand_of_another_type)
{
    expect_operand(KILN_INSTR_mul, 1, "z", "@f: c (mul):");
}

Test(ir_verify_changes, a_result_that_is_an_input)
{
    expect_operand(KILN_INSTR_copy, 0, "x", "@f: x (copy): writes input @x");
}

Test(ir_verify_changes, a_result_that_is_a_const_weight)
{
    expect_operand(KILN_INSTR_copy, 0, "w", "@f: w (copy): writes const weight @w");
}

Test(ir_verify_changes, a_weight_that_is_written_made_const)
{
    kiln_ir_make_const(buffer("state"));
    expect("@f: state (copy): writes const weight @state");
}

Test(ir_verify_changes, operands_that_may_not_share_bytes)
{
    expect_operand(KILN_INSTR_transpose, 0, "c",
                   "@f: c (transpose): operand 1 (c) may not share bytes with operand 0 (c)");
}

/* --- views --- */

/* The outer view was noted before the inner one got another base. */
Test(ir_verify_changes, operands_that_share_bytes_through_views_of_views)
{
    const KilnType whole = kiln_type_make(KILN_DTYPE_f32, 1, (int64_t[]){ 6 }),
                   part = kiln_type_make(KILN_DTYPE_f32, 1, (int64_t[]){ 3 });
    KilnInstr *before = dealloc_of("a");
    KilnBuffer *inner = kiln_ir_view(function, "inner", buffer("a"), 0, &whole, before);
    KilnBuffer *outer = kiln_ir_view(function, "outer", inner, 0, &part, before);
    KilnBuffer *to = kiln_ir_view(function, "to", buffer("b"), 1, &part, before);
    build(KILN_INSTR_exp, "to", "outer", before);
    expect_fine();
    kiln_instr_move(outer->def, to->def->next);
    kiln_instr_set_operand(inner->def, 1, buffer("b"));
    expect("@f: to (exp): operand 1 (outer) may not share bytes with operand 0 (to)");
}

Test(ir_verify_changes, a_view_of_another_base_whose_users_then_share_bytes)
{
    kiln_instr_set_operand(buffer("lo")->def, 1, buffer("a"));
    kiln_instr_set_operand(buffer("hi")->def, 1, buffer("v"));
    expect("is read before it is written");
}

Test(ir_verify_changes, a_view_of_what_may_not_be_written)
{
    kiln_instr_set_operand(buffer("lo")->def, 1, buffer("x"));
    expect("@f: lo (relu): writes input @x");
}

Test(ir_verify_changes, a_view_of_a_view_of_what_may_not_be_written)
{
    KilnType type = kiln_type_make(KILN_DTYPE_f32, 1, (int64_t[]){ 3 });
    KilnBuffer *middle = kiln_ir_view(function, "middle", buffer("b"), 0, &type, buffer("lo")->def);
    kiln_instr_set_operand(buffer("lo")->def, 1, middle);
    expect_fine();
    kiln_instr_set_operand(middle->def, 1, buffer("w"));
    expect("@f: lo (relu): writes const weight @w");
}

Test(ir_verify_changes, a_view_of_itself)
{
    kiln_instr_set_operand(buffer("v")->def, 1, buffer("h"));
    expect("@f: v (view): %h is used before it is defined");
}

Test(ir_verify_changes, a_view_that_begins_elsewhere)
{
    KilnBuffer *hi = buffer("hi");
    hi->view_offset = 0;
    kiln_instr_touch(hi->def);
    expect("@f: c (mul): b is read before it is written");
    hi->view_offset = 4;
    expect("@f: hi (view): f32[3] at element 4 does not lie inside f32[2,3]");
}

/* --- what these functions do not see --- */

Test(ir_verify_changes, an_attribute_that_does_not_fit_the_types)
{
    KilnInstr *transpose = first(KILN_INSTR_transpose);
    kiln_instr_attrs(transpose, transpose)->perm.v = (int64_t[]){ 1, 0 };
    kiln_instr_touch(transpose);
    expect("@f: y (transpose): operand 0 (y): expected f32[3,2], found f32[2,3]");
}

Test(ir_verify_changes, what_nothing_told_of_is_seen_by_the_whole_verifier)
{
    kiln_instr_attrs(first(KILN_INSTR_transpose), transpose)->perm.v = (int64_t[]){ 1, 0 };
    expect_fine();
    cr_assert_not(kiln_ir_verify(function, NULL));
    kiln_ir_touch(function);
    g_autoptr(GError) error = NULL;
    cr_assert_not(kiln_ir_verify_changes(function, &error));
    cr_assert(strstr(error->message, "@f: y (transpose)"), "%s", error->message);
}

Test(ir_verify_changes, an_offset_without_an_arena)
{
    buffer("c")->offset = 64;
    kiln_instr_remove(dealloc_of("c"));
    kiln_ir_dealloc(buffer("c"), NULL);
    expect("@f: %c lies at 64 of no arena");
}

/* --- what is fine --- */

Test(ir_verify_changes, what_is_rewritten_as_it_should_be_is_fine)
{
    KilnInstr *mul = first(KILN_INSTR_mul);
    kiln_ir_alloc(function, "e", &buffer("c")->type, mul->next);
    build(KILN_INSTR_sigmoid, "e", "c", first(KILN_INSTR_transpose));
    kiln_ir_dealloc(buffer("e"), NULL);
    kiln_instr_set_operand(first(KILN_INSTR_transpose), 1, buffer("e"));
    expect_fine();
    kiln_instr_move(dealloc_of("b"), mul->next);
    kiln_instr_remove(first(KILN_INSTR_copy));
    kiln_ir_make_const(buffer("state"));
    expect_fine();
    cr_assert(kiln_ir_verify(function, NULL));
}

Test(ir_verify_changes, more_notes_than_instructions_are_none)
{
    for (int i = 0; i < 100; i++)
        kiln_instr_remove(build(KILN_INSTR_exp, "y", "x", function->first));
    cr_assert_not(function->changes.known);
    expect_fine();
}

static KilnInstr *
any_instr(uint64_t *state)
{
    uint64_t n = kiln_random_bits(3, (*state)++) % function->n_instrs;
    KilnInstr *instr = function->first;
    while (n-- > 0)
        instr = instr->next;
    return instr;
}

/* Also where more was put at one spot than there are places. */
Test(ir_verify_changes, places_grow_along_the_list_whatever_happened)
{
    uint64_t state = 7;
    KilnInstr *spot = first(KILN_INSTR_mul);
    for (int round = 0; round < 400; round++) {
        KilnInstr *made = build(KILN_INSTR_exp, "y", "x", round % 3 ? spot : any_instr(&state));
        if (round % 5 == 0)
            kiln_instr_move(made, any_instr(&state));
        if (round % 7 == 0)
            kiln_instr_remove(made);
        kiln_ir_place(function);
        kiln_foreach_instr (instr, function)
            cr_assert(!instr->previous || instr->previous->place < instr->place);
        if (round % 50 == 0)
            expect_fine();
    }
    expect_fine();
}

/* Instructions moved anywhere and operands exchanged: the short way and the whole verifier always
 * agree. */
Test(ir_verify_changes, the_short_way_agrees_with_the_whole_verifier)
{
    uint64_t state = 11;
    int n_good = 0, n_bad = 0;
    for (int round = 0; round < 2000; round++) {
        teardown();
        setup();
        for (int i = 0; i < 1 + round % 2; i++) {
            KilnInstr *instr = any_instr(&state), *other = any_instr(&state);
            uint32_t operand = (uint32_t)kiln_random_bits(3, state++) % instr->n_operands;
            KilnBuffer *take = other->operands[0].buffer;
            bool fixed = operand == 0 && kiln_instr_is_bookkeeping(instr);
            if (kiln_random_bits(3, state++) % 2 || fixed)
                kiln_instr_move(instr, other);
            else
                kiln_instr_set_operand(instr, operand, take);
        }
        g_autofree char *whole = NULL;
        g_autoptr(GError) error = NULL;
        bool good = kiln_ir_verify(function, NULL);
        bool found = kiln_ir_verify_changes(function, &error);
        GString *out = g_string_new(NULL);
        kiln_ir_print(function, out);
        whole = g_string_free(out, FALSE);
        cr_assert_eq(good, found, "round %d: %s\n%s", round, error ? error->message : "fine",
                     whole);
        *(good ? &n_good : &n_bad) += 1;
    }
    cr_assert(n_good > 100 && n_bad > 100, "%d good, %d bad", n_good, n_bad);
}
