/* SPDX-License-Identifier: Apache-2.0 */
/* Folded tensors on disk: a file per digest in the cache directory, mapped when it is read. */
#ifndef KILN_RUNTIME_FOLD_FILE_H
#define KILN_RUNTIME_FOLD_FILE_H

#include "runtime/digest/digest.h"

#include "graph/tensor.h"

/** Makes @directory where it is not there. KILN_ERROR_IO where that cannot be, or where it is
 * another user's, or others can write to it: what they put there would be believed. */
gboolean kiln_fold_directory_make(const char *directory, GError **error);

/** The @n tensors of @types that were stored under @key: new tensors in @out, whose bytes are the
 * map of the file. False where there is no such file, or not a whole and unaltered one of this
 * version. A link, a pipe or a device under its name is not opened. */
bool kiln_fold_file_load(const char *directory, const KilnDigest *key, const KilnType *types,
                         uint32_t n, KilnTensor **out);
/** Stores data tensors under @key, in place of what is there: all of them or, where the directory
 * cannot be written to or something else than a file is there, none. Other processes see the old
 * file or the new one. */
bool kiln_fold_file_store(const char *directory, const KilnDigest *key, KilnTensor *const *tensors,
                          uint32_t n);

#endif
