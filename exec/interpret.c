/* SPDX-License-Identifier: Apache-2.0 */
/* The executor: an address per buffer, a kernel call per instruction. */
#include "exec/interpret.h"

#include "exec/chains.h"
#include "exec/interpret_flow.h"
#include "exec/strided_copies.h"
#include "graph/base/alloc.h"
#include "graph/base/budget.h"
#include "graph/arena.h"
#include "graph/binding.h"
#include "ir/define.h"
#include "ir/flow.h"
#include "ir/open.h"
#include "ir/plan.h"
#include "ir/plugin.h"

#include <stdalign.h>
#include <string.h>

enum {
    POISON = 0xFF,
    WORTH_ASKING = 64 * 1024 /* bytes: fewer are copied sooner where they are misaligned */
};

typedef struct {
    const KilnIRFunction *function;
    const KilnTarget *target;
    const KilnInterpretation *run;
    void **data;          /* address per buffer id */
    GBytes **owned;       /* by buffer id: what holds data[id]; NULL where it is another's */
    GPtrArray *held;      /* memory of results that branches and loops hold */
    GPtrArray *bytes;     /* GBytes that hold inputs and const weights */
    GBytes *arena;        /* planned: all allocs */
    KilnMemoryPlan *plan; /* planned and poisoned: the lives */
    uint32_t *by_first;   /* indices of the lives in order of their first step, and last one */
    uint32_t *by_last;
    uint32_t n_begun, n_ended;
    int64_t step;
    int threads;           /* of each kernel */
    KilnTextHeap *texts;   /* what the run makes */
    const KilnInstr *stop; /* a definition whose numbers are wanted, nothing else; or NULL */
    int64_t *numbers;      /* of @stop */
} Machine;

static size_t
bytes_of(const KilnBuffer *buffer)
{
    return (size_t)kiln_type_bytes(&buffer->type);
}

static GBytes *
new_memory(const Machine *machine, size_t size, void **out_data, GError **error)
{
    GBytes *bytes = kiln_bytes_recycle(machine->run->recycler, 1, size, out_data, error);
    if (bytes && machine->run->poison)
        memset(*out_data, POISON, size);
    return bytes;
}

static bool
own(Machine *machine, const KilnBuffer *buffer, GError **error)
{
    machine->owned[buffer->id] =
        new_memory(machine, bytes_of(buffer), &machine->data[buffer->id], error);
    return machine->owned[buffer->id] != NULL;
}

static void
disown(Machine *machine, const KilnBuffer *buffer)
{
    g_clear_pointer(&machine->owned[buffer->id], g_bytes_unref);
    machine->data[buffer->id] = NULL;
}

/* --- what comes from outside --- */

/* True where all kernels that read @buffer take it at any address: no aligned copy is needed then.
 */
static bool
takes_any_address(const Machine *machine, const KilnBuffer *buffer)
{
    kiln_foreach_instr (instr, machine->function) {
        const KilnKernel *kernel = NULL;
        for (uint32_t i = 0; i < instr->n_operands; i++) {
            KilnBuffer *operand = instr->operands[i].buffer;
            if (!operand || kiln_buffer_origin(operand) != buffer)
                continue;
            kernel = kernel ? kernel : kiln_target_find(machine->target, instr);
            if (!kernel || !kiln_kernel_takes_any_address(kernel, i))
                return false;
        }
    }
    return true;
}

static bool
borrow(Machine *machine, const KilnBuffer *buffer, const KilnTensor *tensor, GError **error)
{
    bool as_is = tensor->kind == KILN_TENSOR_DATA && kiln_tensor_storage(tensor) >= WORTH_ASKING &&
                 takes_any_address(machine, buffer);
    GBytes *bytes = as_is ? g_bytes_ref(tensor->bytes) : kiln_tensor_view(tensor, error);
    if (!bytes)
        return false;
    g_ptr_array_add(machine->bytes, bytes);
    machine->data[buffer->id] = (void *)g_bytes_get_data(bytes, NULL);
    if (!machine->data[buffer->id]) /* GLib has no address for no bytes */
        machine->data[buffer->id] = machine->data;
    return true;
}

