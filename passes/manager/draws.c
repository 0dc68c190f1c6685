/* SPDX-License-Identifier: Apache-2.0 */
#include "passes/manager/draws.h"

#include "graph/module/folding.h"
#include "ir/open.h"
#include "ir/target.h"

/* Naive kernels take a second for one billion operations, and a check runs many times. */
enum {
    MOST_ELEMENTS = 1 << 21,   /* of all values of a run */
    MOST_OPERATIONS = 1 << 28, /* of a run, about */
    LEAST_TIMES = 4,           /* but so many times the elements of the least run are always fine */
    COARSE = 32,               /* what many models want their extents to be multiples of */
    PICTURE = 224,             /* many were written down for such pictures, and take no others */
    LEAST_PRIME = 3,
};

#define MANY (INT64_C(1) << 40) /* elements: more are not told apart */

/* --- sizes --- */

static int64_t
elements_at(const KilnType *type, const KilnDimBinding *binding)
{
    int64_t elements = 1, number;
    for (int d = 0; d < type->rank; d++) {
        const KilnDim *open = type->open[d];
        if (!open ||
            !kiln_dim_evaluate(open, kiln_dim_binding_lookup, (void *)binding, &number, NULL))
            number = MAX(type->dims[d], 1); /* a dim that is not known counts as 1 */
        number = MAX(number, 0);
        if (__builtin_mul_overflow(elements, number, &elements) || elements > MANY)
            return MANY;
    }
    return elements;
}

/* Types without open dims count nothing: no draw makes them smaller. */
static int64_t
all_elements_at(const KilnOpenNames *self, const KilnDimBinding *binding)
{
    int64_t elements = 0;
    for (guint i = 0; i < self->types->len; i++) {
        const KilnType *type = g_ptr_array_index(self->types, i);
        elements += kiln_type_is_open(type) ? elements_at(type, binding) : 0;
    }
    return elements;
}

/* --- numbers --- */

/* The number from @number on that the facts of @name allow, else the greatest one. */
static int64_t
fitting(const KilnDim *name, int64_t number)
{
    KilnDimFacts facts = { .lo = 1, .hi = KILN_DIM_MOST, .divisor = 1 };
    kiln_dim_facts(name, &facts);
    int64_t at = MIN(MAX(number, facts.lo), facts.hi);
    int64_t rest = at % facts.divisor;
    if (rest && at - rest + facts.divisor <= facts.hi)
        return at - rest + facts.divisor;
    return at - rest;
}

static int64_t
hint_of(const KilnOpenNames *self, const KilnDim *name)
{
    int64_t number;
    bool stands = self->stands &&
                  kiln_dim_binding_lookup((void *)self->stands, kiln_dim_as_name(name), &number);
    return stands ? number : kiln_dim_hint(name);
}

/* @operations are those with the hints. */
static void
set_most(KilnOpenNames *self, double operations)
{
    guint n = self->names->len;
    g_autofree KilnBoundName *bound = g_new0(KilnBoundName, n + 1);
    const KilnDimBinding binding = { n, bound };
    for (guint i = 0; i < n; i++)
        bound[i] = (KilnBoundName){ kiln_dim_as_name(g_ptr_array_index(self->names, i)),
                                    hint_of(self, g_ptr_array_index(self->names, i)) };
    double elements = (double)all_elements_at(self, &binding), most = MOST_ELEMENTS;
    if (operations > 0)
        most = MIN(most, MOST_OPERATIONS * (elements / operations));
    for (guint i = 0; i < n; i++)
        bound[i].number = fitting(g_ptr_array_index(self->names, i), 1);
    self->likely = (int64_t)most;
    self->most = MAX(self->likely, LEAST_TIMES * all_elements_at(self, &binding));
}

/* --- names --- */

static KilnOpenNames *
names_new(void)
{
    KilnOpenNames *self = g_new0(KilnOpenNames, 1);
    self->names = g_ptr_array_new();
    self->types = g_ptr_array_new();
    return self;
}

void
kiln_open_names_free(KilnOpenNames *names)
{
    if (!names)
        return;
    g_ptr_array_unref(names->names);
    g_ptr_array_unref(names->types);
    g_free(names);
}

/* A KilnDimReplace that replaces nothing: it sees the names. */
static const KilnDim *
add_name(void *data, const KilnDim *name)
{
    KilnOpenNames *self = data;
    if (!g_ptr_array_find(self->names, name, NULL))
        g_ptr_array_add(self->names, (gpointer)name);
    return name;
}

static void
add_input(KilnOpenNames *self, const KilnType *type)
{
    g_ptr_array_add(self->types, (gpointer)type);
    for (int d = 0; d < type->rank; d++) {
        const KilnDim *open = type->open[d];
        if (open)
            kiln_dim_replace(kiln_dim_table_of(open), open, add_name, self);
    }
}

