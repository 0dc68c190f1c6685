/* SPDX-License-Identifier: Apache-2.0 */
/* Parses `func` blocks with the parser of the graph level. Instructions are made by the builders
 * that lowering uses; the accesses that a text states are compared with those of the row. */
#include "graph/text/parse.h"
#include "ir/ir.h"

#include <string.h>

typedef struct {
    KilnParser parser;
    KilnIRFunction *function;
} IRParser;

/* --- buffers --- */

static bool
is_local(const KilnBuffer *buffer)
{
    return buffer->kind == KILN_BUFFER_ALLOC || buffer->kind == KILN_BUFFER_VIEW;
}

/* `%name` of an alloc or view, `@name` of a weight, input or output. */
static KilnBuffer *
parse_buffer(IRParser *in)
{
    KilnParser *parser = &in->parser;
    KilnToken at = parser->token;
    bool local = at.kind == KILN_TOKEN_VALUE;
    if (!local && at.kind != KILN_TOKEN_SYMBOL) {
        kiln_parse_throw(parser, "a %buffer or @buffer");
        return NULL;
    }
    g_autofree char *name = kiln_token_text(&at);
    KilnBuffer *buffer = kiln_ir_find_buffer(in->function, name);
    if (!buffer || is_local(buffer) != local) {
        kiln_parse_throw(parser, local ? "a buffer that is made above"
                                       : "a weight, input or output that is listed above");
        return NULL;
    }
    kiln_parse_advance(parser);
    return buffer;
}

/* A name that no buffer has yet. */
static const char *
parse_new_name(IRParser *in, KilnTokenKind kind)
{
    KilnToken at = in->parser.token;
    const char *name = kiln_parse_name(&in->parser, kind, "the name of a buffer");
    if (!name || !kiln_ir_find_buffer(in->function, name))
        return name;
    kiln_parse_throw_at(&in->parser, &at, KILN_ERROR_PARSE, "two buffers are called %.*s",
                        (int)at.length, at.start);
    return NULL;
}

/* `@name [= @constant | = _] : type [const]` */
static bool
parse_signature(IRParser *in, KilnBufferKind kind)
{
    KilnParser *parser = &in->parser;
    KilnToken at = parser->token;
    const char *name = parse_new_name(in, KILN_TOKEN_SYMBOL);
    if (!name)
        return false;
    bool weight = kind == KILN_BUFFER_WEIGHT;
    KilnConstant *constant = NULL;
    if (weight && kiln_parse_accept(parser, '=')) {
        if (!kiln_parse_accept_word(parser, "_") && !(constant = kiln_parse_constant_name(parser)))
            return false;
    } else if (weight && !(constant = kiln_module_find_constant(parser->module, name))) {
        return kiln_parse_throw_at(parser, &at, KILN_ERROR_PARSE,
                                   "expected a constant called %.*s, or '= _' for state without "
                                   "one",
                                   (int)at.length, at.start);
    }
    KilnType type;
    if (!kiln_parse_expect(parser, ':') || !kiln_parse_type(parser, &type))
        return false;
    KilnBuffer *buffer = kiln_ir_add_buffer(in->function, kind, name, &type);
    buffer->constant = constant;
    buffer->is_const = weight && kiln_parse_accept_word(parser, "const");
    return true;
}

/* --- instructions --- */

static bool
parse_loc(IRParser *in, KilnInstr *instr)
{
    const char *name;
    if (!kiln_parse_loc(&in->parser, &name))
        return false;
    instr->name = kiln_arena_strdup(in->function->arena, name);
    return true;
}

static bool
parse_alloc(IRParser *in, const char *name)
{
    KilnParser *parser = &in->parser;
    int64_t offset = -1;
    KilnType type;
    if (kiln_parse_accept_word(parser, "at") && !kiln_parse_i64(parser, 0, G_MAXINT64, &offset))
        return false;
    if (!kiln_parse_expect(parser, ':') || !kiln_parse_type(parser, &type))
        return false;
    KilnBuffer *buffer = kiln_ir_alloc(in->function, name, &type, NULL);
    buffer->offset = offset;
    return parse_loc(in, buffer->def);
}