static gboolean
check_tensor(const KilnBuffer *buffer, const KilnTensor *tensor, GError **error)
{
    const KilnType type = kiln_type_numbers(&buffer->type);
    g_autofree char *expected = kiln_type_to_string(&type);
    if (!tensor)
        return kiln_throw(error, KILN_ERROR_USAGE, "%s: expected %s, found nothing", buffer->name,
                          expected);
    g_autofree char *found = kiln_type_to_string(&tensor->type);
    bool same_shape = type.layout || kiln_type_same_shape(&type, &tensor->type);
    if (buffer->type.dtype != tensor->type.dtype)
        return kiln_throw(error, KILN_ERROR_TYPE, "%s: expected %s, found %s", buffer->name,
                          expected, found);
    /* What lies in a layout may hold padding, of which the tensor's shape says nothing. */
    int64_t bytes = buffer->type.layout && tensor->kind == KILN_TENSOR_DATA
                        ? kiln_tensor_storage(tensor)
                        : kiln_type_bytes(&tensor->type);
    if (!same_shape || kiln_type_bytes(&buffer->type) != bytes)
        return kiln_throw(error, KILN_ERROR_SHAPE, "%s: expected %s, found %s", buffer->name,
                          expected, found);
    return TRUE;
}

static gboolean
set_weight(Machine *machine, const KilnBuffer *buffer, GError **error)
{
    const KilnTensor *tensor = buffer->constant ? buffer->constant->tensor : NULL;
    if (tensor && !check_tensor(buffer, tensor, error))
        return FALSE;
    if (buffer->is_const)
        return borrow(machine, buffer, tensor, error);
    if (!own(machine, buffer, error))
        return FALSE;
    if (!tensor) /* state without a first value begins as zeros */
        memset(machine->data[buffer->id], 0, bytes_of(buffer));
    return !tensor || kiln_tensor_write(tensor, machine->data[buffer->id], error);
}

static gboolean
set_up(Machine *machine, GError **error)
{
    const KilnIRFunction *function = machine->function;
    for (guint i = 0; i < function->weights->len; i++) {
        if (!set_weight(machine, g_ptr_array_index(function->weights, i), error))
            return FALSE;
    }
    for (guint i = 0; i < function->inputs->len; i++) {
        const KilnBuffer *buffer = g_ptr_array_index(function->inputs, i);
        if (!check_tensor(buffer, machine->run->inputs[i], error) ||
            !borrow(machine, buffer, machine->run->inputs[i], error))
            return FALSE;
    }
    for (guint i = 0; i < function->outputs->len; i++) {
        if (!own(machine, g_ptr_array_index(function->outputs, i), error))
            return FALSE;
    }
    return TRUE;
}

/* --- the arena --- */

static int
compare_first(gconstpointer a, gconstpointer b, gpointer lives)
{
    const KilnLife *x = (KilnLife *)lives + *(const uint32_t *)a;
    const KilnLife *y = (KilnLife *)lives + *(const uint32_t *)b;
    return x->first < y->first ? -1 : x->first > y->first;
}

static int
compare_last(gconstpointer a, gconstpointer b, gpointer lives)
{
    const KilnLife *x = (KilnLife *)lives + *(const uint32_t *)a;
    const KilnLife *y = (KilnLife *)lives + *(const uint32_t *)b;
    return x->last < y->last ? -1 : x->last > y->last;
}

static uint32_t *
sorted_lives(KilnMemoryPlan *plan, GCompareDataFunc compare)
{
    uint32_t *order = g_new(uint32_t, plan->n_lives + 1);
    for (uint32_t i = 0; i < plan->n_lives; i++)
        order[i] = i;
    g_qsort_with_data(order, (gint)plan->n_lives, sizeof *order, compare, plan->lives);
    return order;
}

