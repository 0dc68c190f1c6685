/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels: the functions of a backend that run one instruction, and what they say of themselves. */
#ifndef KILN_IR_KERNEL_H
#define KILN_IR_KERNEL_H

#include "ir/ir.h"
#include "ir/slice.h"

G_BEGIN_DECLS

typedef struct KilnKernel KilnKernel;

/** Packed weights in a form whose size depends on their values, for where bytes count. Operands and
 * @data are those of the kernel's pack(). */
typedef struct {
    /* Looks at the weights on up to @threads threads. Returns how many bytes they take, and in
     * @head those that come first; 0 where they are better packed as pack() does. */
    size_t (*measure)(const KilnInstr *instr, const void *const *data, int threads,
                      GByteArray *head);
    /* Packs them behind the head, which is at @packed already. Slices as in pack(). */
    void (*pack)(const KilnInstr *instr, const void *const *data, void *packed, KilnSlice slice);
    /* True where run() would read nothing but the @bytes bytes at @packed, from wherever they are.
     */
    bool (*is_sound)(const KilnInstr *instr, const void *packed, size_t bytes);
} KilnFitted;

/** What a bound kernel is called with. */
typedef struct {
    const KilnInstr *instr;   /* attributes and operand types */
    const KilnKernel *kernel; /* the one that was bound */
    void *const *data;  /* address per operand, aligned to its element unless the kernel has it
                           in any_address; NULL where absent */
    void *scratch;      /* of scratch_bytes(), 64-byte aligned; never NULL */
    const void *packed; /* what pack() made when the program was bound; NULL where there is none */
    bool fitted;        /* it was that of kernel->fitted or kernel->spare */
    const void *prepared;     /* what prepare() made; NULL where there is none */
    int threads;              /* 1, or the session's number: never changes a bit of the result */
    const uint64_t *run_seed; /* what random operators without a seed draw from; NULL: 0 */
} KilnKernelArgs;

/** Runs an instruction. Returns NULL, or a static text that says why the data cannot be computed
 * (an index out of range): never crashes on values. Uses no GLib, allocates nothing. */
typedef const char *(*KilnKernelFn)(const KilnKernelArgs *args);

typedef enum {
    KILN_ISA_ANY,
    KILN_ISA_AVX2,   /* with FMA and F16C */
    KILN_ISA_AVX512, /* F, BW, DQ, VL */
} KilnIsa;
/** "portable", "AVX2", "AVX-512". */
const char *kiln_isa_name(KilnIsa isa);

