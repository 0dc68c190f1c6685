/* SPDX-License-Identifier: Apache-2.0 */
/* expand-batchnorm: a batch normalization beside what walks through the same elements becomes a
 * product and a sum per channel, which go through memory together with it.
 *
 *     weight @s, @b, @m, @v : f32[C] const         weight @scale : f32[C,1,1] const
 *                                                  weight @shift : f32[C,1,1] const
 *     batch_normalization @out %n, @in %x,    =>   stack @out %n, @in %x, @in @scale, @in @shift
 *         @in @s, @in @b, @in @m, @in @v               { mul; add }
 *     relu @out %r, @in %n                         relu @out %r, @in %n
 *
 * scale = s / sqrt(v + epsilon), shift = b - m · scale. A neighbour is an element-wise instruction,
 * a reduction of the last dims, or another such normalization that reads or writes the data, or
 * reads the result. Alone a normalization stays: it would take as long.
 *
 * requires nothing, preserves nothing; in inference mode; class U: scale and shift are rounded once
 * to the element type, from double; a value less the mean, as the normalization computes it, may
 * lose no more than kiln_batchnorm_keeps_precision() allows. Only statistics that are known can be
 * folded: where bits must not tell literals from inputs (no offload), nothing changes. On the IR
 * and not on the graph, where arithmetic per channel is made a batch normalization, for products to
 * absorb. Before stack-elementwise, which joins the stack with its neighbours, and while every
 * buffer is written once. */
#include "ir/stack.h"
#include "passes/pass.h"
#include "passes/query/affine.h"
#include "passes/query/literal.h"
#include "passes/query_ir/lives.h"
#include "passes/query_ir/stack_draft.h"

static const char rule[] = "batchnorm-to-stack";

enum {
    DATA = 1,
    STATISTICS = 2, /* the first of scale, bias, mean and variance */
    N_STATISTICS = 4,
    N_OPERANDS = 4, /* of the stack: result, data, scale, shift */
    N_STEPS = 2,
};

static const KilnStackStep steps[N_STEPS] = {
    { .kind = KILN_INSTR_mul,
      .n_sources = 2,
      .sources = { { KILN_STACK_OPERAND, 1, 0 }, { KILN_STACK_OPERAND, 2, 0 } },
      .store = -1 },
    { .kind = KILN_INSTR_add,
      .n_sources = 2,
      .sources = { { KILN_STACK_STEP, 0, 0 }, { KILN_STACK_OPERAND, 3, 0 } },
      .store = 0 },
};

typedef struct {
    KilnInstr *instr;
    KilnAffine affine;
} Candidate;

static void
clear_candidate(gpointer data)
{
    Candidate *candidate = data;
    kiln_affine_clear(&candidate->affine);
}

/* --- the stack --- */

static int
channel_axis(const KilnInstr *bn)
{
    return kiln_type_axis(&bn->operands[0].buffer->type,
                          kiln_instr_attrs(bn, batch_normalization)->axis);
}

/* [C,1,…]: one number per channel, as it broadcasts to the data. */
static KilnType
vector_type(const KilnInstr *bn)
{
    const KilnType *data = &bn->operands[0].buffer->type;
    const int axis = channel_axis(bn);
    int64_t dims[KILN_MAX_RANK] = { data->dims[axis] };
    for (int d = 1; d < data->rank - axis; d++)
        dims[d] = 1;
    return kiln_type_make(data->dtype, data->rank - axis, dims);
}

static void
set_steps(const KilnType *data, KilnStackStep out[N_STEPS])
{
    for (uint32_t i = 0; i < N_STEPS; i++) {
        out[i] = steps[i];
        out[i].dtype = data->dtype;
    }
}

/* Whether the target computes the stack by a kernel that is no more of a fallback. */
static bool
has_kernel(const KilnPassContext *context, const KilnInstr *bn)
{
    const KilnTarget *target = kiln_pass_target(context);
    KilnBuffer vector = { .kind = KILN_BUFFER_WEIGHT, .is_const = true, .name = rule };
    vector.type = vector_type(bn);
    KilnBufferUse uses[N_OPERANDS] = { bn->operands[0], bn->operands[DATA] };
    for (uint32_t i = 2; i < N_OPERANDS; i++)
        uses[i] = (KilnBufferUse){ .buffer = &vector, .access = KILN_ACCESS_IN, .index = i };
    KilnStackStep own[N_STEPS];
    set_steps(&vector.type, own);
    const KilnInstr draft = { .kind = KILN_INSTR_stack,
                              .n_operands = N_OPERANDS,
                              .operands = uses,
                              .steps = own,
                              .n_steps = N_STEPS };
    const KilnKernel *kernel = target ? kiln_target_find(target, &draft) : NULL;
    const KilnKernel *now = target ? kiln_target_find(target, bn) : NULL;
    if (!kernel || !now)
        return !target;
    return kiln_target_depth(target, kernel) <= kiln_target_depth(target, now);
}