/* `%base {offset=16} : type` */
static bool
parse_view(IRParser *in, const char *name)
{
    KilnParser *parser = &in->parser;
    KilnBuffer *base = parse_buffer(in);
    int64_t offset = 0;
    KilnType type;
    if (!base)
        return false;
    if (kiln_parse_accept(parser, '{') &&
        (!kiln_parse_expect_word(parser, "offset") || !kiln_parse_expect(parser, '=') ||
         !kiln_parse_i64(parser, 0, G_MAXINT64, &offset) || !kiln_parse_expect(parser, '}')))
        return false;
    if (!kiln_parse_expect(parser, ':') || !kiln_parse_type(parser, &type))
        return false;
    return parse_loc(in, kiln_ir_view(in->function, name, base, offset, &type, NULL)->def);
}

/* `%name = alloc …` or `%name = view …` */
static bool
parse_definition(IRParser *in)
{
    KilnParser *parser = &in->parser;
    const char *name = parse_new_name(in, KILN_TOKEN_VALUE);
    if (!name || !kiln_parse_expect(parser, '='))
        return false;
    if (kiln_parse_accept_word(parser, "alloc"))
        return parse_alloc(in, name);
    if (kiln_parse_accept_word(parser, "view"))
        return parse_view(in, name);
    return kiln_parse_throw(parser, "'alloc' or 'view'");
}

static bool
parse_dealloc(IRParser *in)
{
    KilnBuffer *buffer = parse_buffer(in);
    return buffer && parse_loc(in, kiln_ir_dealloc(buffer, NULL));
}

typedef struct {
    KilnToken at;
    GPtrArray *buffers; /* NULL: absent */
    GArray *accesses;   /* KilnAccess; @in where absent */
} Operands;

static void
operands_clear(Operands *operands)
{
    g_ptr_array_unref(operands->buffers);
    g_array_unref(operands->accesses);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Operands, operands_clear)

static bool
parse_operand(IRParser *in, Operands *operands)
{
    static const char *const names[] = { "in", "out", "inout" };
    KilnParser *parser = &in->parser;
    KilnBuffer *buffer = NULL;
    KilnAccess access = KILN_ACCESS_IN;
    if (!kiln_parse_accept_word(parser, "_")) {
        g_autofree char *name = kiln_token_text(&parser->token);
        while (access < G_N_ELEMENTS(names) && strcmp(name, names[access]) != 0)
            access++;
        if (parser->token.kind != KILN_TOKEN_SYMBOL || access == G_N_ELEMENTS(names))
            return kiln_parse_throw(parser, "@in, @out, @inout or _");
        kiln_parse_advance(parser);
        if (!(buffer = parse_buffer(in)))
            return false;
    }
    g_ptr_array_add(operands->buffers, buffer);
    g_array_append_val(operands->accesses, access);
    return true;
}

/* Every instruction that is not bookkeeping has at least one operand. */
static bool
parse_operands(IRParser *in, Operands *operands)
{
    do {
        if (!parse_operand(in, operands))
            return false;
    } while (kiln_parse_accept(&in->parser, ','));
    return true;
}

static bool
check_accesses(IRParser *in, const Operands *operands, const KilnInstr *instr)
{
    static const char *const names[] = { "@in", "@out", "@inout" };
    for (uint32_t i = 0; i < instr->n_operands; i++) {
        KilnAccess expected = instr->operands[i].access;
        KilnAccess found = g_array_index(operands->accesses, KilnAccess, i);
        if (instr->operands[i].buffer && expected != found)
            return kiln_parse_throw_at(&in->parser, &operands->at, KILN_ERROR_PARSE,
                                       "%s: operand %u: expected %s, found %s",
                                       kiln_instr_info(instr->kind)->name, i, names[expected],
                                       names[found]);
    }
    return true;
}

