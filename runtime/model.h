/* SPDX-License-Identifier: Apache-2.0 */
/* Models, and the infos of their inputs and outputs. */
#ifndef KILN_RUNTIME_MODEL_H
#define KILN_RUNTIME_MODEL_H

#include "ir/ir.h"
#include "kiln.h"

#include <stdatomic.h>

/** Infos of all inputs or outputs, with the storage that they point to. */
typedef struct {
    unsigned n;
    KilnTensorInfo *info;
    KilnType *types;  /* what they borrow is that of the module or IR that they were made from */
    char **contents;  /* texts of types; NULL for tensors */
    char **dim_texts; /* KILN_MAX_RANK for each: an open dim in the text form; NULL: no such dim */
} KilnInfoList;
/** Types are copied into @list; the strings that they borrow must outlive it. */
void kiln_info_list_init(KilnInfoList *list, unsigned n, const char *const *names,
                         const KilnType *types);
/** The same infos; names stay those that @from borrows. Clears @to first. */
void kiln_info_list_copy(KilnInfoList *to, const KilnInfoList *from);
/** Sequences, optionals and maps of @list get their whole types from @stated, as many infos, which
 * must outlive it: instructions do not know the dims of their elements. */
void kiln_info_list_state_contents(KilnInfoList *list, const KilnInfoList *stated);
void kiln_info_list_clear(KilnInfoList *list);
/** Lists the inputs of @module from outside, and the results of its entry. */
void kiln_info_lists_of_graph(const KilnModule *module, KilnInfoList *inputs,
                              KilnInfoList *outputs);

struct KilnModel {
    atomic_int references;
    char *name;         /* path, or a name in its place */
    KilnModule *module; /* graph level: programs clone it; IR level: has the constants, for infos */
    GBytes *ir_text;    /* IR level: parsed anew by each compilation; NULL at graph level */
    KilnIRModule *ir;   /* IR level: for infos; owns `module` then */
    GBytes *map;        /* the file, if it is mapped and holds constants; else NULL */
    KilnInfoList inputs, outputs;
    KilnMetadata metadata;    /* texts are those of @module */
    KilnConstantCache *cache; /* of programs that get no other */
};

/** An empty model, to be filled. @name NULL: from memory. */
KilnModel *kiln_model_new(const char *name, GError **error);
/** kiln_model_load_bytes_with() for bytes that lie in no folder. @name is only for messages. */
KilnModel *kiln_model_load_alone(GBytes *bytes, const char *name, const KilnModelOptions *options,
                                 GError **error);
/** Another model of the same file, whose graph is @module, which it takes over. */
KilnModel *kiln_model_beside(const KilnModel *model, KilnModule *module, GError **error);
/** Makes @model an IR level model of @ir, which it takes over. */
void kiln_model_take_ir(KilnModel *model, KilnIRModule *ir);

#endif