static gboolean
set_up_arena(Machine *machine, GError **error)
{
    const KilnIRFunction *function = machine->function;
    if (!machine->run->planned)
        return TRUE;
    if (function->arena_bytes < 0)
        return kiln_throw(error, KILN_ERROR_USAGE, "@%s has no memory plan", function->name);
    void *arena;
    machine->arena = new_memory(machine, (size_t)function->arena_bytes, &arena, error);
    if (!machine->arena)
        return FALSE;
    for (guint i = 0; i < function->buffers->len; i++) {
        const KilnBuffer *buffer = g_ptr_array_index(function->buffers, i);
        if (buffer && buffer->kind == KILN_BUFFER_ALLOC)
            machine->data[i] = (char *)arena + buffer->offset;
    }
    if (machine->run->poison) {
        machine->plan = kiln_liveness(function, NULL, 1);
        machine->by_first = sorted_lives(machine->plan, compare_first);
        machine->by_last = sorted_lives(machine->plan, compare_last);
    }
    return TRUE;
}

static void
poison_life(const Machine *machine, uint32_t life)
{
    const KilnBuffer *buffer = machine->plan->lives[life].buffer;
    memset(machine->data[buffer->id], POISON, bytes_of(buffer));
}

/* In an arena a life begins with the first instruction that touches it, not with its alloc. */
static void
begin_lives(Machine *machine)
{
    KilnMemoryPlan *plan = machine->plan;
    for (; plan && machine->n_begun < plan->n_lives; machine->n_begun++) {
        uint32_t life = machine->by_first[machine->n_begun];
        if (plan->lives[life].first > machine->step)
            break;
        poison_life(machine, life);
    }
}

static void
end_lives(Machine *machine)
{
    KilnMemoryPlan *plan = machine->plan;
    for (; plan && machine->n_ended < plan->n_lives; machine->n_ended++) {
        uint32_t life = machine->by_last[machine->n_ended];
        if (plan->lives[life].last > machine->step)
            break;
        poison_life(machine, life);
    }
    machine->step++;
}

/* --- instructions --- */

/* Sets @out to new packed weights, or NULL where there is nothing to pack. */
static gboolean
pack(const Machine *machine, const KilnKernel *kernel, const KilnInstr *instr, GBytes **out,
     GError **error)
{
    const uint32_t form = kiln_kernel_form(kernel, instr);
    void *packed;
    *out = NULL;
    size_t size = kiln_kernel_may_pack(kernel, instr) ? kernel->packed_bytes(instr, form) : 0;
    if (!size)
        return TRUE;
    if (!(*out = new_memory(machine, size, &packed, error)))
        return FALSE;
    g_autofree const void **data = g_new0(const void *, instr->n_operands);
    for (uint32_t i = 0; i < instr->n_operands; i++) {
        if (kiln_operand_is_const(instr, i))
            data[i] = machine->data[instr->operands[i].buffer->id];
    }
    const char *message = kernel->pack(instr, form, data, packed, KILN_SLICE_WHOLE);
    return !message || kiln_throw_not_packed(instr, message, error);
}

static gboolean
prepare(const Machine *machine, const KilnKernel *kernel, const KilnInstr *instr, GBytes **out,
        GError **error)
{
    void *prepared;
    if (!kernel->prepare)
        return TRUE;
    if (!(*out = new_memory(machine, kernel->prepared_bytes(instr), &prepared, error)))
        return FALSE;
    kernel->prepare(instr, prepared);
    return TRUE;
}

