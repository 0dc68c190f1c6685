/* SPDX-License-Identifier: Apache-2.0 */
/* The targets that programs can be compiled for: the one place that knows the backends by name. */
#include "runtime/targets.h"

#include "backends/cpu/cpu.h"
#include "kiln.h"
#ifdef KILN_HAS_ONEDNN
#include "backends/onednn/onednn.h"
#endif
#include "backends/ref/ref.h"
#include "exec/team.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* The cpu target falls back on ref for what it has no kernel of its own for, and offloads to the
 * vendor library where Kiln is built with one: backends do not know each other. */
static KilnTarget cpu, cpu_alone;
static pthread_once_t once = PTHREAD_ONCE_INIT, once_alone = PTHREAD_ONCE_INIT;

static void
make_cpu_alone(void)
{
    cpu_alone = *kiln_cpu_target();
    cpu_alone.fallback = kiln_ref_target();
}

static void
make_cpu(void)
{
    pthread_once(&once_alone, make_cpu_alone);
    cpu = cpu_alone;
#ifdef KILN_HAS_ONEDNN
    cpu.vendor = kiln_onednn_vendor();
#endif
}

/* NULL past the end. */
static const KilnTarget *
target_at(unsigned i)
{
    pthread_once(&once, make_cpu);
    return i == 0 ? &cpu : i == 1 ? kiln_ref_target() : NULL;
}

const KilnTarget *
kiln_target_choose(const char *name, bool offload, GError **error)
{
    const KilnTarget *target;
    pthread_once(&once_alone, make_cpu_alone);
    if (!offload && strcmp(cpu_alone.name, name) == 0)
        return &cpu_alone; /* the vendor's library is not asked for anything */
    for (unsigned i = 0; (target = target_at(i)); i++) {
        if (strcmp(target->name, name) == 0)
            return target;
    }
    return kiln_throw_null(error, KILN_ERROR_USAGE, "expected a backend (cpu, ref), found %s",
                           name);
}

const KilnTarget *
kiln_target_by_name(const char *name, GError **error)
{
    return kiln_target_choose(name, true, error);
}

int
kiln_processor_count(void)
{
    return kiln_default_threads(getenv("OMP_NUM_THREADS"));
}

const char *
kiln_version(void)
{
    return KILN_VERSION;
}

#ifdef __clang__
#define COMPILER __VERSION__
#else
#define COMPILER "GCC " __VERSION__
#endif

static char build_info[160];
static pthread_once_t once_info = PTHREAD_ONCE_INIT;

static void
write_build_info(void)
{
    static const char *const kernels[] = {
        [KILN_ISA_ANY] = "portable",
        [KILN_ISA_AVX2] = "AVX2",
        [KILN_ISA_AVX512] = "AVX-512",
    };
#ifdef KILN_HAS_ONEDNN
    const char *version = kiln_onednn_vendor()->version; /* behind a space: what it found */
    g_autofree char *vendor = g_strdup_printf("oneDNN %.*s", (int)strcspn(version, " "), version);
#else
    const char *vendor = "without oneDNN";
#endif
    g_snprintf(build_info, sizeof build_info, "kiln " KILN_VERSION ", " COMPILER ", %s kernels, %s",
               kernels[kiln_cpu_target()->isa], vendor);
}

const char *
kiln_build_info(void)
{
    pthread_once(&once_info, write_build_info);
    return build_info;
}
