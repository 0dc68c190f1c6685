/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/shapes/dims.h"

#include "graph/dim.h"
#include "graph/module.h"
#include "graph/module/folding.h"
#include "graph/module/move_dims.h"
#include "kiln.h"
#include "runtime/kiln-shapes.h"

#include <string.h>

/* --- facts --- */

/* True if somebody stated bounds or a divisor of @dim, which is a name. */
static bool
is_stated(const KilnDim *dim, KilnDimFacts *out)
{
    return kiln_dim_facts(dim, out) &&
           (out->lo != 1 || out->hi != KILN_DIM_MOST || out->divisor != 1);
}

enum {
    STATED_MOST = G_MAXINT32, /* of what callers state */
    LEAST_UNSTATED = -1       /* a lower bound that nobody stated: 1 in the end */
};

char *
kiln_dim_facts_text(const KilnDimFacts *facts)
{
    g_autofree char *bounds =
        g_strdup_printf("%" G_GINT64_FORMAT "..%" G_GINT64_FORMAT, facts->lo, facts->hi);
    return facts->divisor == 1 ? g_steal_pointer(&bounds)
                               : g_strdup_printf("a multiple of %" G_GINT64_FORMAT " in %s",
                                                 facts->divisor, bounds);
}

gboolean
kiln_dims_check(const KilnType *type, const char *input, const KilnBinding *binding, GError **error)
{
    KilnDimFacts facts;
    for (int d = 0; d < type->rank && d < binding->rank; d++) {
        int64_t number = binding->dims[d];
        if (number < 0 || !is_stated(type->open[d], &facts) ||
            (number >= facts.lo && number <= facts.hi && number % facts.divisor == 0))
            continue;
        g_autofree char *expected = kiln_dim_facts_text(&facts);
        return kiln_throw(error, KILN_ERROR_SHAPE,
                          "input %s: dim %s: expected %s, found %" G_GINT64_FORMAT, input,
                          kiln_dim_as_name(type->open[d]), expected, number);
    }
    return TRUE;
}

/* --- statements --- */

/* A name of the new model. */
typedef struct {
    const char *text;
    KilnDimFacts facts;
    const char *hinted; /* who stated the hint */
} Name;

/* A name of the old model, and what it becomes. */
typedef struct {
    const char *old;
    const char *text; /* that somebody gave it; NULL: nobody did */
} Rename;

typedef struct {
    const KilnModule *from;
    KilnModule *to;
    KilnDimTable *table;
    GArray *renames; /* Rename: the names of the inputs, in order */
    GArray *names;   /* Name */
} Statements;

static const KilnDimFacts default_facts = { .lo = LEAST_UNSTATED,
                                            .hi = KILN_DIM_MOST,
                                            .divisor = 1 };

/* @facts with the lower bound that holds where nobody stated one. */
static KilnDimFacts
resolved(const KilnDimFacts *facts)
{
    KilnDimFacts out = *facts;
    if (out.lo == LEAST_UNSTATED)
        out.lo = 1;
    return out;
}

static char *
text_of_facts(const KilnDimFacts *facts)
{
    const KilnDimFacts all = resolved(facts);
    return kiln_dim_facts_text(&all);
}

static Rename *
find_rename(const Statements *self, const char *old)
{
    for (guint i = 0; i < self->renames->len; i++) {
        Rename *rename = &g_array_index(self->renames, Rename, i);
        if (strcmp(rename->old, old) == 0)
            return rename;
    }
    return NULL;
}

static const char *
text_of(const Statements *self, const char *old)
{
    const Rename *rename = find_rename(self, old);
    return rename && rename->text ? rename->text : old;
}

static Name *
find_name(const Statements *self, const char *text)
{
    for (guint i = 0; i < self->names->len; i++) {
        Name *name = &g_array_index(self->names, Name, i);
        if (strcmp(name->text, text) == 0)
            return name;
    }
    return NULL;
}

static Name *
add_name(Statements *self, const char *text)
{
    Name *found = find_name(self, text), name = { text, default_facts, NULL };
    if (found)
        return found;
    g_array_append_val(self->names, name);
    return &g_array_index(self->names, Name, self->names->len - 1);
}

