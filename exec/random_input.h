/* SPDX-License-Identifier: Apache-2.0 */
/* Random inputs for functions of both levels: the same name and seed give the same tensor, whatever
 * the order of inputs or what passes did to the function. */
#ifndef KILN_EXEC_RANDOM_INPUT_H
#define KILN_EXEC_RANDOM_INPUT_H

#include "ir/ir.h"

/** What random elements are drawn from. */
typedef struct {
    bool normal; /* normal numbers with standard deviation 1; else uniform ones */
    double low;
    double high; /* not reached; the greatest integer below it is the greatest drawn */
} KilnDomain;

/** The argument's own domain where it states one. Else: normal numbers for floats; for integers
 * what every gather, scatter and one-hot that they reach allows as an index, or a few small numbers
 * where they reach none. */
KilnDomain kiln_argument_domain(const KilnArgument *argument);
/** The same for input @i of a module (kiln_module_inputs()), whatever of it is folded. */
KilnDomain kiln_module_input_domain(const KilnModule *module, guint i);
/** The same for an input of an IR function. */
KilnDomain kiln_ir_input_domain(const KilnBuffer *input);

/** A tensor of @type (static, plain) from @domain; its stream is @seed mixed with @name. Fails with
 * KILN_ERROR_UNSUPPORTED for strings, KILN_ERROR_SHAPE for open types. */
KilnTensor *kiln_random_tensor(const KilnType *type, const KilnDomain *domain, const char *name,
                               uint64_t seed, GError **error);

/** @type with every open dim set: named ones by kiln_random_dim(), unnamed ones to 2. */
KilnType kiln_random_type(const KilnType *type);
/** What a named dim is bound to where nobody says: the same for the same name. */
int64_t kiln_random_dim(const char *name);

#endif
