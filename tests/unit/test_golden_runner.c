/* SPDX-License-Identifier: Apache-2.0 */
/* The runner of golden files must itself notice what is wrong with a case. */
#include "tests/golden/golden.h"

#include <criterion/criterion.h>
#include <glib/gstdio.h>
#include <string.h>
#include <unistd.h>

#define RELU "graph @f(%x: f32[2]) {\n  %r = relu(%x) : f32[2]\n  return %r\n}\n"
#define DEAD                                                                                       \
    "graph @f(%x: f32[2]) {\n  %d = neg(%x) : f32[2]\n  %r = relu(%x) : f32[2]\n  return %r\n}\n"

/* NULL where the case is fine, else what is said of it. */
static char *
complaint(const char *text)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *path = NULL;
    int file = g_file_open_tmp("kiln-golden-XXXXXX.kiln", &path, NULL);
    cr_assert_geq(file, 0);
    close(file);
    cr_assert(g_file_set_contents(path, text, -1, NULL));
    g_autoptr(Golden) golden = golden_read(path, &error);
    bool ok = golden && golden_check(golden, false, NULL, &error);
    g_remove(path);
    cr_assert_eq(ok, error == NULL);
    return ok ? NULL : g_strdup(error->message);
}

static void
expect(const char *text, const char *part)
{
    g_autofree char *found = complaint(text);
    if (part)
        cr_assert(found && strstr(found, part), "expected: %s\nfound:    %s", part, found);
    else
        cr_assert_null(found, "%s", found);
}

Test(golden_runner, headers)
{
    expect(RELU, "expected either '# passes:' or '# pipeline:'");
    expect("# passes: dce\n# no-runs: x\n" RELU, "unknown header 'no-runs'");
    expect("# passes: dce\n# passes: cse\n" RELU, "second header 'passes'");
    expect("# passes: dce\n# no-run:\n" RELU, "a header gives no reason");
    expect("# passes: dec\n" RELU "# ----\n" RELU, "there is no pass 'dec'");
    expect("# passes: dce\n# flags: fast\n" RELU "# ----\n" RELU, "there is no flag 'fast'");
    expect("# passes: dce\n# error: x\n" RELU "# ----\n" RELU, "has no expected text");
}

Test(golden_runner, text)
{
    expect("# passes: dce\n" DEAD "# ----\n" RELU, NULL);
    expect("# passes: dce\n" DEAD "# ----\n" DEAD, "expected:\n");
    expect("# passes: dce\n" DEAD, "no '# ----' and expected text");
    expect("# passes: empty{dce=none}\n" DEAD "# ----\n" RELU, "expected:\n");
}

Test(golden_runner, errors_and_guards)
{
    expect("# passes: dce\n# error: nothing like this\n" RELU, "it must fail with");
    expect("# passes: dce\n# error: expected\ngraph @f(\n", NULL);
    expect("# passes: dce\n# error: a whale\ngraph @f(\n", "expected an error with 'a whale'");
    expect("# passes: dce\n# guard: dce/imaginary\n" RELU "# ----\n" RELU,
           "nothing was refused by guard dce/imaginary");
}

Test(golden_runner, what_cannot_run_must_say_so)
{
#define UNKNOWN                                                                                    \
    "graph @f(%x: f32[2]) {\n  %u = unknown(%x) {op_type=\"Log\", domain=\"d\", opset=1} : "       \
    "f32[2]\n  return %u\n}\n"
    expect("# passes: dce\n" UNKNOWN "# ----\n" UNKNOWN, "executing @f before and after: ");
    expect("# passes: dce\n# no-run: it has no meaning\n" UNKNOWN "# ----\n" UNKNOWN, NULL);
}
