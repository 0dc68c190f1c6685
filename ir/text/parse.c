/* SPDX-License-Identifier: Apache-2.0 */
/* Parses `func` blocks with the parser of the graph level. Instructions are made by the builders
 * that lowering uses; the accesses that a text states are compared with those of the row. */
#include "graph/module.h"
#include "ir/text/parse_priv.h"

#include "graph/grow/reserve.h"
#include "graph/base/random.h"
#include "graph/text/lexer.h"
#include "ir/text/json.h"

#include <string.h>

/* --- buffers --- */

static bool
is_local(const KilnBuffer *buffer)
{
    return buffer->kind == KILN_BUFFER_ALLOC || buffer->kind == KILN_BUFFER_VIEW;
}

KilnBuffer *
kiln_ir_parse_buffer(KilnIRParser *in)
{
    KilnParser *parser = &in->parser;
    KilnToken at = parser->token;
    bool local = at.kind == KILN_TOKEN_VALUE;
    if (!local && at.kind != KILN_TOKEN_SYMBOL) {
        kiln_parse_throw(parser, "a %buffer or @buffer");
        return NULL;
    }
    KilnBuffer *buffer = kiln_ir_find_buffer(in->function, kiln_parse_text(parser));
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
parse_new_name(KilnIRParser *in, KilnTokenKind kind)
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
parse_signature(KilnIRParser *in, KilnBufferKind kind)
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
    buffer->is_const = kind != KILN_BUFFER_OUTPUT && kiln_parse_accept_word(parser, "const");
    at = parser->token;
    buffer->unpacked = kind == KILN_BUFFER_OUTPUT && kiln_parse_accept_word(parser, "unpacked");
    if (!buffer->unpacked ||
        (type.dtype == KILN_DTYPE_optional && !kiln_type_element(&type)->contents))
        return true;
    return kiln_parse_throw_at(parser, &at, KILN_ERROR_TYPE,
                               "unpacked: expected an optional of a tensor");
}

/* --- instructions --- */

static bool
parse_loc(KilnIRParser *in, KilnInstr *instr)
{
    const char *name;
    if (!kiln_parse_loc(&in->parser, &name))
        return false;
    instr->name = kiln_arena_strdup(in->function->arena, name);
    return true;
}

static bool
parse_alloc(KilnIRParser *in, const char *name)
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

/* `%base {offset=16} : type`, `%base {rows=4, pitch=40} : type` */
static bool
parse_view(KilnIRParser *in, const char *name)
{
    KilnParser *parser = &in->parser;
    KilnBuffer *base = kiln_ir_parse_buffer(in);
    KilnBuffer place = { .view_rows = 1 };
    KilnViewOpen open = { NULL, NULL, NULL };
    KilnType type;
    if (!base)
        return false;
    if (kiln_parse_accept(parser, '{') && !kiln_ir_parse_place(parser, &place, &open))
        return false;
    if (!kiln_parse_expect(parser, ':') || !kiln_parse_type(parser, &type))
        return false;
    KilnBuffer *view = kiln_ir_view(in->function, name, base, place.view_offset, &type, NULL);
    view->view_rows = place.view_rows;
    view->view_pitch = place.view_pitch;
    if (open.offset || open.rows || open.pitch)
        view->view_open = kiln_arena_copy(in->function->arena, &open, sizeof open);
    return parse_loc(in, view->def);
}

/* `%name = alloc …` or `%name = view …` */
static bool
parse_definition(KilnIRParser *in)
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
parse_dealloc(KilnIRParser *in)
{
    KilnBuffer *buffer = kiln_ir_parse_buffer(in);
    return buffer && parse_loc(in, kiln_ir_dealloc(buffer, NULL));
}

