/* SPDX-License-Identifier: Apache-2.0 */
/* Steps to loops. Steps that stack_fused.def knows together become one loop, where nothing else
 * reads what is between them; every other step is the loop that its instruction has alone. */
#include "backends/cpu/elementwise/elementwise_find.h"
#include "backends/cpu/isa.h"
#include "backends/cpu/reduce/group_sums.h"
#include "backends/cpu/stack/stack.h"
#include "graph/base/number.h"
#include "ir/ir.h"

#include <math.h>
#include <string.h>

typedef struct {
    const KilnInstr *instr;
    KilnCpuStack *stack;
    uint8_t place[KILN_STACK_STEPS_MAX]; /* of the result */
    bool one[KILN_STACK_STEPS_MAX];      /* the result is one element for a whole tile */
    uint8_t reads[KILN_STACK_STEPS_MAX]; /* of the result, by other steps */
    bool merged[KILN_STACK_STEPS_MAX];   /* into a later step's loop */
    struct {
        int unary, binary; /* KilnCpuUnary and KilnCpuBinary; -1: it is none */
        KilnCpuParams params;
    } is[KILN_STACK_STEPS_MAX];
} Compiler;

/* --- sources --- */

static bool
is_one(const Compiler *c, const KilnStackSource *source)
{
    if (source->kind == KILN_STACK_STEP)
        return c->one[source->index];
    if (source->kind == KILN_STACK_SCALAR)
        return true;
    const KilnCpuStackOperand *operand = &c->stack->operands[source->index];
    return operand->access == KILN_CPU_STACK_ONE ||
           (operand->access == KILN_CPU_STACK_ROWS && operand->strides[c->stack->rank - 1] == 0);
}

/* The place of a number; false where there are too many of them. */
static bool
add_scalar(Compiler *c, KilnDType dtype, double value, uint8_t *out)
{
    KilnCpuStack *stack = c->stack;
    uint64_t bits = 0;
    uint32_t i = 0;
    kiln_element_store_f64(dtype, &bits, 0, value);
    while (i < stack->n_scalars && stack->scalars[i] != bits)
        i++;
    if (i == KILN_CPU_STACK_SCALARS)
        return false;
    stack->scalars[i] = bits;
    stack->n_scalars = MAX(stack->n_scalars, i + 1);
    *out = (uint8_t)(KILN_CPU_STACK_FIRST_SCALAR + i);
    return true;
}

/* Source @k of step @i as operand @at of @op. */
static bool
add_source(Compiler *c, uint32_t i, uint32_t k, KilnCpuStackOp *op, int at)
{
    const KilnStackSource *source = &c->instr->steps[i].sources[k];
    op->fixed |= (uint8_t)(is_one(c, source) << at);
    switch (source->kind) {
    case KILN_STACK_STEP:
        op->in[at] = c->place[source->index];
        return true;
    case KILN_STACK_OPERAND:
        op->in[at] = (uint8_t)source->index;
        if (c->stack->operands[source->index].access == KILN_CPU_STACK_SPREAD_IN)
            op->in[at] += KILN_CPU_STACK_SPREAD;
        return true;
    default:
        return add_scalar(c, kiln_stack_source_dtype(c->instr, i, k), source->scalar, &op->in[at]);
    }
}

static bool
is_f32(const Compiler *c, uint32_t i)
{
    const KilnStackStep *step = &c->instr->steps[i];
    for (uint32_t k = 0; k < step->n_sources; k++) {
        if (kiln_stack_source_dtype(c->instr, i, k) != KILN_DTYPE_f32)
            return false;
    }
    return step->dtype == KILN_DTYPE_f32;
}

/* --- what a step is --- */

/* Bounds that are known, and numbers. */
static bool
has_plain_bounds(const KilnStackStep *step)
{
    for (uint32_t k = 1; k < step->n_sources; k++) {
        if (step->sources[k].kind != KILN_STACK_SCALAR || isnan(step->sources[k].scalar))
            return false;
    }
    return true;
}

