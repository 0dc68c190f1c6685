/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels: functions of a backend that run one instruction each, and facts about them. */
#ifndef KILN_IR_KERNEL_H
#define KILN_IR_KERNEL_H

#include "graph/texts.h"
#include "ir/ir.h"
#include "ir/slice.h"

G_BEGIN_DECLS

typedef struct KilnKernel KilnKernel;

enum {
    KILN_KERNEL_FORMS = 3, /* no kernel has more; most have one or two */
};

/** Packed weights whose size depends on their values, for use where bytes count. Operands, @form
 * and @data are those of the kernel's pack(). */
typedef struct {
    /* True where a run of these extents reads such weights as fast as others. NULL: everywhere. */
    bool (*suits)(const KilnInstr *instr);
    /* Scratch of other extents, if that is more than the kernel's. NULL: it never is. */
    size_t (*scratch_bytes)(const KilnInstr *instr, uint32_t form, int threads);
    /* Looks at the weights on up to @threads threads. Returns how many bytes they take and stores
     * the first of these in @head. Returns 0 where pack() does better. */
    size_t (*measure)(const KilnInstr *instr, uint32_t form, const void *const *data, int threads,
                      GByteArray *head);
    /* Packs them behind the head, which @packed already holds. Slices as in pack(). */
    void (*pack)(const KilnInstr *instr, uint32_t form, const void *const *data, void *packed,
                 KilnSlice slice);
    /* True where run() would read only the @bytes bytes at @packed, wherever they come from. */
    bool (*is_sound)(const KilnInstr *instr, uint32_t form, const void *packed, size_t bytes);
} KilnFitted;

/** The arguments of a bound kernel. */
typedef struct {
    const KilnInstr *instr;   /* attributes and operand types */
    const KilnKernel *kernel; /* the one that was bound */
    void *const *data;    /* address per operand, aligned to its element unless the kernel has it in
                             any_address; NULL where absent */
    void *scratch;        /* of scratch_bytes(), 64-byte aligned; never NULL */
    const void *packed;   /* pack() made it when the program was bound; NULL: nothing is packed */
    uint32_t form;        /* of @packed, or the one that scratch was asked for */
    bool fitted;          /* kernel->fitted or kernel->spare packed it, not pack() */
    const void *prepared; /* prepare() made it; NULL: nothing is prepared */
    int threads;          /* 1, or the session's number; never changes a bit of the result */
    const uint64_t *run_seed; /* source of random operators without a seed; NULL: 0 */
    KilnTextHeap *texts;      /* for the texts that run() makes; NULL where it makes none */
} KilnKernelArgs;

