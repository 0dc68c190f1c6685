/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/tensors/tensor_compare.h"

#include "graph/base/names.h"
#include "graph/base/number.h"
#include "graph/texts.h"

#include <math.h>
#include <string.h>

typedef struct {
    KilnDType dtype;
    const void *got, *want;
    const KilnTolerance *tolerance;
    double worst; /* of the bad elements so far: how far off */
    KilnDifference *out;
} Comparison;

/* Floats in order as integers: neighbours differ by 1, and both zeros are 0. */
static int64_t
rank_of(KilnDType dtype, const void *bytes, int64_t i)
{
    size_t size = kiln_dtype_size(dtype);
    uint64_t raw = 0;
    memcpy(&raw, (const char *)bytes + (size_t)i * size, size); /* little-endian: the low bytes */
    uint64_t sign = UINT64_C(1) << (kiln_dtype_bits(dtype) - 1);
    int64_t magnitude = (int64_t)(raw & (sign - 1));
    return raw & sign ? -magnitude : magnitude;
}

static bool
same_bits(const Comparison *comparison, int64_t i)
{
    size_t size = kiln_dtype_size(comparison->dtype), at = (size_t)i * size;
    return memcmp((const char *)comparison->got + at, (const char *)comparison->want + at, size) ==
           0;
}

static void
note_bad(Comparison *comparison, int64_t i, double got, double want)
{
    KilnDifference *out = comparison->out;
    double off = fabs(got - want);
    if (out->first < 0)
        out->first = i;
    out->n_bad++;
    if (isnan(off))
        off = INFINITY;
    if (out->worst >= 0 && off <= comparison->worst)
        return;
    comparison->worst = off;
    out->worst = i;
    out->got = got;
    out->want = want;
}

static void
compare_element(Comparison *comparison, int64_t i)
{
    KilnDifference *out = comparison->out;
    const KilnTolerance *tolerance = comparison->tolerance;
    double got = kiln_element_as_f64(comparison->dtype, comparison->got, i);
    double want = kiln_element_as_f64(comparison->dtype, comparison->want, i);
    bool fine;
    if (!isfinite(got) || !isfinite(want)) {
        fine = (isnan(got) && isnan(want)) || got == want;
    } else {
        double difference = fabs(got - want);
        out->max_abs = MAX(out->max_abs, difference);
        if (want != 0)
            out->max_rel = MAX(out->max_rel, difference / fabs(want));
        if (kiln_dtype_is_float(comparison->dtype))
            out->max_ulp =
                MAX(out->max_ulp, fabs((double)rank_of(comparison->dtype, comparison->got, i) -
                                       (double)rank_of(comparison->dtype, comparison->want, i)));
        fine = tolerance->bits ? same_bits(comparison, i)
                               : difference <= tolerance->atol + tolerance->rtol * fabs(want);
    }
    if (!fine)
        note_bad(comparison, i, got, want);
}

/* Strings are equal or not: what differs has no size. */
static void
compare_texts(Comparison *comparison, int64_t i)
{
    KilnDifference *out = comparison->out;
    const KilnText *const *got = comparison->got, *const *want = comparison->want;
    if (kiln_text_equal(got[i], want[i]))
        return;
    out->first = out->first < 0 ? i : out->first;
    out->n_bad++;
}

/* The first strings that differ. */
static gboolean
throw_texts(const KilnDifference *found, const KilnText *got, const KilnText *want, GError **error)
{
    g_autoptr(GString) expected = g_string_new(NULL);
    g_autoptr(GString) text = g_string_new(NULL);
    kiln_text_print(kiln_text_of(want), expected);
    kiln_text_print(kiln_text_of(got), text);
    kiln_throw(error, KILN_ERROR_MISMATCH,
               "%" G_GINT64_FORMAT " of %" G_GINT64_FORMAT
               " strings differ, the first is element %" G_GINT64_FORMAT ": expected %s, found %s",
               found->n_bad, found->n, found->first, expected->str, text->str);
    return FALSE;
}

gboolean
kiln_tensor_difference(const KilnTensor *got, const KilnTensor *want,
                       const KilnTolerance *tolerance, KilnDifference *out, GError **error)
{
    *out = (KilnDifference){ .first = -1, .worst = -1 };
    if (!kiln_type_equal(&got->type, &want->type)) {
        g_autofree char *found = kiln_type_to_string(&got->type);
        g_autofree char *expected = kiln_type_to_string(&want->type);
        return kiln_throw(error, KILN_ERROR_MISMATCH, "expected %s, found %s", expected, found);
    }
    out->n = kiln_type_elements(&got->type);
    g_autoptr(GBytes) got_bytes = kiln_tensor_view(got, error);
    g_autoptr(GBytes) want_bytes = got_bytes ? kiln_tensor_view(want, error) : NULL;
    if (!want_bytes)
        return FALSE;
    Comparison comparison = { .dtype = got->type.dtype,
                              .got = g_bytes_get_data(got_bytes, NULL),
                              .want = g_bytes_get_data(want_bytes, NULL),
                              .tolerance = tolerance,
                              .out = out };
    for (int64_t i = 0; i < out->n; i++) {
        if (comparison.dtype == KILN_DTYPE_string)
            compare_texts(&comparison, i);
        else
            compare_element(&comparison, i);
    }
    return TRUE;
}

gboolean
kiln_tensor_compare(const KilnTensor *got, const KilnTensor *want, double rtol, double atol,
                    double *out_abs, double *out_rel, GError **error)
{
    KilnTolerance tolerance = { .rtol = rtol, .atol = atol };
    KilnDifference found;
    if (!kiln_tensor_difference(got, want, &tolerance, &found, error))
        return FALSE;
    if (out_abs)
        *out_abs = found.max_abs;
    if (out_rel)
        *out_rel = found.max_rel;
    if (found.n_bad == 0)
        return TRUE;
    g_autoptr(GBytes) got_bytes = kiln_tensor_view(got, error);
    g_autoptr(GBytes) want_bytes = got_bytes ? kiln_tensor_view(want, error) : NULL;
    if (!want_bytes)
        return FALSE;
    KilnDType dtype = got->type.dtype;
    if (dtype == KILN_DTYPE_string) {
        const KilnText *const *x = g_bytes_get_data(got_bytes, NULL);
        const KilnText *const *y = g_bytes_get_data(want_bytes, NULL);
        return throw_texts(&found, x[found.first], y[found.first], error);
    }
    bool finite = isfinite(found.got) && isfinite(found.want);
    return kiln_throw(error, KILN_ERROR_MISMATCH,
                      "%" G_GINT64_FORMAT " of %" G_GINT64_FORMAT
                      " elements differ, the first is element %" G_GINT64_FORMAT
                      ": expected %g, found %g (largest difference %g, rtol %g, atol %g)",
                      found.n_bad, found.n, found.first,
                      kiln_element_as_f64(dtype, g_bytes_get_data(want_bytes, NULL), found.first),
                      kiln_element_as_f64(dtype, g_bytes_get_data(got_bytes, NULL), found.first),
                      finite ? found.max_abs : INFINITY, rtol, atol);
}
