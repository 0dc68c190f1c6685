/* SPDX-License-Identifier: Apache-2.0 */
/* choose-algorithms: a convolution is computed by Winograd's algorithm where the target has it and
 * its cost model says that this is faster.
 *
 *     conv @out %y, @in %x, @in @w      =>      conv @out %y, @in %x, @in @w {algorithm="winograd"}
 *
 * Weights grow fourfold where they are transformed, so with memory preferred to speed nothing
 * changes. Only weights that are known can be transformed: where bits must not tell literals from
 * inputs (no offload), nothing changes either, unless the option says `always`. The option winograd
 * says `never` or `always` in place of what the model says. Weights that are not finite stay
 * direct: transformed, they would be NaN in all of a tile. Those that come with the first run are
 * looked at when they are packed.
 *
 * requires nothing, preserves everything but scratch; class U: other products are summed, with a
 * relative error of about 1e-6 in the Euclidean norm for up to 1024 channels. */
#include "passes/pass.h"

#include <string.h>

#define OPTIONS(OPTION, CHOICE) CHOICE(winograd, "pays", "pays|always|never")
PASS_OPTIONS(choose_algorithms, OPTIONS);

static const char rule[] = "conv-by-winograd";

enum {
    MAX_CHANNELS = 1024, /* summed; up to there the error is measured */
};

/* By how much the model must say that it is faster: what it cannot see decides below. */
static const double margin = 0.9;

static bool
choose(KilnInstr *instr, const char *when, KilnPassContext *context, GError **error)
{
    KilnInstrAttrs_conv *attrs = kiln_instr_attrs(instr, conv);
    KilnChoice choices[KILN_MAX_CHOICES];
    if (strcmp(attrs->algorithm, "direct") != 0 ||
        kiln_target_choices(kiln_pass_target(context), instr, choices) < 2)
        return false;
    const KilnChoice *direct = &choices[0], *other = &choices[1];
    PASS_GUARD(accurate, kiln_instr_operand(instr, 1)->type.dims[1] <= MAX_CHANNELS);
    PASS_GUARD(pays, strcmp(when, "always") == 0 ||
                         (other->cost >= 0 && other->cost < margin * direct->cost));
    PASS_GUARD(finite, kiln_buffer_is_finite(kiln_instr_operand(instr, 2), error));
    attrs->algorithm = other->algorithm;
    kiln_instr_touch(instr);
    kiln_pass_note(context, rule, "%s", kiln_instr_label(instr));
    return true;
}

IR_PASS(choose_algorithms);

gboolean
kiln_pass_choose_algorithms(KilnIRFunction *function, KilnPassContext *context, bool *changed,
                            GError **error)
{
    GError *failure = NULL;
    *changed = false;
    const Options *options = kiln_pass_options(context);
    bool always = strcmp(options->winograd, "always") == 0;
    bool wanted = kiln_pass_target(context) && strcmp(options->winograd, "never") != 0 &&
                  !kiln_pass_prefers_memory(context) &&
                  (always || !kiln_pass_one_algorithm(context));
    if (!wanted)
        return TRUE;
    kiln_foreach_instr (instr, function) {
        if (instr->kind == KILN_INSTR_conv)
            *changed |= choose(instr, options->winograd, context, &failure);
        if (failure) {
            g_propagate_error(error, failure);
            return FALSE;
        }
    }
    return TRUE;
}
