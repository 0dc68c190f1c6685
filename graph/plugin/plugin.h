/* SPDX-License-Identifier: Apache-2.0 */
/* Operators of plug-ins as the inside of Kiln sees them. */
#ifndef KILN_GRAPH_PLUGIN_PLUGIN_H
#define KILN_GRAPH_PLUGIN_PLUGIN_H

#include "graph/kiln-op.h"
#include "graph/graph.h"
#include "graph/texts.h"

/* --- the registry: any thread may use it --- */

/** Registers all of @n descriptions, or none. @from names where they come from in messages. */
gboolean kiln_plugin_register(const KilnOpDescription *ops, uint32_t n, const char *from,
                              GError **error);
/** The operator of that name in @opset of @domain; NULL if there is none. */
const KilnOpDescription *kiln_plugin_find(const char *domain, const char *name, int64_t opset);
/** Says where @op comes from: "plug-in ./softsign2.so". Lives as long as the process. */
const char *kiln_plugin_from(const KilnOpDescription *op);
/** Says for which opsets the operator of that name is registered, "plug-in F has it in opsets 1 to
 * 3"; NULL where no plug-in has it. */
char *kiln_plugin_opsets(const char *domain, const char *name);
/** All operators, by domain, name and opset; freed with g_ptr_array_unref(). */
GPtrArray *kiln_plugin_list(void);
/** "com.example:Softsign2"; "Softsign2" in ONNX's own domain. */
char *kiln_plugin_name(const char *domain, const char *name);
/** What users do about an operator that nobody has registered. */
#define KILN_PLUGIN_NONE "not known, and no plug-in has it (--load-plugin)"
#define KILN_PLUGIN_HINT "not known, and no plug-in has it (--load-plugin, kiln_op_load_plugin())"

/* --- what a node or instruction says of its operator --- */

/** The attributes of `plugin_op`, `plugin_effect`, and the instruction `plugin_op`. */
typedef struct {
    const char *domain, *op_type;
    int64_t opset;
    KilnStrings attributes;
    KilnInts ints;
    KilnFloats floats;
    KilnStrings texts;
} KilnPluginColumns;
#define KILN_PLUGIN_COLUMNS(attrs)                                                                 \
    ((KilnPluginColumns){ (attrs)->domain, (attrs)->op_type, (attrs)->opset, (attrs)->attributes,  \
                          (attrs)->ints, (attrs)->floats, (attrs)->texts })
/** True for `plugin_op` and `plugin_effect`. */
bool kiln_node_is_plugin(const KilnNode *node);
KilnPluginColumns kiln_node_plugin_columns(const KilnNode *node);

/** One attribute. Its values are @n elements from @first on of a column; a tensor is one element of
 * `texts`, in base64. */
typedef struct {
    const char *name;
    KilnOpAttributeKind kind;
    uint32_t first, n;
    KilnType type; /* of a tensor */
} KilnPluginAttribute;
/** Walks: begin with a zeroed place. False behind the last attribute, and where the columns are
 * broken, which sets *@broken. */
typedef struct {
    uint32_t next, ints, floats, texts;
} KilnPluginPlace;
bool kiln_plugin_next_attribute(const KilnPluginColumns *columns, KilnPluginPlace *place,
                                KilnPluginAttribute *out, bool *broken);
/** Checks the columns against @op: kinds, and attributes that are required. */
gboolean kiln_plugin_check_attributes(const KilnPluginColumns *columns, const KilnOpDescription *op,
                                      GError **error);
/** "a float", "integers". */
const char *kiln_plugin_kind_name(KilnOpAttributeKind kind);
const KilnOpAttribute *kiln_plugin_attribute_of(const KilnOpDescription *op, const char *name);

/** Collects attributes into columns, in @arena. */
typedef struct {
    KilnArena *arena;
    GPtrArray *attributes, *texts;
    GArray *ints, *floats;
} KilnPluginWriter;
void kiln_plugin_writer_init(KilnPluginWriter *writer, KilnArena *arena);
void kiln_plugin_writer_clear(KilnPluginWriter *writer);
void kiln_plugin_write_ints(KilnPluginWriter *writer, const char *name, KilnOpAttributeKind kind,
                            const int64_t *values, size_t n);
void kiln_plugin_write_floats(KilnPluginWriter *writer, const char *name, KilnOpAttributeKind kind,
                              const float *values, size_t n);
void kiln_plugin_write_texts(KilnPluginWriter *writer, const char *name, KilnOpAttributeKind kind,
                             const char *const *values, size_t n);
/** @bytes are those of the elements of @type, which has numbers. */
void kiln_plugin_write_tensor(KilnPluginWriter *writer, const char *name, const KilnType *type,
                              const void *bytes);
/** The columns so far, apart from domain, op_type and opset. */
KilnPluginColumns kiln_plugin_writer_columns(const KilnPluginWriter *writer);

/** Decodes the tensor @attribute to @to, which has room for kiln_type_bytes(). */
void kiln_plugin_decode(const KilnPluginColumns *columns, const KilnPluginAttribute *attribute,
                        void *to);

/* --- what plug-ins see --- */

/** A tensor among the attributes of a node. */
typedef struct {
    KilnOpTensor tensor;
    int64_t dims[KILN_MAX_RANK];
    const char *name;
} KilnPluginTensor;

struct KilnOpAttributes {
    const KilnOpDescription *op;
    KilnPluginColumns columns;
    KilnPluginTensor *tensors;
    uint32_t n_tensors;
};
/** Bytes that kiln_op_attributes_init() needs for tensors, with or without their data. */
size_t kiln_op_attributes_bytes(const KilnPluginColumns *columns, bool with_data);
/** @memory of these bytes, aligned to 64. Data are decoded if @with_data. */
void kiln_op_attributes_init(KilnOpAttributes *attributes, const KilnOpDescription *op,
                             const KilnPluginColumns *columns, void *memory, bool with_data);

typedef void (*KilnPluginParallel)(int64_t n, int threads, KilnOpTask task, const void *data);

struct KilnOpCall {
    const KilnOpAttributes *attributes;
    const KilnOpTensor *tensors; /* outputs, then inputs; of rank -1 where left out */
    uint32_t n_outputs, n_inputs;
    void *scratch;
    int threads;
    KilnPluginParallel parallel;
    KilnTextHeap *texts;
};
/** Runs the kernel. NULL, or why it cannot compute. It stands beside the functions that the kernel
 * calls, so that a static library brings them. */
const char *kiln_op_call_run(const KilnOpCall *call);

#endif