/** A row of a kernels.def. */
struct KilnKernel {
    KilnInstrKind instr;
    uint32_t dtypes; /* bit per KilnDType: of the key operand, the first @in (the @out where there
                        is none) */
    const char *layout; /* of the key operand; NULL: plain; "*": any */
    KilnIsa isa;        /* the least instruction set */
    bool quantized; /* takes operands whose types are quantized; moving elements needs no more than
                       the rest, as long as all have the same parameters */
    const char *name; /* "cpu:conv_gemm": shown by profiles and --print-choices */
    KilnKernelFn run;
    /* All of these may be NULL. They depend on the instruction alone: types, attributes, and which
       operands are const weights. */
    bool (*supports)(const KilnInstr *instr); /* a finer test than dtype and layout */
    /* Of a run on up to @threads threads: never less for more. Lives for this instruction only; in
     * the plan. */
    size_t (*scratch_bytes)(const KilnInstr *instr, int threads);
    size_t (*packed_bytes)(const KilnInstr *instr); /* 0: nothing to pack for this instruction */
    /* Packs the constant operands that the kernel wants packed. @data holds the addresses of const
     * weights, possibly misaligned: of those that it packs, and of a region of all that are
     * there. NULL for every other operand. Slices write
     * what is theirs: the same bytes, however many there are. A region comes whole: its vendor
     * brings threads of its own. Returns NULL, or a text that says why it failed, which lives as
     * long as what was compiled for the instruction: it may be tried again. */
    const char *(*pack)(const KilnInstr *instr, const void *const *data, void *packed,
                        KilnSlice slice);
    const KilnFitted *fitted; /* another form of the same, which run() takes too */
    /* The form for weights that pack() cannot take: where they come with the first run, the kernel
     * was chosen before anybody saw them. NULL: pack() takes all. */
    const KilnFitted *spare;
    /* Estimated time on one thread in microseconds, to choose between algorithms. */
    double (*cost)(const KilnInstr *instr);
    /* What run() would otherwise find out in every run, from the instruction alone: a stack's list
     * of loops. Made where a program is bound, in prepared_bytes(instr) bytes that are 64-byte
     * aligned; owns nothing, may point to the instruction and to code, and is never stored. */
    size_t (*prepared_bytes)(const KilnInstr *instr);
    void (*prepare)(const KilnInstr *instr, void *prepared);
    /* Of a reduction: what run() writes to each element of operand 0 where all elements of operand
     * 1 are @element, with the same bits. False where it takes as long to find out. */
    bool (*of_equal)(const KilnInstr *instr, const void *element, void *result);
    uint32_t packs; /* bit per operand that pack() reads: with packed weights, run() does not read
                       it, and packed_bytes() is asked only if all of them are const weights */
    bool (*packs_operand)(const KilnInstr *instr, uint32_t i); /* in place of @packs */
    uint32_t any_address; /* bit per operand that run() reads at any address, aligned or not: const
                             weights among them stay in the file of the model */
    /* True where run() works on operand @i, of the type that it has, in @rows runs with gaps
     * between them (kiln_buffer_region() says how far apart). NULL: on no operand. What it does not
     * take is copied to scratch or from there, so that every kernel is right on every operand. */
    bool (*takes_strided)(const KilnInstr *instr, uint32_t i, int64_t rows);
};

/** True where pack() reads operand @i of @instr. */
static inline bool
kiln_kernel_packs(const KilnKernel *kernel, const KilnInstr *instr, uint32_t i)
{
    if (kernel->packs_operand)
        return kernel->packs_operand(instr, i);
    return i < 32 && (kernel->packs >> i & 1);
}

/** True where operand @i of @instr may lie at any address. */
static inline bool
kiln_kernel_takes_any_address(const KilnKernel *kernel, uint32_t i)
{
    return i < 32 && (kernel->any_address >> i & 1);
}

/** True where @instr computes no element: all its results are empty. No kernel is run for it, gets
 * scratch or packs weights, so that none has to look for empty results before it walks the other
 * extents, which may be of any size. */
bool kiln_instr_computes_nothing(const KilnInstr *instr);

/** True where operand @i of @instr is a const weight or input, or a part of one without gaps: what
 * kernels get packed. They read copies of parts in rows. */
bool kiln_operand_is_const(const KilnInstr *instr, uint32_t i);
/** True where that is an input, whose values come with the first run. */
bool kiln_operand_comes_late(const KilnInstr *instr, uint32_t i);

/** False where @buffer is of a constant with an element that is no finite number, or with @error
 * set where memory ran out. Values that are not there yet are taken for finite. */
bool kiln_buffer_is_finite(KilnBuffer *buffer, GError **error);

/** True where @kernel packs operands, and all those of @instr are const. */
bool kiln_kernel_may_pack(const KilnKernel *kernel, const KilnInstr *instr);

/** What pack() says of @instr, as an error. Always FALSE. */
gboolean kiln_throw_not_packed(const KilnInstr *instr, const char *message, GError **error);

/** Scratch of @instr: the kernel's own, and copies of operands in rows that it does not take. */
size_t kiln_kernel_scratch(const KilnKernel *kernel, const KilnInstr *instr, int threads);
/** True where operand @i of @instr lies in rows, and @kernel gets a dense copy of it. */
bool kiln_kernel_copies(const KilnKernel *kernel, const KilnInstr *instr, uint32_t i);
/** Bytes of these copies, and of an address per operand behind them; 0 where there are none. */
size_t kiln_kernel_copied_bytes(const KilnKernel *kernel, const KilnInstr *instr);

G_END_DECLS

#endif
