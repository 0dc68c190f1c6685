/* SPDX-License-Identifier: Apache-2.0 */
/* The pass table, generated from passes.def. */
#include "passes/pass.h"

#include <string.h>

#define ALL KILN_ANALYSIS_ALL
#define ORDER KILN_ANALYSIS_ORDER
#define LIVENESS KILN_ANALYSIS_LIVENESS

/* What the files of the passes define. */
#define GRAPH(id, ...)                                                                             \
    GRAPH_PASS(id);                                                                                \
    extern const KilnOptionTable kiln_pass_options_##id;
#define RULES(id, ...)                                                                             \
    extern const KilnRuleList kiln_pass_rules_##id;                                                \
    extern const KilnOptionTable kiln_pass_options_##id;
#define IR(id, ...)                                                                                \
    IR_PASS(id);                                                                                   \
    extern const KilnOptionTable kiln_pass_options_##id;
#include "passes/passes.def"

#define WITH_(id) NULL
#define WITH_OPTIONS(id) &kiln_pass_options_##id
#define ROW(pass_id, pass_level, text, needs, keeps, class_, about, with)                          \
    .id = text, .level = pass_level, .requires_ = (uint32_t)(needs),                               \
    .preserves = (uint32_t)(keeps), .numerics = KILN_NUMERICS_##class_, .summary = about,          \
    .options = WITH_##with(pass_id)

static const KilnPassInfo passes[] = {
#define GRAPH(id_, text, needs, keeps, class_, about, with)                                        \
    { ROW(id_, KILN_LEVEL_GRAPH, text, needs, keeps, class_, about, with),                         \
      .run_graph = kiln_pass_##id_ },
#define RULES(id_, text, class_, about, with)                                                      \
    { ROW(id_, KILN_LEVEL_GRAPH, text, 0, 0, class_, about, with),                                 \
      .rules = &kiln_pass_rules_##id_ },
#define IR(id_, text, needs, keeps, class_, about, with)                                           \
    { ROW(id_, KILN_LEVEL_IR, text, needs, keeps, class_, about, with), .run_ir = kiln_pass_##id_ },
#include "passes/passes.def"
};

uint32_t
kiln_pass_count(void)
{
    return G_N_ELEMENTS(passes);
}

const KilnPassInfo *
kiln_pass_at(uint32_t i)
{
    return i < G_N_ELEMENTS(passes) ? &passes[i] : NULL;
}

const KilnPassInfo *
kiln_pass_find(const char *id)
{
    for (uint32_t i = 0; i < G_N_ELEMENTS(passes); i++) {
        if (strcmp(passes[i].id, id) == 0)
            return &passes[i];
    }
    return NULL;
}
