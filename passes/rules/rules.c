/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of a pass from its rules. */
#include "passes/rule.h"

KilnNumerics
kiln_pass_numerics(const KilnPassInfo *pass, uint32_t flags)
{
    if (pass->numerics == KILN_NUMERICS_Z && !(flags & KILN_FLAG(no_signed_zeros)))
        return KILN_NUMERICS_E;
    if (pass->numerics < KILN_NUMERICS_QS || !pass->rules)
        return pass->numerics;
    KilnNumerics widest = KILN_NUMERICS_E;
    for (uint32_t i = 0; i < pass->rules->n; i++) {
        const KilnRule *rule = &pass->rules->rules[i];
        if ((rule->flags & flags) == rule->flags)
            widest = MAX(widest, rule->numerics);
    }
    return widest;
}
