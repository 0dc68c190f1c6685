/* SPDX-License-Identifier: Apache-2.0 */
/* Runs kernels of plug-ins. What does not change between runs is prepared: the description, and
 * tensors among the attributes. The tensors of a run lie in front of the plug-in's own scratch. */
#include "ir/plugin.h"

#include "graph/kiln-op.h"

typedef struct {
    KilnOpAttributes attributes;
} Prepared;

static size_t
padded(size_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

static KilnPluginColumns
columns_of(const KilnInstr *instr)
{
    return KILN_PLUGIN_COLUMNS(kiln_instr_attrs(instr, plugin_op));
}

static const KilnOpDescription *
description_of(const KilnInstr *instr)
{
    const KilnInstrAttrs_plugin_op *attrs = kiln_instr_attrs(instr, plugin_op);
    return kiln_plugin_find(attrs->domain, attrs->op_type, attrs->opset);
}

/* --- calls --- */

static void
fill_tensors(const KilnInstr *instr, void *const *data, KilnOpTensor *tensors)
{
    for (uint32_t i = 0; i < instr->n_operands; i++) {
        const KilnBuffer *buffer = instr->operands[i].buffer;
        tensors[i] = (KilnOpTensor){ .rank = -1 };
        if (!buffer)
            continue;
        const KilnType *type = &buffer->type;
        tensors[i] = (KilnOpTensor){ type->dtype, type->rank, type->dims, kiln_type_elements(type),
                                     data ? data[i] : NULL };
    }
}

static uint32_t
count_outputs(const KilnInstr *instr)
{
    uint32_t n = 0;
    while (n < instr->n_operands && instr->operands[n].access == KILN_ACCESS_OUT)
        n++;
    return n;
}

/* A call without data, to ask for scratch and costs. */
typedef struct {
    KilnOpAttributes attributes;
    KilnOpCall call;
    KilnOpTensor *tensors;
    void *memory;
} Question;

static void
question_init(Question *self, const KilnOpDescription *op, const KilnInstr *instr, int threads)
{
    const KilnPluginColumns columns = columns_of(instr);
    self->tensors = g_new(KilnOpTensor, instr->n_operands + 1);
    self->memory = g_malloc0(kiln_op_attributes_bytes(&columns, false) + 1);
    kiln_op_attributes_init(&self->attributes, op, &columns, self->memory, false);
    fill_tensors(instr, NULL, self->tensors);
    const uint32_t n_outputs = count_outputs(instr);
    self->call = (KilnOpCall){ .attributes = &self->attributes,
                               .tensors = self->tensors,
                               .n_outputs = n_outputs,
                               .n_inputs = instr->n_operands - n_outputs,
                               .threads = threads };
}

static void
question_clear(Question *self)
{
    g_free(self->tensors);
    g_free(self->memory);
}

/* --- facts --- */

bool
kiln_instr_has_effect(const KilnInstr *instr)
{
    return instr->kind == KILN_INSTR_call ||
           (instr->kind == KILN_INSTR_plugin_op && kiln_instr_attrs(instr, plugin_op)->effect);
}

char *
kiln_instr_title(const KilnInstr *instr)
{
    if (instr->kind != KILN_INSTR_plugin_op)
        return g_strdup(kiln_instr_info(instr->kind)->name);
    const KilnInstrAttrs_plugin_op *attrs = kiln_instr_attrs(instr, plugin_op);
    const KilnOpDescription *op = description_of(instr);
    g_autofree char *name = kiln_plugin_name(attrs->domain, attrs->op_type);
    return op ? g_strdup_printf("%s of %s", name, kiln_plugin_from(op)) : g_steal_pointer(&name);
}

bool
kiln_plugin_may_share(const KilnInstr *instr, uint32_t out, uint32_t in)
{
    const KilnOpDescription *op = description_of(instr);
    const uint32_t n_outputs = count_outputs(instr);
    for (unsigned i = 0; op && i < op->n_in_place; i++) {
        if (op->in_place[i].output == out && op->in_place[i].input + n_outputs == in)
            return true;
    }
    return false;
}

int64_t
kiln_plugin_flops(const KilnInstr *instr)
{
    const KilnOpDescription *op = description_of(instr);
    if (!op || !op->cost) {
        const KilnBuffer *out = kiln_instr_operand(instr, 0);
        return out ? MAX(kiln_type_elements(&out->type), 0) : 0;
    }
    Question question;
    question_init(&question, op, instr, 1);
    const double flops = op->cost(&question.call);
    question_clear(&question);
    return flops > 0 ? (int64_t)MIN(flops, 0x1p62) : 0;
}

/* --- the kernel --- */

bool
kiln_plugin_supports(const KilnInstr *instr)
{
    for (uint32_t i = 0; i < instr->n_operands; i++) {
        const KilnBuffer *buffer = instr->operands[i].buffer;
        if (buffer && buffer->type.layout)
            return false;
    }
    return description_of(instr) != NULL;
}

size_t
kiln_plugin_scratch(const KilnInstr *instr, int threads)
{
    const KilnOpDescription *op = description_of(instr);
    size_t bytes = padded(instr->n_operands * sizeof(KilnOpTensor));
    if (!op || !op->scratch_bytes)
        return bytes;
    Question question;
    question_init(&question, op, instr, threads);
    const size_t own = op->scratch_bytes(&question.call);
    question_clear(&question);
    return own > SIZE_MAX / 2 ? SIZE_MAX / 2 : bytes + own;
}

size_t
kiln_plugin_prepared(const KilnInstr *instr)
{
    const KilnPluginColumns columns = columns_of(instr);
    return padded(sizeof(Prepared)) + kiln_op_attributes_bytes(&columns, true);
}

void
kiln_plugin_prepare(const KilnInstr *instr, void *prepared)
{
    const KilnPluginColumns columns = columns_of(instr);
    Prepared *self = prepared;
    kiln_op_attributes_init(&self->attributes, description_of(instr), &columns,
                            (char *)prepared + padded(sizeof *self), true);
}

const char *
kiln_plugin_run(const KilnKernelArgs *args, KilnPluginParallel parallel)
{
    const Prepared *prepared = args->prepared;
    const uint32_t n = args->instr->n_operands, n_outputs = count_outputs(args->instr);
    KilnOpTensor *tensors = args->scratch;
    fill_tensors(args->instr, args->data, tensors);
    const KilnOpCall call = { .attributes = &prepared->attributes,
                              .tensors = tensors,
                              .n_outputs = n_outputs,
                              .n_inputs = n - n_outputs,
                              .scratch = (char *)args->scratch + padded(n * sizeof *tensors),
                              .threads = parallel ? args->threads : 1,
                              .parallel = parallel,
                              .texts = args->texts };
    return kiln_op_call_run(&call);
}