KilnOpenNames *
kiln_open_names_of_graph(const KilnFunction *function)
{
    const KilnModule *module = function->module;
    bool whole = module->folding && function == kiln_module_entry(module);
    const GPtrArray *inputs = whole ? kiln_module_inputs(module) : function->arguments;
    KilnOpenNames *self = names_new();
    for (guint i = 0; i < inputs->len; i++)
        add_input(self, &((const KilnArgument *)g_ptr_array_index(inputs, i))->value.type);
    double operations = 0;
    kiln_foreach_node (node, function) {
        operations += (double)kiln_node_cost(node).flops;
        for (uint32_t r = 0; r < node->n_results; r++)
            g_ptr_array_add(self->types, &node->results[r].type);
    }
    set_most(self, operations);
    return self;
}

KilnOpenNames *
kiln_open_names_of_ir(const KilnIRFunction *function)
{
    KilnOpenNames *self = names_new();
    self->stands = kiln_open_binding(function);
    for (uint32_t i = 0; self->stands && i < self->stands->n; i++)
        g_ptr_array_add(self->names, (gpointer)kiln_dim_name(function->module->dims,
                                                             self->stands->names[i].name));
    for (guint i = 0; i < function->buffers->len; i++) {
        KilnBuffer *buffer = g_ptr_array_index(function->buffers, i);
        if (buffer && buffer->kind != KILN_BUFFER_WEIGHT && buffer->kind != KILN_BUFFER_VIEW)
            g_ptr_array_add(self->types, &buffer->type);
    }
    double operations = 0;
    kiln_foreach_instr (instr, function)
        operations += (double)kiln_instr_cost(instr).flops;
    set_most(self, operations);
    return self;
}

/* --- draws --- */

/* Halves numbers until the run is small enough. The first name is the batch in most models. It is
 * halved first, so that the other numbers stay near their hints. */
static void
lower(const KilnOpenNames *self, int64_t least, KilnDimBinding *binding)
{
    while (all_elements_at(self, binding) > self->likely) {
        uint32_t biggest = binding->n;
        for (uint32_t i = 0; i < binding->n; i++) {
            int64_t number = binding->names[i].number;
            int64_t half = fitting(g_ptr_array_index(self->names, i), number / 2);
            if (half >= number || ((i || binding->n == 1) && half < least))
                continue;
            if (biggest == binding->n || (biggest && number > binding->names[biggest].number))
                biggest = i;
        }
        if (biggest == binding->n)
            return;
        binding->names[biggest].number =
            fitting(g_ptr_array_index(self->names, biggest), binding->names[biggest].number / 2);
    }
}

static bool
draw_hints(const KilnOpenNames *self, unsigned attempt, KilnDimBinding *out)
{
    for (uint32_t i = 0; i < out->n; i++) {
        const KilnDim *name = g_ptr_array_index(self->names, i);
        int64_t hint = hint_of(self, name);
        if (attempt && (i || out->n == 1))
            hint = attempt == 1 ? (hint + COARSE - 1) / COARSE * COARSE : PICTURE;
        out->names[i].number = fitting(name, hint);
    }
    static const int64_t least[] = { 1, COARSE, PICTURE };
    if (attempt < G_N_ELEMENTS(least))
        lower(self, least[attempt], out);
    return attempt < G_N_ELEMENTS(least);
}

/* Powers of two, because some models need a few rows of a picture. The batch stays 1 at first. */
static bool
draw_ones(const KilnOpenNames *self, unsigned attempt, KilnDimBinding *out)
{
    enum {
        SIZES = 7,
    };
    for (uint32_t i = 0; i < out->n; i++) {
        bool small = out->n > 1 && i == 0 && attempt < SIZES;
        out->names[i].number =
            fitting(g_ptr_array_index(self->names, i), small ? 1 : (int64_t)1 << attempt % SIZES);
    }
    return attempt < (out->n > 1 ? 2 * SIZES : SIZES);
}

static int64_t
next_prime(int64_t from)
{
    for (int64_t by = 2; by * by <= from; by++) {
        if (from % by == 0)
            return next_prime(from + 1);
    }
    return from;
}

/* The attempts in order. Different primes tell the names apart. Equal primes suit models whose
 * names must be equal. Multiples of 8 and of 32 suit models that halve their extents. */
static const struct {
    int64_t from;  /* the first number */
    int64_t scale; /* of the names behind the first one; 0: primes */
    bool same;
} primes[] = {
    { LEAST_PRIME, 0, false }, { LEAST_PRIME, 0, true },       { 11, 0, false },
    { LEAST_PRIME, 8, false }, { LEAST_PRIME, COARSE, false }, { LEAST_PRIME, COARSE, true },
};

static bool
draw_primes(const KilnOpenNames *self, unsigned attempt, KilnDimBinding *out)
{
    if (attempt >= G_N_ELEMENTS(primes))
        return false;
    const int64_t scale = primes[attempt].scale;
    int64_t prime = primes[attempt].from;
    for (uint32_t i = 0; i < out->n; i++) {
        int64_t number = prime;
        if (scale && i)
            number = primes[attempt].same ? scale : scale * i;
        out->names[i].number = fitting(g_ptr_array_index(self->names, i), number);
        if (!primes[attempt].same)
            prime = next_prime(prime + 1);
    }
    return true;
}

