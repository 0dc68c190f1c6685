/* SPDX-License-Identifier: Apache-2.0 */
/* Content hashes. Nothing of them depends on an address, an id or an order of allocation: a value
 * counts as "result r of the k-th node", so that two functions that print alike hash alike. */
#include "passes/manager/hash.h"

#include "graph/base/random.h"
#include "graph/module/folding.h"
#include "graph/module/sweep.h"
#include "ir/open.h"
#include "ir/stack.h"

#include <string.h>

typedef KilnHash Hash;

static uint64_t
mix(uint64_t state, uint64_t value)
{
    return kiln_random_mix(state ^ (value + UINT64_C(0x9e3779b97f4a7c15)));
}

static uint64_t
mix_bytes(uint64_t state, const void *data, size_t size)
{
    const unsigned char *byte = data;
    state = mix(state, size);
    for (; size; byte += 8, size -= MIN(size, (size_t)8)) {
        uint64_t word = 0;
        memcpy(&word, byte, MIN(size, (size_t)8));
        state = mix(state, word);
    }
    return state;
}

static KilnHashes
hashes_of(const Hash *hash)
{
    return (KilnHashes){ hash->state, mix(hash->state, hash->names) };
}

static void
add(Hash *hash, uint64_t value)
{
    hash->state = mix(hash->state, value);
}

static void
add_bytes(Hash *hash, const void *data, size_t size)
{
    hash->state = mix_bytes(hash->state, data, size);
}

static void
add_name(Hash *hash, const char *name)
{
    hash->names = mix_bytes(hash->names, name, strlen(name));
}

static void
add_text(Hash *hash, const char *text)
{
    if (text)
        add_bytes(hash, text, strlen(text));
    else
        add(hash, UINT64_MAX);
}

static void
add_quant(Hash *hash, const KilnQuant *quant)
{
    add(hash, quant ? quant->n : UINT64_MAX);
    if (!quant)
        return;
    add(hash, (uint64_t)quant->axis);
    add_bytes(hash, quant->scales, quant->n * sizeof *quant->scales);
    add_bytes(hash, quant->zero_points, quant->n * sizeof *quant->zero_points);
}

/* The expression beside number @i of a list, where there is one. */
static void
add_open(Hash *hash, uint32_t i, const KilnDim *dim)
{
    if (!dim)
        return;
    add(hash, i);
    add(hash, kiln_dim_hash(dim));
}

static void
add_type(Hash *hash, const KilnType *type)
{
    add(hash, (uint64_t)type->dtype);
    add(hash, (uint64_t)type->rank);
    for (int i = 0; i < type->rank; i++) {
        add(hash, (uint64_t)type->dims[i]);
        add(hash, kiln_dim_hash(type->open[i]));
    }
    add_text(hash, type->layout);
    add_quant(hash, type->quant);
}

/* --- attributes --- */

static void add_graph(Hash *hash, const KilnFunction *function);
static void add_constant(Hash *hash, const KilnConstant *constant);

static void
add_attr(Hash *hash, const KilnAttrInfo *info, const void *attrs)
{
    const void *field = (const char *)attrs + info->offset;
    switch (info->kind) {
    case KILN_ATTR_INT:
        add(hash, (uint64_t) * (const KilnC_INT *)field);
        return;
    case KILN_ATTR_BOOL:
        add(hash, *(const KilnC_BOOL *)field);
        return;
    case KILN_ATTR_FLOAT:
        add_bytes(hash, field, sizeof(KilnC_FLOAT));
        return;
    case KILN_ATTR_STRING:
        add_text(hash, *(const KilnC_STRING *)field);
        return;
    case KILN_ATTR_INTS: {
        const KilnInts *list = field;
        add_bytes(hash, list->v, list->n * sizeof *list->v);
        for (uint32_t i = 0; list->open && i < list->n; i++)
            add_open(hash, i, list->open[i]);
        return;
    }
    case KILN_ATTR_FLOATS: {
        const KilnFloats *list = field;
        add_bytes(hash, list->v, list->n * sizeof *list->v);
        return;
    }
    case KILN_ATTR_STRINGS: {
        const KilnStrings *list = field;
        add(hash, list->n);
        for (uint32_t i = 0; i < list->n; i++)
            add_text(hash, list->v[i]);
        return;
    }
    case KILN_ATTR_DTYPE:
        add(hash, (uint64_t) * (const KilnC_DTYPE *)field);
        return;
    case KILN_ATTR_CONSTANT: {
        const KilnConstant *constant = *(const KilnC_CONSTANT *)field;
        add(hash, constant != NULL);
        if (constant) {
            add_name(hash, constant->name);
            add_constant(hash, constant);
        }
        return;
    }
    case KILN_ATTR_FUNCTION: {
        const KilnFunction *region = *(const KilnC_FUNCTION *)field;
        add(hash, region != NULL);
        if (region)
            add_graph(hash, region);
        return;
    }
    }
}

static void
add_attrs(Hash *hash, const KilnAttrInfo *infos, uint32_t n, const void *attrs)
{
    for (uint32_t i = 0; i < n && attrs; i++)
        add_attr(hash, &infos[i], attrs);
}

