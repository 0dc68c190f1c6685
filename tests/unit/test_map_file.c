/* SPDX-License-Identifier: Apache-2.0 */
/* Maps of files: what they hold, how much of them is in the process, and what cannot be mapped. */
#include "graph/base/map_file.h"
#include "graph/kiln-types.h"
#include "runtime/tensors/file.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    MB = 1 << 20,
    SIZE = 16 * MB + 77, /* of a file that was just written, at once: in big pages of the cache */
};

typedef struct {
    char *folder, *path;
} Place;

static Place
new_place(void)
{
    char *folder = g_dir_make_tmp("kiln-XXXXXX", NULL);
    cr_assert(folder);
    return (Place){ folder, g_build_filename(folder, "weights", NULL) };
}

static void
place_clear(Place *place)
{
    g_remove(place->path);
    g_rmdir(place->folder);
    g_free(place->path);
    g_free(place->folder);
}

static unsigned char
expected(size_t i)
{
    return (unsigned char)(i * 7 + i / 4096);
}

static void
write_file(const Place *place)
{
    g_autofree unsigned char *bytes = g_malloc(SIZE);
    for (size_t i = 0; i < SIZE; i++)
        bytes[i] = expected(i);
    cr_assert(g_file_set_contents(place->path, (const char *)bytes, SIZE, NULL));
}

/* How much of files is in the process. */
static int64_t
resident(void)
{
    g_autofree char *text = NULL;
    cr_assert(g_file_get_contents("/proc/self/status", &text, NULL, NULL));
    const char *at = strstr(text, "RssFile:");
    cr_assert(at);
    return g_ascii_strtoll(at + strlen("RssFile:"), NULL, 10) * 1024;
}

Test(map_file, holds_the_bytes_of_a_file_that_is_gone)
{
    Place place = new_place();
    write_file(&place);
    GError *error = NULL;
    g_autoptr(GBytes) bytes = kiln_map_file(place.path, &error);
    cr_assert(bytes, "%s", error ? error->message : "");
    place_clear(&place);
    cr_assert(g_bytes_get_size(bytes) == SIZE);
    const unsigned char *data = g_bytes_get_data(bytes, NULL);
    for (size_t i = 0; i < SIZE; i++)
        cr_assert(data[i] == expected(i));
}

Test(map_file, PEAK_a_byte_brings_no_big_page)
{
    Place place = new_place();
    write_file(&place);
    g_autoptr(GBytes) bytes = kiln_map_file(place.path, NULL);
    const volatile unsigned char *data = g_bytes_get_data(bytes, NULL);
    int64_t before = resident();
    for (int i = 1; i < 16; i += 2)
        cr_assert(data[i * MB] == expected((size_t)i * MB));
    cr_expect(resident() - before <= MB); /* of 64 KB for each of the eight */
    for (size_t i = 0; i < SIZE; i += 4096)
        cr_assert(data[i] == expected(i));
    cr_expect(resident() - before >= 15 * MB);
    place_clear(&place);
}

static bool
is_mapped(const char *path)
{
    g_autofree char *maps = NULL;
    cr_assert(g_file_get_contents("/proc/self/maps", &maps, NULL, NULL));
    return strstr(maps, path) != NULL;
}

/* The system gives a place for whole big pages at a multiple of them: one that is a page smaller,
 * and a page more is reserved. */
Test(map_file, PEAK_no_address_agrees)
{
    Place place = new_place();
    write_file(&place);
    int file = g_open(place.path, O_RDONLY, 0);
    cr_assert(file >= 0);
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    for (size_t big = 1; big <= 8; big++) {
        g_autoptr(GBytes) bytes = kiln_map_open_file(file, big * 2 * MB - page);
        cr_assert(bytes);
        cr_expect((uintptr_t)g_bytes_get_data(bytes, NULL) % (2 * MB) != 0);
    }
    close(file);
    place_clear(&place);
}

Test(map_file, unmaps_with_the_last_reference)
{
    Place place = new_place();
    write_file(&place);
    GBytes *bytes = kiln_map_file(place.path, NULL);
    g_autoptr(GBytes) part = g_bytes_new_from_bytes(bytes, 5 * MB, MB);
    g_bytes_unref(bytes);
    cr_expect(is_mapped(place.path));
    g_clear_pointer(&part, g_bytes_unref);
    cr_expect(!is_mapped(place.path));
    place_clear(&place);
}

static void
expect_failure(const char *path, const char *why)
{
    GError *error = NULL;
    GBytes *bytes = kiln_map_file(path, &error);
    cr_assert(!bytes);
    cr_assert(error);
    cr_expect(error->code == KILN_ERROR_IO);
    g_autofree char *all = g_strdup_printf("%s: cannot be read: %s", path, why);
    cr_expect(strcmp(error->message, all) == 0);
    g_clear_error(&error);
}

Test(map_file, what_is_no_file_fails_by_name)
{
    Place place = new_place();
    expect_failure(place.path, "No such file or directory");
    expect_failure(place.folder, "Is a directory");
    cr_assert(mkfifo(place.path, 0600) == 0); /* which nobody writes */
    expect_failure(place.path, "No such device");
    g_remove(place.path);
    cr_assert(g_file_set_contents(place.path, "", 0, NULL));
    g_autoptr(GBytes) bytes = kiln_map_file(place.path, NULL);
    cr_assert(bytes);
    cr_expect(g_bytes_get_size(bytes) == 0);
    place_clear(&place);
}

/* What leaves the process comes back as it was, and parts of pages at the ends leave too. */
Test(map_file, PEAK_dropped_pages_leave)
{
    Place place = new_place();
    write_file(&place);
    g_autoptr(GBytes) bytes = kiln_map_file(place.path, NULL);
    const volatile unsigned char *data = g_bytes_get_data(bytes, NULL);
    int64_t before = resident();
    for (size_t i = 0; i < SIZE; i += 4096)
        cr_assert(data[i] == expected(i));
    kiln_map_drop((const void *)(data + 4097), 8 * MB);
    cr_expect(resident() - before <= 9 * MB);
    kiln_map_drop((const void *)data, SIZE);
    cr_expect(resident() - before <= MB);
    for (size_t i = 0; i < SIZE; i++)
        cr_assert(data[i] == expected(i));
    place_clear(&place);
}

/* Failing leaves nothing behind and says why. */
Test(map_file, sizes_and_files_that_cannot_be_mapped)
{
    errno = 0;
    cr_expect(!kiln_map_open_file(0, SIZE_MAX - 5));
    cr_expect(errno == ENOMEM);
    cr_expect(!kiln_map_open_file(-1, SIZE));
    cr_expect(errno == EBADF);
}

/* What the system does not map, as files of /proc, is read. */
Test(map_file, weights_that_cannot_be_mapped_are_read)
{
    bool mapped = true;
    g_autoptr(GBytes) read = kiln_file_map_weights("/proc/self/status", &mapped, NULL);
    cr_assert(read);
    cr_expect(!mapped);
    cr_expect(g_bytes_get_size(read) > 100);
    cr_expect(memcmp(g_bytes_get_data(read, NULL), "Name:", 5) == 0);
    Place place = new_place();
    write_file(&place);
    g_autoptr(GBytes) bytes = kiln_file_map_weights(place.path, &mapped, NULL);
    cr_assert(bytes);
    cr_expect(mapped);
    cr_expect(g_bytes_get_size(bytes) == SIZE);
    place_clear(&place);
}
