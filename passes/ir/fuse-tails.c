/* SPDX-License-Identifier: Apache-2.0 */
/* fuse-tails: a convolution or product applies what is done with its result on the way.
 *
 *     %a = alloc : f32[1,8,6,6]
 *     conv @out %a, @in %x, @in @w
 *     %b = alloc : f32[1,8,6,6]
 *     add @out %b, @in %a, @in %r     =>    conv @out @y, @in %x, @in @w, _, @in %r
 *     dealloc %a                                {activation="relu"}
 *     relu @out @y, @in %b
 *     dealloc %b
 *
 * ir/tail.h says what a tail is: a residual of the result's type first, then one activation. Of two
 * products whose results are added the later one takes the sum, since it can read the other. Views
 * of the whole result do not stand in the way: the product writes through one, then, and reads what
 * it adds through another.
 *
 * requires nothing, preserves nothing; class E: every part of a tail rounds as its instruction did.
 * The product stays where it is and what follows moves up to it: nothing lives longer, but a
 * result lives from where the intermediate did that it replaces. What a kernel takes, and the
 * scratch that it needs then, is for the target to say; the most that lives at once never rises.
 * Before stack-elementwise, which takes what remains. */
#include "graph/base/alloc.h"
#include "ir/tail.h"
#include "passes/pass.h"
#include "passes/query_ir/lives.h"
#include "passes/query_ir/stack_draft.h"

#include <math.h>
#include <string.h>

static const char rule[] = "fuse-tail";

enum {
    OPERANDS_MAX = 7 /* of a product, with its residual */
};

typedef struct {
    KilnPassContext *context;
    KilnLives *lives;
} Fusing;

/* A product with one more part of its tail, before it stands in a function. */
typedef struct {
    KilnInstr instr;
    KilnBufferUse uses[OPERANDS_MAX];
    KilnBuffer *residual; /* as the sum reads it; NULL: none */
    KilnBuffer typed;     /* the residual with the product's type */
    union {
        KilnInstrAttrs_conv conv;
        KilnInstrAttrs_conv_transpose conv_transpose;
        KilnInstrAttrs_gemm gemm;
        KilnInstrAttrs_matmul matmul;
        KilnInstrAttrs_matmul_nbits matmul_nbits;
    } attrs;
    float params[KILN_TAIL_PARAMS_MAX];
} Draft;

/* --- what a product's result is read by --- */

static bool
is_activation(const KilnInstr *instr)
{
    float params[KILN_TAIL_PARAMS_MAX];
    uint32_t n;
    return kiln_tail_activation(instr, params, &n) != NULL;
}

/* What is done with a product's result, whatever views name it. */
typedef struct {
    KilnInstr *reader; /* the first that may be part of a tail; NULL: none does */
    uint32_t operand;  /* by which it reads */
    uint32_t n_reads;
    bool whole; /* all name the whole of it */
} Readers;

static void
look_at(const Fusing *fusing, const KilnBuffer *result, Readers *readers)
{
    const KilnStanding *places = fusing->lives->places;
    kiln_foreach_buffer_use (use, result) {
        KilnInstr *user = use->user;
        if (user->kind == KILN_INSTR_view && use->index == 1) {
            const KilnBuffer *view = user->operands[0].buffer;
            readers->whole &= kiln_type_same_bytes(&view->type, &result->type);
            look_at(fusing, view, readers);
        }
        if (kiln_instr_is_bookkeeping(user) || use->access == KILN_ACCESS_OUT)
            continue;
        readers->n_reads++;
        bool takes = user->kind == KILN_INSTR_add || is_activation(user);
        if (takes && (!readers->reader ||
                      places[user->id].position < places[readers->reader->id].position)) {
            readers->reader = user;
            readers->operand = use->index;
        }
    }
}

static Readers
readers_of(const Fusing *fusing, const KilnInstr *product)
{
    KilnBuffer *result = product->operands[0].buffer, *origin = kiln_buffer_origin(result);
    Readers readers = { .whole = kiln_type_same_bytes(&result->type, &origin->type) };
    look_at(fusing, origin, &readers);
    return readers;
}

/* What the sum adds to the product; NULL where @reader is no sum. */
static KilnBuffer *
residual_of(const Readers *readers)
{
    const KilnInstr *reader = readers->reader;
    if (reader->kind != KILN_INSTR_add)
        return NULL;
    return reader->operands[readers->operand == 1 ? 2 : 1].buffer;
}

/* Element i of one is element i of the other. */
static bool
same_elements(const KilnType *a, const KilnType *b)
{
    bool plain = !a->layout && !b->layout && !a->quant && !b->quant;
    return kiln_type_equal(a, b) ||
           (plain && a->dtype == b->dtype && kiln_type_same_elements(a, b));
}

/* --- the draft --- */

