/* SPDX-License-Identifier: Apache-2.0 */
/* Pipelines: YAML, and after a first byte of `-` the inline form. What is accepted prints to YAML
 * that loads back to the same. */
#include "passes/pipeline/pipeline.h"
#include "tests/fuzz/fuzz.h"

#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(KilnPassPipeline) pipeline = NULL;
    g_autofree char *exact = NULL;
    if (size && *data == '-') {
        exact = g_strndup((const char *)data + 1, size - 1);
        pipeline = kiln_pass_pipeline_parse_inline(exact, &error);
    } else {
        exact = fuzz_copy(data, size);
        pipeline = kiln_pass_pipeline_parse_yaml(exact, size, "x.yaml", &error);
    }
    fuzz_expect(pipeline, error);
    if (!pipeline)
        return 0;
    g_autoptr(GString) printed = g_string_new(NULL), reprinted = g_string_new(NULL);
    kiln_pass_pipeline_print(pipeline, printed);
    g_autoptr(KilnPassPipeline) again =
        kiln_pass_pipeline_parse_yaml(printed->str, printed->len, "x.yaml", &error);
    if (again)
        kiln_pass_pipeline_print(again, reprinted);
    if (!again || !g_string_equal(printed, reprinted)) {
        fprintf(stderr, "%s\n--- reads back as ---\n%s\n", printed->str,
                again ? reprinted->str : error->message);
        abort();
    }
    return 0;
}
