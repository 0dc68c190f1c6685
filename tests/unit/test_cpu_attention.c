/* SPDX-License-Identifier: Apache-2.0 */
/* The cpu backend's attention against the reference: blocks of queries that do and do not divide,
 * broadcast batches and masks, any number of threads. */
#include "graph/base/number.h"
#include "ir/instr.h"
#include "tests/unit/cpu_case.h"
#include "tests/unit/ref_case.h"

#include <math.h>

static const Tolerance rounded = { 2e-5, 1e-5 };

typedef struct {
    int rank; /* 0: absent */
    int64_t dims[4];
} Shape;

typedef struct {
    Shape out, q, k, v, mask;
} Shapes;

static RefCase *
attention_case(const Shapes *s, float scale)
{
    RefCase *c = case_new(KILN_INSTR_attention);
    CASE_ATTRS(c, attention)->scale = scale;
    case_out(c, KILN_DTYPE_f32, s->out.rank, s->out.dims);
    cpu_in(c, s->q.rank, s->q.dims);
    cpu_in(c, s->k.rank, s->k.dims);
    cpu_in(c, s->v.rank, s->v.dims);
    if (s->mask.rank)
        cpu_in(c, s->mask.rank, s->mask.dims);
    return c;
}

Test(cpu_attention, shapes)
{
    static const Shapes cases[] = {
        { { 2, { 1, 1 } }, { 2, { 1, 1 } }, { 2, { 1, 1 } }, { 2, { 1, 1 } }, { 0, { 0 } } },
        { { 2, { 5, 6 } }, { 2, { 5, 4 } }, { 2, { 7, 4 } }, { 2, { 7, 6 } }, { 0, { 0 } } },
        { { 4, { 1, 4, 128, 64 } },
          { 4, { 1, 4, 128, 64 } },
          { 4, { 1, 4, 128, 64 } },
          { 4, { 1, 4, 128, 64 } },
          { 0, { 0 } } },
        { { 3, { 2, 161, 33 } },
          { 3, { 2, 161, 17 } },
          { 3, { 2, 90, 17 } },
          { 3, { 2, 90, 33 } },
          { 3, { 2, 1, 90 } } },
        { { 4, { 2, 3, 37, 8 } },
          { 4, { 2, 3, 37, 16 } },
          { 3, { 3, 41, 16 } },
          { 4, { 2, 1, 41, 8 } },
          { 2, { 37, 41 } } },
        { { 4, { 2, 3, 37, 8 } },
          { 4, { 2, 1, 37, 16 } },
          { 3, { 3, 41, 16 } },
          { 2, { 41, 8 } },
          { 4, { 2, 1, 37, 1 } } },
        { { 2, { 9, 5 } }, { 2, { 9, 3 } }, { 2, { 3000, 3 } }, { 2, { 3000, 5 } }, { 0, { 0 } } },
        { { 2, { 3, 5 } }, { 2, { 3, 0 } }, { 2, { 4, 0 } }, { 2, { 4, 5 } }, { 0, { 0 } } },
        { { 3, { 0, 3, 5 } },
          { 3, { 0, 3, 2 } },
          { 3, { 0, 4, 2 } },
          { 3, { 0, 4, 5 } },
          { 0, { 0 } } },
        { { 2, { 3, 5 } }, { 2, { 3, 2 } }, { 2, { 0, 2 } }, { 2, { 0, 5 } }, { 0, { 0 } } },
    };
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *what = g_strdup_printf("case %d", (int)i);
        g_autoptr(RefCase) c = attention_case(&cases[i], 0.125f);
        cpu_agrees(c, rounded, what);
    }
}

/* What a mask hides has no share, whatever its value is. */
Test(cpu_attention, hidden_keys)
{
    static const Shapes shapes = {
        { 2, { 3, 5 } }, { 2, { 3, 2 } }, { 2, { 4, 2 } }, { 2, { 4, 5 } }, { 2, { 3, 4 } }
    };
    g_autoptr(RefCase) c = attention_case(&shapes, 0.5f);
    for (int64_t i = 0; i < 12; i++)
        kiln_element_store_f64(KILN_DTYPE_f32, c->data[4], i, i % 4 > i / 4 ? -INFINITY : 0);
    cpu_agrees(c, rounded, "causal");
}
