/* SPDX-License-Identifier: Apache-2.0 */
/* Random graphs with names in the place of dims of their inputs. */
#ifndef KILN_TESTS_RANDOM_OPENED_H
#define KILN_TESTS_RANDOM_OPENED_H

#include "graph/module.h"
#include "runtime/specialise.h"

/** Numbers for the names. */
typedef enum {
    NUMBERS_PRIMES, /* another prime for each name */
    NUMBERS_ONES,
    NUMBERS_EQUAL,
    NUMBERS_LARGE, /* a few hundred for one name, as far as the graph stays small */
    NUMBERS_ZERO,  /* 0 for one name */
    NUMBERS_ZEROS, /* for it, and for another one for some seeds; other numbers for the rest */
    N_NUMBERS,
} Numbers;

typedef struct {
    KilnModule *module; /* its inputs have open dims */
    uint64_t seed;
    GPtrArray *names; /* char* */
    int8_t *name_of;  /* KILN_MAX_RANK per input: index of the name; -1: a number */
    int64_t large;    /* of NUMBERS_LARGE */
} Opened;

/** Opens a copy of @module, whose types are numbers. About half of the dims of its inputs get
 * names. Names of inputs and @seed decide. A node that cannot compute with other numbers gets
 * constants of one element or a computed shape, or it goes. Chains of nodes that compute with dims
 * are added. False if no dim of any input that is left can vary. */
bool opened_init(Opened *out, const KilnModule *module, uint64_t seed);
void opened_clear(Opened *opened);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Opened, opened_clear)

/** One per input. The caller frees them. */
KilnBinding *opened_bindings(const Opened *opened, Numbers numbers);
/** Random inputs of these shapes, KilnTensor*. */
GPtrArray *opened_inputs(const Opened *opened, const KilnBinding *bindings, GError **error);

/** Lets the reshape @node make rows of what the first dim leaves, or one dim of all. False for
 * other nodes. */
bool opened_compute_shape(KilnNode *node, uint64_t seed);
/** Adds chains of nodes that compute with dims, as exporters write them, to the values of
 * @function. Appends their last values to @out. */
void opened_add_chains(KilnFunction *function, uint64_t seed, GPtrArray *out);

#endif