static void
operands_clear(KilnIROperands *operands)
{
    g_ptr_array_unref(operands->buffers);
    g_array_unref(operands->accesses);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(KilnIROperands, operands_clear)

static bool
parse_operand(KilnIRParser *in, KilnIROperands *operands)
{
    static const char *const names[] = { "in", "out", "inout" };
    KilnParser *parser = &in->parser;
    KilnBuffer *buffer = NULL;
    KilnAccess access = KILN_ACCESS_IN;
    if (!kiln_parse_accept_word(parser, "_")) {
        const char *name = kiln_parse_text(parser);
        while (access < G_N_ELEMENTS(names) && strcmp(name, names[access]) != 0)
            access++;
        if (parser->token.kind != KILN_TOKEN_SYMBOL || access == G_N_ELEMENTS(names))
            return kiln_parse_throw(parser, "@in, @out, @inout or _");
        kiln_parse_advance(parser);
        if (!(buffer = kiln_ir_parse_buffer(in)))
            return false;
    }
    g_ptr_array_add(operands->buffers, buffer);
    g_array_append_val(operands->accesses, access);
    return true;
}

/* Every instruction that is not bookkeeping has at least one operand. */
static bool
parse_operands(KilnIRParser *in, KilnIROperands *operands)
{
    do {
        if (!parse_operand(in, operands))
            return false;
    } while (kiln_parse_accept(&in->parser, ','));
    return true;
}

static bool
check_accesses(KilnIRParser *in, const KilnIROperands *operands, const KilnInstr *instr)
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

uint32_t
kiln_ir_parse_n_out(const KilnIROperands *operands)
{
    uint32_t n = 0;
    while (n < operands->accesses->len &&
           g_array_index(operands->accesses, KilnAccess, n) != KILN_ACCESS_IN)
        n++;
    return n;
}

/* `call @callee @out …, @in …` */
static bool
parse_call(KilnIRParser *in)
{
    const char *callee = kiln_parse_name(&in->parser, KILN_TOKEN_SYMBOL, "the @name of a region");
    g_auto(KilnIROperands) operands = { in->parser.token, g_ptr_array_new(),
                                        g_array_new(FALSE, FALSE, sizeof(KilnAccess)) };
    if (!callee || !parse_operands(in, &operands))
        return false;
    KilnInstr *instr =
        kiln_instr_new_call(in->function, callee, (KilnBuffer *const *)operands.buffers->pdata,
                            operands.buffers->len, kiln_ir_parse_n_out(&operands), NULL);
    return check_accesses(in, &operands, instr) && parse_loc(in, instr);
}

bool
kiln_ir_parse_attrs(KilnIRParser *in, KilnInstrKind kind, void **out)
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

/* --- functions --- */

static bool
parse_compute(KilnIRParser *in)
{
    KilnParser *parser = &in->parser;
    KilnInstrKind kind;
    if (parser->token.kind != KILN_TOKEN_WORD ||
        !kiln_instr_from_name(kiln_parse_text(parser), &kind))
        return kiln_parse_throw(parser, "an instruction");
    g_auto(KilnIROperands) operands = { parser->token, g_ptr_array_new(),
                                        g_array_new(FALSE, FALSE, sizeof(KilnAccess)) };
    kiln_parse_advance(parser);
    if (!parse_operands(in, &operands))
        return false;
    if (kind == KILN_INSTR_stack) {
        KilnInstr *stack = kiln_ir_parse_stack(in, &operands);
        return stack && check_accesses(in, &operands, stack) && parse_loc(in, stack);
    }
    KilnBuffer *const *buffers = (KilnBuffer *const *)operands.buffers->pdata;
    KilnInstr *instr =
        kiln_instr_states_access(kind)
            ? kiln_instr_new_stated(in->function, kind, buffers, operands.buffers->len,
                                    kiln_ir_parse_n_out(&operands), NULL, NULL)
            : kiln_instr_new(in->function, kind, buffers, operands.buffers->len, NULL, NULL,
                             parser->error);
    if (!instr)
        return kiln_parse_prefix(parser, &operands.at);
    if (!check_accesses(in, &operands, instr))
        return false;
    if (!kiln_ir_parse_attrs(in, kind, &instr->attrs))
        return false;
    int64_t *stream = kiln_instr_stream(instr);
    if (stream && !*stream) /* written by hand */
        *stream = kiln_random_stream(kiln_instr_operand(instr, 0)->name);
    return parse_loc(in, instr);
}

static bool
parse_item(KilnIRParser *in)
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
    if (kiln_parse_accept_word(parser, "dims"))
        return kiln_ir_parse_dims(in);
    if (kiln_parse_accept_word(parser, "require"))
        return kiln_ir_parse_require(in);
    if (kiln_parse_accept_word(parser, "arena"))
        return kiln_parse_i64(parser, 0, G_MAXINT64, &in->function->arena_bytes);
    return parse_compute(in);
}

