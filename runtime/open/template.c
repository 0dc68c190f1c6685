/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/open/template.h"

#include "ir/compiled.h"
#include "ir/open.h"
#include "ir/plan/settle.h"
#include "runtime/flow/bodies.h"
#include "runtime/fold_calls.h"
#include "runtime/shapes/dims.h"

#include <string.h>

/* --- life --- */

uint32_t
kiln_count_calls(const KilnIRFunction *function)
{
    uint32_t n = 0;
    kiln_foreach_instr (instr, function)
        n += !kiln_instr_is_bookkeeping(instr);
    return n;
}

static KilnTemplate *
template_of(KilnIRFunction *function, KilnFolder *folder, GBytes *const *values, unsigned n_inputs)
{
    KilnTemplate *self = g_new0(KilnTemplate, 1);
    atomic_init(&self->references, 1);
    pthread_mutex_init(&self->lock, NULL);
    self->function = function;
    self->binding = function->open->binding;
    self->facts = g_new0(KilnDimFacts, self->binding->n + 1);
    for (uint32_t i = 0; i < self->binding->n; i++)
        kiln_dim_facts(kiln_dim_name(function->module->dims, self->binding->names[i].name),
                       &self->facts[i]);
    self->folder = folder;
    self->n_inputs = n_inputs;
    self->input_names = g_new0(const char *, (gsize)n_inputs + 1);
    self->input_types = g_new0(KilnType, (gsize)n_inputs + 1);
    for (unsigned i = 0; i < n_inputs; i++) {
        const KilnBuffer *input = folder ? NULL : g_ptr_array_index(function->inputs, i);
        self->input_names[i] = input ? input->name : folder->input_names[i];
        self->input_types[i] = input ? input->type : folder->input_types[i];
    }
    self->values = g_new0(GBytes *, n_inputs + 1);
    for (unsigned i = 0; i < n_inputs; i++)
        self->values[i] = values[i] ? g_bytes_ref(values[i]) : NULL;
    self->n_calls = kiln_count_calls(function);
    self->forms = g_new0(KilnPackedForm, (gsize)self->n_calls * KILN_MAX_FORMS + 1);
    self->n_weights = function->weights->len;
    self->weights = g_new0(GBytes *, (gsize)self->n_weights + 1);
    return self;
}

/* The number of its call for each id of an instruction; UINT32_MAX for those that are none. */
static uint32_t *
number_calls(const KilnIRFunction *function)
{
    uint32_t *by_id = g_new(uint32_t, (gsize)function->next_id + 1), c = 0;
    for (uint32_t i = 0; i <= function->next_id; i++)
        by_id[i] = UINT32_MAX;
    kiln_foreach_instr (instr, function) {
        if (!kiln_instr_is_bookkeeping(instr))
            by_id[instr->id] = c++;
    }
    return by_id;
}

/* Per call of @function: what @by_id says of its id, where that is below @n_ids. */
static uint32_t *
calls_by_id(const KilnIRFunction *function, const uint32_t *by_id, uint32_t n_ids)
{
    uint32_t *calls = g_new(uint32_t, (gsize)kiln_count_calls(function) + 1), c = 0;
    kiln_foreach_instr (instr, function) {
        if (!kiln_instr_is_bookkeeping(instr))
            calls[c++] = instr->id < n_ids ? by_id[instr->id] : UINT32_MAX;
    }
    return calls;
}

void
kiln_template_plan(KilnTemplate *self, const KilnTarget *target, int threads)
{
    self->most = kiln_open_plan_most(self->function, target, threads, 0);
}

static void
clear_body(KilnBody *body)
{
    kiln_template_unref(body->origin);
}

static KilnTemplate *template_beside(KilnIRFunction *function, unsigned n_inputs, GHashTable *made);

/* The functions that branches and loops of @function run. @made: the template of each function that
 * has one. */
static GPtrArray *
open_bodies(const KilnIRFunction *function, GHashTable *made)
{
    GPtrArray *list = kiln_bodies_new(function);
    for (guint i = 0; list && i < list->len; i++) {
        KilnBody *body = g_ptr_array_index(list, i);
        KilnTemplate *origin = g_hash_table_lookup(made, body->function);
        body->clear = clear_body;
        body->again = origin != NULL;
        body->origin = origin ? kiln_template_ref(origin)
                              : template_beside(body->function, body->function->inputs->len, made);
        body->draws = kiln_bodies_draw(body->function, body->origin->bodies);
        g_hash_table_insert(made, body->function, body->origin);
    }
    return list;
}