/* The KilnCpuUnary that a step of f32 is, with numbers as parameters; -1: it is none. */
static int
find_unary(const KilnStackStep *step, KilnCpuParams *out)
{
    if (step->kind == KILN_INSTR_clip) {
        *out = (KilnCpuParams){ (float)step->sources[1].scalar, (float)step->sources[2].scalar };
        return has_plain_bounds(step) ? KILN_CPU_UNARY_clip : -1;
    }
    if (step->kind == KILN_INSTR_pow)
        return step->sources[1].kind == KILN_STACK_SCALAR
                   ? kiln_cpu_find_power((double)(float)step->sources[1].scalar)
                   : -1;
    *out = kiln_cpu_unary_params(step->kind, step->attrs);
    return kiln_cpu_find_unary(step->kind, step->attrs);
}

/* Finds what each step is. A mean is a sum and more. */
static void
look_at_steps(Compiler *c)
{
    for (uint32_t i = 0; i < c->instr->n_steps; i++) {
        const KilnStackStep *step = &c->instr->steps[i];
        const bool f32 = is_f32(c, i);
        c->is[i].unary = f32 ? find_unary(step, &c->is[i].params) : -1;
        c->is[i].binary =
            f32 && step->kind != KILN_INSTR_mean ? kiln_cpu_find_binary(step->kind) : -1;
    }
}

static bool
is_commutative(int op)
{
    return op == KILN_CPU_BINARY_add || op == KILN_CPU_BINARY_mul;
}

/* --- several steps --- */

/* A match of a row of stack_fused.def whose last step is `root`. */
typedef struct {
    const KilnCpuFused *fused;
    uint32_t root, inner[KILN_CPU_FUSED_STEPS - 1]; /* the steps that are merged into it */
    uint32_t n_inner;
    struct {
        uint32_t step, source;
    } operands[KILN_CPU_FUSED_OPERANDS];
    uint32_t n_operands;
    KilnCpuParams params;
} Match;

/* The step that is source @k of step @i, if it can be computed there instead: read nowhere else,
 * and with nothing stored in between that might lie over what it reads. */
static int
inner_step(const Compiler *c, uint32_t i, uint32_t k)
{
    const KilnStackSource *source = &c->instr->steps[i].sources[k];
    const uint32_t at = source->index;
    if (source->kind != KILN_STACK_STEP || c->reads[at] != 1 || c->merged[at] || c->one[at])
        return -1;
    for (uint32_t step = at; step < i; step++) {
        if (c->instr->steps[step].store >= 0)
            return -1;
    }
    return (int)at;
}

static void
add_operand(Match *match, uint32_t step, uint32_t source)
{
    match->operands[match->n_operands].step = step;
    match->operands[match->n_operands++].source = source;
}

/* Step @i is unary @op: its operand. */
static bool
match_unary(const Compiler *c, Match *match, int i, int op)
{
    if (i < 0 || c->is[i].unary != op)
        return false;
    const KilnCpuParams *params = &c->is[i].params;
    if (params->a != 0 || params->b != 0) /* of at most one step */
        match->params = *params;
    return true;
}

/* Step @i is binary @op: its two operands, the one that has all elements first. */
static bool
match_binary(const Compiler *c, Match *match, int i, int op)
{
    if (i < 0 || c->is[i].binary != op)
        return false;
    const uint32_t first = is_one(c, &c->instr->steps[i].sources[0]);
    if (first && !is_commutative(op))
        return false;
    add_operand(match, (uint32_t)i, first);
    add_operand(match, (uint32_t)i, 1 - first);
    return true;
}

static void
merge(Match *match, int i)
{
    match->inner[match->n_inner++] = (uint32_t)i;
}

/* Binary @ops[0] at @i of binary @ops[1] and a third operand. */
static bool
match_chain(const Compiler *c, Match *match, int i, const uint8_t *ops)
{
    if (i < 0 || c->is[i].binary != ops[0])
        return false;
    for (uint32_t k = 0; k < (is_commutative(ops[0]) ? 2u : 1u); k++) {
        const int inner = inner_step(c, (uint32_t)i, k);
        if (!match_binary(c, match, inner, ops[1]))
            continue;
        add_operand(match, (uint32_t)i, 1 - k);
        merge(match, inner);
        return true;
    }
    return false;
}

static bool
match_gate(const Compiler *c, Match *match, uint32_t i, const uint8_t *ops)
{
    if (c->is[i].binary != ops[0])
        return false;
    for (uint32_t k = 0; k < (is_commutative(ops[0]) ? 2u : 1u); k++) {
        const int inner = inner_step(c, i, k);
        if (!match_unary(c, match, inner, ops[1]))
            continue;
        add_operand(match, (uint32_t)inner, 0);
        add_operand(match, i, 1 - k);
        merge(match, inner);
        return true;
    }
    return false;
}

