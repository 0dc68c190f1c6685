/* SPDX-License-Identifier: Apache-2.0 */
/* A body becomes a list of bound kernels, once: which kernel, where in the scratch its operands
 * lie, what it packs and prepares. A run fills in the addresses. */
#include "exec/custom.h"

#include "exec/strided_copies.h"
#include "graph/base/alloc.h"
#include "graph/function.h"
#include "graph/module/layout.h"
#include "ir/cache.h"
#include "ir/plan.h"
#include "ir/vendor.h"

typedef enum {
    AT_NOTHING, /* the operand is absent */
    AT_OPERAND, /* of the custom_op */
    AT_SCRATCH,
    AT_LITERAL,
} Place;

typedef struct {
    Place place;
    uint32_t operand;
    int64_t offset;
    void *literal;
} Address;

typedef struct {
    const KilnInstr *instr;
    const KilnKernel *kernel;
    KilnKernelFn run;
    void *packed, *prepared; /* owned */
    int64_t scratch;         /* negative: none */
    uint32_t first;          /* of the addresses */
    uint32_t form;           /* of packed weights */
    bool parallel;
} Step;

struct KilnCustom {
    KilnCached cached;
    KilnModule *module; /* the body as it lies, numbered */
    KilnIRFunction *function;
    GArray *steps;     /* Step */
    GArray *addresses; /* Address, of all steps */
    void **literals;   /* by buffer id, owned */
    int64_t arena;     /* bytes of scratch in front of the addresses */
};

static KilnCache cache = KILN_CACHE_INIT; /* of KilnCustom */

/* --- layouts --- */

/* A reader of @value computes on the loops over it. */
static bool
is_followed(const KilnValue *value)
{
    kiln_foreach_use (use, value) {
        const KilnNode *user = use->user;
        if (user->n_results == 1 && kiln_layout_follows(user, use->index, &user->results[0].type))
            return true;
    }
    return false;
}

/* @node computes in the layout, on operands all of which lie as it wants them. */
static bool
carries(const KilnNode *node, const char *tag, GHashTable *laid)
{
    if (node->n_results != 1 || !tag)
        return false;
    KilnType result = node->results[0].type;
    result.layout = tag;
    if (!kiln_layout_carries(node, &result))
        return false;
    for (uint32_t i = 0; i < node->n_operands; i++) {
        const KilnValue *value = node->operands[i].value;
        if (value && kiln_layout_follows(node, i, &result) != g_hash_table_contains(laid, value))
            return false;
    }
    return true;
}

GHashTable *
kiln_custom_laid(const KilnFunction *body, KilnTagFn tag, uint32_t layout)
{
    g_autoptr(GHashTable) laid = g_hash_table_new(NULL, NULL);
    for (guint i = 0; i < body->arguments->len; i++) {
        KilnValue *value = &kiln_function_argument(body, i)->value;
        if (is_followed(value) && tag(layout, value->type.rank))
            g_hash_table_add(laid, value);
    }
    kiln_foreach_node (node, body) {
        if (node->op == KILN_OP_const || node->op == KILN_OP_return)
            continue;
        if (!carries(node, tag(layout, node->results[0].type.rank), laid))
            return NULL;
        g_hash_table_add(laid, &node->results[0]);
    }
    return g_steal_pointer(&laid);
}

/* The arguments of @body lie so from now on, and what is computed of them. */
static gboolean
lay(KilnFunction *body, KilnTagFn tag, uint32_t layout, GError **error)
{
    g_autoptr(GHashTable) laid = kiln_custom_laid(body, tag, layout);
    if (!laid)
        return kiln_throw(error, KILN_ERROR_UNSUPPORTED, "its operators mean something else there");
    for (guint i = 0; i < body->arguments->len; i++) {
        KilnValue *value = &kiln_function_argument(body, i)->value;
        if (g_hash_table_contains(laid, value))
            value->type.layout = tag(layout, value->type.rank);
    }
    return kiln_function_reinfer(body, error);
}

/* --- making --- */

static void
custom_free(KilnShared *shared)
{
    KilnCustom *custom = (KilnCustom *)shared;
    for (guint i = 0; i < custom->steps->len; i++) {
        kiln_free(g_array_index(custom->steps, Step, i).packed);
        kiln_free(g_array_index(custom->steps, Step, i).prepared);
    }
    for (guint i = 0; i < custom->function->buffers->len; i++)
        kiln_free(custom->literals[i]);
    g_free(custom->literals);
    g_array_unref(custom->steps);
    g_array_unref(custom->addresses);
    kiln_ir_function_free(custom->function);
    kiln_module_free(custom->module);
    g_free(custom);
}

