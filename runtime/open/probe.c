/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/open/probe.h"

#include "graph/binding.h"
#include "graph/dim.h"
#include "graph/kiln-types.h"
#include "graph/type.h"
#include "ir/ir.h"
#include "runtime/open/instance.h"
#include "runtime/specialise.h"

enum {
    FAR = 16 /* times the hint: the most where a name has no bound */
};

/* Numbers that names get, the likeliest first. */
typedef enum {
    AT_HINTS,
    AT_STANDING, /* where the function stands, which it surely takes */
    AT_LEAST,
    AT_MOST,
    N_PROBES
} Probe;

static int64_t
number_at(const KilnTemplate *origin, uint32_t n, Probe probe)
{
    const KilnBoundName *name = &origin->binding->names[n];
    const KilnDimFacts *facts = &origin->facts[n];
    int64_t hint = kiln_dim_hint(kiln_dim_name(origin->function->module->dims, name->name));
    int64_t most = facts->hi < KILN_DIM_MOST ? facts->hi : MIN(hint, KILN_DIM_MOST / FAR) * FAR;
    int64_t number = probe == AT_HINTS ? hint : probe == AT_MOST ? most : facts->lo;
    number = CLAMP(number, facts->lo, facts->hi);
    return probe == AT_STANDING ? name->number : number - number % facts->divisor;
}

/* False where an input has a dim that the numbers do not give. */
static bool
fill_bindings(const KilnTemplate *origin, const KilnDimBinding *numbers, KilnBinding *bindings)
{
    for (unsigned i = 0; i < origin->n_inputs; i++) {
        const KilnType *type = &origin->input_types[i];
        bindings[i].rank = type->rank;
        bindings[i].data = origin->values[i] ? g_bytes_get_data(origin->values[i], NULL) : NULL;
        for (int d = 0; d < type->rank; d++) {
            bindings[i].dims[d] = type->dims[d];
            if (type->open[d] && !kiln_dim_evaluate(type->open[d], kiln_dim_binding_lookup,
                                                    (void *)numbers, &bindings[i].dims[d], NULL))
                return false;
        }
    }
    return true;
}

static KilnSpecialisation *
instance_at(KilnTemplate *origin, const KilnBindOptions *options, Probe probe, GError **error)
{
    uint32_t n = origin->binding->n;
    g_autofree KilnBoundName *names = g_new0(KilnBoundName, (gsize)n + 1);
    g_autofree KilnBinding *bindings = g_new0(KilnBinding, (gsize)origin->n_inputs + 1);
    const KilnDimBinding numbers = { n, names };
    for (uint32_t i = 0; i < n; i++)
        names[i] = (KilnBoundName){ origin->binding->names[i].name, number_at(origin, i, probe) };
    return fill_bindings(origin, &numbers, bindings)
               ? kiln_instance_new(origin, options, bindings, error)
               : NULL;
}

static void
note_forms(const KilnSpecialisation *made, KilnPackedForm *forms)
{
    for (uint32_t c = 0; c < made->n_calls; c++) {
        const KilnBoundCall *call = &made->calls[c];
        KilnPackedForm *form = &forms[(gsize)c * KILN_MAX_FORMS];
        KilnPackedForm found = kiln_template_form(call);
        uint32_t f = 0;
        while (f < KILN_MAX_FORMS && form[f].packed &&
               !(form[f].kernel == found.kernel && form[f].form == found.form))
            f++;
        if (!call->packed || f == KILN_MAX_FORMS || form[f].packed)
            continue;
        found.packed = g_bytes_ref(call->packed);
        form[f] = found;
    }
}

void
kiln_probe_free(KilnPackedForm *forms, uint32_t n_calls)
{
    for (gsize i = 0; forms && i < (gsize)n_calls * KILN_MAX_FORMS; i++)
        g_clear_pointer(&forms[i].packed, g_bytes_unref);
    g_free(forms);
}

/* Numbers that the program does not take, such as a picture of one pixel, tell nothing. */
static bool
is_refused(const GError *error)
{
    return g_error_matches(error, KILN_ERROR, KILN_ERROR_SHAPE) ||
           g_error_matches(error, KILN_ERROR, KILN_ERROR_INVALID) ||
           g_error_matches(error, KILN_ERROR, KILN_ERROR_LIMIT);
}

KilnPackedForm *
kiln_probe_forms(KilnTemplate *origin, const KilnBindOptions *options, GError **error)
{
    KilnPackedForm *forms = g_new0(KilnPackedForm, (gsize)origin->n_calls * KILN_MAX_FORMS + 1);
    for (Probe probe = 0; probe < N_PROBES; probe++) {
        g_autoptr(GError) why = NULL;
        g_autoptr(KilnSpecialisation) made = instance_at(origin, options, probe, &why);
        if (made) {
            note_forms(made, forms);
            continue;
        }
        if (probe != AT_STANDING && (!why || is_refused(why)))
            continue;
        g_propagate_error(error, g_steal_pointer(&why));
        kiln_probe_free(forms, origin->n_calls);
        return NULL;
    }
    return forms;
}
