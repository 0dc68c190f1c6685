/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel cache: compiled regions of this process by their content. An entry goes with the last
 * reference to it. */
#include "ir/vendor.h"

#include "graph/outline.h"
#include "graph/text/text.h"

#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards what is below */
static GHashTable *cache; /* key, the compiled region's own → KilnCompiled, without a reference;
                             NULL while it is empty */
static uint64_t n_compiled;

const KilnKernel *
kiln_call_kernel(const KilnInstr *instr)
{
    const KilnCompiled *compiled = kiln_call_compiled(instr);
    return compiled ? &compiled->kernel : NULL;
}

KilnModule *
kiln_region_module(const KilnFunction *body, GError **error)
{
    g_autoptr(KilnModule) module = kiln_module_new();
    KilnFunction *copy = kiln_body_copy(module, body, true, error);
    if (!copy)
        return NULL;
    g_ptr_array_add(module->functions, copy);
    return g_steal_pointer(&module);
}

static char *
module_key(const KilnModule *module, GError **error)
{
    g_autoptr(GString) text = g_string_new(NULL);
    if (!kiln_module_print(module, NULL, text, error))
        return NULL;
    return g_strdup(text->str);
}

char *
kiln_region_key(const KilnFunction *body, GError **error)
{
    g_autoptr(KilnModule) module = kiln_region_module(body, error);
    return module ? module_key(module, error) : NULL;
}

/* An argument that is unpacked, or a result that is packed. */
static bool
is_edge(const KilnNode *node)
{
    if (node->op == KILN_OP_unpack)
        return !node->results[0].type.layout && !node->operands[0].value->def;
    if (node->op != KILN_OP_pack || node->operands[0].value->type.layout)
        return false;
    kiln_foreach_use (use, &node->results[0]) {
        if (use->user->op != KILN_OP_return)
            return false;
    }
    return true;
}

/* @argument, or what is unpacked from it, as a constant. */
static void
make_constant(KilnFunction *region, KilnArgument *argument)
{
    KilnType plain = argument->value.type;
    plain.layout = NULL;
    KilnValue *constant =
        kiln_build_constant(region, region->first, "c", kiln_tensor_new_extern(&plain));
    if (!argument->value.type.layout) {
        kiln_value_replace(&argument->value, constant);
        return;
    }
    kiln_foreach_use (use, &argument->value) {
        if (use->user->op == KILN_OP_unpack)
            kiln_value_replace(&use->user->results[0], constant);
    }
}

/* A region is what the vendor takes, whoever made it: a text may say anything. Roles ask for
 * constants, which a body has as arguments: they become constants of @module. */
static gboolean
check_roles(const KilnVendor *vendor, KilnModule *module, GError **error)
{
    KilnFunction *region = kiln_module_entry(module);
    for (guint i = 0; i < region->arguments->len; i++) {
        KilnArgument *argument = kiln_function_argument(region, i);
        if (argument->constness == KILN_CONSTNESS_COMPILE)
            make_constant(region, argument);
    }
    kiln_foreach_node (node, region) {
        bool plain = node->op == KILN_OP_const || node->op == KILN_OP_return;
        if (!plain && !is_edge(node) && vendor->role(node) == KILN_VENDOR_NONE)
            return kiln_throw(error, KILN_ERROR_UNSUPPORTED, "%s (%s): %s does not take it",
                              kiln_node_label(node), kiln_op_info(node->op)->name, vendor->name);
    }
    return TRUE;
}

/* @module has the region, and is of no use behind it. */
static KilnCompiled *
compile(const KilnVendor *vendor, KilnModule *module, int threads, GError **error)
{
    const KilnFunction *body = kiln_module_entry(module);
    guint n = body->arguments->len;
    g_autofree bool *constant = g_new0(bool, n + 1);
    for (guint i = 0; i < n; i++)
        constant[i] = kiln_function_argument(body, i)->constness == KILN_CONSTNESS_COMPILE;
    g_autoptr(KilnIRFunction) region = kiln_lower(body, error);
    if (!region || !check_roles(vendor, module, error))
        return NULL;
    KilnCompiled *compiled = vendor->compile(region, constant, threads, error);
    if (compiled) {
        compiled->vendor = vendor;
        compiled->threads = threads;
    }
    return compiled;
}

/* The last reference went. Somebody may have asked for the region since and put another in place.
 */
static void
forget(KilnShared *shared)
{
    KilnCompiled *compiled = (KilnCompiled *)shared;
    char *key = compiled->key;
    pthread_mutex_lock(&lock);
    if (cache && g_hash_table_lookup(cache, key) == compiled)
        g_hash_table_remove(cache, key);
    if (cache && !g_hash_table_size(cache))
        g_clear_pointer(&cache, g_hash_table_unref);
    pthread_mutex_unlock(&lock);
    compiled->destroy(shared);
    g_free(key);
}

/* Under the lock: a new reference to what lies under @key, unless its last one is on its way out.
 */
static KilnCompiled *
find(const char *key)
{
    KilnCompiled *compiled = cache ? g_hash_table_lookup(cache, key) : NULL;
    int references = compiled ? atomic_load(&compiled->shared.references) : 0;
    while (references &&
           !atomic_compare_exchange_weak(&compiled->shared.references, &references, references + 1))
        ;
    return references ? compiled : NULL;
}

/* Under the lock. */
static void
remember(KilnCompiled *compiled, const char *key)
{
    if (!cache)
        cache = g_hash_table_new(g_str_hash, g_str_equal);
    compiled->key = g_strdup(key);
    compiled->destroy = compiled->shared.destroy;
    compiled->shared.destroy = forget;
    g_hash_table_replace(cache, compiled->key, compiled);
}

KilnCompiled *
kiln_kernel_cache_get(const KilnVendor *vendor, const KilnFunction *body, int threads,
                      GError **error)
{
    g_autoptr(KilnModule) module = kiln_region_module(body, error);
    g_autofree char *region = module ? module_key(module, error) : NULL;
    if (!region)
        return NULL;
    g_autofree char *key =
        g_strdup_printf("%s %s, %d threads\n%s", vendor->name, vendor->version, threads, region);
    /* One region is compiled at a time: who asks for the same one waits and finds it. */
    pthread_mutex_lock(&lock);
    KilnCompiled *compiled = find(key);
    if (!compiled && (compiled = compile(vendor, module, threads, error))) {
        n_compiled++;
        remember(compiled, key);
    }
    pthread_mutex_unlock(&lock);
    return compiled;
}

uint64_t
kiln_kernel_cache_compiled(void)
{
    pthread_mutex_lock(&lock);
    uint64_t n = n_compiled;
    pthread_mutex_unlock(&lock);
    return n;
}
