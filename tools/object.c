/* SPDX-License-Identifier: Apache-2.0 */
/* The source of an object: one function that makes the calls of a program in order, with arena
 * offsets as numbers, weights as addresses in a section of their own, and handles in place of
 * names. */
#include "tools/object.h"

#include "graph/base/write_file.h"
#include "ir/ir.h"
#include "kiln.h"
#include "runtime/bind.h"
#include "runtime/model.h"
#include "runtime/program.h"
#include "runtime/program_file.h"
#include "runtime/tensors/file.h"
#include "tools/command.h"

#include <errno.h>
#include <glib/gstdio.h>
#include <signal.h>
#include <string.h>

/* How all begins that is written here. */
#define MADE_BY "/* Made by `kiln compile`"

static const char declarations[] =
#include "kiln-object.inc"
    ;

char *
kiln_object_name(const char *path)
{
    char *name = g_path_get_basename(path);
    char *dot = strchr(name + 1, '.');
    if (*name && dot)
        *dot = 0;
    for (char *at = name; *at; at++) {
        if (!g_ascii_isalnum(*at))
            *at = '_';
    }
    if (!g_ascii_isdigit(*name))
        return name;
    char *longer = g_strconcat("_", name, NULL);
    g_free(name);
    return longer;
}

/* --- the entry function --- */

typedef struct {
    const KilnProgramFile *file;
    const KilnSpecialisation *made; /* NULL: its shapes are open, and sessions walk the calls */
    const char *name;
    GString *out;
} Source;

/* A text of the model in a comment, which it must not end. */
static void
print_comment(const char *text, GString *out)
{
    g_autofree char *line = kiln_one_line(text);
    for (const char *at = line; *at; at++)
        g_string_append_c(out, *at == '*' ? '.' : *at);
}

static void
print_slot(const Source *source, const KilnSlot *slot)
{
    static const char *const arrays[] = {
        [KILN_SLOT_STATE] = "states",
        [KILN_SLOT_INPUT] = "inputs",
        [KILN_SLOT_FOLDED] = "folded",
        [KILN_SLOT_OUTPUT] = "outputs",
    };
    const KilnSection *section;
    switch (slot->kind) {
    case KILN_SLOT_NONE:
        g_string_append(source->out, "0");
        break;
    case KILN_SLOT_WEIGHT:
        section = kiln_program_file_find(source->file, KILN_SECTION_WEIGHT, slot->index);
        g_string_append_printf(source->out, "(char *)weights + %" G_GUINT64_FORMAT,
                               section->offset + (uint64_t)slot->offset);
        break;
    case KILN_SLOT_ARENA:
        g_string_append_printf(source->out, "frame->arena + %" G_GINT64_FORMAT, slot->offset);
        break;
    default:
        g_string_append_printf(source->out, "(char *)frame->%s[%u] + %" G_GINT64_FORMAT,
                               arrays[slot->kind], slot->index, slot->offset);
        break;
    }
}

/* `if ((why = kiln_call_run(frame->calls, *at = 3, (void *[]){ … }, frame->arena + 64)))` */
static void
print_call(const Source *source, uint32_t c)
{
    const KilnBoundCall *call = &source->made->calls[c];
    GString *out = source->out;
    g_string_append(out, "    /* ");
    print_comment(kiln_instr_label(call->instr), out);
    g_string_append_printf(out, ": %s */\n", call->kernel->name);
    g_string_append_printf(out, "    if ((why = kiln_call_run(frame->calls, *at = %u, (void *[]){ ",
                           c);
    for (uint32_t i = 0; i < call->instr->n_operands; i++) {
        g_string_append(out, i ? ", " : "");
        print_slot(source, &source->made->slots[call->first_slot + i]);
    }
    g_string_append(out, " }, ");
    if (call->scratch_offset < 0)
        g_string_append(out, "0");
    else
        g_string_append_printf(out, "frame->arena + %" G_GINT64_FORMAT, call->scratch_offset);
    g_string_append(out, ")))\n        return why;\n");
}