static gboolean
throw_no_kernel(const Machine *machine, const KilnInstr *instr, GError **error)
{
    g_autoptr(GString) types = g_string_new(NULL);
    for (uint32_t i = 0; i < instr->n_operands; i++) {
        g_string_append(types, i ? ", " : "");
        if (instr->operands[i].buffer)
            kiln_type_print(&instr->operands[i].buffer->type, types);
        else
            g_string_append_c(types, '_');
    }
    return kiln_throw(error, KILN_ERROR_UNSUPPORTED, "%s: target %s has no kernel for %s(%s)",
                      kiln_instr_label(instr), machine->target->name,
                      kiln_instr_info(instr->kind)->name, types->str);
}

static void
free_tensors(KilnTensor **tensors, guint n)
{
    for (guint i = 0; tensors && i < n; i++)
        g_clear_pointer(&tensors[i], kiln_tensor_free);
}

/* A KilnInterpretFn: a function of a branch or loop, by the machine of the call. */
static gboolean
interpret_body(void *data, const KilnIRFunction *function, KilnTensor *const *inputs,
               KilnTensor **outputs, uint64_t seed, GError **error)
{
    const Machine *machine = data;
    KilnInterpretation run = *machine->run;
    run.inputs = (const KilnTensor *const *)inputs;
    run.outputs = outputs;
    run.weights = NULL;
    run.apart = run.planned = false;
    run.seed = seed;
    return kiln_ir_interpret(function, machine->target, &run, error);
}

/* A call runs the body of its region on the target: what a vendor made of it is judged by that. */
static gboolean
call(Machine *machine, const KilnInstr *instr, const KilnDeclaration *callee, GError **error)
{
    g_autoptr(GPtrArray) inputs = g_ptr_array_new_with_free_func((GDestroyNotify)kiln_tensor_free);
    g_autofree KilnTensor **outputs = g_new0(KilnTensor *, callee->n_results + 1);
    for (uint32_t i = callee->n_results; i < instr->n_operands; i++) {
        const KilnBuffer *buffer = instr->operands[i].buffer;
        KilnTensor *tensor = kiln_tensor_new_copy(&buffer->type, machine->data[buffer->id], error);
        if (!tensor)
            return FALSE;
        g_ptr_array_add(inputs, tensor);
    }
    gboolean good = machine->run->evaluate(
        callee->body, machine->target, (const KilnTensor *const *)inputs->pdata, outputs, error);
    for (uint32_t i = 0; good && i < callee->n_results; i++)
        good = kiln_tensor_write(outputs[i], machine->data[instr->operands[i].buffer->id], error);
    free_tensors(outputs, callee->n_results);
    return good;
}

static void *
address_of(GBytes *bytes)
{
    return bytes ? (void *)g_bytes_get_data(bytes, NULL) : NULL;
}

/* There is time for @instr. */
static gboolean
check_time(const Machine *machine, const KilnKernel *kernel, const KilnInstr *instr, GError **error)
{
    if (!kiln_limits_current().ms)
        return TRUE;
    const double us = kiln_kernel_us(machine->target, kernel, instr, machine->threads);
    return kiln_budget_check_work(us, kiln_instr_label(instr), error);
}

static gboolean
throw_reason(const Machine *machine, const KilnInstr *instr, const char *reason, GError **error)
{
    GError *of_texts = kiln_text_heap_take_error(machine->texts);
    const char *label = kiln_instr_label(instr);
    g_autofree char *name = kiln_instr_title(instr);
    if (!of_texts)
        return kiln_throw(error, KILN_ERROR_RUN, "%s (%s): %s", label, name, reason);
    g_propagate_error(error, of_texts);
    kiln_prefix_error(error, "%s (%s): ", label, name);
    return FALSE;
}

