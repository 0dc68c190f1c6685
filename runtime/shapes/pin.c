/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers for open dims of programs that have no graph to infer the others from. */
#include "graph/binding.h"
#include "graph/dim.h"
#include "graph/type.h"
#include "runtime/model.h"
#include "runtime/program.h"
#include "runtime/shapes/dims.h"
#include "runtime/specialise.h"

/* A name stands for one number wherever it occurs. */
static gboolean
note_number(KilnDimBinding *names, const char *name, int64_t number, const char *input,
            GError **error)
{
    int64_t known;
    if (!kiln_dim_binding_lookup(names, name, &known))
        names->names[names->n++] = (KilnBoundName){ name, number };
    else if (known != number)
        return kiln_throw(error, KILN_ERROR_SHAPE,
                          "input %s: dim %s: expected one number, found %" G_GINT64_FORMAT
                          " and %" G_GINT64_FORMAT,
                          input, name, known, number);
    return TRUE;
}

static gboolean
note_numbers(const KilnProgram *program, const KilnBinding *bindings, KilnDimBinding *names,
             GError **error)
{
    for (unsigned i = 0; i < program->inputs.n; i++) {
        const KilnType *type = &program->inputs.types[i];
        const char *input = program->inputs.info[i].name;
        if (bindings[i].rank < 0)
            continue;
        if (!kiln_binding_may_fit(&bindings[i], type))
            return kiln_binding_throw(&bindings[i], input, type, error);
        if (!kiln_dims_check(type, input, &bindings[i], error))
            return FALSE;
        for (int d = 0; d < type->rank; d++) {
            const char *name = bindings[i].dims[d] < 0 ? NULL : kiln_type_dim_name(type, d);
            if (name && !note_number(names, name, bindings[i].dims[d], input, error))
                return FALSE;
        }
    }
    return TRUE;
}

/* Dims whose names all have numbers become numbers. */
static void
fill(KilnInfoList *list, const KilnDimBinding *names)
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
    g_autofree KilnBoundName *numbers =
        g_new0(KilnBoundName, (gsize)program->inputs.n * KILN_MAX_RANK + 1);
    KilnDimBinding names = { 0, numbers };
    if (!note_numbers(program, bindings, &names, error)) {
        kiln_prefix_error(error, "%s: ", program->model->name);
        return FALSE;
    }
    fill(&program->inputs, &names);
    fill(&program->outputs, &names);
    return check_rest(program, bindings, error);
}
