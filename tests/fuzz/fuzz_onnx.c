/* SPDX-License-Identifier: Apache-2.0 */
/* ONNX models: importer, shape inference, the default pipeline, binding, a run. */
#include "kiln.h"
#include "runtime/model.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GBytes) bytes = g_bytes_new(data, size);
    g_autoptr(KilnModel) model = kiln_model_load_bytes(bytes, NULL, &error);
    fuzz_expect(model, error);
    if (model)
        fuzz_compile(model, (unsigned)size);
    return 0;
}