static gboolean
compute(Machine *machine, const KilnInstr *instr, GError **error)
{
    if (instr->kind == KILN_INSTR_call && instr->declaration && instr->declaration->body)
        return call(machine, instr, instr->declaration, error);
    const KilnKernel *kernel = kiln_target_find(machine->target, instr);
    if (!kernel)
        return throw_no_kernel(machine, instr, error);
    if (!check_time(machine, kernel, instr, error))
        return FALSE;
    g_autofree void **data = g_new0(void *, instr->n_operands);
    for (uint32_t i = 0; i < instr->n_operands; i++) {
        const KilnBuffer *buffer = instr->operands[i].buffer;
        data[i] = buffer ? machine->data[buffer->id] : NULL;
    }
    const uint32_t form = kiln_kernel_form(kernel, instr);
    size_t scratch_bytes = kiln_kernel_scratch(kernel, instr, form, false, machine->threads);
    alignas(KILN_ALIGNMENT) char nothing[1]; /* kernels add offsets to what is no scratch, too */
    void *scratch = nothing;
    g_autoptr(GBytes) scratch_memory = NULL;
    g_autoptr(GBytes) packed = NULL;
    g_autoptr(GBytes) prepared = NULL;
    KilnFlowInterpreter flow;
    const bool flows = kiln_instr_is_flow(instr->kind);
    kiln_flow_interpreter_init(&flow, interpret_body, machine, machine->held, machine->bytes);
    gboolean good = pack(machine, kernel, instr, &packed, error) &&
                    prepare(machine, kernel, instr, &prepared, error);
    if (good && scratch_bytes)
        good = (scratch_memory = new_memory(machine, scratch_bytes, &scratch, error)) != NULL;
    if (good) {
        KilnKernelFn run = kiln_kernel_entry(kernel, instr);
        const char *reason =
            run(&(KilnKernelArgs){ .instr = instr,
                                   .kernel = kernel,
                                   .data = data,
                                   .scratch = scratch,
                                   .packed = address_of(packed),
                                   .form = form,
                                   .prepared = flows ? (void *)&flow : address_of(prepared),
                                   .threads = machine->threads,
                                   .run_seed = &machine->run->seed,
                                   .texts = machine->texts });
        if (reason == kiln_flow_failed) {
            g_propagate_error(error, flow.error);
            kiln_prefix_error(error, "%s (%s): ", kiln_instr_label(instr),
                              kiln_instr_info(instr->kind)->name);
            good = FALSE;
        } else
            good = !reason || throw_reason(machine, instr, reason, error);
    }
    return good;
}

static gboolean
execute(Machine *machine, const KilnInstr *instr, GError **error)
{
    const KilnBuffer *buffer = kiln_instr_operand(instr, 0);
    switch (instr->kind) {
    case KILN_INSTR_alloc:
        return machine->run->planned || own(machine, buffer, error);
    case KILN_INSTR_dealloc:
        if (!machine->run->planned)
            disown(machine, buffer);
        return TRUE;
    case KILN_INSTR_view:
        machine->data[buffer->id] =
            (char *)machine->data[kiln_buffer_origin((KilnBuffer *)buffer)->id] +
            kiln_buffer_origin_offset(buffer);
        return TRUE;
    default:
        begin_lives(machine);
        if (!compute(machine, instr, error))
            return FALSE;
        end_lives(machine);
        return TRUE;
    }
}

/* --- results --- */

gboolean
kiln_payload_type(const KilnType *type, const char *name, KilnType *out, GError **error)
{
    int64_t dims[2 * KILN_MAX_RANK];
    int rank = type->rank;
    if (type->layout && !kiln_layout_physical(type, &rank, dims, error))
        return FALSE;
    if (rank > KILN_MAX_RANK)
        return kiln_throw(error, KILN_ERROR_UNSUPPORTED,
                          "%s: layout %s has more than %d physical dims", name, type->layout,
                          KILN_MAX_RANK);
    *out = kiln_type_make(type->dtype, rank, type->layout ? dims : type->dims);
    return TRUE;
}

/* The bytes of @buffer, which change hands, as a tensor. */
static KilnTensor *
take_tensor(Machine *machine, const KilnBuffer *buffer, GError **error)
{
    KilnType type;
    if (!kiln_payload_type(&buffer->type, buffer->name, &type, error))
        return NULL;
    g_autoptr(GBytes) bytes = g_steal_pointer(&machine->owned[buffer->id]);
    return kiln_tensor_new_data(&type, bytes, error);
}

