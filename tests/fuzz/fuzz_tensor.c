/* SPDX-License-Identifier: Apache-2.0 */
/* Tensor files: the first byte says of which kind, the second what a picture becomes, or that a
 * sequence, an optional or a map is read. */
#include "tests/fuzz/fuzz.h"

#include "graph/tensor.h"
#include "runtime/tensors/image.h"
#include "runtime/tensors/tensor_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const endings[] = { ".pb", ".npy", ".png", ".pgm", ".ppm", ".txt" };
    if (size < 2)
        return 0;
    KilnType type = { .dtype = KILN_DTYPE_f32, .rank = 4, .dims = { 1, data[1] % 5, 8, 8 } };
    static const KilnDType kinds[] = { KILN_DTYPE_sequence, KILN_DTYPE_optional, KILN_DTYPE_map };
    if (data[1] > UINT8_MAX - G_N_ELEMENTS(kinds))
        type = kiln_type_scalar(kinds[UINT8_MAX - data[1]]);
    const KilnImageOptions image = KILN_IMAGE_OPTIONS_INIT;
    const char *path = fuzz_file(endings[data[0] % G_N_ELEMENTS(endings)], data + 2, size - 2);
    g_autoptr(GError) error = NULL;
    g_autoptr(KilnTensor) tensor =
        kiln_tensor_file_load(path, data[1] < 128 ? NULL : &type, &image, &error);
    fuzz_expect(tensor, error);
    if (!tensor)
        return 0;
    /* What was read can be looked at and written. */
    g_autoptr(GBytes) view = kiln_tensor_view(tensor, &error);
    fuzz_expect(view, error);
    g_clear_error(&error);
    for (int npy = 0; npy < 2; npy++) {
        g_autoptr(GByteArray) out = g_byte_array_new();
        bool written = kiln_tensor_file_encode(npy ? "x.npy" : "x.pb", "x", tensor, out, &error);
        fuzz_expect(written, error);
        g_clear_error(&error);
    }
    return 0;
}
