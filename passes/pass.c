/* SPDX-License-Identifier: Apache-2.0 */
/* The pass table, generated from passes.def. */
#include "passes/pass.h"

#include <stddef.h>
#include <string.h>

#define ALL KILN_ANALYSIS_ALL
#define ORDER KILN_ANALYSIS_ORDER
#define LIVENESS KILN_ANALYSIS_LIVENESS

/* Options and the values that they are restricted to: two arrays of equal order per pass. */
#define ATTR(pass, kind, field, d)                                                                 \
    { #field, KILN_ATTR_##kind, offsetof(KilnPassOptions_##pass, field), KILN_OTHERWISE_##kind(d) },
#define GRAPH_PASS(id, text, requires, keeps, class_, about, list)                                 \
    static const KilnAttrInfo options_##id[] = { list{ NULL, KILN_ATTR_INT, 0, { .i = 0 } } };
#define IR_PASS(id, text, requires, keeps, class_, about, list)                                    \
    static const KilnAttrInfo options_##id[] = { list{ NULL, KILN_ATTR_INT, 0, { .i = 0 } } };
#include "passes/passes.def"

#define ATTR(pass, kind, field, d) NULL,
#define CHOICE(pass, field, d, choices) choices,
#define GRAPH_PASS(id, text, requires, keeps, class_, about, list)                                 \
    static const char *const choices_##id[] = { list NULL };
#define IR_PASS(id, text, requires, keeps, class_, about, list)                                    \
    static const char *const choices_##id[] = { list NULL };
#include "passes/passes.def"

#define ROW(pass_id, pass_level, text, needs, keeps, class_, about)                                \
    .id = text, .level = pass_level, .requires_ = (uint32_t)(needs),                               \
    .preserves = (uint32_t)(keeps), .numerics = KILN_NUMERICS_##class_, .summary = about,          \
    .options = options_##pass_id, .choices = choices_##pass_id,                                    \
    .n_options = G_N_ELEMENTS(options_##pass_id) - 1,                                              \
    .options_size = sizeof(KilnPassOptions_##pass_id)

static const KilnPassInfo passes[] = {
#define ATTR(...)
#define GRAPH_PASS(id_, text, needs, keeps, class_, about, list)                                   \
    { ROW(id_, KILN_LEVEL_GRAPH, text, needs, keeps, class_, about), .run_graph = kiln_pass_##id_ },
#define IR_PASS(id_, text, needs, keeps, class_, about, list)                                      \
    { ROW(id_, KILN_LEVEL_IR, text, needs, keeps, class_, about), .run_ir = kiln_pass_##id_ },
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
