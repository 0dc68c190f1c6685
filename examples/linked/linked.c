/* SPDX-License-Identifier: Apache-2.0 */
/* Two models in one binary, without a model file: `kiln compile --format object` made digits.o and
 * surest.o. The second reads what the first writes, where it lies. */
#include "digits.h"
#include "surest.h"

#include <stdio.h>

static int
fail(const GError *error)
{
    fprintf(stderr, "linked: %s\n", error->message);
    return 1;
}

int
main(void)
{
    static float noise[DIGITS_INPUT_0_BYTES / sizeof(float)];
    static float scores[DIGITS_OUTPUT_0_BYTES / sizeof(float)];
    g_autoptr(GError) error = NULL;
    g_autoptr(KilnProgram) digits = digits_load(&error);
    g_autoptr(KilnProgram) surest = digits ? surest_load(&error) : NULL;
    g_autoptr(KilnSession) first = surest ? kiln_session_new(digits, NULL, &error) : NULL;
    g_autoptr(KilnSession) second = first ? kiln_session_new(surest, NULL, &error) : NULL;
    if (!second)
        return fail(error);

    for (size_t i = 0; i < G_N_ELEMENTS(noise); i++)
        noise[i] = (float)(i * 7919 % 100) / 100;
    if (!kiln_session_bind_input(first, 0, noise, sizeof noise, &error) ||
        !kiln_session_bind_output(first, 0, scores, sizeof scores, &error) ||
        !kiln_session_bind_input(second, 0, scores, sizeof scores, &error) ||
        !kiln_session_run(first, &error) || !kiln_session_run(second, &error))
        return fail(error);

    const int64_t *digit = kiln_session_output(second, 0, NULL, &error);
    for (size_t i = 0; i < G_N_ELEMENTS(scores); i++)
        printf("  %d  %.6f%s\n", (int)i, scores[i], (int64_t)i == *digit ? "  <" : "");
    return 0;
}