/* --- graph --- */

/* @positions: of the function's nodes, by id. Values from around a subgraph count by name. */
static void
add_value(Hash *hash, const KilnFunction *function, const uint32_t *positions,
          const KilnValue *value)
{
    if (!value) {
        add(hash, UINT64_MAX);
        return;
    }
    if (value->def && value->def->function == function)
        add(hash, positions[value->def->id]);
    else if (!value->def)
        add(hash, UINT64_C(1) << 40);
    else
        add_text(hash, value->name);
    add(hash, value->index);
}

static void
add_graph(Hash *hash, const KilnFunction *function)
{
    add_text(hash, function->name);
    for (guint i = 0; i < function->arguments->len; i++) {
        const KilnArgument *argument = g_ptr_array_index(function->arguments, i);
        add_text(hash, argument->value.name);
        add_type(hash, &argument->value.type);
        add(hash, (uint64_t)argument->constness * 2 + argument->variable);
        add_text(hash, argument->range);
    }
    g_autofree uint32_t *positions = g_new0(uint32_t, (gsize)function->next_id + 1);
    uint32_t position = 0;
    kiln_foreach_ordered (node, (KilnFunction *)function) { /* brings its table up to date */
        const KilnOpInfo *info = kiln_op_info(node->op);
        positions[node->id] = ++position;
        add(hash, (uint64_t)node->op);
        add_attrs(hash, info->attrs, info->n_attrs, node->attrs);
        add(hash, node->n_operands);
        for (uint32_t i = 0; i < node->n_operands; i++)
            add_value(hash, function, positions, node->operands[i].value);
        add(hash, node->n_results);
        for (uint32_t i = 0; i < node->n_results; i++) {
            add_type(hash, &node->results[i].type);
            add_name(hash, node->results[i].name);
        }
    }
    for (guint i = 0; i < function->result_names->len; i++)
        add_text(hash, g_ptr_array_index(function->result_names, i));
}

KilnHashes
kiln_hash_function(const KilnFunction *function)
{
    Hash hash = { 0 };
    add_graph(&hash, function);
    return hashes_of(&hash);
}

/* --- ir --- */

static void
add_view_open(Hash *hash, const KilnViewOpen *open)
{
    if (!open)
        return;
    add_open(hash, 0, open->offset);
    add_open(hash, 1, open->rows);
    add_open(hash, 2, open->pitch);
}

/* @numbers: of buffers in order of appearance, by id; 0 means not seen yet. */
static void
add_buffer(Hash *hash, const KilnBuffer *buffer, uint32_t *numbers, uint32_t *last)
{
    if (!buffer) {
        add(hash, UINT64_MAX);
        return;
    }
    bool seen = numbers[buffer->id] != 0;
    if (!seen)
        numbers[buffer->id] = ++*last;
    add(hash, numbers[buffer->id]);
    if (seen)
        return;
    if (buffer->kind == KILN_BUFFER_ALLOC || buffer->kind == KILN_BUFFER_VIEW)
        add_name(hash, buffer->name);
    else
        add_text(hash, buffer->name);
    add(hash, (uint64_t)buffer->kind * 4 + buffer->unpacked * 2 + buffer->is_const);
    add_type(hash, &buffer->type);
    add_text(hash, buffer->constant ? buffer->constant->name : NULL);
    add(hash, (uint64_t)buffer->offset);
    if (buffer->kind == KILN_BUFFER_VIEW) {
        add(hash, (uint64_t)buffer->view_offset);
        add(hash, (uint64_t)buffer->view_rows);
        add(hash, (uint64_t)buffer->view_pitch);
        add_view_open(hash, buffer->view_open);
    }
}

static void
add_rules(Hash *hash, const KilnOpen *open)
{
    for (guint i = 0; open && i < open->rules->len; i++) {
        const KilnOpenRule *rule = &g_array_index(open->rules, KilnOpenRule, i);
        add_open(hash, 0, rule->a);
        add_open(hash, 1, rule->b);
    }
}

static void
add_steps(Hash *hash, const KilnInstr *instr)
{
    for (uint32_t i = 0; i < instr->n_steps; i++) {
        const KilnStackStep *step = &instr->steps[i];
        const KilnInstrInfo *info = kiln_instr_info(step->kind);
        add(hash, (uint64_t)step->kind);
        add_attrs(hash, info->attrs, info->n_attrs, step->attrs);
        add(hash, (uint64_t)step->dtype);
        add_quant(hash, step->quant);
        for (uint32_t k = 0; k < step->n_sources; k++) {
            const KilnStackSource *source = &step->sources[k];
            add(hash, (uint64_t)source->kind);
            if (source->kind == KILN_STACK_SCALAR)
                add_bytes(hash, &source->scalar, sizeof source->scalar);
            else
                add(hash, source->index);
        }
        add(hash, (uint64_t)step->store);
    }
}