/* KILN_DIM_MOST is no bound that somebody stated. */
static int64_t
least_bound(int64_t a, int64_t b)
{
    return a == KILN_DIM_MOST ? b : b == KILN_DIM_MOST ? a : MIN(a, b);
}

/* @facts become what both say; the message names both sides where no number is left. */
static gboolean
narrow(const char *name, KilnDimFacts *facts, const KilnDimFacts *more, GError **error)
{
    int64_t rest = more->divisor, both = facts->divisor, divisor;
    while (rest) {
        int64_t next = both % rest;
        both = rest;
        rest = next;
    }
    KilnDimFacts narrowed = { MAX(facts->lo, more->lo), least_bound(facts->hi, more->hi), 1,
                              facts->hint };
    bool fits = !__builtin_mul_overflow(facts->divisor / both, more->divisor, &divisor) &&
                narrowed.hi / divisor * divisor >= resolved(&narrowed).lo;
    if (fits) {
        narrowed.divisor = divisor;
        *facts = narrowed;
        return TRUE;
    }
    g_autofree char *first = text_of_facts(facts), *second = text_of_facts(more);
    return kiln_throw(error, KILN_ERROR_USAGE, "dim %s: expected one range, found %s and %s", name,
                      first, second);
}

/* Numbers as callers give them, where 0 states nothing. */
static gboolean
read_facts(const KilnDimStatement *statement, const char *name, KilnDimFacts *out, GError **error)
{
    const KilnDimRange *range = &statement->facts;
    *out = (KilnDimFacts){ range->least == KILN_LEAST_ZERO ? 0
                           : range->least                  ? range->least
                                                           : LEAST_UNSTATED,
                           range->most ? range->most : KILN_DIM_MOST,
                           range->multiple ? range->multiple : 1, range->hint };
    const KilnDimFacts all = resolved(out);
    if (range->least < KILN_LEAST_ZERO || out->hi < all.lo || out->hi > STATED_MOST)
        return kiln_throw(error, KILN_ERROR_USAGE,
                          "dim %s: expected bounds of 0 to %d in order, found %" G_GINT64_FORMAT
                          "..%" G_GINT64_FORMAT,
                          name, (int)STATED_MOST, range->least < 0 ? range->least : all.lo,
                          out->hi);
    if (out->divisor < 1 || out->divisor > STATED_MOST)
        return kiln_throw(error, KILN_ERROR_USAGE,
                          "dim %s: expected a divisor of 1 to %d, found %" G_GINT64_FORMAT, name,
                          (int)STATED_MOST, out->divisor);
    if (out->hi / out->divisor * out->divisor >= all.lo)
        return TRUE;
    g_autofree char *text = kiln_dim_facts_text(&all);
    return kiln_throw(error, KILN_ERROR_USAGE, "dim %s: expected %s, which no number is", name,
                      text);
}

static gboolean
state(Statements *self, const KilnDimStatement *statement, const char *text, GError **error)
{
    Name *name = add_name(self, text);
    KilnDimFacts more;
    if (!read_facts(statement, text, &more, error) || !narrow(text, &name->facts, &more, error))
        return FALSE;
    if (!more.hint)
        return TRUE;
    if (name->hinted && name->facts.hint != more.hint)
        return kiln_throw(error, KILN_ERROR_USAGE,
                          "dim %s: expected one hint, found %" G_GINT64_FORMAT
                          " and %" G_GINT64_FORMAT,
                          text, name->facts.hint, more.hint);
    name->facts.hint = more.hint;
    name->hinted = statement->what;
    return TRUE;
}

/* --- dims that are meant --- */

static const KilnArgument *
find_input(const Statements *self, const char *input)
{
    const GPtrArray *inputs = kiln_module_inputs(self->from);
    for (guint i = 0; i < inputs->len; i++) {
        const KilnArgument *argument = g_ptr_array_index(inputs, i);
        if (strcmp(argument->value.name, input) == 0)
            return argument;
    }
    return NULL;
}

