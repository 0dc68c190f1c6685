/* SPDX-License-Identifier: Apache-2.0 */
/* Files are written whole, from however many pieces. */
#include "runtime/file.h"

#include <criterion/criterion.h>
#include <glib/gstdio.h>
#include <string.h>

enum {
    N_PIECES = 5000, /* more than the system takes at a time */
};

Test(file, many_pieces_lie_one_behind_the_other)
{
    static const char text[] = "abcdefg";
    g_autofree KilnFilePiece *pieces = g_new(KilnFilePiece, N_PIECES);
    g_autoptr(GString) expected = g_string_new(NULL);
    for (size_t i = 0; i < N_PIECES; i++) {
        pieces[i] = (KilnFilePiece){ text, i % sizeof text }; /* empty ones too */
        g_string_append_len(expected, text, (gssize)pieces[i].size);
    }
    GError *error = NULL;
    g_autofree char *folder = g_dir_make_tmp("kiln-file-XXXXXX", &error);
    cr_assert(folder, "%s", error ? error->message : "");
    g_autofree char *path = g_build_filename(folder, "pieces", NULL);
    const unsigned counts[] = { N_PIECES, 1024, 1, 0 };
    for (size_t c = 0; c < G_N_ELEMENTS(counts); c++) {
        size_t size, total = 0;
        cr_assert(kiln_file_write_pieces(path, pieces, counts[c], &error), "%s",
                  error ? error->message : "");
        for (unsigned i = 0; i < counts[c]; i++)
            total += pieces[i].size;
        g_autofree char *found = NULL;
        cr_assert(g_file_get_contents(path, &found, &size, NULL));
        cr_assert_eq(size, total);
        cr_expect(memcmp(found, expected->str, size) == 0);
    }
    g_unlink(path);
    g_rmdir(folder);
}
