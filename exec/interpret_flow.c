/* SPDX-License-Identifier: Apache-2.0 */
#include "exec/interpret_flow.h"

#include "graph/arena.h"
#include "graph/base/alloc.h"
#include "graph/base/budget.h"
#include "graph/binding.h"
#include "ir/instr.h"
#include "ir/ir.h"
#include "ir/kernel.h"
#include "ir/open.h"

#include <string.h>

/* --- functions --- */

static void
set_name(KilnDimBinding *binding, const char *name, int64_t number)
{
    for (uint32_t i = 0; i < binding->n; i++) {
        if (strcmp(binding->names[i].name, name) == 0)
            binding->names[i].number = number;
    }
}

static bool
is_stated(const KilnStrings *names, const char *name)
{
    for (uint32_t i = 0; i < names->n; i++) {
        if (strcmp(names->v[i], name) == 0)
            return true;
    }
    return false;
}

/* @function at the numbers of @instr and at the dims of @inputs; itself where it is static. */
static KilnIRFunction *
stand(const KilnInstr *instr, KilnIRFunction *function, KilnTensor *const *inputs, GError **error)
{
    const KilnStrings *names = kiln_flow_names(instr);
    const KilnInts *numbers = kiln_flow_numbers(instr);
    if (!function->open)
        return kiln_ir_function_copy(function);
    g_autoptr(KilnArena) arena = kiln_arena_new();
    KilnDimBinding *binding = kiln_dim_binding_copy(arena, function->open->binding);
    for (uint32_t i = 0; i < names->n; i++)
        set_name(binding, names->v[i], numbers->v[i]);
    for (guint i = 0; i < function->inputs->len; i++) {
        const KilnType *type = &((const KilnBuffer *)g_ptr_array_index(function->inputs, i))->type;
        for (int d = 0; d < type->rank; d++) {
            const char *name = kiln_type_dim_name(type, d);
            if (name && !is_stated(names, name))
                set_name(binding, name, inputs[i]->type.dims[d]);
        }
    }
    return kiln_open_copy_defined(function, binding, error);
}

/* Interprets @function on @inputs. @outputs: new tensors. */
static gboolean
run_function(const KilnFlowInterpreter *self, const KilnInstr *instr, KilnIRFunction *function,
             KilnTensor *const *inputs, KilnTensor **outputs, uint64_t seed, GError **error)
{
    g_autoptr(KilnIRFunction) copy = stand(instr, function, inputs, error);
    for (guint i = 0; copy && i < copy->inputs->len; i++) {
        const KilnBuffer *input = g_ptr_array_index(copy->inputs, i);
        int64_t expected = kiln_type_bytes(&input->type);
        int64_t found = kiln_type_bytes(&inputs[i]->type);
        if (expected != found)
            return kiln_throw(error, KILN_ERROR_SHAPE,
                              "input %s: expected %" G_GINT64_FORMAT
                              " bytes, found %" G_GINT64_FORMAT,
                              input->name, expected, found);
    }
    return copy && self->interpret(self->data, copy, inputs, outputs, seed, error);
}

/* --- values --- */

/* The tensors of a list, owned. */
static void
free_tensors(GPtrArray *list)
{
    for (guint i = 0; i < list->len; i++)
        kiln_tensor_free(g_ptr_array_index(list, i));
    g_ptr_array_unref(list);
}

static KilnTensor *
operand_tensor(const KilnInstr *instr, uint32_t i, void *const *data, GError **error)
{
    const KilnType type = kiln_type_numbers(&instr->operands[i].buffer->type);
    return kiln_tensor_new_copy(&type, data[i], error);
}

static KilnTensor *
scalar_tensor(KilnDType dtype, const void *value, GError **error)
{
    const KilnType type = kiln_type_scalar(dtype);
    return kiln_tensor_new_copy(&type, value, error);
}

static gboolean
read_flag(const KilnTensor *tensor, bool *out, GError **error)
{
    g_autoptr(GBytes) bytes = kiln_tensor_view(tensor, error);
    if (bytes)
        *out = *(const uint8_t *)g_bytes_get_data(bytes, NULL) != 0;
    return bytes != NULL;
}