static void
print_run(const Source *source)
{
    g_string_append(source->out,
                    "static const char *\nrun(const KilnFrame *frame, unsigned *at)\n{\n"
                    "    const char *why;\n");
    for (uint32_t c = 0; c < source->made->n_calls; c++)
        print_call(source, c);
    g_string_append(source->out, "    return 0;\n}\n\n");
}

/* @file: the name of the program file, as the compiler finds it. */
static void
print_source(const Source *source, const char *file)
{
    GString *out = source->out;
    const char *name = source->name;
    g_string_append_printf(out, MADE_BY " of kiln %s: do not edit. */\n\n", kiln_version());
    g_string_append(out, declarations);
    g_string_append_printf(
        out,
        "\n/* The program file, from which kernels read weights where they lie. */\n"
        "__asm__(\".pushsection .kiln.weights, \\\"a\\\", @progbits\\n\"\n"
        "        \".balign %d\\n\"\n"
        "        \"kiln_weights_of_%s:\\n\"\n"
        "        \".incbin \\\"%s\\\"\\n\"\n"
        "        \".popsection\\n\");\n"
        "extern const char weights[] __asm__(\"kiln_weights_of_%s\")\n"
        "    __attribute__((visibility(\"hidden\")));\n\n",
        KILN_SECTION_PAGE, name, file, name);
    if (source->made)
        print_run(source);
    g_string_append_printf(out,
                           "struct KilnProgram *%s_load(struct _GError **error);\n\n"
                           "struct KilnProgram *\n%s_load(struct _GError **error)\n{\n"
                           "    static const KilnObject object = { sizeof(KilnObject), \"%s\", "
                           "weights, %zu, %u, %s };\n"
                           "    return kiln_program_load_object(&object, error);\n}\n",
                           name, name, name, g_bytes_get_size(source->file->bytes),
                           source->made ? source->made->n_calls : 0, source->made ? "run" : "0");
}

/* --- the header --- */

static void
print_infos(const char *kind, const KilnInfoList *list, const char *upper, GString *out)
{
    for (unsigned i = 0; i < list->n; i++) {
        g_autofree char *type = kiln_type_to_string(&list->types[i]);
        g_string_append_printf(out, "/* %s %u, ", kind, i);
        print_comment(list->info[i].name, out);
        g_string_append_printf(out, ": %s */\n", type);
        if (list->info[i].bytes >= 0)
            g_string_append_printf(out, "#define %s_%s_%u_BYTES %" G_GINT64_FORMAT "\n", upper,
                                   *kind == 'i' ? "INPUT" : "OUTPUT", i, list->info[i].bytes);
    }
}

static void
print_header(const KilnProgram *program, const KilnSpecialisation *made, const char *name,
             GString *out)
{
    g_autofree char *upper = g_ascii_strup(name, -1);
    g_string_append_printf(out,
                           MADE_BY " of kiln %s: do not edit. Link with libkiln "
                                   "of the same version. */\n"
                                   "#ifndef KILN_OBJECT_%s_H\n#define KILN_OBJECT_%s_H\n\n"
                                   "#include <kiln.h>\n\nG_BEGIN_DECLS\n\n",
                           kiln_version(), upper, upper);
    print_infos("input", &program->inputs, upper, out);
    print_infos("output", &program->outputs, upper, out);
    if (made)
        g_string_append_printf(out,
                               "/* What KilnSessionOptions.arena has to hold. */\n"
                               "#define %s_ARENA_BYTES %" G_GINT64_FORMAT "\n\n",
                               upper, made->arena_bytes);
    g_string_append_printf(
        out,
        "/** The program that is linked in, for sessions of kiln.h: a new reference. Fails as\n"
        " * kiln_program_load_bytes() does. */\n"
        "extern KilnProgram *%s_load(GError **error);\n\nG_END_DECLS\n\n#endif\n",
        name);
}