static bool
draw_zeros(const KilnOpenNames *self, unsigned attempt, KilnDimBinding *out)
{
    bool any = false;
    if (!draw_primes(self, attempt, out))
        return false;
    for (uint32_t i = 0; i < out->n; i++) {
        KilnDimFacts facts;
        if (!kiln_dim_facts(g_ptr_array_index(self->names, i), &facts) || facts.lo > 0)
            continue;
        out->names[i].number = 0;
        any = true;
    }
    return any;
}

/* Each writes attempt number @attempt of a kind, and returns false where there is none. */
static bool (*const kinds[])(const KilnOpenNames *self, unsigned attempt,
                             KilnDimBinding *out) = { draw_hints, draw_ones, draw_primes,
                                                      draw_zeros };

/* --- running --- */

typedef struct {
    const KilnOpenNames *names;
    KilnDimBinding binding; /* the one at hand */
    GHashTable *tried;      /* text of a binding → whether it ran; looked up */
    unsigned n_ran;
    char *first; /* refusal */
    KilnRunAtFn run;
    void *data;
    KilnDrawCount *count;
} Draws;

char *
kiln_binding_to_string(const KilnDimBinding *binding)
{
    GString *text = g_string_new(NULL);
    for (uint32_t i = 0; i < binding->n; i++)
        g_string_append_printf(text, "%s%s=%" G_GINT64_FORMAT, i ? ", " : "",
                               binding->names[i].name, binding->names[i].number);
    return g_string_free(text, FALSE);
}

void
kiln_draw_count_clear(KilnDrawCount *count)
{
    g_clear_pointer(&count->last, g_free);
}

static bool
is_about_numbers(const Draws *draws, const GError *why)
{
    return why->domain == KILN_ERROR && why->code != KILN_ERROR_LIMIT &&
           why->code != KILN_ERROR_CANCELLED &&
           (why->code != KILN_ERROR_UNSUPPORTED || draws->n_ran > 0);
}

static void
note_refusal(Draws *draws, const char *at, const char *why)
{
    KilnDrawCount *count = draws->count;
    count->refused++;
    g_free(count->last);
    count->last = g_strdup_printf("%s: %s", at, why);
    if (!draws->first)
        draws->first = g_strdup(count->last);
}

/* *@out_ran: it runs with the numbers at hand. */
static gboolean
try_once(Draws *draws, bool *out_ran, GError **error)
{
    gpointer ran;
    g_autoptr(GError) why = NULL;
    g_autofree char *text = kiln_binding_to_string(&draws->binding);
    if (g_hash_table_lookup_extended(draws->tried, text, NULL, &ran)) {
        *out_ran = GPOINTER_TO_INT(ran);
        return TRUE;
    }
    if (all_elements_at(draws->names, &draws->binding) > draws->names->most)
        note_refusal(draws, text, "the values have too many elements");
    else if (draws->run(&draws->binding, draws->data, &why))
        *out_ran = true;
    else if (is_about_numbers(draws, why))
        note_refusal(draws, text, why->message);
    draws->n_ran += *out_ran;
    g_hash_table_insert(draws->tried, g_strdup(text), GINT_TO_POINTER(*out_ran));
    if (!why || is_about_numbers(draws, why))
        return TRUE;
    g_propagate_error(error, g_steal_pointer(&why));
    return FALSE;
}

static gboolean
try_all(Draws *draws, GError **error)
{
    for (size_t k = 0; k < G_N_ELEMENTS(kinds); k++) {
        bool ran = false;
        for (unsigned attempt = 0; !ran && kinds[k](draws->names, attempt, &draws->binding);
             attempt++) {
            if (!try_once(draws, &ran, error))
                return FALSE;
        }
    }
    return draws->n_ran > 0 ||
           kiln_throw(error, KILN_ERROR_SHAPE,
                      "expected numbers of open dims that it takes, found none in %u draws; the "
                      "first was %s",
                      draws->count->refused, draws->first);
}

gboolean
kiln_run_at_draws(const KilnOpenNames *names, KilnRunAtFn run, void *data, KilnDrawCount *count,
                  GError **error)
{
    guint n = names->names->len;
    g_autofree KilnBoundName *bound = g_new0(KilnBoundName, n + 1);
    for (guint i = 0; i < n; i++)
        bound[i].name = kiln_dim_as_name(g_ptr_array_index(names->names, i));
    Draws draws = {
        .names = names, .binding = { n, bound }, .run = run, .data = data, .count = count
    };
    *count = (KilnDrawCount){ 0, NULL };
    if (!n)
        return run(&draws.binding, data, error);
    draws.tried = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    gboolean good = try_all(&draws, error);
    g_hash_table_unref(draws.tried);
    g_free(draws.first);
    return good;
}