static KilnTemplate *
template_beside(KilnIRFunction *function, unsigned n_inputs, GHashTable *made)
{
    g_autofree GBytes **none = g_new0(GBytes *, (gsize)n_inputs + 1);
    KilnTemplate *self = template_of(function, NULL, none, n_inputs);
    self->bodies = open_bodies(function, made);
    self->regions = kiln_regions_new();
    return self;
}

KilnTemplate *
kiln_template_new(KilnIRModule *ir, KilnFolder *folder, GBytes *const *values, unsigned n_inputs)
{
    KilnIRFunction *function = g_ptr_array_index(ir->functions, ir->functions->len - 1);
    KilnTemplate *self = template_of(function, folder, values, n_inputs);
    g_autoptr(GHashTable) made = g_hash_table_new(NULL, NULL);
    self->ir = ir;
    self->bodies = open_bodies(function, made);
    self->regions = kiln_regions_new();
    return self;
}

KilnTemplate *
kiln_template_new_beside(KilnIRFunction *function, unsigned n_inputs)
{
    g_autoptr(GHashTable) made = g_hash_table_new(NULL, NULL);
    return template_beside(function, n_inputs, made);
}

KilnTemplate *
kiln_template_new_carried(KilnTemplate *base, const KilnCarries *carries)
{
    KilnIRFunction *function = kiln_ir_function_copy(base->function);
    uint32_t n_ids = function->next_id;
    g_autofree uint32_t *by_id = number_calls(function);
    KilnAppend *appends = g_new0(KilnAppend, (gsize)carries->n + 1);
    KilnCarry *pairs = g_new0(KilnCarry, (gsize)carries->n + 1);
    for (unsigned k = 0; k < carries->n; k++) {
        const KilnCarry *carry = &carries->v[k];
        pairs[k].output = carry->output;
        pairs[k].input = carry->input;
        if (carry->axis >= 0 && !base->folder) /* inputs of the function may be others */
            kiln_ir_append_in_place(function, g_ptr_array_index(function->outputs, carry->output),
                                    g_ptr_array_index(function->inputs, carry->input), &appends[k]);
    }
    if (base->function->open->settled->len)
        kiln_open_settle(function);
    KilnTemplate *self = template_of(function, base->folder, base->values, base->n_inputs);
    self->base = kiln_template_ref(base);
    self->zeros = base->zeros;
    self->fixed = base->fixed;
    self->bodies = base->bodies;
    self->of_base = calls_by_id(function, by_id, n_ids);
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
    for (uint32_t i = 0; i < self->n_weights; i++)
        g_clear_pointer(&self->weights[i], g_bytes_unref);
    for (uint32_t i = 0; i < self->n_calls * KILN_MAX_FORMS; i++)
        g_clear_pointer(&self->forms[i].packed, g_bytes_unref);
    for (unsigned i = 0; i < self->n_inputs; i++)
        g_clear_pointer(&self->values[i], g_bytes_unref);
    g_free(self->weights);
    g_free(self->forms);
    g_free(self->values);
    g_free(self->facts);
    g_free(self->of_base);
    g_free(self->appends);
    g_free(self->pairs.v);
    g_free(self->input_names);
    g_free(self->input_types);
    if (self->base)
        kiln_ir_function_free(self->function);
    else
        kiln_folder_free(self->folder);
    kiln_regions_free(self->regions);
    if (self->bodies && !self->base)
        g_ptr_array_unref(self->bodies);
    if (self->ir)
        kiln_ir_module_free(self->ir);
    kiln_template_unref(self->base);
    kiln_open_plan_free(self->most);
    pthread_mutex_destroy(&self->lock);
    g_free(self);
}

/* --- names --- */

static gboolean
keep_facts(const KilnTemplate *self, uint32_t n, int64_t number, GError **error)
{
    const KilnDimFacts *facts = &self->facts[n];
    if (number >= facts->lo && number <= facts->hi && number % facts->divisor == 0)
        return TRUE;
    g_autofree char *expected = kiln_dim_facts_text(facts);
    return kiln_throw(error, KILN_ERROR_SHAPE, "dim %s: expected %s, found %" G_GINT64_FORMAT,
                      self->binding->names[n].name, expected, number);
}

