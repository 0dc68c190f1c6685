/* SPDX-License-Identifier: Apache-2.0 */
/* Results are bit-identical for 1, 2, 3 and 4 threads. */
#include "tests/concurrency/concurrency.h"

#include <string.h>

/* All outputs of one run on the same input, one after the other. */
static char *
outputs_of(const char *path, int threads, size_t *out_size)
{
    KilnModel *model = kiln_model_load(path, NULL);
    KilnCompileOptions options = KILN_COMPILE_OPTIONS_INIT;
    options.threads = threads;
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
        KilnTensorInfo info;
        const void *data = kiln_session_output(session, i, &info, NULL);
        all = realloc(all, *out_size + (size_t)info.bytes + 1);
        memcpy(all + *out_size, data, (size_t)info.bytes);
        *out_size += (size_t)info.bytes;
    }
    for (unsigned i = 0; i < kiln_program_n_inputs(program); i++)
        free(inputs[i]);
    kiln_session_free(session);
    kiln_program_unref(program);
    kiln_model_unref(model);
    return all;
}

int
main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        size_t want_size, got_size;
        char *want = outputs_of(argv[i], 1, &want_size);
        for (int threads = 2; threads <= 4; threads++) {
            char *got = outputs_of(argv[i], threads, &got_size);
            REQUIRE(got_size == want_size);
            if (memcmp(got, want, got_size) != 0) {
                fprintf(stderr, "%s: %d threads give other bits than 1\n", argv[i], threads);
                return 1;
            }
            free(got);
        }
        free(want);
        printf("%s: same bits for 1, 2, 3 and 4 threads\n", argv[i]);
    }
    return 0;
}
