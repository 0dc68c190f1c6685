/* SPDX-License-Identifier: Apache-2.0 */
/* Which passes are lists of rules: the table of rules.def. */
#include "passes/rule.h"

#include <string.h>

typedef const KilnRule *(*RulesFn)(uint32_t *n);

static const struct {
    const char *pass_id;
    RulesFn rules;
} tables[] = {
#define RULES(id, text) { text, kiln_pass_rules_##id },
#include "passes/rules/rules.def"
    { NULL, NULL },
};

const KilnRule *
kiln_pass_rules(const char *pass_id, uint32_t *n)
{
    *n = 0;
    for (size_t i = 0; tables[i].pass_id; i++) {
        if (strcmp(tables[i].pass_id, pass_id) == 0)
            return tables[i].rules(n);
    }
    return NULL;
}

KilnNumerics
kiln_pass_numerics(const KilnPassInfo *pass, uint32_t flags)
{
    uint32_t n;
    const KilnRule *rules = kiln_pass_rules(pass->id, &n);
    if (pass->numerics == KILN_NUMERICS_Z && !(flags & KILN_FLAG(no_signed_zeros)))
        return KILN_NUMERICS_E;
    if (pass->numerics < KILN_NUMERICS_QS || !rules)
        return pass->numerics;
    KilnNumerics widest = KILN_NUMERICS_E;
    for (uint32_t i = 0; i < n; i++) {
        if ((rules[i].flags & flags) == rules[i].flags)
            widest = MAX(widest, rules[i].numerics);
    }
    return widest;
}