/* `call @callee @out …, @in …` */
static bool
parse_call(IRParser *in)
{
    const char *callee = kiln_parse_name(&in->parser, KILN_TOKEN_SYMBOL, "the @name of a region");
    g_auto(Operands) operands = { in->parser.token, g_ptr_array_new(),
                                  g_array_new(FALSE, FALSE, sizeof(KilnAccess)) };
    if (!callee || !parse_operands(in, &operands))
        return false;
    uint32_t n = operands.buffers->len, n_out = 0;
    while (n_out < n && g_array_index(operands.accesses, KilnAccess, n_out) != KILN_ACCESS_IN)
        n_out++;
    KilnInstr *instr = kiln_instr_new_call(
        in->function, callee, (KilnBuffer *const *)operands.buffers->pdata, n, n_out, NULL);
    return check_accesses(in, &operands, instr) && parse_loc(in, instr);
}

/* --- stacks --- */

static bool
find_stack_operand(IRParser *in, const Operands *operands, const KilnToken *at,
                   const KilnBuffer *buffer, int *out)
{
    for (guint i = 1; i < operands->buffers->len; i++) {
        if (g_ptr_array_index(operands->buffers, i) == buffer) {
            *out = (int)i;
            return true;
        }
    }
    return kiln_parse_throw_at(&in->parser, at, KILN_ERROR_PARSE,
                               "expected an @in operand of the stack, found '%.*s'",
                               (int)at->length, at->start);
}

/* `{name=value, …}` in the function's arena. */
static bool
parse_attrs(IRParser *in, KilnInstrKind kind, void **out)
{
    const KilnInstrInfo *info = kiln_instr_info(kind);
    KilnArena *arena = in->function->arena;
    /* Names and lists of the parser lie in the module's arena, which the function may outlive. */
    void *read = kiln_instr_attrs_new(kind, arena);
    if (!kiln_parse_attrs(&in->parser, info->name, info->attrs, info->n_attrs, read))
        return false;
    *out = kiln_instr_attrs_new(kind, arena);
    kiln_attrs_copy(info->attrs, info->n_attrs, *out, read, arena);
    return true;
}

/* `mul 0.5`, `add %b`, `leaky_relu {alpha=0.1}` */
static bool
parse_step(IRParser *in, const Operands *operands, KilnStackStep *step)
{
    KilnParser *parser = &in->parser;
    g_autofree char *name = kiln_token_text(&parser->token);
    *step = (KilnStackStep){ .operand = -1 };
    if (parser->token.kind != KILN_TOKEN_WORD || !kiln_instr_from_name(name, &step->kind))
        return kiln_parse_throw(parser, "an element-wise instruction");
    kiln_parse_advance(parser);
    KilnToken at = parser->token;
    if (at.kind == KILN_TOKEN_VALUE || at.kind == KILN_TOKEN_SYMBOL) {
        const KilnBuffer *buffer = parse_buffer(in);
        if (!buffer || !find_stack_operand(in, operands, &at, buffer, &step->operand))
            return false;
    } else if (at.kind == KILN_TOKEN_NUMBER || at.kind == KILN_TOKEN_WORD) {
        step->has_scalar = true;
        if (!kiln_parse_f64(parser, &step->scalar))
            return false;
    }
    return parse_attrs(in, step->kind, &step->attrs);
}

static bool
parse_steps(IRParser *in, const Operands *operands, KilnInstr *instr)
{
    KilnParser *parser = &in->parser;
    g_autoptr(GArray) steps = g_array_new(FALSE, FALSE, sizeof(KilnStackStep));
    if (!kiln_parse_expect(parser, '{'))
        return false;
    do {
        KilnStackStep step;
        if (!parse_step(in, operands, &step))
            return false;
        g_array_append_val(steps, step);
    } while (kiln_parse_accept(parser, ';'));
    instr->n_steps = steps->len;
    instr->steps = kiln_arena_copy(in->function->arena, steps->data,
                                   (size_t)steps->len * sizeof(KilnStackStep));
    return kiln_parse_expect(parser, '}');
}

/* --- functions --- */