/* --- conditions --- */

static bool
infers(const KilnInstr *bn)
{
    bool further = false;
    for (uint32_t i = STATISTICS + N_STATISTICS; i < bn->n_operands; i++)
        further |= bn->operands[i].buffer != NULL;
    return !further && !kiln_instr_attrs(bn, batch_normalization)->training_mode;
}

static bool
are_known(const KilnInstr *bn)
{
    for (uint32_t i = STATISTICS; i < STATISTICS + N_STATISTICS; i++) {
        const KilnBuffer *buffer = bn->operands[i].buffer;
        if (buffer->kind != KILN_BUFFER_WEIGHT || !buffer->is_const || !buffer->constant)
            return false;
    }
    return true;
}

static bool
read_statistics(const KilnInstr *bn, KilnAffine *affine, GError **error)
{
    const KilnConstant *statistics[N_STATISTICS];
    for (uint32_t i = 0; i < N_STATISTICS; i++)
        statistics[i] = bn->operands[STATISTICS + i].buffer->constant;
    double epsilon = (double)kiln_instr_attrs(bn, batch_normalization)->epsilon;
    return kiln_affine_init(affine, bn->operands[DATA].buffer->type.dims[channel_axis(bn)],
                            error) &&
           are_known(bn) && kiln_affine_append_statistics(affine, statistics, epsilon, error);
}

static bool
may_expand(KilnPassContext *context, const KilnInstr *bn, KilnAffine *affine, GError **error)
{
    const KilnType *type = &bn->operands[0].buffer->type;
    if (channel_axis(bn) < 0 || type->quant || type->layout || kiln_type_elements(type) == 0)
        return false;
    PASS_GUARD(inference, kiln_pass_mode(context) == KILN_MODE_INFER && infers(bn));
    PASS_GUARD(known_statistics, read_statistics(bn, affine, error));
    PASS_GUARD(fits, kiln_affine_fits(affine, type->dtype));
    PASS_GUARD(precise, kiln_batchnorm_keeps_precision(
                            affine, bn->operands[STATISTICS].buffer->constant, type->dtype, error));
    PASS_GUARD(kernel, has_kernel(context, bn));
    return true;
}

/* What stack-elementwise may join with a stack over @space; copies are for copy propagation. */
static bool
walks_through(const KilnInstr *instr, const KilnType *space)
{
    if (kiln_instr_is_bookkeeping(instr) || instr->kind == KILN_INSTR_copy ||
        !(kiln_instr_info(instr->kind)->flags & KILN_INSTR_DATA_PARALLEL ||
          kiln_stack_reduces(instr->kind)) ||
        !kiln_stack_takes(instr))
        return false;
    const KilnType own = kiln_stack_space_of(instr);
    return kiln_type_same_shape(&own, space);
}

/* @expands by instruction id: what becomes a stack, too. */
static bool
has_neighbour(const KilnInstr *bn, const bool *expands)
{
    for (uint32_t i = 0; i <= DATA; i++) {
        const KilnBuffer *buffer = bn->operands[i].buffer;
        kiln_foreach_buffer_use (use, buffer) {
            if (use->user != bn &&
                (expands[use->user->id] || walks_through(use->user, &buffer->type)))
                return true;
        }
    }
    return false;
}

/* Buffers that are used again would show neighbours that have other data. */
static bool
is_written_once(const KilnLives *lives, const KilnInstr *bn)
{
    KilnBuffer *result = kiln_buffer_origin(bn->operands[0].buffer);
    KilnBuffer *data = kiln_buffer_origin(bn->operands[DATA].buffer);
    return kiln_lives_facts(lives, result)->n_writes == 1 &&
           kiln_lives_facts(lives, data)->n_writes <= 1;
}

