/* SPDX-License-Identifier: Apache-2.0 */
/* Results are bit-identical for 1, 2, 3 and 4 threads. */
#include "kiln.h"
#include "tests/concurrency/concurrency.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* All outputs of one run on the same input, one after the other. */
static char *
outputs_of(const char *path, const char *pipeline, int threads, size_t *out_size)
{
    KilnModel *model = kiln_model_load(path, NULL);
    KilnCompileOptions options = KILN_COMPILE_OPTIONS_INIT;
    options.threads = threads;
    options.pipeline = kiln_pipeline_load(pipeline, NULL);
    KilnProgram *program = model ? kiln_program_compile(model, &options, NULL) : NULL;
    KilnSession *session = program ? kiln_session_new(program, NULL, NULL) : NULL;
    REQUIRE(session);
    void *inputs[16];
    REQUIRE(kiln_program_n_inputs(program) <= G_N_ELEMENTS(inputs));
    for (unsigned i = 0; i < kiln_program_n_inputs(program); i++) {
        const KilnTensorInfo *info = kiln_program_input(program, i);
        inputs[i] = calloc(1, (size_t)info->bytes);
        if (info->dtype == KILN_DTYPE_f32)
            fill(inputs[i], (size_t)info->bytes / sizeof(float), i);
        REQUIRE(kiln_session_bind_input(session, i, inputs[i], (size_t)info->bytes, NULL));
    }
    REQUIRE(kiln_session_run(session, NULL));
    char *all = NULL;
    *out_size = 0;
    for (unsigned i = 0; i < kiln_program_n_outputs(program); i++) {
        KilnTensorInfo info = KILN_TENSOR_INFO_INIT;
        const void *data = kiln_session_output(session, i, &info, NULL);
        all = realloc(all, *out_size + (size_t)info.bytes + 1);
        memcpy(all + *out_size, data, (size_t)info.bytes);
        *out_size += (size_t)info.bytes;
    }
    for (unsigned i = 0; i < kiln_program_n_inputs(program); i++)
        free(inputs[i]);
    kiln_pipeline_unref(options.pipeline);
    kiln_session_free(session);
    kiln_program_unref(program);
    kiln_model_unref(model);
    return all;
}

static int
check(const char *path, const char *pipeline)
{
    size_t want_size, got_size;
    char *want = outputs_of(path, pipeline, 1, &want_size);
    for (int threads = 2; threads <= 4; threads++) {
        char *got = outputs_of(path, pipeline, threads, &got_size);
        REQUIRE(got_size == want_size);
        if (memcmp(got, want, got_size) != 0) {
            fprintf(stderr, "%s, %s: %d threads give other bits than 1\n", path, pipeline, threads);
            return 1;
        }
        free(got);
    }
    free(want);
    printf("%s, %s: same bits for 1, 2, 3 and 4 threads\n", path, pipeline);
    return 0;
}

int
main(int argc, char **argv)
{
    static const char *const pipelines[] = { "own", "default", "offload" };
    for (int i = 1; i < argc; i++) {
        for (size_t p = 0; p < G_N_ELEMENTS(pipelines); p++) {
            if (check(argv[i], pipelines[p]))
                return 1;
        }
    }
    return 0;
}
