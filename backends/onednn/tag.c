/* SPDX-License-Identifier: Apache-2.0 */
/* Layouts of the library as tags of the type system: those that are dense, with padding only at the
 * ends of blocks. */
#include "backends/onednn/region.h"

#include "graph/module/layout.h"

typedef struct {
    int of[DNNL_MAX_NDIMS]; /* by dim of the library: of the type; -1: none, it has one element */
    bool taken[KILN_MAX_RANK];
} Dims;

/* Which dim of @type each dim of @from is, which describes the plain bytes of it: by strides. Those
 * of one element, which have no stride to speak of, share out what is left. */
static bool
match_dims(const KilnType *type, const dnnl_memory_desc_t *from, Dims *out)
{
    const int64_t *strides = from->format_desc.blocking.strides;
    *out = (Dims){ .taken = { false } };
    for (int d = 0; d < from->ndims; d++) {
        int64_t stride = 1;
        out->of[d] = -1;
        for (int k = type->rank - 1; k >= 0 && from->dims[d] > 1; k--) {
            if (type->dims[k] == from->dims[d] && stride == strides[d] && !out->taken[k])
                out->of[d] = k;
            stride *= type->dims[k];
        }
        if (out->of[d] >= 0)
            out->taken[out->of[d]] = true;
        else if (from->dims[d] > 1)
            return false;
    }
    for (int d = 0; d < from->ndims; d++) {
        for (int k = 0; k < type->rank && from->dims[d] == 1 && out->of[d] < 0; k++) {
            if (type->dims[k] == 1 && !out->taken[k]) {
                out->of[d] = k;
                out->taken[k] = true;
            }
        }
    }
    for (int k = 0; k < type->rank; k++) {
        if (!out->taken[k])
            return false;
    }
    return true;
}

/* Letters from the outermost loop in, then blocks. */
static char *
write_tag(const dnnl_memory_desc_t *md, const Dims *dims)
{
    const dnnl_blocking_desc_t *blocking = &md->format_desc.blocking;
    bool written[DNNL_MAX_NDIMS] = { false }, split[KILN_MAX_RANK] = { false };
    g_autoptr(GString) tag = g_string_new(NULL);
    for (int b = 0; b < blocking->inner_nblks; b++) {
        int k = dims->of[blocking->inner_idxs[b]];
        if (k < 0)
            return NULL;
        split[k] = true;
    }
    for (int i = 0; i < md->ndims; i++) {
        int next = -1;
        for (int d = 0; d < md->ndims; d++) {
            if (!written[d] && (next < 0 || blocking->strides[d] > blocking->strides[next]))
                next = d;
        }
        written[next] = true;
        int k = dims->of[next];
        if (k >= 0)
            g_string_append_c(tag, (char)((split[k] ? 'A' : 'a') + k));
    }
    for (int b = 0; b < blocking->inner_nblks; b++)
        g_string_append_printf(tag, "%d%c", (int)blocking->inner_blks[b],
                               'a' + dims->of[blocking->inner_idxs[b]]);
    return g_string_free(g_steal_pointer(&tag), FALSE);
}

/* The loops that @type names are those of @md. */
static bool
has_strides(const KilnType *type, const dnnl_memory_desc_t *md, const Dims *dims)
{
    KilnLayout layout;
    int64_t strides[2 * KILN_MAX_RANK], stride = 1;
    if (!kiln_layout_of(type, &layout) ||
        kiln_type_bytes(type) != (int64_t)dnnl_memory_desc_get_size(md))
        return false;
    for (int l = layout.rank - 1; l >= 0; l--) {
        strides[l] = stride;
        stride *= layout.extent[l];
    }
    for (int d = 0; d < md->ndims; d++) {
        int k = dims->of[d];
        if (k < 0 || layout.extent[layout.outer[k]] == 1)
            continue;
        if (md->format_desc.blocking.strides[d] != strides[layout.outer[k]] ||
            md->padded_dims[d] != layout.extent[layout.outer[k]] * layout.block[k])
            return false;
    }
    return true;
}

char *
kiln_onednn_tag(const KilnType *type, const dnnl_memory_desc_t *from, const dnnl_memory_desc_t *md)
{
    Dims dims;
    KilnType laid = *type;
    if (md->format_kind != dnnl_blocked || md->extra.flags || md->offset0 ||
        md->ndims != from->ndims || !match_dims(type, from, &dims))
        return NULL;
    g_autofree char *tag = write_tag(md, &dims);
    laid.layout = tag;
    return tag && has_strides(&laid, md, &dims) ? g_steal_pointer(&tag) : NULL;
}
