/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs of what a vendor library takes, among what it lacks. */
#include "tests/random/random_graph.h"
#include "tests/random/random_graph_priv.h"

/* A batch of pictures, volumes or lines. */
static KilnType
some_pictures(RandomGraph *g)
{
    static const int64_t channels[] = { 3, 8, 16, 16, 16, 17, 24, 32 };
    static const int64_t sides[] = { 1, 4, 5, 7, 8, 10, 14, 22 };
    int rank = rg_one_in(g, 7) ? 3 : rg_one_in(g, 6) ? 5 : 4;
    int64_t side = sides[rg_below(g, G_N_ELEMENTS(sides))];
    int64_t dims[5] = { rg_one_in(g, 4) ? 2 : 1, channels[rg_below(g, G_N_ELEMENTS(channels))] };
    for (int d = 2; d < rank; d++)
        dims[d] = (rank == 5 ? MIN(side, 5) : side) + rg_one_in(g, 4);
    if (rg_one_in(g, 40))
        dims[rg_below(g, rank)] = 0;
    return kiln_type_make(g->dtype, rank, dims);
}

/* A matrix, or a stack of them. */
static KilnType
some_matrices(RandomGraph *g)
{
    int64_t dims[3] = { 1 + rg_below(g, 4), 1 + rg_below(g, 6), rg_columns(g) };
    int skip = rg_one_in(g, 2);
    if (rg_one_in(g, 40))
        dims[rg_below(g, 3)] = 0;
    return kiln_type_make(g->dtype, 3 - skip, dims + skip);
}

KilnModule *
random_vendor_graph(uint64_t seed)
{
    RandomGraph g = { .state = seed * UINT64_C(0xd1342543de82ef95) + 1,
                      .dtype = KILN_DTYPE_f32,
                      .most = 16384 };
    rg_begin(&g);
    bool pictures = !rg_one_in(&g, 3);
    KilnType type = pictures ? some_pictures(&g) : some_matrices(&g);
    for (int i = rg_below(&g, 3); i >= 0; i--) {
        rg_argument(&g, &type);
        if (rg_one_in(&g, 3))
            type = rg_one_in(&g, 6) != pictures ? some_pictures(&g) : some_matrices(&g);
    }
    for (int i = 2 + rg_below(&g, 7); i > 0; i--) {
        if (rg_one_in(&g, 10))
            rg_step(&g);
        else if (rg_one_in(&g, 6) != pictures)
            rg_picture(&g);
        else
            rg_product(&g);
    }
    return rg_end(&g, 4);
}
