/* SPDX-License-Identifier: Apache-2.0 */
/* DLPack, both ways: its structs as its specification lays them out, capsules, and their life. */
#include "graph/kiln-types.h"
#include "python/src/array.h"

#include <stdlib.h>
#include <string.h>

enum {
    DL_CPU = 1,
    DL_MAJOR = 1,
    DL_READ_ONLY = 1 << 0,
};

typedef struct {
    void *data;
    struct {
        int32_t type, id;
    } device;
    int32_t ndim;
    struct {
        uint8_t code, bits;
        uint16_t lanes;
    } dtype;
    int64_t *shape, *strides; /* in elements; strides NULL: row-major */
    uint64_t byte_offset;
} DLTensor;

/* Version 0. */
typedef struct Managed {
    DLTensor tensor;
    void *context;
    void (*deleter)(struct Managed *self);
} Managed;

/* Version 1. */
typedef struct Versioned {
    uint32_t major, minor;
    void *context;
    void (*deleter)(struct Versioned *self);
    uint64_t flags;
    DLTensor tensor;
} Versioned;

static const char managed_name[] = "dltensor", managed_used[] = "used_dltensor";
static const char versioned_name[] = "dltensor_versioned";
static const char versioned_used[] = "used_dltensor_versioned";

/* --- export --- */

/* What both versions hold behind their heads. */
typedef struct {
    PyObject *owner;
    int64_t shape[KILN_PY_RANK], strides[KILN_PY_RANK];
} Exported;

typedef struct {
    Managed managed;
    Exported exported;
} ManagedBlock;

typedef struct {
    Versioned versioned;
    Exported exported;
} VersionedBlock;

/* Consumers may free on any thread. */
static void
drop_owner(PyObject *owner)
{
    if (!Py_IsInitialized())
        return;
    PyGILState_STATE held = PyGILState_Ensure();
    Py_DECREF(owner);
    PyGILState_Release(held);
}

static void
delete_managed(Managed *self)
{
    drop_owner(((ManagedBlock *)self)->exported.owner);
    free(self);
}

static void
delete_versioned(Versioned *self)
{
    drop_owner(((VersionedBlock *)self)->exported.owner);
    free(self);
}

/* A consumer renames the capsule when it takes what is inside. */
static void
free_managed(PyObject *capsule)
{
    if (PyCapsule_IsValid(capsule, managed_name))
        delete_managed(PyCapsule_GetPointer(capsule, managed_name));
}

static void
free_versioned(PyObject *capsule)
{
    if (PyCapsule_IsValid(capsule, versioned_name))
        delete_versioned(PyCapsule_GetPointer(capsule, versioned_name));
}

static void
fill(KilnPyTensor *from, DLTensor *tensor, Exported *exported)
{
    int64_t step = 1;
    for (int d = from->rank - 1; d >= 0; d--) {
        exported->shape[d] = from->dims[d];
        exported->strides[d] = step;
        step *= from->dims[d];
    }
    exported->owner = Py_NewRef((PyObject *)from);
    tensor->data = from->data;
    tensor->device.type = DL_CPU;
    tensor->ndim = from->rank;
    tensor->dtype.lanes = 1;
    tensor->shape = exported->shape;
    tensor->strides = exported->strides;
    kiln_py_dlpack_of(from->dtype, &tensor->dtype.code, &tensor->dtype.bits);
}

static PyObject *
export_managed(KilnPyTensor *tensor)
{
    ManagedBlock *block = calloc(1, sizeof *block);
    if (!block)
        return PyErr_NoMemory();
    fill(tensor, &block->managed.tensor, &block->exported);
    block->managed.deleter = delete_managed;
    PyObject *capsule = PyCapsule_New(&block->managed, managed_name, free_managed);
    if (!capsule)
        delete_managed(&block->managed);
    return capsule;
}

static PyObject *
export_versioned(KilnPyTensor *tensor)
{
    VersionedBlock *block = calloc(1, sizeof *block);
    if (!block)
        return PyErr_NoMemory();
    fill(tensor, &block->versioned.tensor, &block->exported);
    block->versioned.major = DL_MAJOR;
    block->versioned.flags = tensor->read_only ? DL_READ_ONLY : 0;
    block->versioned.deleter = delete_versioned;
    PyObject *capsule = PyCapsule_New(&block->versioned, versioned_name, free_versioned);
    if (!capsule)
        delete_versioned(&block->versioned);
    return capsule;
}

PyObject *
kiln_py_dlpack_export(KilnPyTensor *tensor, bool versioned)
{
    uint8_t code, bits;
    if (!kiln_py_dlpack_of(tensor->dtype, &code, &bits)) {
        PyErr_Format(PyExc_BufferError, "DLPack has no element type %s",
                     kiln_dtype_name(tensor->dtype));
        return NULL;
    }
    if (!versioned && tensor->read_only) {
        PyErr_SetString(PyExc_BufferError, "version 0 of DLPack has no read-only tensors");
        return NULL;
    }
    return versioned ? export_versioned(tensor) : export_managed(tensor);
}

/* --- import --- */

static void
end_managed(PyObject *capsule)
{
    Managed *managed = PyCapsule_GetPointer(capsule, managed_used);
    if (managed && managed->deleter)
        managed->deleter(managed);
}

static void
end_versioned(PyObject *capsule)
{
    Versioned *versioned = PyCapsule_GetPointer(capsule, versioned_used);
    if (versioned && versioned->deleter)
        versioned->deleter(versioned);
}

