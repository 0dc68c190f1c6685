/* SPDX-License-Identifier: Apache-2.0 */
/* Dumps: the function's text under a comment that says after which application. */
#include "passes/manager/dump.h"

#include "graph/base/write_file.h"
#include "passes/context/options.h"

#include <string.h>

static bool
is_asked_for(const KilnPassOptions *options, const KilnApplication *application)
{
    if (!options->print_after)
        return options->print_changed;
    for (const char *const *id = options->print_after; *id; id++) {
        if (strcmp(*id, "all") == 0 || strcmp(*id, application->pass->id) == 0)
            return true;
    }
    return false;
}

/* "0012-cse-main.kiln": sorts in order of application. File systems have 255 bytes for a name. */
static char *
file_name(const KilnUnit *unit, const KilnApplication *application)
{
    char *name = g_strdup_printf("%04u-%s-%.180s.kiln", application->number, application->pass->id,
                                 kiln_unit_name(unit));
    return g_strcanon(name, G_CSET_A_2_Z G_CSET_a_2_z G_CSET_DIGITS "._-", '_');
}

static gboolean
write_file(const char *directory, const char *name, const GString *text, GError **error)
{
    if (!kiln_folder_make(directory, 0777, error))
        return FALSE;
    g_autofree char *path = g_build_filename(directory, name, NULL);
    return kiln_file_write(path, text->str, text->len, error);
}

gboolean
kiln_dump(const KilnPassOptions *options, const KilnUnit *unit, const KilnApplication *application,
          GError **error)
{
    bool hidden = options->print_changed && !application->changed;
    bool shown = options->dump && is_asked_for(options, application) && !hidden;
    bool written = options->dump_dir && !hidden;
    if (!shown && !written)
        return TRUE;
    g_autoptr(GString) text = g_string_new(NULL);
    g_string_append_printf(text, "# after %u %s @%s%s\n", application->number,
                           application->pass->id, kiln_unit_name(unit),
                           application->changed ? "" : " (unchanged)");
    kiln_unit_print(unit, text);
    if (!g_str_has_suffix(text->str, "\n"))
        g_string_append_c(text, '\n');
    if (shown)
        options->dump(text->str, options->data);
    if (!written)
        return TRUE;
    g_autofree char *name = file_name(unit, application);
    return write_file(options->dump_dir, name, text, error);
}