/* --- results --- */

enum {
    HELD_BYTES = 64 /* of a KilnHeld in front of its data, which stay aligned */
};

/* A call whose results are written. */
typedef struct {
    KilnFlowInterpreter *self;
    const KilnInstr *instr;
    KilnFlowOperands at;
    void *const *data;
    uint32_t direct, index; /* the next of either kind */
} Results;

static void
write_counts(const Results *results, uint32_t r, const int64_t *dims)
{
    const KilnInts *decided = kiln_flow_decided(results->instr);
    int64_t *counts = results->data[results->at.counts];
    for (uint32_t i = 0; i + 1 < decided->n; i += 2) {
        if (decided->v[i] == r)
            counts[i / 2] = dims[decided->v[i + 1]];
    }
}

/* Where result @r of @bytes and @dims goes: its operand, or memory that is held. */
static void *
place_result(Results *results, uint32_t r, size_t bytes, const int64_t *dims, GError **error)
{
    if (!kiln_flow_is_held(results->instr, r)) {
        uint32_t i = results->direct++;
        const KilnBuffer *buffer = results->instr->operands[i].buffer;
        if ((size_t)kiln_type_bytes(&buffer->type) == bytes)
            return results->data[i];
        return kiln_throw_null(error, KILN_ERROR_RUN,
                               "result %s: expected %" G_GINT64_FORMAT " bytes, found %zu",
                               buffer->name, kiln_type_bytes(&buffer->type), bytes);
    }
    KilnHeld *held = kiln_alloc_for("what a loop carries", 1, bytes + HELD_BYTES, error);
    if (!held)
        return NULL;
    void *memory = (char *)held + HELD_BYTES;
    *held = (KilnHeld){ memory, bytes };
    g_ptr_array_add(results->self->held, held);
    ((int64_t *)results->data[results->at.held])[results->index++] = (int64_t)(uintptr_t)held;
    write_counts(results, r, dims);
    return memory;
}

/* The texts and items in @tensor stay until the run ends. */
static void
keep_alive(const Results *results, const KilnTensor *tensor)
{
    if (kiln_dtype_is_address(tensor->type.dtype) && tensor->bytes)
        g_ptr_array_add(results->self->bytes, g_bytes_ref(tensor->bytes));
}

static gboolean
write_result(Results *results, uint32_t r, const KilnTensor *tensor, GError **error)
{
    void *to =
        place_result(results, r, (size_t)kiln_type_bytes(&tensor->type), tensor->type.dims, error);
    keep_alive(results, tensor);
    return to && kiln_tensor_write(tensor, to, error);
}

/* The elements of @list, of type @type where there is none, one behind the other. */
static gboolean
write_stack(Results *results, uint32_t r, const GPtrArray *list, const KilnType *type,
            bool backwards, GError **error)
{
    const KilnTensor *first = list->len ? g_ptr_array_index(list, 0) : NULL;
    int64_t dims[KILN_MAX_RANK] = { list->len };
    size_t bytes = first ? (size_t)kiln_type_bytes(&first->type) : 0;
    for (int d = 0; d < type->rank; d++)
        dims[d + 1] = first ? first->type.dims[d] : type->open[d] ? 0 : type->dims[d];
    char *to = place_result(results, r, bytes * list->len, dims, error);
    for (guint i = 0; to && i < list->len; i++) {
        const KilnTensor *element = g_ptr_array_index(list, backwards ? list->len - 1 - i : i);
        if (!kiln_type_same_shape(&element->type, &first->type))
            return kiln_throw(error, KILN_ERROR_RUN,
                              "result %u: expected values of one shape, found another one", r);
        keep_alive(results, element);
        if (!kiln_tensor_write(element, to + i * bytes, error))
            return FALSE;
    }
    return to != NULL;
}

/* --- branches --- */

