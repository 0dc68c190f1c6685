/* SPDX-License-Identifier: Apache-2.0 */
/* Parses the steps of a stack:
 *
 *     step    = [name ":"] instruction [sources | "(" sources ")"] [attributes] [":" element type]
 *               ["->" @out operand]
 *     sources = source {"," source};  source = @in operand | name of a step | number
 *
 * Without parentheses the first source is left out: it is the result of the step before or, of the
 * first step, the first @in operand. Element types that sources decide are left out, and those of
 * stored results; so is the arrow of the last step where there is one @out operand. */
#include "graph/text/lexer.h"
#include "ir/stack.h"
#include "ir/text/parse_priv.h"

#include <string.h>

typedef struct {
    KilnStackStep step;
    KilnToken at;
    bool typed;
} StepText;

typedef struct {
    KilnIRParser *in;
    const KilnIROperands *operands;
    uint32_t n_out;
    GArray *steps;     /* StepText */
    GHashTable *names; /* name → 1 + index of the step */
} StackText;

/* The operand from @first to @end that is @buffer. */
static bool
find_operand(const StackText *text, uint32_t first, uint32_t end, uint32_t *out)
{
    KilnParser *parser = &text->in->parser;
    KilnToken at = parser->token;
    const KilnBuffer *buffer = kiln_ir_parse_buffer(text->in);
    if (!buffer)
        return false;
    for (uint32_t i = first; i < end; i++) {
        if (g_ptr_array_index(text->operands->buffers, i) == buffer) {
            *out = i;
            return true;
        }
    }
    return kiln_parse_throw_at(parser, &at, KILN_ERROR_PARSE,
                               "expected an @%s operand of the stack, found '%.*s'",
                               first ? "in" : "out", (int)at.length, at.start);
}

static bool
parse_source(StackText *text, KilnStackStep *step)
{
    KilnParser *parser = &text->in->parser;
    if (step->n_sources == KILN_STACK_SOURCES_MAX)
        return kiln_parse_throw(parser, "no further source");
    KilnStackSource *source = &step->sources[step->n_sources++];
    gpointer index;
    if (parser->token.kind == KILN_TOKEN_VALUE || parser->token.kind == KILN_TOKEN_SYMBOL) {
        source->kind = KILN_STACK_OPERAND;
        return find_operand(text, text->n_out, text->operands->buffers->len, &source->index);
    }
    const char *name = kiln_parse_text(parser);
    if (parser->token.kind == KILN_TOKEN_WORD && (index = g_hash_table_lookup(text->names, name))) {
        *source = (KilnStackSource){ KILN_STACK_STEP, GPOINTER_TO_UINT(index) - 1, 0 };
        kiln_parse_advance(parser);
        return true;
    }
    source->kind = KILN_STACK_SCALAR;
    if (parser->token.kind != KILN_TOKEN_WORD || strcmp(name, "inf") == 0 ||
        strcmp(name, "nan") == 0)
        return kiln_parse_f64(parser, &source->scalar);
    return kiln_parse_throw(parser, "an operand, a number or the name of an earlier step");
}

static bool
begins_source(const KilnParser *parser)
{
    KilnTokenKind kind = parser->token.kind;
    return kind == KILN_TOKEN_VALUE || kind == KILN_TOKEN_SYMBOL || kind == KILN_TOKEN_NUMBER ||
           kind == KILN_TOKEN_WORD;
}

static bool
parse_sources(StackText *text, KilnStackStep *step)
{
    KilnParser *parser = &text->in->parser;
    bool all = kiln_parse_accept(parser, '(');
    if (!all) {
        bool first = text->steps->len == 0;
        step->sources[step->n_sources++] =
            (KilnStackSource){ first ? KILN_STACK_OPERAND : KILN_STACK_STEP,
                               first ? text->n_out : text->steps->len - 1, 0 };
    }
    if (all || begins_source(parser)) {
        do {
            if (!parse_source(text, step))
                return false;
        } while (kiln_parse_accept(parser, ','));
    }
    return !all || kiln_parse_expect(parser, ')');
}

/* `name: ` before an instruction; a word that is an instruction is no name. NULL in @out_name where
 * there is none. */