static bool
is_dense(const DLTensor *tensor)
{
    int64_t step = 1;
    for (int d = tensor->ndim - 1; d >= 0 && tensor->strides; d--) {
        if (tensor->shape[d] != 1 && tensor->strides[d] != step)
            return false;
        step *= tensor->shape[d];
    }
    return true;
}

/* Copies the part below dim @d that begins at @from to @to; returns where the next one goes. */
static char *
copy_strided(const DLTensor *tensor, int d, const char *from, char *to, size_t size)
{
    if (d == tensor->ndim) {
        memcpy(to, from, size);
        return to + size;
    }
    for (int64_t i = 0; i < tensor->shape[d]; i++)
        to = copy_strided(tensor, d + 1, from + i * tensor->strides[d] * (int64_t)size, to, size);
    return to;
}

static bool
take_dense(KilnPyState *state, const DLTensor *tensor, const char *name, bool writable,
           KilnPyArray *out)
{
    size_t size = kiln_dtype_size(out->dtype);
    char *data = (char *)tensor->data + tensor->byte_offset;
    out->data = data;
    if (is_dense(tensor) && (!out->bytes || (uintptr_t)data % size == 0))
        return true;
    if (writable) {
        kiln_py_throw(state, KILN_ERROR_USAGE,
                      "%s: expected row-major memory aligned to its element, found other strides "
                      "or another alignment",
                      name);
        return false;
    }
    if (!kiln_py_array_make_copy(state, out))
        return false;
    if (is_dense(tensor))
        memcpy(out->copy, data, (size_t)out->bytes);
    else if (out->bytes)
        copy_strided(tensor, 0, data, out->copy, size);
    out->data = out->copy;
    return true;
}

static bool
take_tensor(KilnPyState *state, const DLTensor *tensor, const char *name, KilnPyArray *out)
{
    if (tensor->device.type != DL_CPU) {
        kiln_py_throw(state, KILN_ERROR_USAGE,
                      "%s: expected memory of the processor, found device %d of DLPack", name,
                      (int)tensor->device.type);
        return false;
    }
    if (tensor->ndim < 0 || tensor->ndim > KILN_PY_RANK) {
        kiln_py_throw(state, KILN_ERROR_SHAPE, "%s: expected rank 0 to %d, found %d", name,
                      KILN_PY_RANK, (int)tensor->ndim);
        return false;
    }
    if (!kiln_py_dtype_of_dlpack(tensor->dtype.code, tensor->dtype.bits, tensor->dtype.lanes,
                                 &out->dtype)) {
        kiln_py_throw(state, KILN_ERROR_TYPE,
                      "%s: expected an element type of ONNX, found code %d of DLPack with %d bits",
                      name, tensor->dtype.code, tensor->dtype.bits);
        return false;
    }
    out->rank = tensor->ndim;
    out->bytes = (Py_ssize_t)kiln_dtype_size(out->dtype);
    for (int d = 0; d < tensor->ndim; d++) {
        out->dims[d] = tensor->shape[d];
        out->bytes *= (Py_ssize_t)tensor->shape[d];
    }
    return true;
}

/* Asks for version 1, and for version 0 where the object does not know versions. */
static PyObject *
ask(PyObject *object)
{
    PyObject *method = PyObject_GetAttrString(object, "__dlpack__");
    PyObject *version = method ? Py_BuildValue("{s(ii)}", "max_version", DL_MAJOR, 0) : NULL;
    PyObject *none = version ? PyTuple_New(0) : NULL;
    PyObject *capsule = none ? PyObject_Call(method, none, version) : NULL;
    if (none && !capsule && PyErr_ExceptionMatches(PyExc_TypeError)) {
        PyErr_Clear();
        capsule = PyObject_Call(method, none, NULL);
    }
    Py_XDECREF(none);
    Py_XDECREF(version);
    Py_XDECREF(method);
    return capsule;
}

/* The tensor in @capsule, which now owns it: it is renamed, and ends it. */
static const DLTensor *
open_capsule(KilnPyState *state, PyObject *capsule, const char *name, bool *out_read_only)
{
    *out_read_only = false;
    if (PyCapsule_IsValid(capsule, managed_name)) {
        Managed *managed = PyCapsule_GetPointer(capsule, managed_name);
        PyCapsule_SetName(capsule, managed_used);
        PyCapsule_SetDestructor(capsule, end_managed);
        return &managed->tensor;
    }
    if (!PyCapsule_IsValid(capsule, versioned_name))
        return kiln_py_throw(state, KILN_ERROR_TYPE,
                             "%s: expected a capsule of DLPack from "
                             "__dlpack__(), found another object",
                             name);
    Versioned *versioned = PyCapsule_GetPointer(capsule, versioned_name);
    if (versioned->major != DL_MAJOR)
        return kiln_py_throw(state, KILN_ERROR_UNSUPPORTED,
                             "%s: expected version %d of DLPack, found %u", name, DL_MAJOR,
                             versioned->major);
    PyCapsule_SetName(capsule, versioned_used);
    PyCapsule_SetDestructor(capsule, end_versioned);
    *out_read_only = versioned->flags & DL_READ_ONLY;
    return &versioned->tensor;
}

bool
kiln_py_dlpack_import(KilnPyState *state, PyObject *object, const char *name, bool writable,
                      KilnPyArray *out)
{
    bool read_only;
    PyObject *capsule = ask(object);
    const DLTensor *tensor = capsule ? open_capsule(state, capsule, name, &read_only) : NULL;
    if (tensor && writable && read_only)
        tensor = kiln_py_throw(state, KILN_ERROR_USAGE,
                               "%s: expected writable memory, found read-only", name);
    out->owner = capsule;
    return tensor && take_tensor(state, tensor, name, out) &&
           take_dense(state, tensor, name, writable, out);
}
