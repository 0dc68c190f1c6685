/* SPDX-License-Identifier: Apache-2.0 */
/* regex_full_match: true where the pattern matches the whole of a string. */
#include "backends/ref/kernel.h"
#include "graph/base/regex.h"

/* The pattern is sound: the verifier has compiled it. */
static KilnRegex *
regex_of(const KilnInstr *instr)
{
    return kiln_regex_compile(kiln_instr_attrs(instr, regex_full_match)->pattern, NULL);
}

size_t
kiln_ref_regex_full_match_prepared(const KilnInstr *instr)
{
    g_autoptr(KilnRegex) regex = regex_of(instr);
    return regex ? kiln_regex_bytes(regex) : 0;
}

void
kiln_ref_regex_full_match_prepare(const KilnInstr *instr, void *prepared)
{
    g_autoptr(KilnRegex) regex = regex_of(instr);
    if (regex)
        memcpy(prepared, regex, kiln_regex_bytes(regex));
}

size_t
kiln_ref_regex_full_match_scratch(const KilnInstr *instr, uint32_t form, int threads)
{
    (void)form;
    (void)threads;
    g_autoptr(KilnRegex) regex = regex_of(instr);
    return regex ? kiln_regex_scratch(regex) : 0;
}

const char *
kiln_ref_regex_full_match(const KilnKernelArgs *args)
{
    const KilnText *const *x = args->data[1];
    uint8_t *result = args->data[0];
    for (int64_t i = 0; i < ref_elements(ref_type(args, 1)); i++)
        result[i] = kiln_regex_matches(args->prepared, kiln_text_of(x[i]), args->scratch);
    return NULL;
}