/* --- files --- */

static char *
with_suffix(const char *path, const char *suffix)
{
    g_autofree char *folder = g_path_get_dirname(path);
    g_autofree char *base = g_path_get_basename(path);
    char *dot = strrchr(base + 1, '.');
    if (dot)
        *dot = 0;
    g_autofree char *file = g_strconcat(base, suffix, NULL);
    return g_build_filename(folder, file, NULL);
}

/* The header beside the object at @path. One that somebody wrote by hand is not replaced by what
 * nobody has asked for by name; NULL then. */
static char *
header_beside(const char *path, GError **error)
{
    g_autofree char *header = with_suffix(path, ".h");
    g_autofree char *text = NULL;
    if (g_file_get_contents(header, &text, NULL, NULL) && !g_str_has_prefix(text, MADE_BY))
        return kiln_throw_null(
            error, KILN_ERROR_IO,
            "%s: expected no file, or one that kiln compile wrote, found another: "
            "the header of %s would replace it",
            header, path);
    return g_steal_pointer(&header);
}

/* --- a folder for what the compiler reads and writes --- */

static const int deadly[] = { SIGINT, SIGTERM, SIGHUP };

typedef struct {
    char *folder, *program, *source, *object;
    struct sigaction before[G_N_ELEMENTS(deadly)]; /* what was done on these signals */
} Work;

/* The one that came while there was a folder; 0: none. */
static volatile sig_atomic_t caught;

static void
note_signal(int signal)
{
    caught = signal;
}

/* From here on a signal is noted that would end the process and leave the folder. The compiler,
 * which is asked to stop by the terminal too, is ended by it. */
static void
hold_signals(Work *work)
{
    const struct sigaction note = { .sa_handler = note_signal, .sa_flags = SA_RESTART };
    for (size_t i = 0; i < G_N_ELEMENTS(deadly); i++) {
        sigaction(deadly[i], NULL, &work->before[i]);
        if (work->before[i].sa_handler != SIG_IGN)
            sigaction(deadly[i], &note, NULL);
    }
}

static void
release_signals(const Work *work)
{
    for (size_t i = 0; i < G_N_ELEMENTS(deadly); i++)
        sigaction(deadly[i], &work->before[i], NULL);
    if (caught)
        raise(caught);
}

static void
work_clear(Work *work)
{
    char *files[] = { work->program, work->source, work->object };
    for (size_t i = 0; i < G_N_ELEMENTS(files); i++) {
        if (files[i])
            g_unlink(files[i]);
        g_free(files[i]);
    }
    if (work->folder) {
        g_rmdir(work->folder);
        release_signals(work);
    }
    g_free(work->folder);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Work, work_clear)

static gboolean
make_work(Work *work, GError **error)
{
    work->folder = g_dir_make_tmp("kiln-object-XXXXXX", NULL);
    if (!work->folder)
        return kiln_throw(error, KILN_ERROR_IO, "%s: no folder can be made: %s", g_get_tmp_dir(),
                          g_strerror(errno));
    hold_signals(work);
    work->program = g_build_filename(work->folder, "program", NULL);
    work->source = g_build_filename(work->folder, "program.c", NULL);
    work->object = g_build_filename(work->folder, "program.o", NULL);
    return TRUE;
}

/* Saves @program in the folder and prints its source and header, which names it @included. */
static gboolean
print_all(const Work *work, KilnProgram *program, const char *name, const char *included,
          GString *source, GString *header, GError **error)
{
    if (!kiln_program_save(program, work->program, error))
        return FALSE;
    g_autoptr(GBytes) bytes = kiln_file_map(work->program, error);
    g_autoptr(KilnProgramFile) file =
        bytes ? kiln_program_file_open(bytes, work->program, true, error) : NULL;
    if (!file)
        return FALSE;
    const KilnSpecialisation *made =
        program->open ? NULL : g_ptr_array_index(program->specialisations, 0);
    for (uint32_t i = 0; made && i < made->n_weights; i++) {
        if (made->weights[i] && made->text_weights[i])
            return kiln_throw(error, KILN_ERROR_UNSUPPORTED,
                              "an object holds no constant strings: compile to a program file");
    }
    const Source from = { file, made, name, source };
    print_source(&from, included);
    print_header(program, made, name, header);
    return TRUE;
}