static bool
parse_compute(IRParser *in)
{
    KilnParser *parser = &in->parser;
    g_autofree char *name = kiln_token_text(&parser->token);
    KilnInstrKind kind;
    if (parser->token.kind != KILN_TOKEN_WORD || !kiln_instr_from_name(name, &kind))
        return kiln_parse_throw(parser, "an instruction");
    g_auto(Operands) operands = { parser->token, g_ptr_array_new(),
                                  g_array_new(FALSE, FALSE, sizeof(KilnAccess)) };
    kiln_parse_advance(parser);
    if (!parse_operands(in, &operands))
        return false;
    KilnInstr *instr =
        kiln_instr_new(in->function, kind, (KilnBuffer *const *)operands.buffers->pdata,
                       operands.buffers->len, NULL, NULL, parser->error);
    if (!instr)
        return kiln_parse_prefix(parser, &operands.at);
    if (!check_accesses(in, &operands, instr))
        return false;
    if (kind == KILN_INSTR_stack && !parse_steps(in, &operands, instr))
        return false;
    return parse_attrs(in, kind, &instr->attrs) && parse_loc(in, instr);
}

static bool
parse_item(IRParser *in)
{
    KilnParser *parser = &in->parser;
    if (parser->token.kind == KILN_TOKEN_VALUE)
        return parse_definition(in);
    if (kiln_parse_accept_word(parser, "dealloc"))
        return parse_dealloc(in);
    if (kiln_parse_accept_word(parser, "call"))
        return parse_call(in);
    if (kiln_parse_accept_word(parser, "weight"))
        return parse_signature(in, KILN_BUFFER_WEIGHT);
    if (kiln_parse_accept_word(parser, "input"))
        return parse_signature(in, KILN_BUFFER_INPUT);
    if (kiln_parse_accept_word(parser, "output"))
        return parse_signature(in, KILN_BUFFER_OUTPUT);
    if (kiln_parse_accept_word(parser, "arena"))
        return kiln_parse_i64(parser, 0, G_MAXINT64, &in->function->arena_bytes);
    return parse_compute(in);
}

static bool
parse_func(IRParser *in, GPtrArray *functions)
{
    KilnParser *parser = &in->parser;
    KilnToken at = parser->token;
    const char *name = kiln_parse_name(parser, KILN_TOKEN_SYMBOL, "the @name of a func");
    if (!name)
        return false;
    for (guint i = 0; i < functions->len; i++) {
        const KilnIRFunction *other = g_ptr_array_index(functions, i);
        if (strcmp(other->name, name) == 0)
            return kiln_parse_throw_at(parser, &at, KILN_ERROR_PARSE, "two funcs are called @%s",
                                       name);
    }
    in->function = kiln_ir_function_new(parser->module, name);
    g_ptr_array_add(functions, in->function);
    if (!kiln_parse_expect(parser, '{'))
        return false;
    while (!kiln_parse_accept(parser, '}')) {
        if (!parse_item(in))
            return false;
    }
    return kiln_ir_verify(in->function, parser->error) || kiln_parse_prefix(parser, &at);
}

static bool
parse_all(IRParser *in, GArray *graphs, GArray *funcs, GPtrArray *functions)
{
    KilnParser *parser = &in->parser;
    if (!kiln_parse_blocks(parser, graphs, funcs) || !kiln_parse_graphs(parser, graphs))
        return false;
    for (guint i = 0; i < funcs->len; i++) {
        const KilnBlock *block = &g_array_index(funcs, KilnBlock, i);
        parser->lexer = block->lexer;
        parser->token = block->token;
        if (!parse_func(in, functions))
            return false;
    }
    return true;
}

KilnIRModule *
kiln_ir_module_parse(const char *text, size_t length, const char *path, GError **error)
{
    IRParser in = { 0 };
    g_autoptr(GArray) graphs = g_array_new(FALSE, FALSE, sizeof(KilnBlock));
    g_autoptr(GArray) funcs = g_array_new(FALSE, FALSE, sizeof(KilnBlock));
    bool ok = kiln_parser_init(&in.parser, text, length, path, error);
    g_autoptr(KilnIRModule) ir = kiln_ir_module_new(g_steal_pointer(&in.parser.module));
    in.parser.module = ir->module; /* borrowed from here on */
    ok = ok && parse_all(&in, graphs, funcs, ir->functions);
    in.parser.module = NULL;
    kiln_parser_clear(&in.parser);
    return ok ? g_steal_pointer(&ir) : NULL;
}
