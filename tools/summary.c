/* SPDX-License-Identifier: Apache-2.0 */
/* Summaries of tensors. */
#include "tools/summary.h"

#include "graph/base/names.h"
#include "graph/base/number.h"
#include "graph/texts.h"
#include "runtime/tensors/file.h"
#include "tools/command.h"

#include <math.h>
#include <stdio.h>

enum {
    TOP = 5,
    MAX_VECTOR = 100000, /* a "vector" has one dim that is not 1, and not more elements than this */
};

typedef struct {
    int64_t n, n_nan;
    double min, max, mean;
    int n_top;
    int64_t top[TOP];
    double values[TOP];
} Summary;

char **
kiln_labels_load(const char *path, GError **error)
{
    g_autoptr(GBytes) bytes = kiln_file_map(path, error);
    if (!bytes)
        return NULL;
    size_t length;
    const char *data = g_bytes_get_data(bytes, &length);
    g_autofree char *text = g_strndup(data ? data : "", length);
    char **labels = g_strsplit(g_strchomp(text), "\n", -1);
    for (char **label = labels; *label; label++)
        g_strchomp(*label); /* files with \r\n */
    return labels;
}

static bool
is_vector(const KilnType *type, int64_t n)
{
    int wide = 0;
    for (int i = 0; i < type->rank; i++)
        wide += type->dims[i] != 1;
    return wide == 1 && n <= MAX_VECTOR;
}

static void
insert_top(Summary *summary, int64_t index, double value)
{
    int at = summary->n_top;
    while (at > 0 && value > summary->values[at - 1])
        at--;
    if (at == TOP)
        return;
    for (int i = MIN(summary->n_top, TOP - 1); i > at; i--) {
        summary->top[i] = summary->top[i - 1];
        summary->values[i] = summary->values[i - 1];
    }
    summary->top[at] = index;
    summary->values[at] = value;
    summary->n_top = MIN(summary->n_top + 1, TOP);
}

static Summary
summarise(const KilnTensor *tensor)
{
    Summary summary = { .n = kiln_type_elements(&tensor->type), .min = INFINITY, .max = -INFINITY };
    g_autoptr(GBytes) bytes = kiln_tensor_view(tensor, NULL);
    if (!bytes)
        return summary;
    const void *data = g_bytes_get_data(bytes, NULL);
    bool vector = is_vector(&tensor->type, summary.n);
    double sum = 0;
    for (int64_t i = 0; i < summary.n; i++) {
        double value = kiln_element_as_f64(tensor->type.dtype, data, i);
        if (isnan(value)) {
            summary.n_nan++;
            continue;
        }
        summary.min = MIN(summary.min, value);
        summary.max = MAX(summary.max, value);
        sum += value;
        if (vector)
            insert_top(&summary, i, value);
    }
    int64_t counted = summary.n - summary.n_nan;
    summary.mean = counted ? sum / (double)counted : NAN;
    return summary;
}

static const char *
label_of(char **labels, int64_t index)
{
    for (int64_t i = 0; labels && labels[i]; i++) {
        if (i == index)
            return labels[i];
    }
    return NULL;
}

/* The first strings. */
static void
print_texts(const KilnTensor *tensor)
{
    g_autoptr(GBytes) bytes = kiln_tensor_view(tensor, NULL);
    const KilnText *const *elements = bytes ? g_bytes_get_data(bytes, NULL) : NULL;
    int64_t n = elements ? kiln_type_elements(&tensor->type) : 0;
    for (int64_t i = 0; i < MIN(n, (int64_t)TOP); i++) {
        g_autoptr(GString) text = g_string_new(NULL);
        kiln_text_print(kiln_text_of(elements[i]), text);
        printf("  %6" G_GINT64_FORMAT "  %s\n", i, text->str);
    }
    if (n > TOP)
        printf("  and %" G_GINT64_FORMAT " more\n", n - TOP);
}

