/* SPDX-License-Identifier: Apache-2.0 */
/* The attributes of a node as a plug-in reads them: by name, with the defaults of its description.
 */
#include "graph/plugin/plugin.h"

#include <string.h>

/* --- tensors --- */

static size_t
padded(size_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

size_t
kiln_op_attributes_bytes(const KilnPluginColumns *columns, bool with_data)
{
    KilnPluginPlace place = { 0 };
    KilnPluginAttribute attribute;
    bool broken;
    size_t n = 0, bytes = 0;
    while (kiln_plugin_next_attribute(columns, &place, &attribute, &broken)) {
        if (attribute.kind != KILN_OP_ATTRIBUTE_TENSOR)
            continue;
        n++;
        bytes += with_data ? padded((size_t)kiln_type_bytes(&attribute.type)) : 0;
    }
    return padded(n * sizeof(KilnPluginTensor)) + bytes;
}

void
kiln_op_attributes_init(KilnOpAttributes *attributes, const KilnOpDescription *op,
                        const KilnPluginColumns *columns, void *memory, bool with_data)
{
    KilnPluginPlace place = { 0 };
    KilnPluginAttribute attribute;
    bool broken;
    *attributes = (KilnOpAttributes){ .op = op, .columns = *columns, .tensors = memory };
    while (kiln_plugin_next_attribute(columns, &place, &attribute, &broken))
        attributes->n_tensors += attribute.kind == KILN_OP_ATTRIBUTE_TENSOR;
    char *data = (char *)memory + padded(attributes->n_tensors * sizeof(KilnPluginTensor));
    KilnPluginTensor *to = attributes->tensors;
    place = (KilnPluginPlace){ 0 };
    while (kiln_plugin_next_attribute(columns, &place, &attribute, &broken)) {
        if (attribute.kind != KILN_OP_ATTRIBUTE_TENSOR)
            continue;
        const KilnType *type = &attribute.type;
        memcpy(to->dims, type->dims, sizeof to->dims);
        to->name = attribute.name;
        to->tensor = (KilnOpTensor){ type->dtype, type->rank, to->dims, kiln_type_elements(type),
                                     with_data ? data : NULL };
        if (with_data) {
            kiln_plugin_decode(columns, &attribute, data);
            data += padded((size_t)kiln_type_bytes(type));
        }
        to++;
    }
}

/* --- questions --- */

/* False where the node does not state @name as one of the kinds that @one and @list are. */
static bool
find(const KilnOpAttributes *attributes, const char *name, KilnOpAttributeKind kind,
     KilnPluginAttribute *out)
{
    KilnPluginPlace place = { 0 };
    bool broken;
    while (kiln_plugin_next_attribute(&attributes->columns, &place, out, &broken)) {
        if (out->kind == kind && strcmp(out->name, name) == 0)
            return true;
    }
    return false;
}

gboolean
kiln_op_attribute_is_stated(const KilnOpAttributes *attributes, const char *name)
{
    KilnPluginPlace place = { 0 };
    KilnPluginAttribute found;
    bool broken;
    while (kiln_plugin_next_attribute(&attributes->columns, &place, &found, &broken)) {
        if (strcmp(found.name, name) == 0)
            return TRUE;
    }
    return FALSE;
}

int64_t
kiln_op_attribute_int(const KilnOpAttributes *attributes, const char *name)
{
    KilnPluginAttribute found;
    if (find(attributes, name, KILN_OP_ATTRIBUTE_INT, &found))
        return attributes->columns.ints.v[found.first];
    const KilnOpAttribute *row = kiln_plugin_attribute_of(attributes->op, name);
    return row ? row->otherwise_int : 0;
}

float
kiln_op_attribute_float(const KilnOpAttributes *attributes, const char *name)
{
    KilnPluginAttribute found;
    if (find(attributes, name, KILN_OP_ATTRIBUTE_FLOAT, &found))
        return attributes->columns.floats.v[found.first];
    const KilnOpAttribute *row = kiln_plugin_attribute_of(attributes->op, name);
    return row ? row->otherwise_float : 0;
}

const char *
kiln_op_attribute_text(const KilnOpAttributes *attributes, const char *name)
{
    KilnPluginAttribute found;
    if (find(attributes, name, KILN_OP_ATTRIBUTE_STRING, &found))
        return attributes->columns.texts.v[found.first];
    const KilnOpAttribute *row = kiln_plugin_attribute_of(attributes->op, name);
    return row ? row->otherwise_text : NULL;
}

const int64_t *
kiln_op_attribute_ints(const KilnOpAttributes *attributes, const char *name, unsigned *out_n)
{
    KilnPluginAttribute found;
    bool there = find(attributes, name, KILN_OP_ATTRIBUTE_INTS, &found);
    *out_n = there ? found.n : 0;
    return *out_n ? attributes->columns.ints.v + found.first : NULL;
}

const float *
kiln_op_attribute_floats(const KilnOpAttributes *attributes, const char *name, unsigned *out_n)
{
    KilnPluginAttribute found;
    bool there = find(attributes, name, KILN_OP_ATTRIBUTE_FLOATS, &found);
    *out_n = there ? found.n : 0;
    return *out_n ? attributes->columns.floats.v + found.first : NULL;
}

const char *const *
kiln_op_attribute_texts(const KilnOpAttributes *attributes, const char *name, unsigned *out_n)
{
    KilnPluginAttribute found;
    bool there = find(attributes, name, KILN_OP_ATTRIBUTE_STRINGS, &found);
    *out_n = there ? found.n : 0;
    return *out_n ? (const char *const *)attributes->columns.texts.v + found.first : NULL;
}

const KilnOpTensor *
kiln_op_attribute_tensor(const KilnOpAttributes *attributes, const char *name)
{
    for (uint32_t i = 0; i < attributes->n_tensors; i++) {
        if (strcmp(attributes->tensors[i].name, name) == 0)
            return &attributes->tensors[i].tensor;
    }
    return NULL;
}