static void
begin_draft(const KilnInstr *product, KilnBuffer *residual, Draft *draft)
{
    uint32_t last = kiln_tail_operand(product->kind);
    *draft = (Draft){ .instr = *product, .residual = residual };
    memcpy(&draft->attrs, product->attrs, kiln_instr_info(product->kind)->attrs_size);
    draft->instr.attrs = &draft->attrs;
    draft->instr.operands = draft->uses;
    draft->instr.n_operands = last + 1;
    for (uint32_t i = 0; i <= last; i++) {
        draft->uses[i].access = i == 0 ? KILN_ACCESS_OUT : KILN_ACCESS_IN;
        draft->uses[i].buffer = kiln_instr_operand(product, i);
    }
    if (!residual)
        return;
    draft->typed = *residual;
    draft->typed.type = product->operands[0].buffer->type;
    draft->uses[last].buffer = &draft->typed;
}

/* The bounds of a clip; false where one is no number that is known. */
static bool
bounds_of(const Fusing *fusing, const KilnInstr *clip, float bounds[2])
{
    bounds[0] = -INFINITY;
    bounds[1] = INFINITY;
    for (uint32_t i = 0; i < 2; i++) {
        const KilnBuffer *bound = kiln_instr_operand(clip, 2 + i);
        double number;
        if (!bound)
            continue;
        if (!kiln_stack_number(fusing->lives, bound, &number))
            return false;
        bounds[i] = (float)number;
        if (!((double)bounds[i] == number))
            return false;
    }
    return true;
}

/* False where a clip's bounds are not known. */
static bool
draft_activation(const Fusing *fusing, const KilnInstr *reader, Draft *draft)
{
    uint32_t n;
    KilnTailFields fields = kiln_tail_fields(draft->instr.kind, &draft->attrs);
    *fields.activation = kiln_tail_activation(reader, draft->params, &n);
    *fields.params = (KilnFloats){ n, draft->params };
    if (reader->kind != KILN_INSTR_clip)
        return true;
    fields.params->n = 2;
    return bounds_of(fusing, reader, draft->params);
}

/* --- conditions --- */

/* The result of the reader can be written where @product stands. */
static bool
may_write(const Fusing *fusing, const KilnInstr *product, const Readers *readers)
{
    KilnPassContext *context = fusing->context;
    const KilnInstr *reader = readers->reader;
    KilnBuffer *after = reader->operands[0].buffer;
    const KilnBuffer *origin = kiln_buffer_origin(product->operands[0].buffer);
    const KilnType *type = &product->operands[0].buffer->type;
    const KilnFacts *facts = kiln_lives_facts(fusing->lives, kiln_buffer_origin(after));
    PASS_GUARD(read_once, origin->kind == KILN_BUFFER_ALLOC && readers->n_reads == 1);
    PASS_GUARD(written_once,
               kiln_lives_facts(fusing->lives, origin)->n_writes == 1 && readers->whole);
    PASS_GUARD(same_type, same_elements(type, &after->type));
    PASS_GUARD(floats, kiln_dtype_is_float(type->dtype) && !type->quant);
    PASS_GUARD(whole_result, after->kind != KILN_BUFFER_VIEW);
    PASS_GUARD(written_first, facts->first == fusing->lives->places[reader->id].step);
    return true;
}

/* @residual can be read where @product stands. */
static bool
may_add(const Fusing *fusing, const KilnInstr *product, KilnBuffer *residual)
{
    KilnPassContext *context = fusing->context;
    const KilnFacts *facts = kiln_lives_facts(fusing->lives, kiln_buffer_origin(residual));
    KilnTail tail = kiln_instr_tail(product);
    PASS_GUARD(one_residual, !tail.residual);
    PASS_GUARD(residual_first, tail.activation == KILN_N_INSTRS);
    PASS_GUARD(residual_type, same_elements(&residual->type, &product->operands[0].buffer->type));
    PASS_GUARD(residual_ready, facts->last_write < fusing->lives->places[product->id].step);
    return true;
}

/* A stack would do the activation beside what reads its result: in registers, and only once it is
 * needed. A bound is no more work for the product, which has its sums in registers, too. */
static bool
is_for_stack(const KilnInstr *reader)
{
    const KilnBuffer *result = reader->operands[0].buffer;
    uint32_t n_reads = 0, n_joined = 0;
    if (reader->kind == KILN_INSTR_relu || reader->kind == KILN_INSTR_clip)
        return false;
    kiln_foreach_buffer_use (use, result) {
        const KilnInstr *user = use->user;
        if (use->access != KILN_ACCESS_IN)
            continue;
        n_reads++;
        n_joined += (kiln_instr_info(user->kind)->flags & KILN_INSTR_DATA_PARALLEL) &&
                    kiln_type_same_shape(&user->operands[0].buffer->type, &result->type);
    }
    return n_reads == 1 && n_joined == 1;
}

static bool
may_activate(const Fusing *fusing, const KilnInstr *product, const KilnInstr *reader, Draft *draft)
{
    KilnPassContext *context = fusing->context;
    PASS_GUARD(one_activation, kiln_instr_tail(product).activation == KILN_N_INSTRS);
    PASS_GUARD(last_of_chain, !is_for_stack(reader));
    PASS_GUARD(bounds_known, draft_activation(fusing, reader, draft));
    return true;
}