static gboolean
run_branch(KilnFlowInterpreter *self, const KilnKernelArgs *args, GError **error)
{
    const KilnInstr *instr = args->instr;
    Results results = { self, instr, kiln_flow_operands(instr), args->data, 0, 0 };
    const bool taken = *(const uint8_t *)args->data[results.at.condition];
    KilnIRFunction *function = kiln_flow_function(instr, !taken);
    GPtrArray *inputs = g_ptr_array_new();
    g_autofree KilnTensor **outputs = g_new0(KilnTensor *, function->outputs->len + 1);
    gboolean good = TRUE;
    for (uint32_t i = 0; good && i < results.at.n_captures; i++) {
        KilnTensor *tensor = operand_tensor(instr, results.at.captures + i, args->data, error);
        good = tensor != NULL;
        if (good)
            g_ptr_array_add(inputs, tensor);
    }
    good = good && run_function(self, instr, function, (KilnTensor *const *)inputs->pdata, outputs,
                                *args->run_seed, error);
    for (uint32_t r = 0; good && r < function->outputs->len; r++)
        good = write_result(&results, r, outputs[r], error);
    for (guint r = 0; r < function->outputs->len; r++)
        kiln_tensor_free(outputs[r]);
    free_tensors(inputs);
    return good;
}

/* --- loops --- */

typedef struct {
    KilnFlowInterpreter *self;
    const KilnKernelArgs *args;
    KilnFlowOperands at;
    KilnIRFunction *body;
    uint32_t asks;
    KilnTensor **carried; /* owned */
    GPtrArray **stacks;   /* KilnTensor*, owned */
    bool goes_on;
} Loop;

/* Row @i of scanned operand @s. */
static KilnTensor *
scanned_row(const Loop *loop, uint32_t s, int64_t i, GError **error)
{
    const KilnType whole =
        kiln_type_numbers(&loop->args->instr->operands[loop->at.scanned + s].buffer->type);
    KilnType type = kiln_type_make(whole.dtype, whole.rank - 1, whole.dims + 1);
    int64_t row = kiln_flow_goes_backwards(loop->args->instr, s) ? whole.dims[0] - 1 - i : i;
    const char *data = loop->args->data[loop->at.scanned + s];
    return kiln_tensor_new_copy(&type, data + row * kiln_type_bytes(&type), error);
}

/* Tensors for all inputs of the body in iteration @i. */
static GPtrArray *
make_inputs(const Loop *loop, int64_t i, GError **error)
{
    GPtrArray *inputs = g_ptr_array_new();
    const uint8_t goes_on = loop->goes_on;
    const KilnFlowOperands *at = &loop->at;
    uint32_t n = 2 + at->n_carried + at->n_scanned + at->n_captures;
    for (uint32_t k = 0; k < n; k++) {
        uint32_t carried = k - 2, scanned = carried - at->n_carried;
        KilnTensor *tensor =
            k == 0                    ? scalar_tensor(KILN_DTYPE_i64, &i, error)
            : k == 1                  ? scalar_tensor(KILN_DTYPE_bool, &goes_on, error)
            : carried < at->n_carried ? kiln_tensor_copy(loop->carried[carried])
            : scanned < at->n_scanned
                ? scanned_row(loop, scanned, i, error)
                : operand_tensor(loop->args->instr, at->captures + scanned - at->n_scanned,
                                 loop->args->data, error);
        if (!tensor) {
            free_tensors(inputs);
            return NULL;
        }
        g_ptr_array_add(inputs, tensor);
    }
    return inputs;
}

static gboolean
iterate(Loop *loop, int64_t i, GError **error)
{
    g_autofree KilnTensor **outputs = g_new0(KilnTensor *, loop->body->outputs->len + 1);
    GPtrArray *inputs = make_inputs(loop, i, error);
    gboolean good =
        inputs && kiln_checkpoint(error) &&
        run_function(loop->self, loop->args->instr, loop->body, (KilnTensor *const *)inputs->pdata,
                     outputs, kiln_flow_seed(*loop->args->run_seed, i), error);
    if (inputs)
        free_tensors(inputs);
    if (!good)
        return FALSE;
    loop->goes_on = true;
    if (loop->asks)
        good = read_flag(outputs[0], &loop->goes_on, error);
    for (uint32_t r = 0; r < loop->at.n_results; r++) {
        KilnTensor *tensor = outputs[loop->asks + r];
        if (r < loop->at.n_carried) {
            kiln_tensor_free(loop->carried[r]);
            loop->carried[r] = tensor;
        } else {
            g_ptr_array_add(loop->stacks[r - loop->at.n_carried], tensor);
        }
    }
    if (loop->asks)
        kiln_tensor_free(outputs[0]);
    return good;
}

