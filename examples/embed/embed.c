/* SPDX-License-Identifier: Apache-2.0 */
/* A program that uses Kiln: runs a model on a picture of noise and prints what it says. */
#include <kiln.h>
#include <stdio.h>

static int
fail(const GError *error)
{
    fprintf(stderr, "embed: %s\n", error->message);
    return 1;
}

int
main(int argc, char **argv)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(KilnModel) model = kiln_model_load(argc > 1 ? argv[1] : "digits.onnx", &error);
    g_autoptr(KilnProgram) program = model ? kiln_program_compile(model, NULL, &error) : NULL;
    g_autoptr(KilnSession) session = program ? kiln_session_new(program, NULL, &error) : NULL;
    if (!session)
        return fail(error);

    const KilnTensorInfo *input = kiln_program_input(program, 0);
    if (!input || input->bytes < 0) {
        fprintf(stderr, "embed: expected an input whose shape is known\n");
        return 1;
    }
    g_autofree float *noise = g_malloc0((size_t)input->bytes);
    for (int64_t i = 0; i < input->bytes / 4; i++)
        noise[i] = (float)(i * 7919 % 100) / 100;
    if (!kiln_session_bind_input(session, 0, noise, (size_t)input->bytes, &error) ||
        !kiln_session_run(session, &error))
        return fail(error);

    KilnTensorInfo output = KILN_TENSOR_INFO_INIT;
    const float *scores = kiln_session_output(session, 0, &output, &error);
    printf("%s of %s:\n", output.name, kiln_build_info());
    for (int64_t i = 0; i < output.bytes / 4; i++)
        printf("  %d  %.6f\n", (int)i, scores[i]);
    return 0;
}