static int64_t
scratch_of(const Fusing *fusing, const KilnInstr *instr)
{
    const KilnTarget *target = kiln_pass_target(fusing->context);
    const KilnKernel *kernel = target ? kiln_target_find(target, instr) : NULL;
    if (!kernel)
        return 0;
    uint32_t form = kiln_kernel_form(kernel, instr);
    return (int64_t)kiln_align_up(kiln_kernel_scratch(kernel, instr, form, false, 1));
}

/* A tail may take scratch, where sums have to wait for the residual that their place holds. */
static bool
peak_is_kept(const Fusing *fusing, const KilnInstr *product, const Draft *draft)
{
    int64_t step = fusing->lives->places[product->id].step;
    int64_t more = scratch_of(fusing, &draft->instr) - scratch_of(fusing, product);
    kiln_lives_add(fusing->lives, step, step, more);
    if (kiln_lives_fits(fusing->lives))
        return true;
    kiln_lives_add(fusing->lives, step, step, -more);
    return false;
}

static bool
may_fuse(const Fusing *fusing, const KilnInstr *product, const Readers *readers, Draft *draft)
{
    KilnPassContext *context = fusing->context;
    KilnBuffer *residual = residual_of(readers);
    if (!may_write(fusing, product, readers))
        return false;
    begin_draft(product, residual, draft);
    if (residual ? !may_add(fusing, product, residual)
                 : !may_activate(fusing, product, readers->reader, draft))
        return false;
    PASS_GUARD(kernel, kiln_fuse_has_kernel(context, &draft->instr, product, readers->reader));
    PASS_GUARD(peak_kept, peak_is_kept(fusing, product, draft));
    return true;
}

/* --- rewriting --- */

/* @buffer, made in front of @product, with the type of its result. */
static KilnBuffer *
as_result(Fusing *fusing, KilnBuffer *buffer, KilnInstr *product)
{
    KilnLives *lives = fusing->lives;
    const KilnBuffer *result = product->operands[0].buffer;
    kiln_lives_define_before(lives, buffer, product, lives->places[product->id].position);
    if (kiln_type_equal(&buffer->type, &result->type))
        return buffer;
    return kiln_ir_view(product->function, result->name, buffer, 0, &result->type, product);
}

static bool
fuse(Fusing *fusing, KilnInstr *product, KilnInstr *reader, Draft *draft, GError **error)
{
    KilnBuffer *result = reader->operands[0].buffer, *operands[OPERANDS_MAX];
    uint32_t n = draft->instr.n_operands;
    for (uint32_t i = 0; i < n; i++)
        operands[i] = kiln_instr_operand(product, i);
    operands[0] = as_result(fusing, result, product);
    if (draft->residual)
        operands[n - 1] = as_result(fusing, draft->residual, product);
    while (!operands[n - 1])
        n--;
    KilnInstr *fused = kiln_instr_new(product->function, product->kind, operands, n, &draft->attrs,
                                      product, error);
    if (!fused)
        return false;
    fused->name = product->name;
    kiln_pass_note(fusing->context, rule, "%s: %s", kiln_instr_label(fused),
                   kiln_instr_info(reader->kind)->name);
    kiln_fuse_finish(fusing->lives, product, reader);
    return true;
}

/* A product with a tail, for whose operands and attributes a draft has room. */
static bool
is_product(const KilnInstr *instr)
{
    const uint32_t last = kiln_tail_operand(instr->kind);
    return last > 0 && last < OPERANDS_MAX &&
           kiln_instr_info(instr->kind)->attrs_size <= sizeof((Draft *)NULL)->attrs;
}

/* One more part for every product that can have one. */
static gboolean
fuse_once(KilnIRFunction *function, KilnPassContext *context, bool *any, GError **error)
{
    KilnLives *lives = kiln_pass_lives(context, function);
    g_autoptr(GPtrArray) products = g_ptr_array_new();
    Fusing fusing = { context, lives };
    *any = false;
    kiln_foreach_instr (instr, function) {
        if (is_product(instr))
            g_ptr_array_add(products, instr);
    }
    for (guint i = 0; i < products->len; i++) {
        KilnInstr *product = g_ptr_array_index(products, i);
        Readers readers = readers_of(&fusing, product);
        Draft draft;
        if (!readers.reader || !may_fuse(&fusing, product, &readers, &draft))
            continue;
        if (!fuse(&fusing, product, readers.reader, &draft, error))
            return FALSE;
        *any = true;
    }
    return TRUE;
}

IR_PASS(fuse_tails);

gboolean
kiln_pass_fuse_tails(KilnIRFunction *function, KilnPassContext *context, bool *changed,
                     GError **error)
{
    bool any;
    *changed = false;
    do {
        if (!fuse_once(function, context, &any, error))
            return FALSE;
        *changed |= any;
    } while (any);
    return TRUE;
}
