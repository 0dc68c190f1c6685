/* SPDX-License-Identifier: Apache-2.0 */
/* Stores folded tensors on disk: a file per digest in the cache directory, mapped for reading. */
#ifndef KILN_RUNTIME_FOLD_FILE_H
#define KILN_RUNTIME_FOLD_FILE_H

#include "graph/tensor.h"
#include "runtime/digest/digest.h"

/** Makes @directory if it is missing. KILN_ERROR_IO if that fails, if another user owns it, or if
 * others can write to it: Kiln would trust their files. */
gboolean kiln_fold_directory_make(const char *directory, GError **error);

/** Loads the @n tensors of @types stored under @key into @out, as new tensors on the map of the
 * file. False if there is no file that is whole, unaltered and of this version. A link, a pipe or a
 * device under its name is not opened. */
bool kiln_fold_file_load(const char *directory, const KilnDigest *key, const KilnType *types,
                         uint32_t n, KilnTensor **out);
/** Stores data tensors under @key in place of older ones, all of them or none. Stores none if the
 * directory is not writable, or if the path is not a file. Other processes see the old file or the
 * new one. */
bool kiln_fold_file_store(const char *directory, const KilnDigest *key, KilnTensor *const *tensors,
                          uint32_t n);

#endif