/* The number of a name of @type's dim @d; @known has the names that were met before. */
static gboolean
read_name(const KilnTemplate *self, const char *name, int64_t number, KilnDimBinding *out,
          uint64_t *known, GError **error)
{
    uint32_t n = 0;
    while (n < out->n && strcmp(out->names[n].name, name) != 0)
        n++;
    if (n >= MIN(out->n, 64u))
        return kiln_throw(error, KILN_ERROR_SHAPE, "dim %s: no name of the open program", name);
    if (*known >> n & 1 && out->names[n].number != number)
        return kiln_throw(error, KILN_ERROR_SHAPE,
                          "dim %s: expected one number, found %" G_GINT64_FORMAT
                          " and %" G_GINT64_FORMAT,
                          name, out->names[n].number, number);
    if (!keep_facts(self, n, number, error))
        return FALSE;
    out->names[n].number = number;
    *known |= (uint64_t)1 << n;
    return TRUE;
}

/* The numbers of names that are dims of inputs; a name stands for one number wherever it occurs. */
static gboolean
read_names(const KilnTemplate *self, const KilnBinding *bindings, KilnDimBinding *out,
           GError **error)
{
    uint64_t known = 0;
    for (unsigned i = 0; i < self->n_inputs; i++) {
        const KilnType *type = &self->input_types[i];
        if (type->rank != bindings[i].rank)
            return kiln_binding_throw(&bindings[i], self->input_names[i], type, error);
        for (int d = 0; d < type->rank; d++) {
            const char *name = kiln_type_dim_name(type, d);
            if (name && !read_name(self, name, bindings[i].dims[d], out, &known, error)) {
                kiln_prefix_error(error, "input %s: ", self->input_names[i]);
                return FALSE;
            }
        }
    }
    return TRUE;
}

gboolean
kiln_template_read(const KilnTemplate *self, const KilnBinding *bindings, KilnDimBinding *out,
                   GError **error)
{
    if (!read_names(self, bindings, out, error))
        return FALSE;
    for (unsigned i = 0; i < self->n_inputs; i++) {
        const KilnType *type = &self->input_types[i];
        for (int d = 0; d < type->rank; d++) {
            int64_t number = type->dims[d];
            if (type->open[d] &&
                !kiln_dim_evaluate(type->open[d], kiln_dim_binding_lookup, out, &number, error))
                return FALSE;
            if (number == bindings[i].dims[d])
                continue;
            return kiln_throw(error, KILN_ERROR_SHAPE,
                              "input %s: dim %d: expected %" G_GINT64_FORMAT
                              ", found %" G_GINT64_FORMAT,
                              self->input_names[i], d, number, bindings[i].dims[d]);
        }
    }
    return TRUE;
}

/* --- weights --- */

/* Whoever has the weights: a template for carried values has those of the one that it is of. */
static KilnTemplate *
owner_of(KilnTemplate *self)
{
    return self->base ? self->base : self;
}

KilnRegions *
kiln_template_regions(const KilnTemplate *self)
{
    return self->base ? self->base->regions : self->regions;
}

/* The forms of call @c; NULL where the owner has no such call. */
static KilnPackedForm *
forms_of(KilnTemplate *self, uint32_t c)
{
    uint32_t of_owner = self->base ? self->of_base[c] : c;
    return of_owner == UINT32_MAX ? NULL
                                  : &owner_of(self)->forms[(size_t)of_owner * KILN_MAX_FORMS];
}

bool
kiln_template_suits(const KilnBoundCall *call, bool fitted)
{
    const KilnFitted *kind = call->kernel->fitted;
    return !fitted || (kind && (!kind->suits || kind->suits(call->instr)));
}

KilnPackedForm
kiln_template_form(const KilnBoundCall *call)
{
    KilnPackedForm form = { .kernel = call->kernel, .form = call->form, .fitted = call->fitted };
    if (call->instr->kind == KILN_INSTR_call) {
        form.kernel = NULL;
        form.form = kiln_regions_form(kiln_call_compiled(call->instr));
    }
    return form;
}

static bool
is_form(const KilnPackedForm *form, const KilnBoundCall *call)
{
    const KilnPackedForm wanted = kiln_template_form(call);
    return form->packed && form->kernel == wanted.kernel && form->form == wanted.form &&
           kiln_template_suits(call, form->fitted);
}

