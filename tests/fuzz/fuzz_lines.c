/* SPDX-License-Identifier: Apache-2.0 */
/* Files of lines that the command and the benches read: the first byte says of which kind. */
#include "tests/fuzz/fuzz.h"

#include "bench/bench_case.h"
#include "bench/bench_problem.h"
#include "bench/cost_shape.h"
#include "graph/base/json_writer.h"
#include "graph/tensor.h"
#include "tools/summary.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Names of classes, and what is shown with them as JSON. */
static bool
read_labels(const char *path, GError **error)
{
    g_auto(GStrv) labels = kiln_labels_load(path, error);
    const float values[] = { 0, 3, 1, 2 };
    KilnType type = kiln_type_make(KILN_DTYPE_f32, 1, (int64_t[]){ G_N_ELEMENTS(values) });
    g_autoptr(KilnTensor) tensor = kiln_tensor_new_copy(&type, values, NULL);
    g_autoptr(GString) text = g_string_new(NULL);
    KilnJson json = { .out = text };
    if (labels && tensor)
        kiln_summary_write(&json, "y", tensor, labels);
    return labels;
}

/* Measurements that costs are fitted to. */
static bool
read_costs(const char *path, GError **error)
{
    g_autoptr(GArray) shapes = g_array_new(FALSE, FALSE, sizeof(Shape));
    return cost_shapes_read(path, shapes, error);
}

static bool
read_problem(const char *path, GError **error)
{
    g_autoptr(Problem) problem = problem_load(path, -1, error);
    return problem;
}

static bool
read_cases(const char *path, GError **error)
{
    g_autoptr(GPtrArray) cases = g_ptr_array_new_with_free_func((GDestroyNotify)bench_case_free);
    return bench_cases_read(path, cases, error);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static bool (*const readers[])(const char *path, GError **error) = { read_labels, read_costs,
                                                                         read_problem, read_cases };
    if (size < 1)
        return 0;
    g_autoptr(GError) error = NULL;
    const char *path = fuzz_file(".txt", data + 1, size - 1);
    bool good = readers[data[0] % G_N_ELEMENTS(readers)](path, &error);
    fuzz_expect(good, error);
    return 0;
}
