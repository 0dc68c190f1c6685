/* SPDX-License-Identifier: Apache-2.0 */
/* analyse-constness: marks each node with the time when what it computes is known.
 *
 *     graph @f(%x: f32[4], %w: f32[4] constant=run) {
 *       %c = const @c : f32[4]
 *       %a = neg(%c) : f32[4] constant=literal           of literals
 *       %b = add(%a, %w) : f32[4] constant=run           of literals and a Type 2 argument
 *       %y = add(%x, %b) : f32[4]                        varies
 *
 * requires nothing, preserves everything; class E. Random numbers, side effects and state vary, and
 * so do nodes without results; shapes that are known are literal whatever they are the shape of.
 * The marks are for constant-fold, which brings them up to date and removes them, and for whoever
 * reads a dump. They are no part of the program: the pass changes nothing. */
#include "passes/fold/constness.h"
#include "passes/pass.h"

GRAPH_PASS(analyse_constness);

gboolean
kiln_pass_analyse_constness(KilnFunction *function, KilnPassContext *context, bool *changed,
                            GError **error)
{
    (void)context;
    (void)error;
    *changed = false;
    if (!function->owner) /* subgraphs are marked with what is around them */
        kiln_constness_mark(function);
    return TRUE;
}
