/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/open/template.h"

#include "ir/open.h"

#include <string.h>

/* --- life --- */

static uint32_t
count_calls(const KilnIRFunction *function)
{
    uint32_t n = 0;
    kiln_foreach_instr (instr, function)
        n += !kiln_instr_is_bookkeeping(instr);
    return n;
}

/* @function belongs to the module of @ir, or to the template where @ir is NULL. */
static KilnTemplate *
template_of(KilnIRModule *ir, KilnIRFunction *function, GBytes *const *values, unsigned n_inputs)
{
    KilnTemplate *self = g_new0(KilnTemplate, 1);
    atomic_init(&self->references, 1);
    pthread_mutex_init(&self->lock, NULL);
    self->ir = ir;
    self->function = function;
    self->binding = function->open->binding;
    self->facts = g_new0(KilnDimFacts, self->binding->n + 1);
    for (uint32_t i = 0; i < self->binding->n; i++)
        kiln_dim_facts(kiln_dim_name(function->module->dims, self->binding->names[i].name),
                       &self->facts[i]);
    self->n_inputs = n_inputs;
    self->values = g_new0(GBytes *, n_inputs + 1);
    for (unsigned i = 0; i < n_inputs; i++)
        self->values[i] = values[i] ? g_bytes_ref(values[i]) : NULL;
    self->n_calls = count_calls(function);
    self->forms = g_new0(KilnPackedForm, (gsize)self->n_calls * KILN_MAX_FORMS + 1);
    self->weights = g_new0(GBytes *, function->weights->len + 1);
    return self;
}

void
kiln_template_plan(KilnTemplate *self, const KilnTarget *target, int threads)
{
    self->most = kiln_open_plan_most(self->function, target, threads, 0);
}

KilnTemplate *
kiln_template_new(KilnIRModule *ir, GBytes *const *values, unsigned n_inputs)
{
    KilnIRFunction *function = g_ptr_array_index(ir->functions, ir->functions->len - 1);
    return template_of(ir, function, values, n_inputs);
}

KilnTemplate *
kiln_template_new_carried(KilnTemplate *base, const KilnCarries *carries)
{
    KilnIRFunction *function = kiln_ir_function_copy(base->function);
    KilnAppend *appends = g_new0(KilnAppend, (gsize)carries->n + 1);
    KilnCarry *pairs = g_new0(KilnCarry, (gsize)carries->n + 1);
    for (unsigned k = 0; k < carries->n; k++) {
        const KilnCarry *carry = &carries->v[k];
        pairs[k].output = carry->output;
        pairs[k].input = carry->input;
        if (carry->axis >= 0)
            kiln_ir_append_in_place(function, g_ptr_array_index(function->outputs, carry->output),
                                    g_ptr_array_index(function->inputs, carry->input), &appends[k]);
    }
    KilnTemplate *self = template_of(NULL, function, base->values, base->n_inputs);
    self->base = kiln_template_ref(base);
    self->appends = appends;
    self->pairs = (KilnCarries){ carries->n, pairs };
    return self;
}

bool
kiln_template_carries(const KilnTemplate *self, const KilnCarries *carries)
{
    unsigned n = carries ? carries->n : 0;
    bool same = self->pairs.n == n;
    for (unsigned k = 0; same && k < n; k++)
        same = self->pairs.v[k].output == carries->v[k].output &&
               self->pairs.v[k].input == carries->v[k].input;
    return same;
}

KilnTemplate *
kiln_template_ref(KilnTemplate *self)
{
    atomic_fetch_add(&self->references, 1);
    return self;
}

void
kiln_template_unref(KilnTemplate *self)
{
    if (!self || atomic_fetch_sub(&self->references, 1) != 1)
        return;
    for (guint i = 0; i < self->function->weights->len; i++)
        g_clear_pointer(&self->weights[i], g_bytes_unref);
    for (uint32_t i = 0; i < self->n_calls * KILN_MAX_FORMS; i++)
        g_clear_pointer(&self->forms[i].packed, g_bytes_unref);
    for (unsigned i = 0; i < self->n_inputs; i++)
        g_clear_pointer(&self->values[i], g_bytes_unref);
    g_free(self->weights);
    g_free(self->forms);
    g_free(self->values);
    g_free(self->facts);
    g_free(self->appends);
    g_free(self->pairs.v);
    if (self->base)
        kiln_ir_function_free(self->function);
    else
        kiln_ir_module_free(self->ir);
    kiln_template_unref(self->base);
    kiln_open_plan_free(self->most);
    pthread_mutex_destroy(&self->lock);
    g_free(self);
}

/* --- names --- */

static bool
keeps_facts(const KilnDimFacts *facts, int64_t number)
{
    return number >= facts->lo && number <= facts->hi && number % facts->divisor == 0;
}