static gboolean
take_results(Machine *machine, GError **error)
{
    const KilnIRFunction *function = machine->function;
    KilnTensor **outputs = machine->run->outputs, **weights = machine->run->weights;
    bool good = true;
    memset(outputs, 0, sizeof *outputs * function->outputs->len);
    for (guint i = 0; good && i < function->outputs->len; i++)
        good = (outputs[i] = take_tensor(machine, g_ptr_array_index(function->outputs, i), error));
    for (guint i = 0; weights && i < function->weights->len; i++) {
        const KilnBuffer *buffer = g_ptr_array_index(function->weights, i);
        weights[i] = NULL;
        if (good && !buffer->is_const)
            good = (weights[i] = take_tensor(machine, buffer, error));
    }
    if (good)
        return TRUE;
    free_tensors(outputs, function->outputs->len);
    free_tensors(weights, function->weights->len);
    return FALSE;
}

/* --- chains of instructions --- */

/* Instructions that write no buffer that another chain touches: they may run in any order. */
typedef struct {
    const Machine *machine;
    KilnInstr **instrs; /* in order */
    KilnChains *chains;
    int64_t *bytes;   /* by chain, at most */
    int64_t largest;  /* bytes of a step */
    GError **errors;  /* by chain */
    uint32_t *failed; /* by chain: where */
} Order;

/* @item is of the chain of those that touched @buffer before, unless all only read it. */
static void
touch(KilnChains *chains, uint32_t item, const KilnBuffer *buffer, uint32_t *toucher)
{
    if (buffer->kind == KILN_BUFFER_INPUT || buffer->is_const)
        return; /* only read */
    if (toucher[buffer->id])
        kiln_chains_join(chains, toucher[buffer->id] - 1, item);
    toucher[buffer->id] = item + 1;
}

static void
find_chains(Order *order)
{
    const KilnIRFunction *function = order->machine->function;
    g_autofree uint32_t *toucher = g_new0(uint32_t, function->buffers->len + 1); /* + 1; 0: none */
    uint32_t n = 0;
    order->chains = kiln_chains_new(function->n_instrs);
    order->instrs = g_new(KilnInstr *, (gsize)function->n_instrs + 1);
    kiln_foreach_instr (instr, function) {
        for (uint32_t i = 0; i < instr->n_operands; i++) {
            KilnBuffer *buffer = instr->operands[i].buffer;
            if (!buffer)
                continue;
            touch(order->chains, n, buffer, toucher); /* a view has its address from its `view` */
            touch(order->chains, n, kiln_buffer_origin(buffer), toucher);
        }
        order->instrs[n++] = instr;
    }
    kiln_chains_settle(order->chains);
}

/* What @instr reads and writes; @outside: of what its chain did not allocate. */
static int64_t
step_bytes(const KilnInstr *instr, bool outside)
{
    int64_t bytes = 0;
    for (uint32_t i = 0; i < instr->n_operands; i++) {
        KilnBuffer *buffer = kiln_instr_operand(instr, i);
        if (buffer && !(outside && kiln_buffer_origin(buffer)->kind == KILN_BUFFER_ALLOC))
            bytes += (int64_t)bytes_of(buffer);
    }
    return bytes;
}

static int64_t
chain_bytes(Order *order, uint32_t chain)
{
    int64_t live = 0, most = 0;
    for (uint32_t i = order->chains->begin[chain]; i < order->chains->begin[chain + 1]; i++) {
        const KilnInstr *instr = order->instrs[order->chains->items[i]];
        int64_t all = kiln_instr_is_bookkeeping(instr) ? 0 : step_bytes(instr, false);
        if (instr->kind == KILN_INSTR_alloc)
            live += (int64_t)bytes_of(kiln_instr_operand(instr, 0));
        else if (instr->kind == KILN_INSTR_dealloc)
            live -= (int64_t)bytes_of(kiln_instr_operand(instr, 0));
        else if (all)
            most = MAX(most, live + step_bytes(instr, true));
        order->largest = MAX(order->largest, all);
    }
    return most;
}

