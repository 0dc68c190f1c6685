/* SPDX-License-Identifier: Apache-2.0 */
/* Makes random inputs for functions of both levels. The same name and seed give the same tensor.
 * The order of inputs and the passes that ran do not matter. */
#ifndef KILN_EXEC_RANDOM_INPUT_H
#define KILN_EXEC_RANDOM_INPUT_H

#include "graph/binding.h"
#include "ir/ir.h"

/** The distribution of random elements. */
typedef struct {
    bool normal; /* standard deviation 1; else uniform */
    double low;
    double high; /* excluded; integers reach the greatest one below it */
} KilnDomain;

/** The argument's own domain, if it states one. Otherwise floats are normal. Integers that reach a
 * gather, scatter or one-hot are indices that all of these allow at @binding. Other integers are a
 * few small numbers. @binding may be NULL, here and below: then names have no numbers. */
KilnDomain kiln_argument_domain(const KilnArgument *argument, const KilnDimBinding *binding);
/** The domain of input @i of a module (kiln_module_inputs()), also where parts of it are folded. */
KilnDomain kiln_module_input_domain(const KilnModule *module, guint i,
                                    const KilnDimBinding *binding);
/** The domain of an input of an IR function. */
KilnDomain kiln_ir_input_domain(const KilnBuffer *input);

/** Draws a tensor of @type (static, plain) from @domain, or short words. @seed and @name select the
 * stream. Fails with KILN_ERROR_SHAPE for open types. Of a sequence, optional or map, @domain
 * counts for nothing: see exec/random_items.h. */
KilnTensor *kiln_random_tensor(const KilnType *type, const KilnDomain *domain, const char *name,
                               uint64_t seed, GError **error);

/** @type with every open dim set: names as @binding says, others by kiln_random_dim(), and a dim
 * without an expression to 2. */
KilnType kiln_random_type(const KilnType *type, const KilnDimBinding *binding);
/** The default extent of a dim that is a name. It depends on the name and on its facts only. */
int64_t kiln_random_dim(const KilnDim *name);

#endif