static gboolean
add_literals(KilnCustom *custom, GError **error)
{
    for (guint i = 0; i < custom->function->weights->len; i++) {
        const KilnBuffer *weight = g_ptr_array_index(custom->function->weights, i);
        void **literal = &custom->literals[weight->id];
        *literal = kiln_alloc_for("a constant", 1, (size_t)kiln_type_bytes(&weight->type), error);
        if (!*literal || !kiln_tensor_write(weight->constant->tensor, *literal, error))
            return FALSE;
    }
    return TRUE;
}

static uint32_t
index_in(const GPtrArray *buffers, const KilnBuffer *buffer)
{
    uint32_t i = 0;
    while (g_ptr_array_index(buffers, i) != buffer)
        i++;
    return i;
}

static Address
address_of(const KilnCustom *custom, KilnBuffer *buffer)
{
    Address address = { .place = AT_NOTHING };
    if (!buffer)
        return address;
    const KilnIRFunction *function = custom->function;
    const KilnBuffer *origin = kiln_buffer_origin(buffer);
    address.offset = kiln_buffer_origin_offset(buffer);
    switch (origin->kind) {
    case KILN_BUFFER_WEIGHT:
        address.place = AT_LITERAL;
        address.literal = (char *)custom->literals[origin->id] + address.offset;
        break;
    case KILN_BUFFER_OUTPUT:
        address.place = AT_OPERAND;
        address.operand = index_in(function->outputs, origin);
        break;
    case KILN_BUFFER_INPUT:
        address.place = AT_OPERAND;
        address.operand = function->outputs->len + index_in(function->inputs, origin);
        break;
    default:
        address.place = AT_SCRATCH;
        address.offset += origin->offset;
    }
    return address;
}

static gboolean
bind_weights(const KilnCustom *custom, Step *step, GError **error)
{
    const KilnKernel *kernel = step->kernel;
    const KilnInstr *instr = step->instr;
    size_t size = kiln_kernel_may_pack(kernel, instr) ? kernel->packed_bytes(instr, step->form) : 0;
    if (size) {
        if (!(step->packed = kiln_alloc_for("packed weights", 1, size, error)))
            return FALSE;
        g_autofree const void **data = g_new0(const void *, instr->n_operands);
        for (uint32_t i = 0; i < instr->n_operands; i++) {
            if (kiln_operand_is_const(instr, i))
                data[i] = address_of(custom, instr->operands[i].buffer).literal;
        }
        const char *message = kernel->pack(instr, step->form, data, step->packed, KILN_SLICE_WHOLE);
        if (message)
            return kiln_throw_not_packed(instr, message, error);
    }
    if (kernel->prepare) {
        if (!(step->prepared = kiln_alloc_for("what a kernel prepares", 1,
                                              kernel->prepared_bytes(instr), error)))
            return FALSE;
        kernel->prepare(instr, step->prepared);
    }
    return TRUE;
}

static gboolean
add_step(const KilnCustom *custom, const KilnInstr *instr, const KilnTarget *target, GError **error)
{
    Step step = { .instr = instr,
                  .kernel = kiln_target_find(target, instr),
                  .scratch = -1,
                  .first = custom->addresses->len };
    if (!step.kernel)
        return kiln_throw(error, KILN_ERROR_UNSUPPORTED, "target %s has no kernel for %s",
                          target->name, kiln_instr_info(instr->kind)->name);
    step.form = kiln_kernel_form(step.kernel, instr);
    step.parallel = kiln_instr_is_parallel(instr);
    step.run = kiln_kernel_entry(step.kernel, instr);
    gboolean good = bind_weights(custom, &step, error);
    for (uint32_t i = 0; i < instr->n_operands; i++) {
        Address address = address_of(custom, instr->operands[i].buffer);
        g_array_append_val(custom->addresses, address);
    }
    g_array_append_val(custom->steps, step);
    return good;
}

/* Intermediates and scratch of kernels share one arena. */
static gboolean
plan(KilnCustom *custom, const KilnTarget *target, int threads, GError **error)
{
    g_autoptr(KilnMemoryPlan) plan = kiln_memory_plan(custom->function, target, threads, error);
    if (!plan)
        return FALSE;
    custom->arena = plan->arena;
    kiln_foreach_instr (instr, custom->function) {
        if (!kiln_instr_is_bookkeeping(instr) && !add_step(custom, instr, target, error))
            return FALSE;
    }
    for (uint32_t i = 0; i < plan->n_lives; i++) {
        for (guint s = 0; plan->lives[i].scratch_of && s < custom->steps->len; s++) {
            Step *step = &g_array_index(custom->steps, Step, s);
            if (step->instr == plan->lives[i].scratch_of)
                step->scratch = plan->lives[i].offset;
        }
    }
    return TRUE;
}

