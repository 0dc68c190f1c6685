/* SPDX-License-Identifier: Apache-2.0 */
/* Texts of both levels: what is accepted prints to a text that reads back to itself, and the
 * default pipeline, checked on `ref` before and after each pass, does it no harm. */
#include "kiln.h"
#include "runtime/model.h"
#include "tests/fuzz/fuzz.h"

#include "ir/ir.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char *
print(const KilnIRModule *ir)
{
    GString *out = g_string_new(NULL);
    g_autoptr(GError) error = NULL;
    for (guint i = 0; i < ir->module->functions->len; i++)
        kiln_function_print(g_ptr_array_index(ir->module->functions, i), out);
    bool printed = kiln_ir_module_print(ir, NULL, out, &error);
    fuzz_expect(printed, error);
    return g_string_free(out, FALSE);
}

static void
round_trip(const char *text, size_t size)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(KilnIRModule) ir = kiln_ir_module_parse(text, size, "x.kiln", &error);
    fuzz_expect(ir, error);
    if (!ir)
        return;
    g_autofree char *printed = print(ir);
    g_autoptr(KilnIRModule) again =
        kiln_ir_module_parse(printed, strlen(printed), "x.kiln", &error);
    g_autofree char *reprinted = again ? print(again) : NULL;
    if (g_strcmp0(printed, reprinted) != 0) {
        fprintf(stderr, "%s\n--- reads back as ---\n%s\n", printed,
                again ? reprinted : error->message);
        abort();
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    g_autofree char *exact = fuzz_copy(data, size);
    round_trip(exact, size);
    g_autoptr(GError) error = NULL;
    g_autoptr(GBytes) bytes = g_bytes_new_take(g_steal_pointer(&exact), size);
    g_autoptr(KilnModel) model = kiln_model_load_bytes(bytes, "x.kiln", &error);
    fuzz_expect(model, error);
    if (model) {
        fuzz_check(model, (unsigned)size);
        fuzz_compile(model, (unsigned)size);
    }
    return 0;
}