static bool
pays(KilnPassContext *context, const KilnLives *lives, const KilnInstr *bn, const bool *expands)
{
    PASS_GUARD(written_once, is_written_once(lives, bn));
    PASS_GUARD(neighbour, has_neighbour(bn, expands));
    return true;
}

/* --- rewriting --- */

static KilnBuffer *
add_vector(const KilnInstr *bn, const char *what, const double *numbers, GError **error)
{
    const KilnBuffer *out = bn->operands[0].buffer;
    const KilnType type = vector_type(bn);
    KilnTensor *tensor = kiln_tensor_of_numbers(&type, numbers, error);
    if (!tensor)
        return NULL;
    g_autofree char *name = g_strdup_printf("%s_%s", out->name, what);
    return kiln_ir_add_constant(bn->function, name, tensor, NULL);
}

static bool
expand(KilnPassContext *context, const Candidate *candidate, GError **error)
{
    KilnInstr *bn = candidate->instr;
    KilnBuffer *scale = add_vector(bn, "scale", candidate->affine.factor, error);
    KilnBuffer *shift = scale ? add_vector(bn, "shift", candidate->affine.offset, error) : NULL;
    if (!shift)
        return false;
    KilnBuffer *operands[] = { bn->operands[0].buffer, bn->operands[DATA].buffer, scale, shift };
    KilnStackStep own[N_STEPS];
    set_steps(&operands[0]->type, own);
    KilnInstr *stack =
        kiln_instr_new_stack(bn->function, operands, N_OPERANDS, 1, own, N_STEPS, bn);
    stack->name = bn->name;
    kiln_pass_note(context, rule, "%s", kiln_instr_label(bn));
    KilnBuffer *statistics[N_STATISTICS];
    for (uint32_t i = 0; i < N_STATISTICS; i++)
        statistics[i] = bn->operands[STATISTICS + i].buffer;
    kiln_instr_remove(bn);
    for (uint32_t i = 0; i < N_STATISTICS; i++) {
        bool twice = false; /* one weight may be several of them */
        for (uint32_t k = 0; k < i; k++)
            twice |= statistics[k] == statistics[i];
        if (!twice && statistics[i]->n_uses == 0)
            kiln_ir_remove_buffer(statistics[i]);
    }
    return true;
}

/* Those that may expand, whatever stands beside them. */
static gboolean
collect(KilnIRFunction *function, KilnPassContext *context, GArray *candidates, GError **error)
{
    kiln_foreach_instr (instr, function) {
        if (instr->kind != KILN_INSTR_batch_normalization)
            continue;
        g_autoptr(GError) why = NULL;
        Candidate candidate = { .instr = instr };
        bool expands = may_expand(context, instr, &candidate.affine, &why);
        if (expands)
            g_array_append_val(candidates, candidate);
        else
            kiln_affine_clear(&candidate.affine);
        if (why) {
            g_propagate_error(error, g_steal_pointer(&why));
            return FALSE;
        }
    }
    return TRUE;
}

IR_PASS(expand_batchnorm);

gboolean
kiln_pass_expand_batchnorm(KilnIRFunction *function, KilnPassContext *context, bool *changed,
                           GError **error)
{
    *changed = false;
    if (kiln_pass_one_algorithm(context))
        return TRUE;
    g_autoptr(GArray) candidates = g_array_new(FALSE, FALSE, sizeof(Candidate));
    g_array_set_clear_func(candidates, clear_candidate);
    if (!collect(function, context, candidates, error))
        return FALSE;
    if (!candidates->len)
        return TRUE;
    const KilnLives *lives = kiln_pass_lives(context, function);
    g_autofree bool *expands = g_new0(bool, function->next_id);
    for (guint i = 0; i < candidates->len; i++)
        expands[g_array_index(candidates, Candidate, i).instr->id] = true;
    g_autoptr(GPtrArray) chosen = g_ptr_array_new();
    for (guint i = 0; i < candidates->len; i++) {
        Candidate *candidate = &g_array_index(candidates, Candidate, i);
        if (pays(context, lives, candidate->instr, expands))
            g_ptr_array_add(chosen, candidate);
    }
    for (guint i = 0; i < chosen->len; i++) {
        if (!expand(context, g_ptr_array_index(chosen, i), error))
            return FALSE;
        *changed = true;
    }
    return TRUE;
}