/** Runs an instruction. Returns NULL, or a static text that says why it cannot compute the data,
 * such as an index out of range. No value makes it crash. It uses no GLib and allocates nothing. */
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
    uint32_t dtypes; /* bit per KilnDType of the key operand: the first @in, or @out where there is
                        no @in */
    const char *layout; /* of the key operand; NULL: plain; "*": any */
    KilnIsa isa;        /* the least that it needs */
    bool quantized; /* takes operands of quantized types. Kernels that only move elements take them
                       anyway, if all have the same parameters */
    const char *name; /* "cpu:conv_gemm": shown by profiles and --print-choices */
    KilnKernelFn run;
    /* All of these may be NULL. They depend on the instruction alone: types, attributes, and which
       operands are const weights. */
    bool (*supports)(const KilnInstr *instr); /* a finer test than dtype and layout */
    /* The form of packed weights that @instr prefers, below KILN_KERNEL_FORMS. Extents of any
     * operand may decide. NULL: there is one form, 0. */
    uint32_t (*form)(const KilnInstr *instr);
    /* Bytes for a run on up to @threads threads with weights of @form, packed or not; more threads
     * never need less. The plan has them, alive during this instruction only. */
    size_t (*scratch_bytes)(const KilnInstr *instr, uint32_t form, int threads);
    /* Packed weights are good for all extents of the other operands. Their size and bytes follow
     * from the weights, their types, the attributes and @form, which form() must be able to return
     * for some such extents. run() takes each of these forms, some more slowly. Those of a region
     * are for its own extents alone. 0: nothing to pack for this instruction, in any form. */
    size_t (*packed_bytes)(const KilnInstr *instr, uint32_t form);
    /* Packs the constant operands that the kernel wants packed. @data has addresses, possibly
     * misaligned, of the const weights that it packs; of a region, all const weights. Other entries
     * are NULL. Each slice writes its own part: the bytes are the same for any number of slices. A
     * region gets one slice, because its vendor brings its own threads. Returns NULL, or a text
     * that says why it failed. The text lives as long as the compiled form of the instruction.
     * Packing may be tried again. */
    const char *(*pack)(const KilnInstr *instr, uint32_t form, const void *const *data,
                        void *packed, KilnSlice slice);
    const KilnFitted *fitted; /* another way to pack, which run() takes too */
    /* The way to pack weights that pack() cannot take: those of the first run, which nobody had
     * seen when the kernel was chosen. NULL: pack() takes all. */
    const KilnFitted *spare;
    /* Estimated time on one thread in microseconds, to choose between algorithms. */
    double (*cost)(const KilnInstr *instr);
    /* Facts about the instruction that run() would otherwise find in every run, such as a stack's
     * list of loops. Made when a program is bound, in prepared_bytes(instr) bytes, 64-byte aligned.
     * Owns nothing, may point to the instruction and to code, and is never stored. */
    size_t (*prepared_bytes)(const KilnInstr *instr);
    void (*prepare)(const KilnInstr *instr, void *prepared);
    /* For a reduction: stores the element of operand 0 that run() writes, to the bit, where all
     * elements of operand 1 are @element. False where that takes as long as a run. */
    bool (*of_equal)(const KilnInstr *instr, const void *element, void *result);
    uint32_t packs; /* bit per operand that pack() reads: run() does not read it with packed
                       weights. packed_bytes() is asked only if all of them that are not absent are
                       const weights */
    bool (*packs_operand)(const KilnInstr *instr, uint32_t i); /* in place of @packs */
    uint32_t any_address; /* bit per operand that run() reads at any address, aligned or not: const
                             weights among them stay in the file of the model */
    /* True where run() works on operand @i, of its type, in @rows runs with gaps between them
     * (kiln_buffer_region() has the distance). NULL: on no operand. Other operands are copied to
     * scratch or from there, so every kernel is right on every operand. */
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

/** The form of packed weights that @kernel prefers for @instr. */
static inline uint32_t
kiln_kernel_form(const KilnKernel *kernel, const KilnInstr *instr)
{
    return kernel->form ? kernel->form(instr) : 0;
}

/** True where operand @i of @instr may lie at any address. */
static inline bool
kiln_kernel_takes_any_address(const KilnKernel *kernel, uint32_t i)
{
    return i < 32 && (kernel->any_address >> i & 1);
}

/** True where all results of @instr are empty. Such an instruction runs no kernel, gets no scratch
 * and packs no weights. So kernels need not look for empty results before they walk the other
 * extents, which may be of any size. */
bool kiln_instr_computes_nothing(const KilnInstr *instr);

/** True where operand @i of @instr is a const weight or input, or a part of one without gaps:
 * kernels get these packed. They read copies of parts in rows. */
bool kiln_operand_is_const(const KilnInstr *instr, uint32_t i);
/** True where that is an input, whose values come with the first run. */
bool kiln_operand_comes_late(const KilnInstr *instr, uint32_t i);

/** False if the constant behind @buffer has NaN or an infinity. Also false, with @error set, if
 * memory ran out. Values that are not there yet count as finite. */
bool kiln_buffer_is_finite(KilnBuffer *buffer, GError **error);

/** True where @kernel packs operands, and all those that @instr has are const. */
bool kiln_kernel_may_pack(const KilnKernel *kernel, const KilnInstr *instr);

/** Throws the text that pack() returned for @instr. Always FALSE. */
gboolean kiln_throw_not_packed(const KilnInstr *instr, const char *message, GError **error);

/** Scratch of @instr with weights of @form, which kernel->fitted packed if @fitted. */
size_t kiln_kernel_own_scratch(const KilnKernel *kernel, const KilnInstr *instr, uint32_t form,
                               bool fitted, int threads);
/** That, and copies of operands in rows that the kernel does not take. */
size_t kiln_kernel_scratch(const KilnKernel *kernel, const KilnInstr *instr, uint32_t form,
                           bool fitted, int threads);
/** True where operand @i of @instr lies in rows, and @kernel gets a dense copy of it. */
bool kiln_kernel_copies(const KilnKernel *kernel, const KilnInstr *instr, uint32_t i);
/** Bytes of these copies and of the address per operand behind them; 0 without copies. */
size_t kiln_kernel_copied_bytes(const KilnKernel *kernel, const KilnInstr *instr);

G_END_DECLS

#endif