/* The dim must be one that the model leaves open. */
static gboolean
check_dim(const KilnDimStatement *statement, const KilnType *type, GError **error)
{
    const char *input = statement->input;
    int d = statement->dim;
    if (type->rank != statement->rank) {
        g_autofree char *text = kiln_type_to_string(type);
        return kiln_throw(error, KILN_ERROR_SHAPE, "input %s: expected %s, found rank %d", input,
                          text, statement->rank);
    }
    if (type->dims[d] >= 0)
        return kiln_throw(error, KILN_ERROR_SHAPE,
                          "input %s: dim %d: expected %" G_GINT64_FORMAT
                          ", as the model says, found a name or a range",
                          input, d, type->dims[d]);
    if (kiln_type_dim_name(type, d))
        return TRUE;
    g_autofree char *text = kiln_dim_to_string(type->open[d]);
    return kiln_throw(error, KILN_ERROR_SHAPE,
                      "input %s: dim %d: expected a dim that has a name, found %s", input, d, text);
}

static gboolean
rename_dim(Statements *self, const KilnDimStatement *statement, GError **error)
{
    const KilnArgument *argument = find_input(self, statement->input);
    if (!argument)
        return kiln_throw(error, KILN_ERROR_USAGE, "the model has no input %s", statement->input);
    const KilnType *type = &argument->value.type;
    if (!check_dim(statement, type, error))
        return FALSE;
    Rename *rename = find_rename(self, kiln_type_dim_name(type, statement->dim));
    if (!statement->name)
        return TRUE;
    if (rename->text && strcmp(rename->text, statement->name) != 0)
        return kiln_throw(error, KILN_ERROR_USAGE, "dim %s: expected one name, found %s and %s",
                          rename->old, rename->text, statement->name);
    rename->text = statement->name;
    return TRUE;
}

static gboolean
throw_no_dim(const Statements *self, const char *name, GError **error)
{
    g_autoptr(GString) known = g_string_new(NULL);
    for (guint i = 0; i < self->names->len; i++)
        g_string_append_printf(known, "%s%s", i ? ", " : "",
                               g_array_index(self->names, Name, i).text);
    return kiln_throw(error, KILN_ERROR_USAGE, "expected an open dim (%s), found %s",
                      known->len ? known->str : "there is none", name ? name : "NULL");
}

static gboolean
state_dim(Statements *self, const KilnDimStatement *statement, GError **error)
{
    if (!statement->input)
        return statement->name && find_name(self, statement->name)
                   ? state(self, statement, statement->name, error)
                   : throw_no_dim(self, statement->name, error);
    const KilnType *type = &find_input(self, statement->input)->value.type;
    return state(self, statement, text_of(self, kiln_type_dim_name(type, statement->dim)), error);
}

/* --- the new model --- */

static void
list_renames(Statements *self)
{
    const GPtrArray *inputs = kiln_module_inputs(self->from);
    for (guint i = 0; i < inputs->len; i++) {
        const KilnType *type = &((const KilnArgument *)g_ptr_array_index(inputs, i))->value.type;
        for (int d = 0; d < type->rank; d++) {
            Rename rename = { kiln_type_dim_name(type, d), NULL };
            if (rename.old && !find_rename(self, rename.old))
                g_array_append_val(self->renames, rename);
        }
    }
}

/* What the model says of its names holds for the new ones, too. */
static gboolean
list_names(Statements *self, GError **error)
{
    for (guint i = 0; i < self->renames->len; i++) {
        const char *old = g_array_index(self->renames, Rename, i).old;
        Name *name = add_name(self, text_of(self, old));
        KilnDimFacts facts;
        if (!is_stated(kiln_dim_name(self->from->dims, old), &facts))
            facts.lo = LEAST_UNSTATED;
        if (!narrow(name->text, &name->facts, &facts, error))
            return FALSE;
        name->facts.hint = MAX(name->facts.hint, facts.hint);
    }
    return TRUE;
}

static gboolean
state_all(Statements *self, GError **error)
{
    for (guint i = 0; i < self->names->len; i++) {
        Name *name = &g_array_index(self->names, Name, i);
        KilnDimFacts *facts = &name->facts;
        *facts = resolved(facts);
        if (name->hinted && (facts->hint < facts->lo || facts->hint > facts->hi)) {
            g_autofree char *expected = kiln_dim_facts_text(facts);
            return kiln_throw(error, KILN_ERROR_USAGE,
                              "%s: dim %s: expected a hint in %s, found %" G_GINT64_FORMAT,
                              name->hinted, name->text, expected, facts->hint);
        }
        facts->hi -= facts->hi % facts->divisor;
        facts->lo += (facts->divisor - facts->lo % facts->divisor) % facts->divisor;
        bool open = facts->lo < facts->hi; /* else it becomes a number */
        if (open && !kiln_dim_state(self->table, name->text, facts, error))
            return FALSE;
    }
    return TRUE;
}

