/* SPDX-License-Identifier: Apache-2.0 */
/* Parses what open functions state: the binding at which they stand, what must be equal, and
 * expressions in the place of numbers. */
#include "graph/binding.h"
#include "graph/dim/dim_defined.h"
#include "graph/text/lexer.h"
#include "ir/open.h"
#include "ir/text/parse_priv.h"

bool
kiln_ir_parse_number(KilnParser *parser, int64_t least, int64_t *number, const KilnDim **open)
{
    KilnToken at = parser->token;
    const KilnDim *dim = kiln_parse_dim(parser);
    if (!dim)
        return false;
    if (!kiln_dim_is_number(dim, number)) {
        *open = dim;
        return true;
    }
    return *number >= least || kiln_parse_throw_at(parser, &at, KILN_ERROR_PARSE,
                                                   "expected an integer from %" G_GINT64_FORMAT
                                                   " on, found %" G_GINT64_FORMAT,
                                                   least, *number);
}

/* `t=61, past=67` */
bool
kiln_ir_parse_dims(KilnIRParser *in)
{
    KilnParser *parser = &in->parser;
    g_autoptr(GArray) names = g_array_new(FALSE, FALSE, sizeof(KilnBoundName));
    if (in->function->open)
        return kiln_parse_throw(parser, "dims once");
    do {
        KilnBoundName bound = { kiln_parse_word(parser, "the name of a dim"), 0 };
        if (!bound.name || !kiln_parse_expect(parser, '=') ||
            !kiln_parse_i64(parser, 0, G_MAXINT64, &bound.number))
            return false;
        g_array_append_val(names, bound);
    } while (kiln_parse_accept(parser, ','));
    const KilnDimBinding binding = { names->len, (KilnBoundName *)(gpointer)names->data };
    kiln_open_begin(in->function, &binding);
    return true;
}

/* `"y": 4*floor(N/4) = N` */
bool
kiln_ir_parse_require(KilnIRParser *in)
{
    KilnParser *parser = &in->parser;
    KilnOpenRule rule = { .what =
                              kiln_parse_name(parser, KILN_TOKEN_STRING, "the name of a value") };
    if (!rule.what || !kiln_parse_expect(parser, ':') || !(rule.a = kiln_parse_dim(parser)) ||
        !kiln_parse_expect(parser, '=') || !(rule.b = kiln_parse_dim(parser)))
        return false;
    if (!in->function->open)
        return kiln_parse_throw(parser, "dims before what they require");
    g_array_append_val(in->function->open->rules, rule);
    return true;
}

/* `offset=16`, and `rows=4, pitch=40` behind it or alone; then `}`. */
bool
kiln_ir_parse_place(KilnParser *parser, KilnBuffer *place, KilnViewOpen *open)
{
    bool more = true;
    if (kiln_parse_accept_word(parser, "offset")) {
        if (!kiln_parse_expect(parser, '=') ||
            !kiln_ir_parse_number(parser, 0, &place->view_offset, &open->offset))
            return false;
        more = kiln_parse_accept(parser, ',');
    }
    if (more && (!kiln_parse_expect_word(parser, "rows") || !kiln_parse_expect(parser, '=') ||
                 !kiln_ir_parse_number(parser, 1, &place->view_rows, &open->rows) ||
                 !kiln_parse_expect(parser, ',') || !kiln_parse_expect_word(parser, "pitch") ||
                 !kiln_parse_expect(parser, '=') ||
                 !kiln_ir_parse_number(parser, 0, &place->view_pitch, &open->pitch)))
        return false;
    return kiln_parse_expect(parser, '}');
}

/* Names that @function defines hang on data, as they do where shapes are inferred: what they
 * require is checked in a run. */
static void
mark_defined(const KilnIRFunction *function)
{
    kiln_foreach_instr (instr, function) {
        const KilnInts *values =
            instr->kind == KILN_INSTR_define ? &kiln_instr_attrs(instr, define)->values : NULL;
        for (uint32_t i = 0; values && values->open && i < values->n; i++) {
            const char *name = kiln_dim_as_name(kiln_ints_open(*values, i));
            if (name)
                kiln_dim_defined(function->module->dims, name);
        }
    }
}

gboolean
kiln_ir_parse_stand(KilnIRFunction *function, GError **error)
{
    if (!function->open)
        return TRUE;
    mark_defined(function);
    uint64_t changed;
    g_autoptr(KilnOpenFields) fields = kiln_open_fields_new(function);
    return kiln_open_move(fields, function->open->binding, &changed, error);
}