/* The numbers of names that are dims of inputs; a name stands for one number wherever it occurs. */
static bool
read_names(const KilnTemplate *self, const KilnBinding *bindings, KilnDimBinding *out)
{
    uint64_t known = 0;
    for (guint i = 0; i < self->function->inputs->len; i++) {
        const KilnType *type =
            &((const KilnBuffer *)g_ptr_array_index(self->function->inputs, i))->type;
        for (int d = 0; d < type->rank; d++) {
            const char *name = kiln_type_dim_name(type, d);
            uint32_t n = 0;
            while (name && n < out->n && strcmp(out->names[n].name, name) != 0)
                n++;
            if (!name)
                continue;
            bool first = n < 64 && !(known >> n & 1);
            if (n >= MIN(out->n, 64u) || (!first && out->names[n].number != bindings[i].dims[d]) ||
                !keeps_facts(&self->facts[n], bindings[i].dims[d]))
                return false;
            out->names[n].number = bindings[i].dims[d];
            known |= (uint64_t)1 << n;
        }
    }
    return true;
}

bool
kiln_template_read(const KilnTemplate *self, const KilnBinding *bindings, KilnDimBinding *out)
{
    if (!read_names(self, bindings, out))
        return false;
    for (guint i = 0; i < self->function->inputs->len; i++) {
        const KilnType *type =
            &((const KilnBuffer *)g_ptr_array_index(self->function->inputs, i))->type;
        if (type->rank != bindings[i].rank)
            return false;
        for (int d = 0; d < type->rank; d++) {
            int64_t number = type->dims[d];
            if (type->open[d] &&
                !kiln_dim_evaluate(type->open[d], kiln_dim_binding_lookup, out, &number, NULL))
                return false;
            if (number != bindings[i].dims[d])
                return false;
        }
    }
    return true;
}

/* --- weights --- */

static KilnPackedForm *
forms_of(KilnTemplate *self, uint32_t call)
{
    return &self->forms[(size_t)call * KILN_MAX_FORMS];
}

static bool
is_form(const KilnPackedForm *form, const KilnBoundCall *call)
{
    return form->packed && form->kernel == call->kernel && form->form == call->form;
}

/* False where some weight has to be packed or viewed first. */
static bool
take_weights(KilnTemplate *self, KilnBinder *binder)
{
    KilnSpecialisation *out = binder->out;
    bool all = true;
    for (uint32_t c = 0; c < out->n_calls; c++) {
        KilnBoundCall *call = &out->calls[c];
        for (uint32_t f = 0; f < KILN_MAX_FORMS && call->packed_bytes && !call->packed; f++) {
            const KilnPackedForm *form = &forms_of(self, c)[f];
            if (!is_form(form, call))
                continue;
            call->packed = g_bytes_ref(form->packed);
            call->fitted = form->fitted;
            call->packed_bytes = g_bytes_get_size(form->packed);
        }
        all &= !call->packed_bytes || call->packed;
    }
    for (guint i = 0; i < out->function->weights->len; i++) {
        const KilnBuffer *weight = g_ptr_array_index(out->function->weights, i);
        GBytes **to = &out->weights[binder->place[weight->id]];
        if (!binder->read_plain[weight->id] || binder->written[weight->id] || *to)
            continue;
        *to = self->weights[i] ? g_bytes_ref(self->weights[i]) : NULL;
        all &= *to != NULL;
    }
    return all;
}

/* What is new stands first: of two forms that others keep, the older goes. */
static void
keep_weights(KilnTemplate *self, const KilnBinder *binder)
{
    const KilnSpecialisation *out = binder->out;
    for (uint32_t c = 0; c < out->n_calls; c++) {
        const KilnBoundCall *call = &out->calls[c];
        KilnPackedForm *forms = forms_of(self, c);
        bool kept = !call->packed;
        for (uint32_t f = 0; f < KILN_MAX_FORMS; f++)
            kept |= forms[f].packed && is_form(&forms[f], call);
        if (kept)
            continue;
        g_clear_pointer(&forms[KILN_MAX_FORMS - 1].packed, g_bytes_unref);
        memmove(forms + 1, forms, (KILN_MAX_FORMS - 1) * sizeof *forms);
        forms[0] =
            (KilnPackedForm){ call->kernel, call->form, g_bytes_ref(call->packed), call->fitted };
    }
    for (guint i = 0; i < out->function->weights->len; i++) {
        const KilnBuffer *weight = g_ptr_array_index(out->function->weights, i);
        GBytes *view = out->weights[binder->place[weight->id]];
        if (view && !self->weights[i] && !binder->written[weight->id])
            self->weights[i] = g_bytes_ref(view);
    }
}

gboolean
kiln_template_weights(KilnTemplate *self, KilnBinder *binder, GError **error)
{
    pthread_mutex_lock(&self->lock);
    gboolean good = take_weights(self, binder);
    if (!good && (good = kiln_bind_weights(binder, error)))
        keep_weights(self, binder);
    pthread_mutex_unlock(&self->lock);
    return good;
}
