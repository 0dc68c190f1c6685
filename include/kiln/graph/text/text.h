/* SPDX-License-Identifier: Apache-2.0 */
/* The text form of the graph level; `ir/text` adds `func` blocks. print(parse(x)) == x for printed
 * text, and a printed module, parsed and run, gives the same bits. Grammar: docs/text-form.md. */
#ifndef KILN_GRAPH_TEXT_TEXT_H
#define KILN_GRAPH_TEXT_TEXT_H

#include "graph/module.h"

G_BEGIN_DECLS

/** How a constant is printed. */
typedef enum {
    KILN_CONSTANT_WHOLE,
    KILN_CONSTANT_EXTERN, /* without its payload, which a program file holds elsewhere */
    KILN_CONSTANT_LEFT_OUT,
} KilnConstantForm;

/** Where the bytes of constants go. */
typedef struct {
    const char *data_name; /* file("<data_name>", offset, size) stands for constants that are
                              neither small nor generated; NULL: see directory */
    const char *directory; /* without data_name: the folder of the text, a path without links. The
                              text points to bytes in files there and below; other bytes are in
                              base64. NULL: all are */
    GByteArray *data;      /* collects those bytes, 64-byte aligned; NULL without data_name */
    bool no_constants;     /* graphs only: for dumps and messages */
    const KilnConstantForm *forms; /* by constant id; NULL: all are whole */
} KilnPrintOptions;

gboolean kiln_module_print(const KilnModule *module, const KilnPrintOptions *options, GString *out,
                           GError **error);
void kiln_function_print(const KilnFunction *function, GString *out);
/** One node, without indentation or newline. Subgraphs are printed as blocks. */
void kiln_node_print(const KilnNode *node, GString *out);
/** Prints @node to stderr: for gdb. */
void kiln_node_dump(const KilnNode *node);
/** `constants { … }`; nothing where there are none. */
gboolean kiln_constants_print(const KilnModule *module, const KilnPrintOptions *options,
                              GString *out, GError **error);

/** True where @text begins as a module of either level does: with a comment, or with the word of a
 * block. An ONNX file never does: it begins with the tag of a field. */
bool kiln_text_is_module(const char *text, size_t length);
/** Parses and verifies a text of `graph`, `fold`, `constants` and `declare` blocks. @path names it
 * in messages (file:line:column). file(…) constants lie in its directory or below; @path NULL: none
 * may occur. KILN_ERROR_PARSE and others. */
KilnModule *kiln_module_parse(const char *text, size_t length, const char *path, GError **error);

G_END_DECLS

#endif
