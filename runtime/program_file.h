/* SPDX-License-Identifier: Apache-2.0 */
/* A program on disk: a header, a table of sections, and the sections, used in the map of the file.
 *
 *     header                       what made it and what it needs: version, kernels, vendor library
 *     sections[]                   kind, place and checksum of each, in order of kind and index
 *     text                         functions, declarations, small constants (docs/text-form.md)
 *     calls                        kernel and scratch offset of each call; of an open program its
 *                                  forms in their place
 *     packed … weights … values    bytes, each once, however many sections have it
 *
 * Sections of a page or more begin on a page, others on a multiple of KILN_ALIGNMENT. The bytes
 * between them are zero, so that every byte of a file is checked. */
#ifndef KILN_RUNTIME_PROGRAM_FILE_H
#define KILN_RUNTIME_PROGRAM_FILE_H

#include "graph/attr.h"
#include "runtime/digest/digest.h"

#include "ir/vendor.h"

#include <stdbool.h>

/* X(id, name): the content of a section. */
// clang-format off
#define KILN_SECTION_MAP(X) \
    X(TEXT,     "text")             /* of the module */                                            \
    X(CALLS,    "calls")            /* KilnStoredCall per call, in order */                        \
    X(OPERANDS, "operands of a call") /* index: of the first call of a region; a byte per operand: */ \
                                    /* 1 where it is packed, else 0 */                             \
    X(FORMS,    "forms")            /* KilnStoredForm per packed form of an open program, or of */  \
                                    /* the branches and loops of another one */                    \
    X(PACKED,   "packed weights")   /* index: of the call that reads them, or of the form, behind */ \
                                    /* the calls of the entry */                                   \
    X(WEIGHT,   "weight")           /* index: among the weights of the entry that nothing writes */ \
    X(STATE,    "state")            /* index: among those that something writes */                 \
    X(CONSTANT, "constant")         /* index: among the constants of the text that are extern */   \
    X(VALUE,    "value")            /* index: of the input that it is known of */                  \
    X(OUTPUT,   "name of an output") /* index: of the output that has not its buffer's name */
// clang-format on

typedef enum {
#define X(id, name) KILN_SECTION_##id,
    KILN_SECTION_MAP(X)
#undef X
    KILN_N_SECTION_KINDS
} KilnSectionKind;

typedef struct {
    uint32_t kind, index;
    uint32_t same; /* the section with its bytes: itself, or an earlier one */
    uint32_t reserved;
    uint64_t offset, size;
    KilnDigest digest;
} KilnSection;

#define KILN_PROGRAM_MAGIC                                                                         \
    {                                                                                              \
        'k', 'i', 'l', 'n', 'p', 'r', 'o', 'g'                                                     \
    }
enum {
    KILN_PROGRAM_FORMAT = 8,  /* grows with every change of the layout of files or packed weights */
    KILN_SECTION_PAGE = 4096, /* big sections begin on a multiple of it */
};

typedef struct {
    char magic[8];
    uint32_t format, n_sections;
    KilnDigest digest; /* of all that follows, with the table of sections */
    uint64_t file_size;
    uint32_t threads;        /* memory is planned for so many */
    uint32_t proven_optimal; /* as the plan says */
    char version[32];
    char target[16];
    char isa[16];
    char vendor[64]; /* of the regions that it calls; empty: none */
} KilnProgramHeader;

/** Decisions of binding about a call. */
typedef struct {
    int64_t scratch;        /* offset in the arena; -1: none */
    uint64_t scratch_bytes; /* of the kernel */
    uint64_t packed_bytes;  /* of a region; 0 for others */
    uint32_t fitted;        /* 1: the size of packed weights depends on their values, else 0 */
    uint32_t form;          /* of packed weights */
    KilnDigest vendor;      /* of the vendor's statement about its region; zeros: no region */
    char kernel[40];        /* its name, cut if it is longer */
} KilnStoredCall;

/** Weights of a call of an open program, or of a branch or loop, as a kernel wants them. */
typedef struct {
    uint32_t call, form;
    uint32_t fitted; /* as of a KilnStoredCall */
    uint32_t reserved;
    char kernel[40]; /* its name; KILN_REGION_FORM: of a region */
} KilnStoredForm;

#define KILN_REGION_FORM "region"

/** A file that is whole and made for this library and processor. */
typedef struct KilnProgramFile {
    char *name; /* path, or a name in its place */
    GBytes *bytes;
    bool mapped; /* the bytes are a map of the file called name, */
    char *path;  /* which is here, from the root on; else NULL */
    const KilnProgramHeader *header;
    const KilnSection *sections;
} KilnProgramFile;

/** True if @bytes begin like a program file. */
bool kiln_program_file_is(GBytes *bytes);
/** True for the path of a program file. False for a pipe, because bytes that are read from it are
 * gone. */
bool kiln_program_is_at(const char *path);
/** Checks all that can be checked without the text. KILN_ERROR_FORMAT if the file is none, cut
 * short or damaged. KILN_ERROR_UNSUPPORTED if it was made for others. */
KilnProgramFile *kiln_program_file_open(GBytes *bytes, const char *name, bool mapped,
                                        GError **error);
void kiln_program_file_free(KilnProgramFile *file);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(KilnProgramFile, kiln_program_file_free)
/** NULL if there is no such section. */
const KilnSection *kiln_program_file_find(const KilnProgramFile *file, KilnSectionKind kind,
                                          uint32_t index);
/** The bytes of a section, which keep the map. NULL if there is none. */
GBytes *kiln_program_file_get(const KilnProgramFile *file, KilnSectionKind kind, uint32_t index);
/** False if a section of @kind has number @n or more, which has no meaning. */
gboolean kiln_program_file_check(const KilnProgramFile *file, KilnSectionKind kind, uint32_t n,
                                 GError **error);

/** The calls of @file. *@out_n gets their number, unless @out_n is NULL. */
const KilnStoredCall *kiln_program_file_calls(const KilnProgramFile *file, uint64_t *out_n);
/** Gives the plain values of @section to a constant whose values the text leaves out. */
gboolean kiln_program_file_attach(const KilnProgramFile *file, const KilnSection *section,
                                  KilnConstant *constant, GError **error);

/** The offset of the next section of @size bytes, if the last one ends at @end. */
uint64_t kiln_section_offset(uint64_t end, uint64_t size);
/** The next page at or behind @end: the offset of the first section, and the end of a file. */
uint64_t kiln_section_page(uint64_t end);
/** Library, version and machine features that it uses; empty without a vendor. To be freed. */
char *kiln_vendor_label(const KilnVendor *vendor);
/** The digest of the header behind its own digest, and of the table of sections. */
KilnDigest kiln_program_header_digest(const KilnProgramHeader *header, const KilnSection *sections);

#endif
