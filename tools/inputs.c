/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/inputs.h"

#include "exec/random_input.h"
#include "graph/arena.h"
#include "graph/binding.h"
#include "kiln.h"
#include "runtime/model.h"
#include "runtime/tensors/tensor_file.h"

#include <math.h>
#include <string.h>

/* --- options --- */

void
kiln_inputs_add(GOptionContext *context, KilnInputs *inputs)
{
    const GOptionEntry entries[] = {
        { "input", 'i', 0, G_OPTION_ARG_FILENAME_ARRAY, &inputs->files,
          "Read an input from a .pb, .npy, .raw, .bin, .png, .pgm or .ppm file", "NAME=FILE" },
        { "random", 0, 0, G_OPTION_ARG_STRING, &inputs->random_text,
          "Draw random values for the inputs that -i does not give", "SEED" },
        { "range", 0, 0, G_OPTION_ARG_FILENAME_ARRAY, &inputs->ranges,
          "Draw random float inputs, or input NAME, uniformly from LOW to below HIGH",
          "[NAME=]LOW,HIGH" },
        { "seed", 0, 0, G_OPTION_ARG_STRING, &inputs->seed_text,
          "Seed the random operators of the model", "N" },
        { "image-scale", 0, 0, G_OPTION_ARG_DOUBLE, &inputs->image.scale,
          "Multiply the pixels of pictures by S (default: 1)", "S" },
        { "image-mean", 0, 0, G_OPTION_ARG_STRING, &inputs->image_mean,
          "Then subtract M, one number or one per channel: 0.48,0.45,0.40", "M" },
        { "image-std", 0, 0, G_OPTION_ARG_STRING, &inputs->image_std,
          "Then divide by S, one number or one per channel", "S" },
        G_OPTION_ENTRY_NULL,
    };
    g_option_context_add_main_entries(context, entries, NULL);
}

void
kiln_inputs_clear(KilnInputs *inputs)
{
    g_strfreev(inputs->files);
    g_strfreev(inputs->ranges);
    g_free(inputs->random_text);
    g_free(inputs->seed_text);
    g_free(inputs->image_mean);
    g_free(inputs->image_std);
}

static gboolean
parse_channels(const char *option, const char *text, double out[4], unsigned *stated,
               GError **error)
{
    g_auto(GStrv) parts = g_strsplit(text ? text : "", ",", -1);
    unsigned n = text ? g_strv_length(parts) : 0;
    if (n > 4)
        return kiln_throw(error, KILN_ERROR_USAGE, "--%s: expected at most 4 numbers, found %s",
                          option, text);
    *stated = n;
    bool divides = strcmp(option, "image-std") == 0;
    for (unsigned i = 0; i < 4 && text; i++) {
        char *end;
        const char *part = n ? parts[MIN(i, n - 1)] : text;
        out[i] = g_ascii_strtod(part, &end);
        if (end == part || *end || !isfinite(out[i]) || (divides && out[i] == 0))
            return kiln_throw(error, KILN_ERROR_USAGE,
                              "--%s: expected %snumbers with commas, found %s", option,
                              divides ? "non-zero " : "", text);
    }
    return TRUE;
}

/* What stands behind the name of a --range. */
static const char *
numbers_of(const char *range)
{
    const char *equals = strrchr(range, '=');
    return equals ? equals + 1 : range;
}

static bool
parse_range(const char *range, KilnDomain *out)
{
    char *comma, *end;
    const char *text = numbers_of(range);
    double low = g_ascii_strtod(text, &comma);
    if (comma == text || *comma != ',')
        return false;
    double high = g_ascii_strtod(comma + 1, &end);
    *out = (KilnDomain){ false, low, high };
    return end != comma + 1 && !*end && isfinite(low) && isfinite(high) && low < high;
}