static gboolean
begin(Loop *loop, int64_t *out_limit, GError **error)
{
    const KilnFlowOperands *at = &loop->at;
    void *const *data = loop->args->data;
    int64_t limit = at->limit == UINT32_MAX ? INT64_MAX : *(const int64_t *)data[at->limit];
    if (!kiln_flow_scanned_length(loop->args->instr, out_limit, error))
        return FALSE;
    *out_limit = MIN(*out_limit, limit);
    loop->goes_on = at->condition == UINT32_MAX || *(const uint8_t *)data[at->condition];
    for (uint32_t k = 0; k < at->n_carried; k++) {
        loop->carried[k] = operand_tensor(loop->args->instr, at->carried + k, data, error);
        if (!loop->carried[k])
            return FALSE;
    }
    return TRUE;
}

static gboolean
finish(const Loop *loop, GError **error)
{
    Results results = { loop->self, loop->args->instr, loop->at, loop->args->data, 0, 0 };
    for (uint32_t r = 0; r < loop->at.n_results; r++) {
        uint32_t s = r - loop->at.n_carried;
        const KilnBuffer *output = g_ptr_array_index(loop->body->outputs, loop->asks + r);
        if (!(r < loop->at.n_carried
                  ? write_result(&results, r, loop->carried[r], error)
                  : write_stack(&results, r, loop->stacks[s], &output->type,
                                kiln_flow_goes_backwards(loop->args->instr, loop->at.n_scanned + s),
                                error)))
            return FALSE;
    }
    return TRUE;
}

static gboolean
run_loop(KilnFlowInterpreter *self, const KilnKernelArgs *args, GError **error)
{
    Loop loop = { .self = self,
                  .args = args,
                  .at = kiln_flow_operands(args->instr),
                  .body = kiln_flow_function(args->instr, false),
                  .asks = kiln_instr_attrs(args->instr, loop)->asks ? 1 : 0 };
    uint32_t n_stacks = loop.at.n_results - loop.at.n_carried;
    int64_t limit;
    loop.carried = g_new0(KilnTensor *, (gsize)loop.at.n_carried + 1);
    loop.stacks = g_new0(GPtrArray *, (gsize)n_stacks + 1);
    for (uint32_t s = 0; s < n_stacks; s++)
        loop.stacks[s] = g_ptr_array_new();
    gboolean good = begin(&loop, &limit, error);
    for (int64_t i = 0; good && i < limit && loop.goes_on; i++)
        good = iterate(&loop, i, error);
    good = good && finish(&loop, error);
    for (uint32_t k = 0; k < loop.at.n_carried; k++)
        kiln_tensor_free(loop.carried[k]);
    for (uint32_t s = 0; s < n_stacks; s++)
        free_tensors(loop.stacks[s]);
    g_free(loop.carried);
    g_free(loop.stacks);
    return good;
}

/* --- the runner --- */

static const char *
run(KilnFlowRunner *runner, const KilnKernelArgs *args)
{
    KilnFlowInterpreter *self = (KilnFlowInterpreter *)runner;
    gboolean good = args->instr->kind == KILN_INSTR_branch ? run_branch(self, args, &self->error)
                                                           : run_loop(self, args, &self->error);
    return good ? NULL : kiln_flow_failed;
}

void
kiln_flow_interpreter_init(KilnFlowInterpreter *self, KilnInterpretFn interpret, void *data,
                           GPtrArray *held, GPtrArray *bytes)
{
    *self = (KilnFlowInterpreter){ { run }, interpret, data, held, bytes, NULL };
}