/* A KilnDimReplace. Names that are not of inputs keep what is known of them. */
static const KilnDim *
replace_name(void *data, const KilnDim *old)
{
    const Statements *self = data;
    const char *text = text_of(self, kiln_dim_as_name(old));
    const Name *name = find_name(self, text);
    KilnDimFacts facts;
    if (name && name->facts.lo == name->facts.hi)
        return kiln_dim_number(self->table, name->facts.lo);
    if (!name && kiln_dim_facts(old, &facts))
        kiln_dim_state(self->table, text, &facts, NULL);
    return kiln_dim_name(self->table, text);
}

static gboolean
apply(Statements *self, const KilnDimStatement *statements, unsigned n, GError **error)
{
    list_renames(self);
    for (unsigned i = 0; i < n; i++) {
        if (statements[i].input && !rename_dim(self, &statements[i], error)) {
            kiln_prefix_error(error, "%s: ", statements[i].what);
            return FALSE;
        }
    }
    if (!list_names(self, error))
        return FALSE;
    for (unsigned i = 0; i < n; i++) {
        if (!state_dim(self, &statements[i], error)) {
            kiln_prefix_error(error, "%s: ", statements[i].what);
            return FALSE;
        }
    }
    return state_all(self, error);
}

static gboolean
make_module(const KilnModel *model, const KilnDimStatement *statements, unsigned n,
            KilnModule **out, GError **error)
{
    Statements self = { .from = model->module,
                        .table = kiln_dim_table_new(),
                        .renames = g_array_new(FALSE, FALSE, sizeof(Rename)),
                        .names = g_array_new(FALSE, FALSE, sizeof(Name)) };
    gboolean good = apply(&self, statements, n, error);
    if (good) {
        *out = kiln_module_clone(model->module);
        kiln_module_move_dims(*out, self.table, replace_name, &self);
    }
    g_array_unref(self.renames);
    g_array_unref(self.names);
    kiln_dim_table_unref(self.table);
    return good;
}

static bool
is_open(const KilnModel *model)
{
    bool open = false;
    for (unsigned i = 0; i < model->inputs.n; i++)
        open |= !kiln_type_is_static(&model->inputs.types[i]);
    return open;
}

KilnModel *
kiln_model_with_dims(KilnModel *model, const KilnDimStatement *statements, unsigned n,
                     GError **error)
{
    KilnModule *module = NULL;
    if (!n)
        return kiln_model_ref(model);
    if (model->ir_text)
        return kiln_throw_null(error, KILN_ERROR_USAGE, "%s: %s: the model is at the ir level, %s",
                               statements[0].what, model->name,
                               is_open(model) ? "where dims of inputs take numbers alone"
                                              : "its shapes are fixed");
    return make_module(model, statements, n, &module, error)
               ? kiln_model_beside(model, module, error)
               : NULL;
}

/* --- dims of 0 --- */

typedef struct {
    KilnDimTable *table;
    const GPtrArray *names;
} Zeros;

/* A KilnDimReplace. Types that rest on the old facts are inferred anew when shapes are bound. */
static const KilnDim *
with_zeros(void *data, const KilnDim *old)
{
    const Zeros *zeros = data;
    const char *text = kiln_dim_as_name(old);
    KilnDimFacts facts;
    if (!kiln_dim_facts(old, &facts))
        return NULL;
    if (g_ptr_array_find_with_equal_func((GPtrArray *)zeros->names, text, g_str_equal, NULL))
        facts.lo = 0;
    kiln_dim_state(zeros->table, text, &facts, NULL);
    return kiln_dim_name(zeros->table, text);
}

KilnModel *
kiln_model_with_zeros(KilnModel *model, const GPtrArray *names, GError **error)
{
    g_autoptr(KilnDimTable) table = kiln_dim_table_new();
    Zeros zeros = { table, names };
    KilnModule *module = kiln_module_clone(model->module);
    kiln_module_move_dims(module, table, with_zeros, &zeros);
    return kiln_model_beside(model, module, error);
}