static gboolean
check_ranges(const KilnInputs *inputs, GError **error)
{
    KilnDomain domain;
    for (char **range = inputs->ranges; range && *range; range++) {
        if (!parse_range(*range, &domain))
            return kiln_throw(error, KILN_ERROR_USAGE,
                              "--range: expected LOW,HIGH or NAME=LOW,HIGH with LOW below HIGH, "
                              "found %s",
                              *range);
    }
    return !inputs->ranges || inputs->random ||
           kiln_throw(error, KILN_ERROR_USAGE, "--range: expected --random SEED beside it");
}

/* NULL leaves @out as it is. */
static gboolean
parse_seed(const char *option, const char *text, uint64_t *out, GError **error)
{
    return !text || g_ascii_string_to_unsigned(text, 10, 0, G_MAXUINT64, out, NULL) ||
           kiln_throw(error, KILN_ERROR_USAGE, "--%s: expected a seed of 0 to 2^64-1, found %s",
                      option, text);
}

gboolean
kiln_inputs_check(KilnInputs *inputs, GError **error)
{
    if (!isfinite(inputs->image.scale))
        return kiln_throw(error, KILN_ERROR_USAGE, "--image-scale: expected a number, found %g",
                          inputs->image.scale);
    inputs->random = inputs->random_text != NULL;
    inputs->run_seeded = inputs->seed_text != NULL;
    return parse_seed("random", inputs->random_text, &inputs->seed, error) &&
           parse_seed("seed", inputs->seed_text, &inputs->run_seed, error) &&
           check_ranges(inputs, error) &&
           parse_channels("image-mean", inputs->image_mean, inputs->image.mean,
                          &inputs->image.n_mean, error) &&
           parse_channels("image-std", inputs->image_std, inputs->image.std, &inputs->image.n_std,
                          error);
}

/* --- tensors --- */

static bool
names_input(const char *argument, const char *name)
{
    return g_str_has_prefix(argument, name) && argument[strlen(name)] == '=';
}

/* Names may have `=` in them, numbers have none. */
static bool
range_names(const char *range, const char *name)
{
    return names_input(range, name) && range + strlen(name) + 1 == numbers_of(range);
}

/* The last --range that names the input, else the last for all floats; NULL where none is. */
static const char *
range_of_input(const KilnInputs *inputs, const char *name, KilnDType dtype)
{
    const char *found = NULL;
    bool named = false;
    for (char **range = inputs->ranges; range && *range; range++) {
        bool names_it = range_names(*range, name);
        bool for_all = numbers_of(*range) == *range && kiln_dtype_is_float(dtype);
        if (names_it || (for_all && !named))
            found = *range;
        named |= names_it;
    }
    return found;
}

static KilnTensor *
random_input(const KilnInputs *inputs, const KilnModel *model, unsigned i, const KilnType *types,
             GError **error)
{
    const KilnType *type = &types[i];
    const char *name = kiln_model_input(model, i)->name;
    const char *range = range_of_input(inputs, name, type->dtype);
    KilnDomain domain;
    if (range && kiln_dtype_is_item(type->dtype))
        return kiln_throw_null(error, KILN_ERROR_USAGE,
                               "--range %s: expected an input that is a tensor, found a %s", range,
                               kiln_dtype_name(type->dtype));
    if (!range || !parse_range(range, &domain))
        return kiln_model_random_input(model, i, type, types, inputs->seed, error);
    if (!kiln_dtype_is_float(type->dtype)) {
        domain.low = ceil(domain.low); /* integers of the range */
        domain.high = ceil(domain.high);
        if (domain.low >= domain.high)
            return kiln_throw_null(error, KILN_ERROR_USAGE,
                                   "--range: expected one that has integers, found %s", range);
    }
    return kiln_random_tensor(type, &domain, name, inputs->seed, error);
}

const char *
kiln_inputs_file(const KilnInputs *inputs, const char *name)
{
    for (char **at = inputs->files; at && *at; at++) {
        if (names_input(*at, name))
            return *at + strlen(name) + 1;
    }
    return NULL;
}