KilnHashes
kiln_hash_ir_function(const KilnIRFunction *function)
{
    Hash hash = { 0 };
    g_autofree uint32_t *numbers = g_new0(uint32_t, function->buffers->len + 1);
    uint32_t last = 0;
    add_text(&hash, function->name);
    add(&hash, (uint64_t)function->arena_bytes);
    add_rules(&hash, function->open);
    GPtrArray *const lists[] = { function->weights, function->inputs, function->outputs };
    for (size_t k = 0; k < G_N_ELEMENTS(lists); k++) {
        add(&hash, lists[k]->len);
        for (guint i = 0; i < lists[k]->len; i++)
            add_buffer(&hash, g_ptr_array_index(lists[k], i), numbers, &last);
    }
    kiln_foreach_instr (instr, function) {
        const KilnInstrInfo *info = kiln_instr_info(instr->kind);
        add(&hash, (uint64_t)instr->kind);
        add_attrs(&hash, info->attrs, info->n_attrs, instr->attrs);
        add_text(&hash, instr->callee);
        add_steps(&hash, instr);
        add(&hash, instr->n_operands);
        for (uint32_t i = 0; i < instr->n_operands; i++) {
            add(&hash, (uint64_t)instr->operands[i].access);
            add_buffer(&hash, instr->operands[i].buffer, numbers, &last);
        }
    }
    return hashes_of(&hash);
}

/* --- module --- */

enum {
    SAMPLE_BYTES =
        64 /* at each end of a payload: contents are immutable, this only catches slips */
};

static void
add_tensor(Hash *hash, const KilnTensor *tensor)
{
    add(hash, (uint64_t)tensor->kind);
    add_type(hash, &tensor->type);
    if (tensor->type.dtype == KILN_DTYPE_string) {
        const bool readable = kiln_tensor_is_readable(tensor);
        add(hash, readable ? kiln_tensor_hash_texts(tensor) : 0);
        return;
    }
    add_bytes(hash, tensor->splat, sizeof tensor->splat);
    add(hash, tensor->seed);
    const double numbers[] = { tensor->std, tensor->low, tensor->high };
    add_bytes(hash, numbers, sizeof numbers);
    if (!tensor->bytes)
        return;
    gsize size = 0;
    const char *data = g_bytes_get_data(tensor->bytes, &size);
    gsize sample = MIN(size, (gsize)SAMPLE_BYTES);
    add(hash, size);
    if (sample) {
        add_bytes(hash, data, sample);
        add_bytes(hash, data + size - sample, sample);
    }
}

static void
add_constant(Hash *hash, const KilnConstant *constant)
{
    add_type(hash, &constant->type);
    add_tensor(hash, constant->tensor);
}

/* The table, and the functions that it calls: a pass on the entry may change both. */
static void
add_folding(Hash *hash, const KilnModule *module)
{
    const KilnFolding *folding = module->folding;
    add(hash, folding != NULL);
    for (guint i = 0; folding && i < folding->folds->len; i++) {
        const KilnFold *fold = g_ptr_array_index(folding->folds, i);
        const KilnFunction *function = kiln_module_find_function(module, fold->function);
        add(hash, fold->when);
        add_bytes(hash, fold->operands, fold->n_operands * sizeof *fold->operands);
        if (function)
            add_graph(hash, function);
    }
    if (folding)
        add_bytes(hash, folding->entry->data, folding->entry->len * sizeof(uint32_t));
}

static Hash
hash_tables(const KilnModule *module)
{
    Hash hash = { 0 };
    add(&hash, module->constants->len);
    for (guint i = 0; i < module->constants->len; i++) {
        const KilnConstant *constant = g_ptr_array_index(module->constants, i);
        add_name(&hash, constant->name);
        add_constant(&hash, constant);
    }
    add(&hash, module->declarations->len);
    for (guint i = 0; i < module->declarations->len; i++) {
        const KilnDeclaration *declaration = g_ptr_array_index(module->declarations, i);
        add_text(&hash, declaration->name);
        for (uint32_t k = 0; k < declaration->n_operands; k++)
            add_type(&hash, &declaration->operands[k]);
        for (uint32_t k = 0; k < declaration->n_results; k++)
            add_type(&hash, &declaration->results[k]);
    }
    return hash;
}

KilnHashes
kiln_hash_module_again(const KilnModule *module, KilnKnownHashes *known)
{
    guint n = module->declarations->len;
    const KilnDeclaration *last = n ? g_ptr_array_index(module->declarations, n - 1) : NULL;
    if (!known->hash.state || known->n_constants != module->constants->len ||
        known->removed_constants != module->removed_constants || known->n_declarations != n ||
        known->last_declaration != last)
        *known = (KilnKnownHashes){ hash_tables(module), module->constants->len, n,
                                    module->removed_constants, last };
    Hash hash = known->hash;
    for (guint i = 0; i < module->functions->len; i++) {
        const KilnFunction *function = g_ptr_array_index(module->functions, i);
        add_text(&hash, function->name);
    }
    add_folding(&hash, module);
    return hashes_of(&hash);
}

KilnHashes
kiln_hash_module(const KilnModule *module)
{
    KilnKnownHashes known = { .n_constants = 0 };
    return kiln_hash_module_again(module, &known);
}