static gboolean
run_compiler(const Work *work, GError **error)
{
    const char *given = g_getenv("CC");
    const char *compiler = given && *given ? given : "cc";
    static const char *const options[] = { "-std=c99", "-O1",       "-fPIC",    "-c",
                                           "-o",       "program.o", "program.c" };
    g_autofree char *said = NULL;
    g_autoptr(GError) why = NULL;
    int status, n;
    g_auto(GStrv) words = NULL;
    if (!g_shell_parse_argv(compiler, &n, &words, &why))
        return kiln_throw(error, KILN_ERROR_USAGE, "CC=%s: %s", compiler, why->message);
    g_autoptr(GStrvBuilder) arguments = g_strv_builder_new();
    g_strv_builder_addv(arguments, (const char **)words);
    for (size_t i = 0; i < G_N_ELEMENTS(options); i++)
        g_strv_builder_add(arguments, options[i]);
    g_auto(GStrv) all = g_strv_builder_end(arguments);
    if (!g_spawn_sync(work->folder, all, NULL, G_SPAWN_SEARCH_PATH | G_SPAWN_STDOUT_TO_DEV_NULL,
                      NULL, NULL, NULL, &said, &status, &why))
        return kiln_throw(error, KILN_ERROR_IO, "%s: the C compiler cannot be run: %s", compiler,
                          why->message);
    return g_spawn_check_wait_status(status, &why) ||
           kiln_throw(error, KILN_ERROR_IO, "%s: the C compiler failed: %s%s%s", compiler,
                      why->message, *said ? "\n" : "", g_strchomp(said));
}

gboolean
kiln_object_write(KilnProgram *program, const char *name, const char *path, GError **error)
{
    g_autoptr(GString) source = g_string_new(NULL), header = g_string_new(NULL);
    g_auto(Work) work = { 0 };
    g_autofree char *header_path = header_beside(path, error);
    if (!header_path || !make_work(&work, error) ||
        !print_all(&work, program, name, "program", source, header, error) ||
        !kiln_file_write(work.source, source->str, source->len, error) ||
        !run_compiler(&work, error))
        return FALSE;
    g_autoptr(GBytes) object = kiln_file_map(work.object, error);
    if (!object)
        return FALSE;
    size_t size;
    const void *data = g_bytes_get_data(object, &size);
    const KilnFileContent files[] = { { path, data, size },
                                      { header_path, header->str, header->len } };
    return kiln_files_write(files, G_N_ELEMENTS(files), error);
}

gboolean
kiln_object_write_source(KilnProgram *program, const char *name, const char *path, GError **error)
{
    g_autoptr(GString) source = g_string_new(NULL), header = g_string_new(NULL);
    g_auto(Work) work = { 0 };
    g_autofree char *header_path = header_beside(path, error);
    g_autofree char *included = g_strconcat(name, ".kiln-program", NULL);
    g_autofree char *folder = g_path_get_dirname(path);
    g_autofree char *program_path = g_build_filename(folder, included, NULL);
    if (!header_path || !make_work(&work, error) ||
        !print_all(&work, program, name, included, source, header, error))
        return FALSE;
    g_autoptr(GBytes) bytes = kiln_file_map(work.program, error);
    if (!bytes)
        return FALSE;
    size_t size;
    const void *data = g_bytes_get_data(bytes, &size);
    const KilnFileContent files[] = { { program_path, data, size },
                                      { path, source->str, source->len },
                                      { header_path, header->str, header->len } };
    return kiln_files_write(files, G_N_ELEMENTS(files), error);
}