gboolean
kiln_inputs_check_names(const KilnInputs *inputs, const KilnModel *model, GError **error)
{
    g_autoptr(GString) names = g_string_new(NULL);
    for (unsigned i = 0; i < kiln_model_n_inputs(model); i++) {
        const char *name = kiln_model_input(model, i)->name;
        unsigned n = 0;
        g_string_append_printf(names, "%s%s", i ? ", " : "", name);
        for (char **at = inputs->files; at && *at; at++)
            n += names_input(*at, name);
        if (n > 1)
            return kiln_throw(error, KILN_ERROR_USAGE, "-i %s: expected one file, found %u", name,
                              n);
    }
    for (char **at = inputs->files; at && *at; at++) {
        bool found = false;
        for (unsigned i = 0; i < kiln_model_n_inputs(model); i++)
            found |= names_input(*at, kiln_model_input(model, i)->name);
        if (!found)
            return kiln_throw(error, KILN_ERROR_USAGE,
                              "-i %s: expected NAME=FILE with one of the inputs %s", *at,
                              names->str);
    }
    for (char **range = inputs->ranges; range && *range; range++) {
        bool found = numbers_of(*range) == *range;
        for (unsigned i = 0; i < kiln_model_n_inputs(model); i++)
            found |= range_names(*range, kiln_model_input(model, i)->name);
        if (!found)
            return kiln_throw(error, KILN_ERROR_USAGE,
                              "--range %s: expected NAME=LOW,HIGH with one of the inputs %s",
                              *range, names->str);
    }
    return TRUE;
}

KilnTensor *
kiln_inputs_tensor(const KilnInputs *inputs, const KilnModel *model, unsigned i,
                   const KilnType *types, const char **out_file, GError **error)
{
    const KilnType *type = &types[i];
    const char *name = kiln_model_input(model, i)->name, *file = kiln_inputs_file(inputs, name);
    if (out_file)
        *out_file = file;
    if (file)
        return kiln_tensor_file_load(file, type, &inputs->image, error);
    if (!inputs->random)
        return kiln_throw_null(error, KILN_ERROR_USAGE,
                               "input %s: expected -i %s=FILE or --random SEED", name, name);
    if (!kiln_type_is_static(type))
        return kiln_throw_null(error, KILN_ERROR_USAGE,
                               "input %s: its shape is open: give --shape %s=…", name, name);
    return random_input(inputs, model, i, types, error);
}

static void
add_number(KilnDimBinding *numbers, const char *name, int64_t number)
{
    int64_t known;
    if (name && !kiln_dim_binding_lookup(numbers, name, &known))
        numbers->names[numbers->n++] = (KilnBoundName){ name, number };
}

/* NAME=8, which is a dim that the model has no more. */
static void
add_pinned(KilnArena *arena, KilnDimBinding *numbers, const KilnModel *model, const char *shape)
{
    const char *equals = strrchr(shape, '=');
    uint64_t number;
    g_autofree char *name = equals ? g_strndup(shape, (gsize)(equals - shape)) : NULL;
    bool pins = name && g_ascii_string_to_unsigned(equals + 1, 10, 1, G_MAXINT64, &number, NULL);
    for (unsigned i = 0; pins && i < model->inputs.n; i++)
        pins = strcmp(model->inputs.info[i].name, name) != 0;
    if (pins)
        add_number(numbers, kiln_arena_strdup(arena, name), (int64_t)number);
}

KilnDimBinding
kiln_inputs_numbers(KilnArena *arena, const KilnModel *model, const GPtrArray *inputs,
                    char **shapes)
{
    gsize most = (gsize)inputs->len * KILN_MAX_RANK + (shapes ? g_strv_length(shapes) : 0);
    KilnDimBinding numbers = { 0, kiln_arena_new0(arena, KilnBoundName, most + 1) };
    for (guint i = 0; i < inputs->len; i++) {
        const KilnType *type = &model->inputs.types[i];
        const KilnTensor *tensor = g_ptr_array_index(inputs, i);
        for (int d = 0; d < type->rank && d < tensor->type.rank; d++)
            add_number(&numbers, kiln_type_dim_name(type, d), tensor->type.dims[d]);
    }
    for (char **shape = shapes; shape && *shape; shape++)
        add_pinned(arena, &numbers, model, *shape);
    return numbers;
}