static bool
match_twin(const Compiler *c, Match *match, uint32_t i, const uint8_t *ops)
{
    if (c->is[i].binary != ops[0])
        return false;
    for (uint32_t k = 0; k < (is_commutative(ops[0]) ? 2u : 1u); k++) {
        const int first = inner_step(c, i, k), second = inner_step(c, i, 1 - k);
        if (!match_unary(c, match, first, ops[1]) || !match_unary(c, match, second, ops[2]))
            continue;
        add_operand(match, (uint32_t)first, 0);
        add_operand(match, (uint32_t)second, 0);
        merge(match, first);
        merge(match, second);
        return true;
    }
    return false;
}

static bool
match_shape(const Compiler *c, Match *match, uint32_t i)
{
    const uint8_t *ops = match->fused->ops;
    int inner;
    switch (match->fused->shape) {
    case KILN_CPU_FUSED_PAIR:
        inner = inner_step(c, i, 0);
        if (!match_unary(c, match, (int)i, ops[0]) || !match_binary(c, match, inner, ops[1]))
            return false;
        merge(match, inner);
        return true;
    case KILN_CPU_FUSED_CHAIN:
        return match_chain(c, match, (int)i, ops);
    case KILN_CPU_FUSED_TRIPLE:
        inner = inner_step(c, i, 0);
        if (!match_unary(c, match, (int)i, ops[0]) || !match_chain(c, match, inner, ops + 1))
            return false;
        merge(match, inner);
        return true;
    case KILN_CPU_FUSED_QUAD:
        inner = inner_step(c, i, 0);
        if (!match_unary(c, match, (int)i, ops[0]) || !match_unary(c, match, inner, ops[1]))
            return false;
        merge(match, inner);
        inner = inner_step(c, (uint32_t)inner, 0);
        if (!match_chain(c, match, inner, ops + 2))
            return false;
        merge(match, inner);
        return true;
    case KILN_CPU_FUSED_GATE:
        return match_gate(c, match, i, ops);
    case KILN_CPU_FUSED_TWIN:
        return match_twin(c, match, i, ops);
    }
    return false;
}

/* The match of most steps that ends with step @i. */
static bool
find_match(const Compiler *c, uint32_t i, Match *out)
{
    out->n_inner = 0;
    for (const KilnCpuFused *fused = kiln_cpu_fused(KILN_CPU_ISA_AUTO); fused->rows[0]; fused++) {
        Match match = { .fused = fused, .root = i };
        if (match_shape(c, &match, i) && match.n_inner > out->n_inner)
            *out = match;
    }
    return out->n_inner > 0;
}

static bool
emit_match(Compiler *c, const Match *match, KilnCpuStackOp *op)
{
    op->kind = KILN_CPU_STACK_FUSED;
    op->params = match->params;
    for (uint32_t k = 0; k < match->n_operands; k++) {
        if (!add_source(c, match->operands[k].step, match->operands[k].source, op, (int)k))
            return false;
    }
    op->row.fused = match->fused->rows[op->fixed >> 1];
    return true;
}

/* --- single steps --- */

static bool
choose_cast(const Compiler *c, uint32_t i, KilnCpuStackOp *op)
{
    const KilnDType from = kiln_stack_source_dtype(c->instr, i, 0), to = c->instr->steps[i].dtype;
    op->kind = from == to ? KILN_CPU_STACK_COPY : KILN_CPU_STACK_CAST;
    op->row.cast = kiln_cpu_typed(KILN_CPU_ISA_AUTO)->cast[from][to];
    return from == to || op->row.cast;
}