/* Bytes of a file are looked at when a kernel wants them: it knows how many there must be. */
static gboolean
check_form(const KilnPackedForm *form, const KilnBoundCall *call, GError **error)
{
    size_t size;
    const void *data = g_bytes_get_data(form->packed, &size);
    const KilnFitted *fitted = form->fitted ? call->kernel->fitted : NULL;
    bool sound = form->fitted ? fitted && fitted->is_sound(call->instr, call->form, data, size)
                              : size == call->packed_bytes;
    return sound || kiln_throw(error, KILN_ERROR_INVALID,
                               "%s: packed weights: expected what %s packs, found %zu other bytes",
                               kiln_instr_label(call->instr), call->kernel->name, size);
}

static gboolean
take_packed(KilnTemplate *self, KilnBoundCall *call, uint32_t c, GError **error)
{
    KilnPackedForm *forms = forms_of(self, c);
    for (uint32_t f = 0; forms && f < KILN_MAX_FORMS; f++) {
        if (!is_form(&forms[f], call))
            continue;
        if (!check_form(&forms[f], call, error))
            return FALSE;
        call->packed = g_bytes_ref(forms[f].packed);
        call->fitted = forms[f].fitted;
        call->packed_bytes = g_bytes_get_size(forms[f].packed);
        return TRUE;
    }
    return TRUE;
}

/* *@out_all is false where some weight has to be packed or viewed first. */
static gboolean
take_weights(KilnTemplate *self, KilnBinder *binder, bool *out_all, GError **error)
{
    KilnSpecialisation *out = binder->out;
    const KilnTemplate *owner = owner_of(self);
    *out_all = true;
    for (uint32_t c = 0; c < out->n_calls; c++) {
        KilnBoundCall *call = &out->calls[c];
        if (!call->packed_bytes || call->late)
            continue;
        if (!call->packed && !take_packed(self, call, c, error))
            return FALSE;
        *out_all &= call->packed != NULL;
    }
    for (guint i = 0; i < out->function->weights->len; i++) {
        const KilnBuffer *weight = g_ptr_array_index(out->function->weights, i);
        GBytes **to = &out->weights[binder->place[weight->id]];
        if (!binder->read_plain[weight->id] || binder->written[weight->id] || *to)
            continue;
        *to = i < owner->n_weights && owner->weights[i] ? g_bytes_ref(owner->weights[i]) : NULL;
        *out_all &= *to != NULL;
    }
    return TRUE;
}

void
kiln_template_add_form(KilnTemplate *self, uint32_t c, const KilnPackedForm *form)
{
    KilnPackedForm *forms = forms_of(self, c);
    g_clear_pointer(&forms[KILN_MAX_FORMS - 1].packed, g_bytes_unref);
    memmove(forms + 1, forms, (KILN_MAX_FORMS - 1) * sizeof *forms);
    forms[0] = *form;
    g_bytes_ref(form->packed);
}

/* What is new stands first: of two forms that others keep, the older goes. */
static void
keep_weights(KilnTemplate *self, const KilnBinder *binder)
{
    const KilnSpecialisation *out = binder->out;
    KilnTemplate *owner = owner_of(self);
    for (uint32_t c = 0; c < out->n_calls; c++) {
        const KilnBoundCall *call = &out->calls[c];
        const KilnPackedForm *forms = forms_of(self, c);
        KilnPackedForm form = { .packed = NULL };
        bool kept = !call->packed || !forms;
        for (uint32_t f = 0; !kept && f < KILN_MAX_FORMS; f++)
            kept = is_form(&forms[f], call);
        if (kept)
            continue;
        form = kiln_template_form(call);
        form.packed = call->packed;
        kiln_template_add_form(self, c, &form);
    }
    for (guint i = 0; i < owner->n_weights; i++) {
        const KilnBuffer *weight = g_ptr_array_index(out->function->weights, i);
        GBytes *view = out->weights[binder->place[weight->id]];
        if (view && !owner->weights[i] && !binder->written[weight->id])
            owner->weights[i] = g_bytes_ref(view);
    }
}

gboolean
kiln_template_weights(KilnTemplate *self, KilnBinder *binder, GError **error)
{
    KilnTemplate *owner = owner_of(self);
    bool all;
    pthread_mutex_lock(&owner->lock);
    gboolean good = take_weights(self, binder, &all, error);
    if (good && !all && (good = kiln_bind_weights(binder, error)))
        keep_weights(self, binder);
    pthread_mutex_unlock(&owner->lock);
    return good;
}
