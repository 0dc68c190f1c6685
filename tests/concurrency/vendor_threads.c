/* SPDX-License-Identifier: Apache-2.0 */
/* Regions of the vendor library run on Kiln's own team: they start no threads beside it. The same
 * product runs first by an own kernel, which makes the team, and then by the library. The second
 * run must not add a thread to the process. It would where the library went on calling its own
 * OpenMP. */
#include "kiln.h"
#include "tests/concurrency/concurrency.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

enum {
    THREADS = 4,
    WIDTH = 256,
};

#define PRODUCT                                                                                    \
    "    %w = const @w : f32[256,256]\n"                                                           \
    "    %m = matmul(%x, %w) : f32[256,256]\n"                                                     \
    "    %y = relu(%m) : f32[256,256]\n"
#define CONSTANTS "constants { @w = random_uniform(seed=1, low=-1, high=1) : f32[256,256] }\n"

static const char own[] = "graph @f(%x: f32[256,256]) {\n" PRODUCT "  return %y\n}\n" CONSTANTS;
static const char vendor[] =
    "graph @f(%a: f32[256,256]) {\n"
    "  %r = vendor.graph @r0(%a) body(%x: f32[256,256]) {\n" PRODUCT "    return %y\n"
    "  } : f32[256,256]\n"
    "  return %r\n}\n" CONSTANTS;

static float x[WIDTH * WIDTH];

static unsigned
threads_of_process(void)
{
    unsigned n = 0;
    DIR *folder = opendir("/proc/self/task");
    REQUIRE(folder);
    for (struct dirent *entry = readdir(folder); entry; entry = readdir(folder))
        n += entry->d_name[0] != '.';
    closedir(folder);
    return n;
}

static unsigned
threads_after(const char *text, const char *pass)
{
    g_autoptr(GBytes) bytes = g_bytes_new_static(text, strlen(text));
    g_autoptr(KilnModel) model = kiln_model_load_bytes(bytes, "product.kiln", NULL);
    g_autoptr(KilnPipeline) pipeline = kiln_pipeline_new();
    REQUIRE(kiln_pipeline_add(pipeline, pass, NULL));
    KilnCompileOptions options = KILN_COMPILE_OPTIONS_INIT;
    options.threads = THREADS;
    options.pipeline = pipeline;
    g_autoptr(KilnProgram) program = model ? kiln_program_compile(model, &options, NULL) : NULL;
    REQUIRE(program);
    KilnSessionOptions session_options = KILN_SESSION_OPTIONS_INIT;
    session_options.threads = THREADS;
    g_autoptr(KilnSession) session = kiln_session_new(program, &session_options, NULL);
    REQUIRE(session && kiln_session_bind_input(session, 0, x, sizeof x, NULL));
    for (int i = 0; i < 3; i++)
        REQUIRE(kiln_session_run(session, NULL));
    return threads_of_process();
}

int
main(void)
{
    fill(x, WIDTH * WIDTH, 1);
    unsigned before = threads_after(own, "dce");
    unsigned after = threads_after(vendor, "compile-offload");
    REQUIRE(before > 1);
    if (after != before)
        fprintf(stderr, "expected %u threads after a run of the library, found %u\n", before,
                after);
    return after != before;
}