static bool
parse_func(KilnIRParser *in, GPtrArray *functions)
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
    in->function->siblings = functions;
    g_ptr_array_add(functions, in->function);
    if (!kiln_parse_expect(parser, '{'))
        return false;
    while (!kiln_parse_accept(parser, '}')) {
        if (!parse_item(in))
            return false;
        if (!kiln_reserve_check(in->function->n_instrs, parser->error))
            return kiln_parse_prefix(parser, &at);
    }
    return (kiln_ir_parse_stand(in->function, parser->error) &&
            kiln_ir_verify(in->function, parser->error)) ||
           kiln_parse_prefix(parser, &at);
}

/* What is folded is read by the last function. */
static bool
connect_folding(KilnIRParser *in, const GPtrArray *functions)
{
    if (functions->len == 0)
        return true;
    const KilnIRFunction *entry = g_ptr_array_index(functions, functions->len - 1);
    g_autoptr(GPtrArray) names = g_ptr_array_new();
    for (guint i = 0; i < entry->inputs->len; i++)
        g_ptr_array_add(names, (char *)((KilnBuffer *)g_ptr_array_index(entry->inputs, i))->name);
    return kiln_parse_folding(&in->parser, (const char *const *)names->pdata, names->len);
}

static bool
parse_all(KilnIRParser *in, GArray *graphs, GArray *funcs, GPtrArray *functions)
{
    KilnParser *parser = &in->parser;
    if (!kiln_parse_blocks(parser, graphs, funcs) || !kiln_parse_graphs(parser, graphs))
        return false;
    for (guint i = 0; i < funcs->len; i++) {
        const KilnBlock *block = &g_array_index(funcs, KilnBlock, i);
        parser->lexer = block->lexer;
        parser->token = block->token;
        parser->takes_open = true;
        if (!parse_func(in, functions))
            return false;
    }
    return connect_folding(in, functions);
}

static KilnIRModule *
parse_module(const char *text, size_t length, const char *path, bool alone, GError **error)
{
    KilnIRParser in = { 0 };
    g_autoptr(GArray) graphs = g_array_new(FALSE, FALSE, sizeof(KilnBlock));
    g_autoptr(GArray) funcs = g_array_new(FALSE, FALSE, sizeof(KilnBlock));
    bool ok = kiln_parser_init(&in.parser, text, length, path, error);
    if (alone)
        g_clear_pointer(&in.parser.module->path, g_free);
    g_autoptr(KilnIRModule) ir = kiln_ir_module_new(g_steal_pointer(&in.parser.module));
    in.parser.module = ir->module; /* borrowed from here on */
    ok = ok && parse_all(&in, graphs, funcs, ir->functions);
    in.parser.module = NULL;
    kiln_parser_clear(&in.parser);
    return ok ? g_steal_pointer(&ir) : NULL;
}

KilnIRModule *
kiln_ir_module_parse(const char *text, size_t length, const char *path, GError **error)
{
    return parse_module(text, length, path, false, error);
}

KilnIRModule *
kiln_ir_module_parse_alone(const char *text, size_t length, const char *name, GError **error)
{
    return parse_module(text, length, name, true, error);
}
