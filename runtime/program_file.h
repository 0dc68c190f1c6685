/* SPDX-License-Identifier: Apache-2.0 */
/* A program on disk: a header, a table of sections, and the sections, which are used where they lie
 * in the map of the file.
 *
 *     header                       what made it and what it needs: version, kernels, vendor library
 *     sections[]                   kind, place and checksum of each, in order of kind and index
 *     text                         functions, declarations, small constants (docs/text-form.md)
 *     calls                        kernel and scratch offset of each call
 *     packed … weights … values    bytes, each once, however many sections have it
 *
 * Sections of a page or more begin on a page, others on a multiple of KILN_ALIGNMENT; what lies
 * between them is zero, so that no byte of a file is left unchecked. */
#ifndef KILN_RUNTIME_PROGRAM_FILE_H
#define KILN_RUNTIME_PROGRAM_FILE_H

#include "runtime/digest/digest.h"

#include "ir/vendor.h"

#include <stdbool.h>

/* X(id, name): what a section holds. */
// clang-format off
#define KILN_SECTION_MAP(X) \
    X(TEXT,     "text")             /* of the module */                                            \
    X(CALLS,    "calls")            /* KilnStoredCall per call, in order */                        \
    X(OPERANDS, "operands of a call") /* index: of the first call of a region; a byte per operand: */ \
                                    /* 1 where it is packed, else 0 */                             \
    X(PACKED,   "packed weights")   /* index: of the call that reads them */                       \
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
    uint32_t same; /* whose bytes it has: its own number, or that of an earlier section */
    uint32_t reserved;
    uint64_t offset, size;
    KilnDigest digest;
} KilnSection;

#define KILN_PROGRAM_MAGIC                                                                         \
    {                                                                                              \
        'k', 'i', 'l', 'n', 'p', 'r', 'o', 'g'                                                     \
    }
enum {
    KILN_PROGRAM_FORMAT = 5,  /* grows with every change of the layout of files or packed weights */
    KILN_SECTION_PAGE = 4096, /* that big sections begin on */
};

typedef struct {
    char magic[8];
    uint32_t format, n_sections;
    KilnDigest digest; /* of what follows, the table of sections included */
    uint64_t file_size;
    uint32_t threads;        /* that memory is planned for */
    uint32_t proven_optimal; /* what the plan says of itself */
    char version[32];
    char target[16];
    char isa[16];
    char vendor[64]; /* whose regions it calls; empty: of nobody */
} KilnProgramHeader;

/** What binding decided about a call. */
typedef struct {
    int64_t scratch;        /* offset in the arena; -1: none */
    uint64_t scratch_bytes; /* that the kernel asks for */
    uint64_t packed_bytes;  /* of a region; 0 for others */
    uint64_t fitted;        /* 1: packed weights have the form whose size depends on them, else 0 */
    KilnDigest vendor;      /* of what the vendor says it made of the region; zeros: no region */
    char kernel[40];        /* its name, cut where it is longer */
} KilnStoredCall;

/** A file that was found whole and made for this library and processor. */
typedef struct KilnProgramFile {
    char *name; /* path, or what stands for it */
    GBytes *bytes;
    bool mapped; /* the bytes are a map of the file called name, */
    char *path;  /* which is here, from the root on; else NULL */
    const KilnProgramHeader *header;
    const KilnSection *sections;
} KilnProgramFile;

/** True where @bytes begin like a program file. */
bool kiln_program_file_is(GBytes *bytes);
/** True for the path of such a file. What is read from a pipe is gone: a pipe is none. */
bool kiln_program_is_at(const char *path);
/** Checks everything that can be checked without the text. KILN_ERROR_FORMAT where the file is
 * none, cut short or damaged, KILN_ERROR_UNSUPPORTED where it was made for others. */
KilnProgramFile *kiln_program_file_open(GBytes *bytes, const char *name, bool mapped,
                                        GError **error);
void kiln_program_file_free(KilnProgramFile *file);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(KilnProgramFile, kiln_program_file_free)
/** NULL where there is no such section. */
const KilnSection *kiln_program_file_find(const KilnProgramFile *file, KilnSectionKind kind,
                                          uint32_t index);
/** Its bytes, which keep the map; NULL where there is none. */
GBytes *kiln_program_file_get(const KilnProgramFile *file, KilnSectionKind kind, uint32_t index);
/** False where a section of @kind has a number of @n or more, which stands for nothing. */
gboolean kiln_program_file_check(const KilnProgramFile *file, KilnSectionKind kind, uint32_t n,
                                 GError **error);

/** The calls that it has; *@out_n, unless NULL: how many. */
const KilnStoredCall *kiln_program_file_calls(const KilnProgramFile *file, uint64_t *out_n);
/** Gives a constant whose values the text leaves out those of @section, plain as they are. */
gboolean kiln_program_file_attach(const KilnProgramFile *file, const KilnSection *section,
                                  KilnConstant *constant, GError **error);

/** Where the next section of @size bytes begins, if the last one ends at @end. */
uint64_t kiln_section_offset(uint64_t end, uint64_t size);
/** Where the first may begin, and where a file whose last section ends at @end does. */
uint64_t kiln_section_page(uint64_t end);
/** Library, version and what it uses of the machine; empty where there is none. To be freed. */
char *kiln_vendor_label(const KilnVendor *vendor);
/** Of the header, behind its digest, and the table of sections. */
KilnDigest kiln_program_header_digest(const KilnProgramHeader *header, const KilnSection *sections);

#endif