/* A KilnChainFn. */
static void
run_chain(void *data, uint32_t chain, int worker, int threads)
{
    const Order *order = data;
    Machine machine = *order->machine; /* whose buffers no other chain touches */
    machine.threads = threads;
    (void)worker;
    for (uint32_t i = order->chains->begin[chain]; i < order->chains->begin[chain + 1]; i++) {
        uint32_t item = order->chains->items[i];
        if (!execute(&machine, order->instrs[item], &order->errors[chain])) {
            order->failed[chain] = item;
            return;
        }
    }
}

/* The error that a run in order would have stopped at. */
static gboolean
first_error(Order *order, GError **error)
{
    GError **first = NULL;
    uint32_t at = UINT32_MAX;
    for (uint32_t c = 0; c < order->chains->n; c++) {
        if (order->errors[c] && order->failed[c] < at) {
            first = &order->errors[c];
            at = order->failed[c];
        }
    }
    if (first)
        g_propagate_error(error, g_steal_pointer(first));
    return first == NULL;
}

static gboolean
run_chains(const Machine *machine, GError **error)
{
    Order order = { .machine = machine };
    find_chains(&order);
    uint32_t n = order.chains->n;
    int64_t outputs = 0;
    order.bytes = g_new0(int64_t, (gsize)n + 1);
    order.errors = g_new0(GError *, (gsize)n + 1);
    order.failed = g_new0(uint32_t, (gsize)n + 1);
    for (uint32_t c = 0; c < n; c++)
        order.bytes[c] = chain_bytes(&order, c);
    for (guint i = 0; i < machine->function->outputs->len; i++)
        outputs += (int64_t)bytes_of(g_ptr_array_index(machine->function->outputs, i));
    kiln_chains_run(order.chains, order.bytes, order.largest + outputs / KILN_CHAINS_SPARE,
                    machine->threads, run_chain, &order);
    gboolean good = first_error(&order, error);
    for (uint32_t c = 0; c < n; c++)
        g_clear_error(&order.errors[c]);
    g_free(order.errors);
    g_free(order.failed);
    g_free(order.bytes);
    g_free(order.instrs);
    kiln_chains_free(order.chains);
    return good;
}

static void
read_numbers(const Machine *machine)
{
    const KilnBuffer *buffer = kiln_instr_operand(machine->stop, 0);
    const void *data = machine->data[buffer->id];
    bool wide = buffer->type.dtype == KILN_DTYPE_i64;
    for (int64_t i = 0; i < kiln_type_elements(&buffer->type); i++)
        machine->numbers[i] = wide ? ((const int64_t *)data)[i] : ((const int32_t *)data)[i];
}

static gboolean
run_in_order(Machine *machine, GError **error)
{
    kiln_foreach_instr (instr, machine->function) {
        if (instr == machine->stop) {
            read_numbers(machine);
            return TRUE;
        }
        if (!execute(machine, instr, error))
            return FALSE;
    }
    return TRUE;
}

/* Branches, loops and items are made on one thread. */
static bool
needs_one_thread(const KilnIRFunction *function)
{
    kiln_foreach_instr (instr, function) {
        if (kiln_instr_is_flow(instr->kind))
            return true;
        for (uint32_t i = 0; i < instr->n_operands; i++) {
            const KilnBuffer *buffer = instr->operands[i].buffer;
            if (buffer && kiln_dtype_is_item(buffer->type.dtype))
                return true;
        }
    }
    return false;
}

