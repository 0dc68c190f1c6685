/* SPDX-License-Identifier: Apache-2.0 */
/* The operators that plug-ins have registered in this process. The list grows only, and entries do
 * not change: what a thread found stays what it is. */
#include "graph/plugin/plugin.h"

#include <pthread.h>
#include <string.h>

typedef struct {
    const KilnOpDescription *op;
    char *from;
} Entry;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static Entry *entries; /* kept for the life of the process */
static uint32_t n_entries;

/* ONNX's own domain has two names. */
static const char *
plain_domain(const char *domain)
{
    return domain && strcmp(domain, "ai.onnx") != 0 ? domain : "";
}

static bool
is_named(const KilnOpDescription *op, const char *domain, const char *name)
{
    return strcmp(op->name, name) == 0 &&
           strcmp(plain_domain(op->domain), plain_domain(domain)) == 0;
}

static int
last_of(const KilnOpDescription *op)
{
    return op->last_opset ? op->last_opset : G_MAXINT;
}

static bool
has_opset(const KilnOpDescription *op, int64_t opset)
{
    return opset >= op->first_opset && opset <= last_of(op);
}

/* --- registering --- */

static gboolean
check_counts(const KilnOpDescription *op, const char **why)
{
    *why = op->max_inputs < op->min_inputs       ? "max_inputs is less than min_inputs"
           : op->min_outputs < 1                 ? "min_outputs is 0"
           : op->max_outputs < op->min_outputs   ? "max_outputs is less than min_outputs"
           : op->first_opset < 1                 ? "first_opset is less than 1"
           : last_of(op) < op->first_opset       ? "last_opset is less than first_opset"
           : op->n_attributes && !op->attributes ? "attributes is NULL"
           : op->n_in_place && !op->in_place     ? "in_place is NULL"
           : !op->infer                          ? "infer is NULL"
           : !op->run                            ? "run is NULL"
                                                 : NULL;
    return !*why;
}

static gboolean
check_lists(const KilnOpDescription *op, const char **why)
{
    for (unsigned i = 0; i < op->n_attributes; i++) {
        if (!op->attributes[i].name || !*op->attributes[i].name)
            *why = "an attribute has no name";
        else if (op->attributes[i].kind > KILN_OP_ATTRIBUTE_TENSOR)
            *why = "an attribute has no kind";
    }
    for (unsigned i = 0; i < op->n_in_place; i++) {
        if (op->in_place[i].output >= op->max_outputs || op->in_place[i].input >= op->max_inputs)
            *why = "in_place names an input or output that it does not have";
    }
    return !*why;
}

static gboolean
check(const KilnOpDescription *op, const char *from, GError **error)
{
    const char *why = NULL;
    if (op->size != sizeof *op)
        return kiln_throw(error, KILN_ERROR_USAGE,
                          "%s: a description of %zu bytes, expected %zu: it was built against "
                          "another version of kiln-op.h",
                          from, op->size, sizeof *op);
    if (!op->domain || !op->name || !*op->name)
        return kiln_throw(error, KILN_ERROR_USAGE, "%s: an operator without a domain or a name",
                          from);
    if (check_counts(op, &why) && check_lists(op, &why))
        return TRUE;
    g_autofree char *name = kiln_plugin_name(op->domain, op->name);
    return kiln_throw(error, KILN_ERROR_USAGE, "%s: operator %s: %s", from, name, why);
}

/* Fails where another description has one of the opsets of @op. */
static gboolean
check_free(const KilnOpDescription *op, const char *from, bool *known, GError **error)
{
    *known = false;
    for (uint32_t i = 0; i < n_entries; i++) {
        const KilnOpDescription *other = entries[i].op;
        if (other == op)
            *known = true;
        if (other == op || !is_named(other, op->domain, op->name) ||
            op->first_opset > last_of(other) || other->first_opset > last_of(op))
            continue;
        g_autofree char *name = kiln_plugin_name(op->domain, op->name);
        return kiln_throw(error, KILN_ERROR_USAGE,
                          "%s: operator %s of opset %d: %s has registered it already", from, name,
                          MAX(op->first_opset, other->first_opset), entries[i].from);
    }
    return TRUE;
}

static void
append(const KilnOpDescription *op, const char *from)
{
    entries = g_renew(Entry, entries, n_entries + 1);
    entries[n_entries++] = (Entry){ op, g_strdup(from) };
}

gboolean
kiln_plugin_register(const KilnOpDescription *ops, uint32_t n, const char *from, GError **error)
{
    for (uint32_t i = 0; i < n; i++) {
        if (!check(&ops[i], from, error))
            return FALSE;
    }
    pthread_mutex_lock(&lock);
    const uint32_t before = n_entries;
    gboolean good = TRUE;
    for (uint32_t i = 0; good && i < n; i++) {
        bool known;
        good = check_free(&ops[i], from, &known, error);
        if (good && !known)
            append(&ops[i], from);
    }
    while (!good && n_entries > before) /* nobody has seen them: the lock is held */
        g_free(entries[--n_entries].from);
    pthread_mutex_unlock(&lock);
    return good;
}

/* --- questions --- */

const KilnOpDescription *
kiln_plugin_find(const char *domain, const char *name, int64_t opset)
{
    const KilnOpDescription *found = NULL;
    pthread_mutex_lock(&lock);
    for (uint32_t i = 0; i < n_entries && !found; i++) {
        const KilnOpDescription *op = entries[i].op;
        if (has_opset(op, opset) && is_named(op, domain, name))
            found = op;
    }
    pthread_mutex_unlock(&lock);
    return found;
}

const char *
kiln_plugin_from(const KilnOpDescription *op)
{
    const char *from = "a program";
    pthread_mutex_lock(&lock);
    for (uint32_t i = 0; i < n_entries; i++) {
        if (entries[i].op == op)
            from = entries[i].from;
    }
    pthread_mutex_unlock(&lock);
    return from;
}

char *
kiln_plugin_opsets(const char *domain, const char *name)
{
    GString *text = NULL;
    pthread_mutex_lock(&lock);
    for (uint32_t i = 0; i < n_entries; i++) {
        const KilnOpDescription *op = entries[i].op;
        if (!is_named(op, domain, name))
            continue;
        if (!text)
            text = g_string_new(NULL);
        g_string_append_printf(text, "%s%s has it from opset %d on", text->len ? "; " : "",
                               entries[i].from, op->first_opset);
        if (op->last_opset)
            g_string_append_printf(text, ", up to %d", op->last_opset);
    }
    pthread_mutex_unlock(&lock);
    return text ? g_string_free(text, FALSE) : NULL;
}

static int
compare(gconstpointer a, gconstpointer b)
{
    const KilnOpDescription *left = *(const KilnOpDescription *const *)a,
                            *right = *(const KilnOpDescription *const *)b;
    int order = strcmp(plain_domain(left->domain), plain_domain(right->domain));
    order = order ? order : strcmp(left->name, right->name);
    return order ? order : left->first_opset - right->first_opset;
}

GPtrArray *
kiln_plugin_list(void)
{
    GPtrArray *list = g_ptr_array_new();
    pthread_mutex_lock(&lock);
    for (uint32_t i = 0; i < n_entries; i++)
        g_ptr_array_add(list, (gpointer)entries[i].op);
    pthread_mutex_unlock(&lock);
    g_ptr_array_sort(list, compare);
    return list;
}

char *
kiln_plugin_name(const char *domain, const char *name)
{
    domain = plain_domain(domain);
    return *domain ? g_strdup_printf("%s:%s", domain, name) : g_strdup(name);
}