/* One scale for all elements. */
static bool
choose_conversion(const Compiler *c, uint32_t i, KilnCpuStackOp *op)
{
    const KilnCpuTypedRows *rows = kiln_cpu_typed(KILN_CPU_ISA_AUTO);
    const KilnStackStep *step = &c->instr->steps[i];
    const KilnDType from = kiln_stack_source_dtype(c->instr, i, 0);
    const KilnQuant *in = kiln_stack_source_quant(c->instr, i, 0), *to = step->quant;
    if ((in && in->axis >= 0) || (to && to->axis >= 0))
        return false;
    op->kind = KILN_CPU_STACK_QUANT;
    if (step->kind == KILN_INSTR_rescale_quantized) {
        op->kind = KILN_CPU_STACK_RESCALE;
        op->params.a = in->scales[0] / to->scales[0];
        op->zeros[0] = in->zero_points[0];
        op->zeros[1] = to->zero_points[0];
        op->row.rescale = rows->rescale[from][step->dtype];
        return op->row.rescale;
    }
    const KilnQuant *quant = step->kind == KILN_INSTR_quantize_linear ? to : in;
    op->params.a = quant->scales[0];
    op->zeros[0] = quant->zero_points[0];
    op->row.quant = step->kind == KILN_INSTR_quantize_linear ? rows->quantize[step->dtype]
                                                             : rows->dequantize[from];
    return op->row.quant && (quant == to ? from : step->dtype) == KILN_DTYPE_f32;
}

static bool
choose_where(const KilnStackStep *step, KilnCpuStackOp *op)
{
    const size_t size = kiln_dtype_size(step->dtype);
    if (size == 4 && !(op->fixed & 1)) {
        op->kind = KILN_CPU_STACK_SELECT;
        op->row.select =
            kiln_cpu_rows(KILN_CPU_ISA_AUTO)->select[op->fixed >> 1 & 1][op->fixed >> 2];
    } else {
        op->kind = KILN_CPU_STACK_CHOICE;
        op->row.choice = kiln_cpu_choice_row(size);
    }
    return size > 0;
}

static bool
choose_unary(const Compiler *c, uint32_t i, KilnCpuStackOp *op)
{
    const KilnStackStep *step = &c->instr->steps[i];
    int unary = c->is[i].unary;
    op->kind = KILN_CPU_STACK_UNARY;
    op->params = c->is[i].params;
    if (step->kind == KILN_INSTR_clip && is_f32(c, i) && unary < 0) {
        op->kind = KILN_CPU_STACK_CLIP;
        unary = (op->fixed & 6) == 6 || c->stack->n == 1 ? KILN_CPU_UNARY_clip : -1;
    }
    if (unary >= 0)
        op->row.unary = kiln_cpu_rows(KILN_CPU_ISA_AUTO)->unary[unary];
    return unary >= 0;
}

/* Integers divided by 0 are an error, which a loop of a stack cannot report. */
static bool
divides(KilnInstrKind kind)
{
    return kind == KILN_INSTR_div || kind == KILN_INSTR_mod;
}

/* Two operands of f32, or of other numbers or bools. */
static bool
choose_of_two(const Compiler *c, uint32_t i, KilnCpuStackOp *op)
{
    const KilnCpuRows *rows = kiln_cpu_rows(KILN_CPU_ISA_AUTO);
    const KilnInstrKind kind = c->instr->steps[i].kind;
    const KilnCpuFixed fixed = kiln_cpu_stack_fixed(op);
    const int binary = c->is[i].binary, compare = kiln_cpu_find_compare(kind);
    const KilnDType from = kiln_stack_source_dtype(c->instr, i, 0);
    if (binary >= 0) {
        op->kind = KILN_CPU_STACK_BINARY;
        op->row.binary = rows->binary[binary][fixed];
        return true;
    }
    if (compare >= 0 && from == KILN_DTYPE_f32) {
        op->kind = KILN_CPU_STACK_COMPARE;
        op->row.compare = rows->compare[compare][fixed];
        return true;
    }
    if (kind == KILN_INSTR_mean || (divides(kind) && from != KILN_DTYPE_f64))
        return false;
    op->kind = KILN_CPU_STACK_PAIR;
    op->row.pair = kiln_cpu_pair_row(kind, c->instr->steps[i].attrs, from);
    if (kind == KILN_INSTR_not)
        op->in[1] = op->in[0];
    return op->row.pair;
}

static bool
choose(const Compiler *c, uint32_t i, KilnCpuStackOp *op)
{
    const KilnStackStep *step = &c->instr->steps[i];
    switch (step->kind) {
    case KILN_INSTR_copy:
        op->kind = KILN_CPU_STACK_COPY;
        return true;
    case KILN_INSTR_cast:
        return choose_cast(c, i, op);
    case KILN_INSTR_quantize_linear:
    case KILN_INSTR_dequantize_linear:
    case KILN_INSTR_rescale_quantized:
        return choose_conversion(c, i, op);
    case KILN_INSTR_where:
        return choose_where(step, op);
    default:
        return choose_unary(c, i, op) || choose_of_two(c, i, op);
    }
}

