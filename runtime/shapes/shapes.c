/* SPDX-License-Identifier: Apache-2.0 */
/* Shapes that callers of a program state: what is made for them ahead of a run, and its memory. */
#include "runtime/program.h"

#include "graph/binding.h"
#include "ir/plan.h"
#include "runtime/bind.h"
#include "runtime/scope.h"
#include "runtime/shapes/dims.h"
#include "runtime/specialise.h"

#include <string.h>

gboolean
kiln_program_read_shapes(const KilnProgram *program, const KilnShape *shapes, unsigned n_shapes,
                         KilnBinding *bindings, GError **error)
{
    for (unsigned i = 0; i < program->model->inputs.n; i++)
        bindings[i].rank = KILN_RANK_UNKNOWN;
    for (unsigned s = 0; s < n_shapes; s++) {
        const KilnShape *shape = &shapes[s];
        int i = kiln_program_input_named(program, "shape", shape->input, error);
        if (i < 0)
            return FALSE;
        if (shape->rank < 0 || shape->rank > KILN_MAX_RANK)
            return kiln_throw(error, KILN_ERROR_USAGE,
                              "shape of %s: expected rank 0 to %d, found %d", shape->input,
                              KILN_MAX_RANK, shape->rank);
        if (bindings[i].rank != KILN_RANK_UNKNOWN)
            return kiln_throw(error, KILN_ERROR_USAGE, "shape of %s: stated twice", shape->input);
        const KilnType *type = &program->model->inputs.types[i];
        bindings[i].rank = shape->rank;
        memcpy(bindings[i].dims, shape->dims, sizeof bindings[i].dims);
        for (int d = 0; d < shape->rank; d++) {
            if (shape->dims[d] < KILN_DIM_UNKNOWN)
                return kiln_binding_throw(&bindings[i], shape->input, type, error);
            if (shape->dims[d] < 0 && type->rank == shape->rank)
                bindings[i].dims[d] = type->dims[d];
        }
    }
    return TRUE;
}

/* --- numbers for all dims --- */

/* A number, and the input that it is of. */
typedef struct {
    KilnBoundName *names;
    const char **inputs;
    uint32_t n;
    bool most; /* upper bounds stand for names without a number; else hints */
} Numbers;

static bool
find_number(const Numbers *numbers, const char *name, uint32_t *out)
{
    for (uint32_t i = 0; i < numbers->n; i++) {
        if (strcmp(numbers->names[i].name, name) == 0) {
            *out = i;
            return true;
        }
    }
    return false;
}

static gboolean
add_number(Numbers *numbers, const char *name, int64_t number, const char *input, GError **error)
{
    uint32_t i;
    if (!find_number(numbers, name, &i)) {
        numbers->names[numbers->n] = (KilnBoundName){ name, number };
        numbers->inputs[numbers->n++] = input;
        return TRUE;
    }
    return numbers->names[i].number == number ||
           kiln_throw(error, KILN_ERROR_SHAPE,
                      "dim %s: expected one number, found %" G_GINT64_FORMAT
                      " (input %s) and %" G_GINT64_FORMAT " (input %s)",
                      name, numbers->names[i].number, numbers->inputs[i], number, input);
}

static gboolean
take_shape(Numbers *numbers, const KilnType *type, const char *input, const KilnBinding *binding,
           GError **error)
{
    if (binding->rank < 0)
        return TRUE;
    if (type->rank >= 0 && type->rank != binding->rank)
        return kiln_binding_throw(binding, input, type, error);
    for (int d = 0; d < type->rank; d++) {
        const char *name = kiln_type_dim_name(type, d);
        if (binding->dims[d] < 0)
            continue;
        if (type->dims[d] >= 0 && type->dims[d] != binding->dims[d])
            return kiln_binding_throw(binding, input, type, error);
        if (name && !add_number(numbers, name, binding->dims[d], input, error))
            return FALSE;
    }
    return TRUE;
}

/* A number for a name that no shape has. */
static gboolean
take_name(Numbers *numbers, const KilnDim *dim, const char *input, GError **error)
{
    const char *name = kiln_dim_as_name(dim);
    KilnDimFacts facts;
    uint32_t i;
    if (!name || find_number(numbers, name, &i))
        return TRUE;
    kiln_dim_facts(dim, &facts);
    if (numbers->most && facts.hi == KILN_DIM_MOST)
        return kiln_throw(error, KILN_ERROR_USAGE,
                          "input %s: dim %s: expected a number or an upper bound, found neither",
                          input, name);
    return add_number(numbers, name, numbers->most ? facts.hi : kiln_dim_hint(dim), input, error);
}

