/* SPDX-License-Identifier: Apache-2.0 */
/* Pipelines as YAML: what is default is left out, includes and anchors are written out. */
#include "graph/base/number.h"
#include "passes/pipeline/pipeline.h"
#include "passes/pipeline/pipeline_priv.h"

#include <gmodule.h>

/* Double-quoted, so that no text is taken for a number, a list or nothing. */
static void
print_text(const char *text, GString *out)
{
    g_string_append_c(out, '"');
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\')
            g_string_append_printf(out, "\\%c", c);
        else if (c < 0x20 || c == 0x7f)
            g_string_append_printf(out, "\\x%02x", c);
        else
            g_string_append_c(out, *text);
    }
    g_string_append_c(out, '"');
}

static void
print_list(const KilnAttrInfo *info, const void *field, GString *out)
{
    g_string_append_c(out, '[');
    uint32_t n = ((const KilnInts *)field)->n; /* all three kinds of list begin with it */
    for (uint32_t i = 0; i < n; i++) {
        g_string_append(out, i ? ", " : "");
        if (info->kind == KILN_ATTR_INTS)
            g_string_append_printf(out, "%" G_GINT64_FORMAT, ((const KilnInts *)field)->v[i]);
        else if (info->kind == KILN_ATTR_FLOATS)
            kiln_print_f32(out, ((const KilnFloats *)field)->v[i]);
        else
            print_text(((const KilnStrings *)field)->v[i], out);
    }
    g_string_append_c(out, ']');
}

static void
print_value(const KilnAttrInfo *info, const void *options, GString *out)
{
    const void *field = (const char *)options + info->offset;
    switch (info->kind) {
    case KILN_ATTR_INT:
        g_string_append_printf(out, "%" G_GINT64_FORMAT, *(const KilnC_INT *)field);
        break;
    case KILN_ATTR_BOOL:
        g_string_append(out, *(const KilnC_BOOL *)field ? "true" : "false");
        break;
    case KILN_ATTR_FLOAT:
        kiln_print_f32(out, *(const KilnC_FLOAT *)field);
        break;
    case KILN_ATTR_DTYPE:
        g_string_append(out, kiln_dtype_name(*(const KilnC_DTYPE *)field));
        break;
    case KILN_ATTR_STRING:
        print_text(*(const KilnC_STRING *)field, out);
        break;
    default:
        print_list(info, field, out);
    }
}

static void
print_options(const KilnPipelineEntry *entry, GString *out)
{
    const KilnPassInfo *pass = entry->pass;
    bool any = false;
    for (uint32_t i = 0; pass->options && i < pass->options->n; i++) {
        const KilnAttrInfo *info = &pass->options->attrs[i];
        if (kiln_attr_is_default(info, entry->options))
            continue;
        g_autofree char *name = g_strdelimit(g_strdup(info->name), "_", '-');
        g_string_append_printf(out, "%s%s: ", any ? ", " : ", options: {", name);
        print_value(info, entry->options, out);
        any = true;
    }
    g_string_append(out, any ? "}" : "");
}

static void
print_entry(const KilnPipelineEntry *entry, GString *out)
{
    if (entry->pass) {
        g_string_append_printf(out, "{pass: %s", entry->pass->id);
    } else {
        g_string_append(out, "{group: [");
        for (guint i = 0; i < entry->group->len; i++) {
            g_string_append(out, i ? ", " : "");
            print_entry(g_ptr_array_index(entry->group, i), out);
        }
        g_string_append_c(out, ']');
    }
    if (entry->convergence == KILN_UNTIL_FIXED_POINT)
        g_string_append(out, ", convergence: until-fixed-point");
    if (entry->max_iterations != KILN_MAX_ITERATIONS)
        g_string_append_printf(out, ", max-iterations: %u", entry->max_iterations);
    /* Members of a group are printed with their own: the group's is only their default. */
    if (entry->pass && entry->pass->level == KILN_LEVEL_GRAPH && !entry->dce_before)
        g_string_append(out, ", dce: none");
    bool infer = entry->modes & 1u << KILN_MODE_INFER, train = entry->modes & 1u << KILN_MODE_TRAIN;
    if (!infer || !train)
        g_string_append_printf(out, ", modes: [%s]", infer ? "infer" : "train");
    if (entry->pass)
        print_options(entry, out);
    g_string_append_c(out, '}');
}

static void
print_entries(const char *level, const GPtrArray *entries, GString *out)
{
    if (entries->len == 0)
        return;
    g_string_append_printf(out, "%s:\n", level);
    for (guint i = 0; i < entries->len; i++) {
        g_string_append(out, "  - ");
        print_entry(g_ptr_array_index(entries, i), out);
        g_string_append_c(out, '\n');
    }
}

void
kiln_pass_pipeline_print(const KilnPassPipeline *pipeline, GString *out)
{
    g_string_append(out, "version: 1\n");
    if (pipeline->flags) {
        const char *separator = "flags: [";
        for (uint32_t i = 0; i < KILN_N_FLAGS; i++) {
            if (!(pipeline->flags & 1u << i))
                continue;
            g_string_append_printf(out, "%s%s", separator, kiln_pipeline_flag_name(i));
            separator = ", ";
        }
        g_string_append(out, "]\n");
    }
    for (guint i = 0; i < pipeline->plugins->len; i++) {
        g_string_append(out, i ? ", " : "plugins: [");
        print_text(g_module_name(g_ptr_array_index(pipeline->plugins, i)), out);
    }
    g_string_append(out, pipeline->plugins->len ? "]\n" : "");
    print_entries("graph", pipeline->graph, out);
    print_entries("ir", pipeline->ir, out);
}