static bool
emit_step(Compiler *c, uint32_t i, KilnCpuStackOp *op)
{
    const KilnStackStep *step = &c->instr->steps[i];
    for (uint32_t k = 0; k < step->n_sources; k++) {
        if (!add_source(c, i, k, op, (int)k))
            return false;
    }
    op->once = c->one[i];
    return choose(c, i, op);
}

/* --- the whole --- */

/* The result goes where it is stored; one element is spread over the @out that takes it. */
static void
append(Compiler *c, uint32_t i, KilnCpuStackOp *op)
{
    KilnCpuStack *stack = c->stack;
    const KilnStackStep *step = &c->instr->steps[i];
    const uint8_t result = (uint8_t)(KILN_CPU_STACK_RESULTS + i);
    op->size = (uint8_t)kiln_dtype_size(step->dtype);
    op->out = step->store < 0 || op->once ? result : (uint8_t)step->store;
    c->place[i] = op->out;
    stack->ops[stack->n_ops++] = *op;
    if (step->store >= 0 && op->once)
        stack->ops[stack->n_ops++] = (KilnCpuStackOp){ .kind = KILN_CPU_STACK_FILL,
                                                       .size = op->size,
                                                       .out = (uint8_t)step->store,
                                                       .in = { result },
                                                       .fixed = 1 };
}

/* A reduction of f32: what it reduces lies in memory, or in a tile, until all of the tile is done.
 */
static bool
emit_reduction(Compiler *c, uint32_t i)
{
    const KilnStackStep *step = &c->instr->steps[i];
    KilnCpuStackReduction *reduction = &c->stack->reductions[c->stack->n_reductions++];
    KilnCpuStackOp reads = { .kind = KILN_CPU_STACK_COPY };
    *reduction = (KilnCpuStackReduction){ .kind = step->kind,
                                          .by = kiln_cpu_reduction_of(step->kind),
                                          .out = (uint8_t)step->store };
    if (!is_f32(c, i) || is_one(c, &step->sources[0]) || !add_source(c, i, 0, &reads, 0))
        return false;
    reduction->from = reads.in[0];
    return step->kind != KILN_INSTR_reduce_log_sum && step->kind != KILN_INSTR_reduce_prod;
}

static void
look_at_sources(Compiler *c)
{
    for (uint32_t i = 0; i < c->instr->n_steps; i++) {
        const KilnStackStep *step = &c->instr->steps[i];
        c->one[i] = true;
        for (uint32_t k = 0; k < step->n_sources; k++) {
            c->one[i] = c->one[i] && is_one(c, &step->sources[k]);
            if (step->sources[k].kind == KILN_STACK_STEP)
                c->reads[step->sources[k].index]++;
        }
    }
}

bool
kiln_cpu_stack_compile(const KilnInstr *instr, KilnCpuStack *out)
{
    Compiler c = { .instr = instr, .stack = out };
    Match matches[KILN_STACK_STEPS_MAX];
    memset(out, 0, sizeof *out);
    if (!kiln_cpu_stack_set_space(instr, out))
        return false;
    look_at_sources(&c);
    look_at_steps(&c);
    for (uint32_t i = instr->n_steps; i-- > 0;) {
        matches[i].n_inner = 0;
        if (c.merged[i] || c.one[i] || !find_match(&c, i, &matches[i]))
            continue;
        for (uint32_t k = 0; k < matches[i].n_inner; k++)
            c.merged[matches[i].inner[k]] = true;
    }
    for (uint32_t i = 0; i < instr->n_steps; i++) {
        KilnCpuStackOp op = { .kind = KILN_CPU_STACK_COPY };
        if (c.merged[i])
            continue;
        if (kiln_stack_reduces(instr->steps[i].kind)) {
            if (!emit_reduction(&c, i))
                return false;
            continue;
        }
        if (!(matches[i].n_inner ? emit_match(&c, &matches[i], &op) : emit_step(&c, i, &op)))
            return false;
        append(&c, i, &op);
    }
    kiln_cpu_stack_set_tiles(instr, out);
    return true;
}