static gboolean
fill_binding(const Numbers *numbers, const KilnType *type, const char *input, KilnBinding *binding,
             GError **error)
{
    KilnDimBinding names = { numbers->n, numbers->names };
    if (binding->rank < 0) {
        if (type->rank < 0)
            return kiln_throw(error, KILN_ERROR_USAGE, "input %s: expected a shape, found none",
                              input);
        binding->rank = type->rank;
        memcpy(binding->dims, type->dims, sizeof binding->dims);
    }
    for (int d = 0; d < binding->rank; d++) {
        if (binding->dims[d] >= 0)
            continue;
        if (type->rank < 0 || !kiln_type_knows_dim(type, d))
            return kiln_throw(error, KILN_ERROR_USAGE,
                              "input %s: dim %d: expected a number, found none", input, d);
        binding->dims[d] = type->dims[d];
        if (type->open[d] && !kiln_dim_evaluate(type->open[d], kiln_dim_binding_lookup, &names,
                                                &binding->dims[d], error))
            return FALSE;
    }
    return kiln_binding_fits(binding, type) || kiln_binding_throw(binding, input, type, error);
}

static gboolean
fill_bindings(const KilnProgram *program, Numbers *numbers, KilnBinding *bindings, GError **error)
{
    const KilnInfoList *inputs = &program->inputs;
    for (unsigned i = 0; i < inputs->n; i++) {
        if (!take_shape(numbers, &inputs->types[i], inputs->info[i].name, &bindings[i], error))
            return FALSE;
    }
    for (unsigned i = 0; i < inputs->n; i++) {
        for (int d = 0; d < inputs->types[i].rank; d++) {
            if (!take_name(numbers, inputs->types[i].open[d], inputs->info[i].name, error))
                return FALSE;
        }
    }
    for (unsigned i = 0; i < inputs->n; i++) {
        if (!fill_binding(numbers, &inputs->types[i], inputs->info[i].name, &bindings[i], error))
            return FALSE;
        bindings[i].constness = program->constness[i];
        if (!program->open || !program->value_inputs[i])
            continue;
        if (!program->values[i])
            return kiln_throw(error, KILN_ERROR_USAGE,
                              "input %s: shapes depend on its value, which comes with a run",
                              inputs->info[i].name);
        bindings[i].data = g_bytes_get_data(program->values[i], NULL);
    }
    return TRUE;
}

/* One binding per input, all of whose dims have numbers. */
static KilnBinding *
bindings_for(const KilnProgram *program, const KilnShape *shapes, unsigned n_shapes, bool most,
             GError **error)
{
    unsigned n = program->inputs.n;
    g_autofree KilnBinding *bindings = g_new0(KilnBinding, (gsize)n + 1);
    g_autofree KilnBoundName *names = g_new0(KilnBoundName, (gsize)n * KILN_MAX_RANK + 1);
    g_autofree const char **inputs = g_new0(const char *, (gsize)n *KILN_MAX_RANK + 1);
    Numbers numbers = { names, inputs, 0, most };
    if (!kiln_program_read_shapes(program, shapes, n_shapes, bindings, error) ||
        !fill_bindings(program, &numbers, bindings, error))
        return NULL;
    return g_steal_pointer(&bindings);
}

/* --- programs without a graph --- */

/* Dims whose names all have numbers become numbers. */
static void
fill_list(KilnInfoList *list, const KilnDimBinding *names)
{
    unsigned n = list->n;
    g_autofree const char **texts = g_new0(const char *, n + 1);
    g_autofree KilnType *types = g_new0(KilnType, n + 1);
    for (unsigned i = 0; i < n; i++) {
        texts[i] = list->info[i].name;
        types[i] = list->types[i];
        for (int d = 0; d < types[i].rank; d++) {
            int64_t number;
            if (!types[i].open[d] || !kiln_dim_evaluate(types[i].open[d], kiln_dim_binding_lookup,
                                                        (void *)names, &number, NULL))
                continue;
            types[i].dims[d] = number;
            types[i].open[d] = NULL;
        }
    }
    kiln_info_list_clear(list);
    kiln_info_list_init(list, n, texts, types);
}

