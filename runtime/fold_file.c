/* SPDX-License-Identifier: Apache-2.0 */
/* Layout: a header, the size of each tensor, then the payloads, each from the start of a page on.
 * The digest in the header is that of all that follows it. What a file says is believed only where
 * it is what the reader expects, so a file can be useless but not harmful. */
#include "runtime/fold_file.h"

#include "graph/base/write_file.h"
#include "runtime/tensors/file.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    VERSION = 1,
    PAGE = 4096,
};

typedef struct {
    char magic[8];
    uint32_t version;
    uint32_t n;
    KilnDigest content; /* of all that follows this field */
    KilnDigest key;
} Header;

static const char magic[8] = "kilnfold";

static char *
path_of(const char *directory, const KilnDigest *key)
{
    return g_strdup_printf("%s/%016" G_GINT64_MODIFIER "x%016" G_GINT64_MODIFIER "x.kiln-fold",
                           directory, key->high, key->low);
}

/* --- the directory --- */

/* Who can put files into the directory can put results into what reads them. */
static gboolean
check_directory(const char *directory, GError **error)
{
    struct stat status;
    if (stat(directory, &status) != 0)
        return kiln_throw(error, KILN_ERROR_IO, "%s: %s", directory, g_strerror(errno));
    bool own = status.st_uid == geteuid(), shut = !(status.st_mode & (S_IWGRP | S_IWOTH));
    if (S_ISDIR(status.st_mode) && own && shut)
        return TRUE;
    return kiln_throw(error, KILN_ERROR_IO,
                      "%s: expected a directory of user %lu that nobody else can write to, found "
                      "%s of user %lu with mode %03o",
                      directory, (unsigned long)geteuid(),
                      S_ISDIR(status.st_mode) ? "one" : "a file", (unsigned long)status.st_uid,
                      (unsigned)status.st_mode & 07777);
}

gboolean
kiln_fold_directory_make(const char *directory, GError **error)
{
    return kiln_folder_make(directory, 0755, error) && check_directory(directory, error);
}

static size_t
page_up(size_t size)
{
    return (size + PAGE - 1) & ~(size_t)(PAGE - 1);
}

/* Of the first payload. */
static size_t
first_offset(uint32_t n)
{
    return page_up(sizeof(Header) + n * sizeof(uint64_t));
}

static KilnDigest
digest_of(const KilnDigest *key, const uint64_t *sizes, uint32_t n)
{
    KilnDigest digest = kiln_digest(key, sizeof *key);
    kiln_digest_add(&digest, sizes, n * sizeof *sizes);
    return digest;
}

/* --- reading --- */

static bool
check(GBytes *file, const KilnDigest *key, const KilnType *types, uint32_t n)
{
    size_t size, at = first_offset(n);
    const char *data = g_bytes_get_data(file, &size);
    if (size < at)
        return false;
    Header header;
    memcpy(&header, data, sizeof header);
    if (memcmp(header.magic, magic, sizeof magic) != 0 || header.version != VERSION ||
        header.n != n || !kiln_digest_equal(&header.key, key))
        return false;
    const uint64_t *sizes = (const uint64_t *)(data + sizeof header);
    KilnDigest digest = digest_of(key, sizes, n);
    for (uint32_t i = 0; i < n; i++) {
        uint64_t expected = (uint64_t)kiln_type_bytes(&types[i]);
        if (sizes[i] != expected || size < at || size - at < expected)
            return false;
        kiln_digest_add(&digest, data + at, expected);
        at += page_up(expected);
    }
    return kiln_digest_equal(&header.content, &digest);
}

/* Strings are addresses, which no file can hold. */
static bool
holds_strings(const KilnType *types, uint32_t n)
{
    bool holds = false;
    for (uint32_t i = 0; i < n; i++)
        holds |= types[i].dtype == KILN_DTYPE_string;
    return holds;
}

bool
kiln_fold_file_load(const char *directory, const KilnDigest *key, const KilnType *types, uint32_t n,
                    KilnTensor **out)
{
    g_autofree char *path = path_of(directory, key);
    bool mapped;
    g_autoptr(GBytes) file = check_directory(directory, NULL) && !holds_strings(types, n)
                                 ? kiln_file_map_regular(path, &mapped)
                                 : NULL;
    if (!file || !check(file, key, types, n))
        return false;
    size_t at = first_offset(n);
    for (uint32_t i = 0; i < n; i++) {
        size_t size = (size_t)kiln_type_bytes(&types[i]);
        g_autoptr(GBytes) bytes = g_bytes_new_from_bytes(file, at, size);
        out[i] = kiln_tensor_new_data(&types[i], bytes, NULL);
        out[i]->mapped = mapped;
        at += page_up(size);
    }
    return true;
}

/* --- writing --- */

bool
kiln_fold_file_store(const char *directory, const KilnDigest *key, KilnTensor *const *tensors,
                     uint32_t n)
{
    static const char padding[PAGE];
    g_autofree uint64_t *sizes = g_new0(uint64_t, n + 1);
    for (uint32_t i = 0; i < n; i++) {
        if (holds_strings(&tensors[i]->type, 1))
            return false;
        sizes[i] = g_bytes_get_size(tensors[i]->bytes);
    }
    Header header = {
        .version = VERSION, .n = n, .content = digest_of(key, sizes, n), .key = *key
    };
    memcpy(header.magic, magic, sizeof magic);

    g_autofree KilnFilePiece *pieces = g_new0(KilnFilePiece, 2 * n + 3);
    size_t before = sizeof header + n * sizeof *sizes;
    pieces[0] = (KilnFilePiece){ &header, sizeof header };
    pieces[1] = (KilnFilePiece){ sizes, n * sizeof *sizes };
    pieces[2] = (KilnFilePiece){ padding, first_offset(n) - before };
    for (uint32_t i = 0; i < n; i++) {
        const void *data = g_bytes_get_data(tensors[i]->bytes, NULL);
        kiln_digest_add(&header.content, data, sizes[i]);
        pieces[2 * i + 3] = (KilnFilePiece){ data, sizes[i] };
        /* Behind the last one too, so that the offsets say all of the sizes. */
        pieces[2 * i + 4] = (KilnFilePiece){ padding, page_up(sizes[i]) - sizes[i] };
    }
    g_autofree char *path = path_of(directory, key);
    struct stat old;
    if (!check_directory(directory, NULL) || (lstat(path, &old) == 0 && !S_ISREG(old.st_mode)))
        return false;
    return kiln_file_write_pieces(path, pieces, 2 * n + 3, NULL);
}