typedef struct {
    KilnModule *module; /* taken over */
    const KilnTarget *target;
    int threads;
} Task;

static KilnCached *
make(void *data, GError **error)
{
    Task *task = data;
    KilnIRFunction *function = kiln_lower(kiln_module_entry(task->module), error);
    if (!function)
        return NULL;
    KilnCustom *custom = g_new0(KilnCustom, 1);
    atomic_init(&custom->cached.shared.references, 1);
    custom->cached.shared.destroy = custom_free;
    custom->module = g_steal_pointer(&task->module);
    custom->function = function;
    custom->steps = g_array_new(FALSE, FALSE, sizeof(Step));
    custom->addresses = g_array_new(FALSE, FALSE, sizeof(Address));
    custom->literals = g_new0(void *, function->buffers->len + 1);
    if (add_literals(custom, error) && plan(custom, task->target, task->threads, error))
        return &custom->cached;
    custom_free(&custom->cached.shared);
    return NULL;
}

KilnCustom *
kiln_custom_get(const KilnFunction *body, KilnTagFn tag, uint32_t layout, const KilnTarget *target,
                int threads, GError **error)
{
    g_autoptr(KilnModule) module = kiln_region_module(body, error);
    g_autoptr(GString) key = g_string_new(NULL);
    if (!module || (tag && !lay(kiln_module_entry(module), tag, layout, error)))
        return NULL;
    g_string_printf(key, "%s %s, %d threads\n", target->name, kiln_isa_name(target->isa), threads);
    if (!kiln_module_print(module, NULL, key, error))
        return NULL;
    Task task = { g_steal_pointer(&module), target, threads };
    KilnCached *found = kiln_cache_get(&cache, key->str, make, &task, error);
    g_clear_pointer(&task.module, kiln_module_free);
    return (KilnCustom *)found;
}

KilnShared *
kiln_custom_shared(KilnCustom *custom)
{
    return custom ? &custom->cached.shared : NULL;
}

uint64_t
kiln_custom_made(void)
{
    return kiln_cache_made(&cache);
}

/* --- what was made --- */

const KilnType *
kiln_custom_type(const KilnCustom *custom, uint32_t i)
{
    uint32_t n_out = custom->function->outputs->len;
    const KilnBuffer *buffer = i < n_out ? g_ptr_array_index(custom->function->outputs, i)
                                         : g_ptr_array_index(custom->function->inputs, i - n_out);
    return &buffer->type;
}

size_t
kiln_custom_scratch(const KilnCustom *custom)
{
    return (size_t)custom->arena + sizeof(void *) * custom->addresses->len;
}

void
kiln_custom_describe(const KilnCustom *custom, GString *out)
{
    for (guint i = 0; i < custom->steps->len; i++)
        g_string_append_printf(out, "%s%s", i ? ", " : "",
                               g_array_index(custom->steps, Step, i).kernel->name);
}

static void *
resolve(const Address *address, void *const *data, char *scratch)
{
    switch (address->place) {
    case AT_OPERAND:
        return (char *)data[address->operand] + address->offset;
    case AT_SCRATCH:
        return scratch + address->offset;
    case AT_LITERAL:
        return address->literal;
    default:
        return NULL;
    }
}

const char *
kiln_custom_run(const KilnCustom *custom, void *const *data, void *scratch, int threads)
{
    void **addresses = (void *)((char *)scratch + custom->arena);
    for (guint i = 0; i < custom->addresses->len; i++)
        addresses[i] = resolve(&g_array_index(custom->addresses, Address, i), data, scratch);
    for (guint i = 0; i < custom->steps->len; i++) {
        const Step *step = &g_array_index(custom->steps, Step, i);
        const char *message =
            step->run(&(KilnKernelArgs){ .instr = step->instr,
                                         .kernel = step->kernel,
                                         .data = addresses + step->first,
                                         .scratch = (char *)scratch + MAX(step->scratch, 0),
                                         .packed = step->packed,
                                         .form = step->form,
                                         .prepared = step->prepared,
                                         .threads = step->parallel ? threads : 1 });
        if (message)
            return message;
    }
    return NULL;
}
