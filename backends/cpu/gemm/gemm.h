/* SPDX-License-Identifier: Apache-2.0 */
/* Single-precision matrix product for matmul and gemm: batched, with bias, residual and activation
 * in its tail. Nothing is allocated here. Constant operands are packed once into memory of the
 * caller. All work space is scratch of the caller. */
#ifndef KILN_BACKENDS_CPU_GEMM_GEMM_H
#define KILN_BACKENDS_CPU_GEMM_GEMM_H

#include "backends/cpu/cost.h"
#include "backends/cpu/gemm/gemm_kernel.h"
#include "backends/cpu/gemm/gemm_nbits.h"
#include "backends/cpu/isa.h"
#include "backends/cpu/stack/tail.h"
#include "ir/slice.h"

#include <stdint.h>

enum {
    KILN_CPU_GEMM_BATCH_RANK = 8
};

/** How packed operands lie, and how the product is computed. */
typedef enum {
    KILN_CPU_GEMM_BEST,     /* as is best for the extents: one of the others */
    KILN_CPU_GEMM_STRAIGHT, /* op(B) is vectorised */
    KILN_CPU_GEMM_TURNED,   /* op(A) is: out is computed as its transpose */
    KILN_CPU_GEMM_NARROW,   /* straight, and packed B keeps its 16 bits, for few rows */
} KilnCpuGemmForm;

/**
 * out[m, n] = tail(alpha * op(A)[m, k] op(B)[k, n] + beta * bias[m, n]) for each batch item.
 * All strides count floats and may be zero (a broadcast). They also express transposes. The columns
 * of out lie side by side.
 */
typedef struct {
    int64_t m, n, k;
    int64_t a_row, a_col; /* of op(A): between m, between k */
    int64_t b_row, b_col; /* of op(B): between k, between n */
    int64_t out_row;
    int64_t bias_row, bias_col;
    float alpha, beta;
    KilnCpuTail tail;
    int rank; /* of the batch, 0 … 8; each array has a stride for each batch dim */
    int64_t dims[KILN_CPU_GEMM_BATCH_RANK];
    int64_t a_batch[KILN_CPU_GEMM_BATCH_RANK], b_batch[KILN_CPU_GEMM_BATCH_RANK];
    int64_t out_batch[KILN_CPU_GEMM_BATCH_RANK], bias_batch[KILN_CPU_GEMM_BATCH_RANK];
    KilnGemmStorage b_storage; /* of B at its source, also if it is packed; strides count elements.
                                  EXACT: packed by kiln_cpu_gemm_exact_pack; NBITS: by
                                  kiln_cpu_gemm_nbits_pack */
    KilnGemmNbits nbits;       /* how B is stored, NBITS */
    bool a_packed, b_packed;   /* packed by kiln_cpu_gemm_pack_*, which packs one matrix; batch
                                  strides are then between packed matrices */
    KilnCpuGemmForm form;
    int64_t first_panel, n_panels; /* of packed A, that are computed; 0: all */
    KilnCpuIsa isa;
} KilnCpuGemm;

typedef struct {
    const void *a, *b; /* in packed form, else elements at any byte address */
    float *out;
    const float *bias, *residual; /* or NULL; the residual only if the tail has none */
    float *scratch;               /* kiln_cpu_gemm_scratch_size bytes, 64-byte aligned */
    int threads;                  /* does not change a bit of the result */
} KilnCpuGemmArgs;

/** A dense row-major product without batch: alpha = beta = 1, no tail, nothing packed. */
KilnCpuGemm kiln_cpu_gemm_dense(int64_t m, int64_t n, int64_t k);

/** The best form of packed operands for the extents. */
KilnCpuGemmForm kiln_cpu_gemm_best_form(const KilnCpuGemm *gemm);

/** Bytes of op(A) or op(B) in packed form. They follow from the operand's own extents and the form,
 * unless that is KILN_CPU_GEMM_BEST. */
int64_t kiln_cpu_gemm_pack_a_size(const KilnCpuGemm *gemm);
int64_t kiln_cpu_gemm_pack_b_size(const KilnCpuGemm *gemm);

/** Packs an operand at @src (any byte address) to @dst (64-byte aligned). */
void kiln_cpu_gemm_pack_a(const KilnCpuGemm *gemm, const void *src, float *dst, KilnSlice slice);
void kiln_cpu_gemm_pack_b(const KilnCpuGemm *gemm, const void *src, void *dst, KilnSlice slice);

/** Packed A lies in panels of rows. A product may compute those of some panels alone: @m still
 * counts all rows, and the output begins with the first row that is computed. */
int64_t kiln_cpu_gemm_panels(const KilnCpuGemm *gemm);
/** The number of rows before panel @panel. */
int64_t kiln_cpu_gemm_panel_start(const KilnCpuGemm *gemm, int64_t panel);

/**
 * B in fewer bytes without the loss of a bit (KILN_GEMM_EXACT, gemm_exact.h), for weights that few
 * rows read. It packs as the straight form does. suits() is true for extents that gain by it.
 * The packed form begins with @head: head_size() bytes, which the caller sets to zero.
 * fit() looks at the weights at @src (any byte address) and fills in @head. It returns the bytes of
 * the whole packed form; 0 if floats are as good. pack() writes the weights behind @head.
 * is_sound() checks @bytes bytes from elsewhere: true if they hold all that a run would read.
 */
bool kiln_cpu_gemm_exact_suits(const KilnCpuGemm *gemm);
int64_t kiln_cpu_gemm_exact_head_size(const KilnCpuGemm *gemm); /* 0: the form cannot use it */
int64_t kiln_cpu_gemm_exact_fit(const KilnCpuGemm *gemm, const void *src, void *head, int threads);
void kiln_cpu_gemm_exact_pack(const KilnCpuGemm *gemm, const void *src, void *head,
                              KilnSlice slice);
bool kiln_cpu_gemm_exact_is_sound(const KilnCpuGemm *gemm, const void *head, int64_t bytes);

/** The bytes of a B of few bits in its packed form (gemm_nbits.h). They follow from B alone. A run
 * reads such a B in no other form. Its panels are those of the straight form. */
int64_t kiln_cpu_gemm_nbits_size(const KilnCpuGemm *gemm);
void kiln_cpu_gemm_nbits_pack(const KilnCpuGemm *gemm, const KilnGemmNbitsSource *source,
                              void *packed, KilnSlice slice);

/** Bytes of scratch for @threads threads. Do not run more threads with it. */
int64_t kiln_cpu_gemm_scratch_size(const KilnCpuGemm *gemm, int threads);

/** Bytes of scratch that are enough for each product of 1 to @m rows. Fewer rows may be packed in
 * another way, and then need more. The form is not KILN_CPU_GEMM_BEST, and there is no batch. */
int64_t kiln_cpu_gemm_scratch_up_to(const KilnCpuGemm *gemm, int threads);

/** Computes. Extents of zero are fine; if the depth is zero, the output is the tail of the bias. */
void kiln_cpu_gemm_run(const KilnCpuGemm *gemm, const KilnCpuGemmArgs *args);

/** Terms: products, in units of kiln_gemm_cost(); bytes of A and of the result; bytes of B; the
 * call. */
void kiln_matmul_terms(const KilnCpuGemm *gemm, double terms[KILN_CPU_TERMS]);

#endif