static void
write_texts(KilnJson *json, const KilnTensor *tensor)
{
    g_autoptr(GBytes) bytes = kiln_tensor_view(tensor, NULL);
    const KilnText *const *elements = bytes ? g_bytes_get_data(bytes, NULL) : NULL;
    int64_t n = elements ? kiln_type_elements(&tensor->type) : 0;
    kiln_json_array(json, "first");
    for (int64_t i = 0; i < MIN(n, (int64_t)TOP); i++) {
        const KilnText text = kiln_text_of(elements[i]);
        kiln_json_text(json, NULL, text.text, text.length);
    }
    kiln_json_end_array(json);
}

static void
append_numbers(GString *out, const Summary *summary)
{
    if (summary->n - summary->n_nan > 0)
        g_string_append_printf(out, " min %g max %g mean %g", summary->min, summary->max,
                               summary->mean);
    if (summary->n_nan)
        g_string_append_printf(out, " NaN %" G_GINT64_FORMAT, summary->n_nan);
}

void
kiln_summary_append(GString *out, const KilnTensor *tensor)
{
    if (tensor->type.dtype == KILN_DTYPE_string)
        return;
    const Summary summary = summarise(tensor);
    append_numbers(out, &summary);
}

void
kiln_summary_print(const KilnTensorInfo *info, const KilnTensor *tensor, char **labels)
{
    bool texts = tensor->type.dtype == KILN_DTYPE_string;
    if (kiln_dtype_is_item(tensor->type.dtype)) {
        kiln_summary_print_item(info, kiln_tensor_item(tensor));
        return;
    }
    Summary summary = texts ? (Summary){ 0 } : summarise(tensor);
    g_autofree char *type = kiln_type_to_string(&tensor->type);
    g_autofree char *shown = kiln_one_line(info->name);
    g_autoptr(GString) numbers = g_string_new(NULL);
    append_numbers(numbers, &summary);
    printf("%s: %s%s\n", shown, type, numbers->str);
    if (texts)
        print_texts(tensor);
    for (int i = 0; i < summary.n_top; i++) {
        const char *text = label_of(labels, summary.top[i]);
        g_autofree char *label = text ? kiln_one_line(text) : NULL;
        printf(label ? "  %6" G_GINT64_FORMAT "  %-10.6g %s\n" : "  %6" G_GINT64_FORMAT "  %.6g\n",
               summary.top[i], summary.values[i], label);
    }
}

void
kiln_summary_write_members(KilnJson *json, const KilnTensor *tensor, char **labels)
{
    kiln_json_type(json, "type", &tensor->type);
    if (tensor->type.dtype == KILN_DTYPE_string) {
        write_texts(json, tensor);
        return;
    }
    const Summary summary = summarise(tensor);
    kiln_json_number(json, "min", summary.min);
    kiln_json_number(json, "max", summary.max);
    kiln_json_number(json, "mean", summary.mean);
    kiln_json_int(json, "nan", summary.n_nan);
    kiln_json_array(json, "top");
    for (int i = 0; i < summary.n_top; i++) {
        const char *label = label_of(labels, summary.top[i]);
        kiln_json_object(json, NULL);
        kiln_json_int(json, "index", summary.top[i]);
        kiln_json_number(json, "value", summary.values[i]);
        if (label)
            kiln_json_string(json, "label", label);
        kiln_json_end_object(json);
    }
    kiln_json_end_array(json);
}

void
kiln_summary_write(KilnJson *json, const KilnTensorInfo *info, const KilnTensor *tensor,
                   char **labels)
{
    if (kiln_dtype_is_item(tensor->type.dtype)) {
        kiln_summary_write_item(json, info, kiln_tensor_item(tensor));
        return;
    }
    kiln_json_object(json, NULL);
    kiln_json_string(json, "name", info->name);
    kiln_summary_write_members(json, tensor, labels);
    kiln_json_end_object(json);
}