static bool
parse_name(const StackText *text, char **out_name, KilnInstrKind *out_kind)
{
    KilnParser *parser = &text->in->parser;
    static const char expected[] = "an element-wise instruction or a reduction";
    KilnToken at = parser->token;
    const char *word = kiln_parse_text(parser);
    if (at.kind != KILN_TOKEN_WORD)
        return kiln_parse_throw(parser, expected);
    if (kiln_instr_from_name(word, out_kind))
        return true;
    KilnLexer ahead = parser->lexer;
    KilnToken next = kiln_lexer_next(&ahead);
    if (!kiln_token_is_punct(&next, ':'))
        return kiln_parse_throw(parser, expected);
    if (strcmp(word, "inf") == 0 || strcmp(word, "nan") == 0)
        return kiln_parse_throw(parser, "a name that is no number");
    if (g_hash_table_contains(text->names, word))
        return kiln_parse_throw_at(parser, &at, KILN_ERROR_PARSE, "two steps are called %s", word);
    *out_name = g_strdup(word);
    kiln_parse_advance(parser);
    kiln_parse_advance(parser);
    return (parser->token.kind == KILN_TOKEN_WORD &&
            kiln_instr_from_name(kiln_parse_text(parser), out_kind)) ||
           kiln_parse_throw(parser, expected);
}

static bool
parse_step(StackText *text)
{
    KilnParser *parser = &text->in->parser;
    StepText read = { .step = { .store = -1 } };
    KilnStackStep *step = &read.step;
    g_autofree char *name = NULL;
    if (text->steps->len == KILN_STACK_STEPS_MAX)
        return kiln_parse_throw(parser, "no further step");
    if (!parse_name(text, &name, &step->kind))
        return false;
    read.at = parser->token;
    kiln_parse_advance(parser);
    if (!parse_sources(text, step) || !kiln_ir_parse_attrs(text->in, step->kind, &step->attrs))
        return false;
    if (kiln_parse_accept(parser, ':')) {
        KilnType type;
        if (!kiln_parse_element_type(parser, &type))
            return false;
        step->dtype = type.dtype;
        step->quant = type.quant;
        read.typed = true;
    }
    uint32_t out = 0;
    if (kiln_parse_accept(parser, '>')) {
        if (!find_operand(text, 0, text->n_out, &out))
            return false;
        step->store = (int32_t)out;
    }
    g_array_append_val(text->steps, read);
    if (name)
        g_hash_table_insert(text->names, g_steal_pointer(&name),
                            GUINT_TO_POINTER(text->steps->len));
    return true;
}

/* Types that no text states: from the sources, else from where the result is stored. */
static bool
infer_types(const StackText *text, KilnInstr *stack)
{
    for (uint32_t i = 0; i < stack->n_steps; i++) {
        KilnStackStep *step = &stack->steps[i];
        const StepText *read = &g_array_index(text->steps, StepText, i);
        KilnType type;
        if (read->typed)
            continue;
        if (!kiln_stack_infer(stack, i, &type)) {
            if (step->store < 0)
                return kiln_parse_throw_at(
                    &text->in->parser, &read->at, KILN_ERROR_PARSE,
                    "%s: expected the element type of its result, as in ': f32'",
                    kiln_instr_info(step->kind)->name);
            type = stack->operands[step->store].buffer->type;
        }
        step->dtype = type.dtype;
        step->quant = type.quant;
    }
    return true;
}

static KilnInstr *
build(const StackText *text)
{
    GPtrArray *buffers = text->operands->buffers;
    guint n = text->steps->len;
    g_autofree KilnStackStep *steps = g_new(KilnStackStep, n);
    for (guint i = 0; i < n; i++)
        steps[i] = g_array_index(text->steps, StepText, i).step;
    if (text->n_out == 1 && steps[n - 1].store < 0)
        steps[n - 1].store = 0;
    KilnInstr *stack = kiln_instr_new_stack(text->in->function, (KilnBuffer *const *)buffers->pdata,
                                            buffers->len, text->n_out, steps, n, NULL);
    return infer_types(text, stack) ? stack : NULL;
}

KilnInstr *
kiln_ir_parse_stack(KilnIRParser *in, const KilnIROperands *operands)
{
    KilnParser *parser = &in->parser;
    uint32_t n = operands->buffers->len, n_out = kiln_ir_parse_n_out(operands);
    if (n_out == 0 || n_out == n || g_ptr_array_find(operands->buffers, NULL, NULL)) {
        kiln_parse_throw_at(parser, &operands->at, KILN_ERROR_PARSE,
                            "stack: expected @out operands, then @in operands");
        return NULL;
    }
    if (n > KILN_STACK_OPERANDS_MAX) {
        kiln_parse_throw_at(parser, &operands->at, KILN_ERROR_PARSE,
                            "stack: expected at most %d operands, found %u",
                            KILN_STACK_OPERANDS_MAX, n);
        return NULL;
    }
    if (!kiln_parse_expect(parser, '{'))
        return NULL;
    g_autoptr(GArray) steps = g_array_new(FALSE, FALSE, sizeof(StepText));
    g_autoptr(GHashTable) names = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    StackText text = { in, operands, n_out, steps, names };
    do {
        if (!parse_step(&text))
            return NULL;
    } while (kiln_parse_accept(parser, ';'));
    return kiln_parse_expect(parser, '}') ? build(&text) : NULL;
}