/* What is stated of a dim that is an expression is what the names make of it. */
static gboolean
check_rest(const KilnProgram *program, const KilnBinding *bindings, GError **error)
{
    for (unsigned i = 0; i < program->inputs.n; i++) {
        if (bindings[i].rank >= 0 && !kiln_binding_may_fit(&bindings[i], &program->inputs.types[i]))
            return kiln_binding_throw(&bindings[i], program->inputs.info[i].name,
                                      &program->inputs.types[i], error);
    }
    return TRUE;
}

gboolean
kiln_program_pin(KilnProgram *program, const KilnBinding *bindings, GError **error)
{
    const KilnInfoList *inputs = &program->inputs;
    gsize n = (gsize)inputs->n * KILN_MAX_RANK + 1;
    g_autofree KilnBoundName *names = g_new0(KilnBoundName, n);
    g_autofree const char **of = g_new0(const char *, n);
    Numbers numbers = { names, of, 0, false };
    for (unsigned i = 0; i < inputs->n; i++) {
        const char *name = inputs->info[i].name;
        if (!take_shape(&numbers, &inputs->types[i], name, &bindings[i], error) ||
            !kiln_dims_check(&inputs->types[i], name, &bindings[i], error))
            return FALSE;
    }
    const KilnDimBinding known = { numbers.n, numbers.names };
    fill_list(&program->inputs, &known);
    fill_list(&program->outputs, &known);
    return check_rest(program, bindings, error);
}

/* --- what is made for them --- */

/* A reference to the program's specialisation for the shapes. */
static KilnSpecialisation *
make_for(KilnProgram *program, const KilnShape *shapes, unsigned n_shapes, bool most,
         GError **error)
{
    G_GNUC_UNUSED g_auto(KilnRunScope) scope =
        kiln_run_scope_enter(program->parallel_for, program->pool);
    g_autofree KilnBinding *bindings = bindings_for(program, shapes, n_shapes, most, error);
    if (!bindings)
        return NULL;
    /* Made when the program was, and never replaced. */
    if (!program->open)
        return kiln_specialisation_ref(g_ptr_array_index(program->specialisations, 0));
    return kiln_program_specialise(program, bindings, NULL, error);
}

gboolean
kiln_program_prepare(KilnProgram *program, const KilnShape *shapes, unsigned n_shapes,
                     GError **error)
{
    g_autoptr(KilnSpecialisation) made = make_for(program, shapes, n_shapes, false, error);
    return made != NULL;
}

static int64_t
weight_bytes(const KilnSpecialisation *made)
{
    int64_t bytes = 0;
    for (uint32_t c = 0; c < made->n_calls; c++)
        bytes += made->calls[c].packed ? (int64_t)g_bytes_get_size(made->calls[c].packed) : 0;
    for (uint32_t i = 0; i < made->n_weights; i++)
        bytes += made->weights[i] ? (int64_t)g_bytes_get_size(made->weights[i]) : 0;
    for (uint32_t i = 0; i < made->n_states; i++)
        bytes += made->states[i] ? (int64_t)g_bytes_get_size(made->states[i]) : 0;
    return bytes;
}

/* An instance moves: its plan has places, and the bounds are those of its present sizes. */
static KilnMemoryReport
report_instance(const KilnProgram *program, const KilnSpecialisation *made)
{
    g_autoptr(KilnMemoryPlan) lives =
        kiln_liveness(made->function, program->target, program->threads);
    return (KilnMemoryReport){ .size = sizeof(KilnMemoryReport),
                               .sum = lives->sum,
                               .lb_node = lives->lb_node,
                               .lb_live = lives->lb_live,
                               .arena = made->arena_bytes,
                               .weights = weight_bytes(made),
                               .proven_optimal = made->arena_bytes == lives->lb_live };
}

void
kiln_specialisation_report(const KilnProgram *program, const KilnSpecialisation *made,
                           KilnMemoryReport *out)
{
    const KilnMemoryPlan *plan = made->plan;
    if (made->instance)
        *out = report_instance(program, made);
    else
        *out = (KilnMemoryReport){ sizeof *out,          plan->sum,    plan->lb_node,
                                   plan->lb_live,        plan->arena,  made->weight_bytes,
                                   plan->proven_optimal, plan->plan_ms };
}

gboolean
kiln_program_memory_for(KilnProgram *program, const KilnShape *shapes, unsigned n_shapes,
                        KilnMemoryReport *out, GError **error)
{
    g_autoptr(KilnSpecialisation) made = make_for(program, shapes, n_shapes, true, error);
    KilnMemoryReport report;
    if (!made)
        return FALSE;
    kiln_specialisation_report(program, made, &report);
    return kiln_memory_report_copy(&report, out, error);
}
