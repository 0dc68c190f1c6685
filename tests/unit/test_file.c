/* SPDX-License-Identifier: Apache-2.0 */
/* Files are written whole, from however many pieces. */
#include "runtime/tensors/file.h"

#include "graph/base/alloc.h"
#include "graph/base/write_file.h"
#include "graph/kiln-types.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <string.h>
#include <unistd.h>

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

/* The file is where the link points to, whether there was one or not. */
Test(file, links_stay_links)
{
    GError *error = NULL;
    g_autofree char *folder = g_dir_make_tmp("kiln-file-XXXXXX", &error);
    g_autofree char *path = g_build_filename(folder, "link", NULL);
    g_autofree char *between = g_build_filename(folder, "between", NULL);
    g_autofree char *file = g_build_filename(folder, "file", NULL);
    cr_assert_eq(symlink(between, path), 0);
    cr_assert_eq(symlink("file", between), 0);
    for (int i = 0; i < 2; i++) {
        g_autofree char *found = NULL;
        const char *text = i ? "second" : "first";
        cr_assert(kiln_file_write(path, text, strlen(text), &error), "%s",
                  error ? error->message : "");
        cr_expect(g_file_test(path, G_FILE_TEST_IS_SYMLINK));
        cr_expect(g_file_test(between, G_FILE_TEST_IS_SYMLINK));
        cr_assert(g_file_get_contents(file, &found, NULL, NULL));
        cr_expect_str_eq(found, text);
    }
    g_unlink(file);
    g_unlink(between);
    cr_assert_eq(symlink("link", between), 0);
    cr_expect_not(kiln_file_write(path, "", 0, &error));
    cr_expect(g_error_matches(error, KILN_ERROR, KILN_ERROR_IO));
    g_clear_error(&error);
    g_unlink(between);
    g_unlink(path);
    g_rmdir(folder);
}

/* What is in a pipe has no length before its end. */
Test(file, a_pipe_is_read_to_its_end)
{
    g_autofree char *sent = g_malloc0(1 << 20);
    for (size_t i = 0; i < 1 << 20; i++)
        sent[i] = (char)(i * 7 % 251);
    const ssize_t sizes[] = { 0, 1, 65535, 65536, 65537, 1 << 20 };
    for (size_t i = 0; i < G_N_ELEMENTS(sizes); i++) {
        GError *error = NULL;
        int ends[2];
        cr_assert_eq(pipe(ends), 0);
        cr_assert_neq(fcntl(ends[1], F_SETPIPE_SZ, 1 << 20), -1);
        cr_assert_eq(write(ends[1], sent, (size_t)sizes[i]), sizes[i]);
        close(ends[1]);
        g_autofree char *path = g_strdup_printf("/dev/fd/%d", ends[0]);
        g_autoptr(GBytes) bytes = kiln_file_map(path, &error);
        cr_assert(bytes, "%s", error ? error->message : "");
        size_t size;
        const char *found = g_bytes_get_data(bytes, &size);
        cr_assert_eq((ssize_t)size, sizes[i]);
        cr_expect(!size || memcmp(found, sent, size) == 0);
        cr_expect_eq((uintptr_t)found % KILN_ALIGNMENT, 0);
        close(ends[0]);
    }
}

/* However much somebody sends: memory that runs out is an error. */
Test(file, a_pipe_that_memory_does_not_hold)
{
    for (unsigned nth = 1; nth <= 2; nth++) {
        GError *error = NULL;
        int ends[2];
        g_autofree char *sent = g_malloc0(65536);
        cr_assert_eq(pipe(ends), 0);
        cr_assert_eq(write(ends[1], sent, 65536), 65536);
        close(ends[1]);
        g_autofree char *path = g_strdup_printf("/dev/fd/%d", ends[0]);
        kiln_alloc_inject_failure(nth);
        cr_expect_null(kiln_file_map(path, &error));
        kiln_alloc_inject_failure(0);
        cr_assert(g_error_matches(error, KILN_ERROR, KILN_ERROR_MEMORY));
        cr_expect(g_str_has_prefix(error->message, path), "%s", error->message);
        g_clear_error(&error);
        close(ends[0]);
    }
}