static gboolean
run_machine(Machine *machine, GError **error)
{
    kiln_text_heap_limit(machine->texts, kiln_limits_current().bytes);
    if (!set_up(machine, error) || !set_up_arena(machine, error))
        return FALSE;
    bool apart = machine->run->apart && machine->threads > 1 && !machine->stop &&
                 !needs_one_thread(machine->function);
    gboolean good = apart ? run_chains(machine, error) : run_in_order(machine, error);
    return good && (machine->stop || take_results(machine, error));
}

/* The whole of @function, or up to @stop, whose numbers @numbers gets. */
static gboolean
interpret(const KilnIRFunction *function, const KilnTarget *target, const KilnInterpretation *run,
          const KilnInstr *stop, int64_t *numbers, GError **error)
{
    guint n = function->buffers->len;
    Machine machine = { .function = function,
                        .target = target,
                        .run = run,
                        .threads = MAX(run->threads, 1),
                        .data = g_new0(void *, n + 1),
                        .owned = g_new0(GBytes *, n + 1),
                        .held = g_ptr_array_new_with_free_func(kiln_free),
                        .bytes = g_ptr_array_new_with_free_func((GDestroyNotify)g_bytes_unref),
                        .texts = kiln_text_heap_new(),
                        .stop = stop,
                        .numbers = numbers };
    gboolean good = run_machine(&machine, error);
    for (guint i = 0; i < n; i++)
        g_clear_pointer(&machine.owned[i], g_bytes_unref);
    kiln_memory_plan_free(machine.plan);
    g_clear_pointer(&machine.arena, g_bytes_unref);
    g_free(machine.by_first);
    g_free(machine.by_last);
    g_free(machine.data);
    g_free(machine.owned);
    g_ptr_array_unref(machine.bytes);
    g_ptr_array_unref(machine.held);
    kiln_text_heap_free(machine.texts);
    return good;
}

/* --- dims that data decides --- */

static const KilnInstr *
find_define(const KilnIRFunction *function, uint32_t k)
{
    const KilnInstr *instr = function->first;
    while (instr && (instr->kind != KILN_INSTR_define || k-- > 0))
        instr = instr->next;
    return instr;
}

static void
set_number(KilnDimBinding *binding, const char *name, int64_t number)
{
    for (uint32_t i = 0; i < binding->n; i++) {
        if (strcmp(binding->names[i].name, name) == 0)
            binding->names[i].number = number;
    }
}

/* Runs up to each definition in turn, each time from the start, on a copy that stands at the
 * numbers so far. The copy has no plan, for it has other sizes. */
static gboolean
interpret_stages(const KilnIRFunction *function, const KilnDefines *defines,
                 const KilnTarget *target, const KilnInterpretation *run, GError **error)
{
    g_autoptr(KilnArena) arena = kiln_arena_new();
    KilnDimBinding *binding = kiln_dim_binding_copy(arena, function->open->binding);
    KilnInterpretation unplanned = *run;
    unplanned.planned = false;
    for (guint k = 0;; k++) {
        const KilnInstr *defined = k < defines->instrs->len ? defines->instrs->pdata[k] : NULL;
        g_autoptr(KilnIRFunction) copy = kiln_open_copy_stage(function, binding, k, error);
        int64_t numbers[KILN_KNOWN_MAX];
        if (!copy || !interpret(copy, target, &unplanned, defined ? find_define(copy, k) : NULL,
                                numbers, error))
            return FALSE;
        if (!defined)
            return TRUE;
        const KilnInts *values = &kiln_instr_attrs(defined, define)->values;
        for (uint32_t i = 0; i < values->n; i++)
            set_number(binding, kiln_dim_as_name(values->open[i]), numbers[i]);
    }
}

gboolean
kiln_ir_interpret(const KilnIRFunction *function, const KilnTarget *target,
                  const KilnInterpretation *run, GError **error)
{
    g_autoptr(KilnDefines) defines = kiln_defines_new(function);
    return defines ? interpret_stages(function, defines, target, run, error)
                   : interpret(function, target, run, NULL, NULL, error);
}
