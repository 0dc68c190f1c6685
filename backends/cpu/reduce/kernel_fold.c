/* SPDX-License-Identifier: Apache-2.0 */
/* reduce_* of integers, bools and f64, and those of f32 that kernel_reduce.c lacks: products, and
 * logarithms of sums; global pools of f64. Floats are accumulated in double, integers in 64 bits,
 * which wrap. Narrower elements are widened a block at a time.
 *
 * Where the innermost dim is reduced, its rows are folded, else blocks of columns. A result is made
 * by one task, in row-major order of the reduced dims. Operands: result, data.
 *
 * mean_variance_normalization of f32 and lp_normalization fold a group in the same way, and write
 * its elements moved and scaled. */
#include "backends/cpu/elementwise/elementwise.h"
#include "backends/cpu/elementwise/typed.h"
#include "backends/cpu/extents.h"
#include "backends/cpu/isa.h"
#include "backends/cpu/kernel.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/reduce/cut_dims.h"
#include "backends/cpu/reduce/fold.h"
#include "graph/base/number.h"
#include "ir/kernel.h"

#include <math.h>
#include <string.h>

enum {
    COLUMNS = 256,       /* of a block */
    MOST_COLUMNS = 1024, /* of a task */
    TASK_ELEMENTS = 16384,
};

typedef struct {
    KilnInstrKind kind;
    KilnDType dtype;
    KilnCpuFold fold;
    KilnCpuFoldLoop loop, largest; /* of a row, or of columns */
    KilnCpuCastRow widen;          /* NULL: the loop takes the elements as they are */
    KilnCpuExpLoop exp;            /* of f32; NULL: no exponentials */
    size_t size;
    CutDims cut;
    int64_t count; /* of elements of a group */
    int64_t width; /* of a piece */
    int64_t pieces, bundle;
    const char *in;
    void *out;
} Fold;

static KilnCpuFold
fold_of(KilnInstrKind kind)
{
    switch (kind) {
    case KILN_INSTR_reduce_l1:
        return KILN_CPU_FOLD_sizes;
    case KILN_INSTR_reduce_l2:
    case KILN_INSTR_reduce_sum_square:
        return KILN_CPU_FOLD_squares;
    case KILN_INSTR_global_max_pool:
    case KILN_INSTR_reduce_max:
        return KILN_CPU_FOLD_max;
    case KILN_INSTR_reduce_min:
        return KILN_CPU_FOLD_min;
    case KILN_INSTR_reduce_prod:
        return KILN_CPU_FOLD_product;
    default:
        return KILN_CPU_FOLD_sum;
    }
}

static void
cut(const KilnType *type, uint32_t reduced, Fold *f)
{
    f->cut = cut_dims(type, reduced);
    f->count = f->cut.reduced.count * (f->cut.rows ? f->cut.inner : 1);
}

static int64_t
offset_of(const Dims *dims, int64_t i)
{
    int64_t offset = 0;
    for (int d = dims->rank - 1; d >= 0; d--) {
        offset += i % dims->dims[d] * dims->strides[d];
        i /= dims->dims[d];
    }
    return offset;
}

/* What changes nothing; the least element for max, the greatest for min. */
static KilnCpuFolded
start_of(const Fold *f, KilnCpuFold fold)
{
    const unsigned bits = f->dtype == KILN_DTYPE_bool ? 1 : 8 * (unsigned)f->size;
    const uint64_t ones = UINT64_MAX >> (64 - bits);
    const bool is_signed = kiln_dtype_is_signed(f->dtype), most = fold == KILN_CPU_FOLD_min;
    if (fold == KILN_CPU_FOLD_max || fold == KILN_CPU_FOLD_min) {
        if (kiln_dtype_is_float(f->dtype))
            return (KilnCpuFolded){ .f = most ? INFINITY : -INFINITY };
        const uint64_t top = is_signed ? ones >> 1 : ones;
        return (KilnCpuFolded){ .u = most ? top : is_signed ? ~top : 0 };
    }
    const int one = fold == KILN_CPU_FOLD_product;
    if (kiln_dtype_is_float(f->dtype))
        return (KilnCpuFolded){ .f = one };
    return (KilnCpuFolded){ .s = one };
}

/* Folds @n neighbours, or @n columns, from element @at on. Rows are folded a block at a time, so
 * that equal elements are known to come to the same (kiln_cpu_fold_equal). */
static void
fold_some(const Fold *f, KilnCpuFoldLoop loop, int64_t at, int64_t n, KilnCpuFolded *folded)
{
    const char *from = f->in + (size_t)at * f->size;
    for (int64_t i = 0; i < n; i += COLUMNS) {
        uint64_t wide[COLUMNS];
        const void *x = from + (size_t)i * f->size;
        const int64_t some = min_of(COLUMNS, n - i);
        if (f->widen) {
            f->widen(wide, x, some);
            x = wide;
        }
        loop(x, some, f->cut.rows ? folded : folded + i);
    }
}

/* Folds the group whose first element is @at, or @n columns from there on. */
static void
fold_group(const Fold *f, KilnCpuFoldLoop loop, int64_t at, int64_t n, KilnCpuFolded *folded)
{
    for (int64_t i = 0; i < f->cut.reduced.count; i++)
        fold_some(f, loop, at + offset_of(&f->cut.reduced, i), n, folded);
}

/* Adds the exponentials of @n elements of f64 from @x on, less the largest of their row or of each
 * column. @folded and @most are of these columns. */
static void
add_wide_exponentials(const Fold *f, const double *x, int64_t n, const KilnCpuFolded *most,
                      KilnCpuFolded *folded)
{
    double apart[COLUMNS], powers[COLUMNS];
    for (int64_t i = 0; i < n; i++)
        apart[i] = x[i] - most[f->cut.rows ? 0 : i].f;
    kiln_cpu_typed(KILN_CPU_ISA_AUTO)
        ->one[KILN_CPU_ONE_exp][KILN_DTYPE_f64](powers, apart, n, &(KilnCpuParams){ 0 });
    f->loop(powers, n, folded);
}

/* The same of the type of the data. */
static void
add_exponentials(const Fold *f, int64_t at, int64_t n, const KilnCpuFolded *most,
                 KilnCpuFolded *folded)
{
    if (f->dtype == KILN_DTYPE_f64)
        add_wide_exponentials(f, (const double *)(const void *)f->in + at, n, most, folded);
    else
        f->exp((const float *)(const void *)f->in + at, n, most, folded);
}

/* The logarithm of a sum of exponentials, from which the largest is taken out. */
static void
fold_exponentials(const Fold *f, int64_t at, int64_t n, int64_t results, KilnCpuFolded *folded)
{
    KilnCpuFolded most[MOST_COLUMNS];
    for (int64_t i = 0; i < results; i++) {
        most[i] = start_of(f, KILN_CPU_FOLD_max);
        folded[i].f = 0;
    }
    fold_group(f, f->largest, at, n, most);
    for (int64_t i = 0; i < f->cut.reduced.count; i++) {
        const int64_t x = at + offset_of(&f->cut.reduced, i);
        for (int64_t k = 0; k < n; k += COLUMNS)
            add_exponentials(f, x + k, min_of(COLUMNS, n - k), most + (f->cut.rows ? 0 : k),
                             folded + (f->cut.rows ? 0 : k));
    }
    for (int64_t i = 0; i < results; i++)
        folded[i].f = isinf(most[i].f) ? most[i].f : most[i].f + log(folded[i].f);
}

static void
store(const Fold *f, int64_t i, KilnCpuFolded folded)
{
    const bool is_float = kiln_dtype_is_float(f->dtype);
    const bool is_signed = kiln_dtype_is_signed(f->dtype);
    double wide = is_float ? folded.f : is_signed ? (double)folded.s : (double)folded.u;
    bool is_wide = is_float;
    if (f->kind == KILN_INSTR_reduce_l2 || f->kind == KILN_INSTR_reduce_log_sum) {
        wide = f->kind == KILN_INSTR_reduce_l2 ? sqrt(wide) : log(wide);
        is_wide = true;
    } else if (f->kind == KILN_INSTR_global_average_pool ||
               (f->kind == KILN_INSTR_reduce_mean && is_float)) {
        wide /= (double)f->count;
    } else if (f->kind == KILN_INSTR_reduce_mean) {
        folded.u = is_signed ? (uint64_t)(folded.s / f->count) : folded.u / (uint64_t)f->count;
    }
    if (is_wide) {
        kiln_element_store_f64(f->dtype, f->out, i, wide);
        return;
    }
    switch (f->size) {
    case 1:
        ((uint8_t *)f->out)[i] = (uint8_t)folded.u;
        break;
    case 2:
        ((uint16_t *)f->out)[i] = (uint16_t)folded.u;
        break;
    case 4:
        ((uint32_t *)f->out)[i] = (uint32_t)folded.u;
        break;
    default:
        ((uint64_t *)f->out)[i] = folded.u;
        break;
    }
}

static void
run_rows(const void *data, int64_t task, int thread)
{
    (void)thread;
    const Fold *f = data;
    const int64_t end = min_of((task + 1) * f->bundle, f->cut.kept.count);
    for (int64_t i = task * f->bundle; i < end; i++) {
        KilnCpuFolded folded = start_of(f, f->fold);
        const int64_t at = offset_of(&f->cut.kept, i);
        if (f->exp)
            fold_exponentials(f, at, f->cut.inner, 1, &folded);
        else
            fold_group(f, f->loop, at, f->cut.inner, &folded);
        store(f, i, folded);
    }
}

static void
run_columns(const void *data, int64_t task, int thread)
{
    (void)thread;
    const Fold *f = data;
    const int64_t i = task / f->pieces, first = task % f->pieces * f->width;
    const int64_t n = min_of(f->width, f->cut.inner - first),
                  at = offset_of(&f->cut.kept, i) + first;
    KilnCpuFolded folded[MOST_COLUMNS];
    for (int64_t k = 0; k < n; k++)
        folded[k] = start_of(f, f->fold);
    if (f->exp)
        fold_exponentials(f, at, n, n, folded);
    else
        fold_group(f, f->loop, at, n, folded);
    for (int64_t k = 0; k < n; k++)
        store(f, i * f->cut.inner + first + k, folded[k]);
}

/* The type that the loops have for @dtype, which is widened to it. */
static KilnDType
folded_type(KilnDType dtype, KilnCpuFold fold)
{
    const bool extreme = fold == KILN_CPU_FOLD_max || fold == KILN_CPU_FOLD_min;
    if (kiln_dtype_is_float(dtype))
        return KILN_DTYPE_f64;
    if (dtype == KILN_DTYPE_i32 && extreme)
        return KILN_DTYPE_i32;
    return kiln_dtype_is_signed(dtype) ? KILN_DTYPE_i64 : KILN_DTYPE_u64;
}

static Fold
fold_for(const KilnInstr *instr)
{
    const KilnType *type = cpu_type(instr, 1);
    const KilnCpuFoldRows *loops = kiln_cpu_folds();
    Fold f = { .kind = instr->kind,
               .dtype = type->dtype,
               .fold = fold_of(instr->kind),
               .size = kiln_dtype_size(type->dtype) };
    const KilnDType folded = folded_type(type->dtype, f.fold);
    cut(type, reduced_dims(instr), &f);
    f.loop = (f.cut.rows ? loops->row : loops->columns)[f.fold][folded];
    f.widen = kiln_cpu_typed(KILN_CPU_ISA_AUTO)->cast[type->dtype][folded];
    if (instr->kind == KILN_INSTR_reduce_log_sum_exp) {
        f.largest = (f.cut.rows ? loops->row : loops->columns)[KILN_CPU_FOLD_max][folded];
        f.exp = f.cut.rows ? loops->exp_row : loops->exp_columns;
    }
    return f;
}

bool
kiln_cpu_fold_supports(const KilnInstr *instr)
{
    return !cpu_type(instr, 1)->layout && !cpu_type(instr, 0)->layout;
}

size_t
kiln_cpu_fold_scratch(const KilnInstr *instr, uint32_t form, int threads)
{
    (void)instr;
    (void)form;
    (void)threads;
    return 0;
}

/* --- equal elements --- */

enum {
    MOST_STEPS = 1 << 20 /* of blocks: a moment */
};

static uint64_t
widened(KilnDType dtype, const void *element)
{
    const size_t size = kiln_dtype_size(dtype);
    const unsigned unused = 64 - 8 * (unsigned)size;
    uint64_t bits = 0;
    memcpy(&bits, element, size); /* the low bytes come first */
    if (dtype == KILN_DTYPE_bool)
        return bits != 0;
    return kiln_dtype_is_signed(dtype) ? (uint64_t)((int64_t)(bits << unused) >> unused) : bits;
}

/* @n times @x. Integers wrap, so the order does not matter. */
static uint64_t
integers_of_equal(KilnCpuFold fold, bool is_signed, uint64_t x, int64_t n)
{
    uint64_t product = 1;
    switch (fold) {
    case KILN_CPU_FOLD_sizes:
        return (is_signed && (int64_t)x < 0 ? 0 - x : x) * (uint64_t)n;
    case KILN_CPU_FOLD_squares:
        return x * x * (uint64_t)n;
    case KILN_CPU_FOLD_product:
        for (; n > 0; n /= 2, x *= x)
            product = n % 2 ? product * x : product;
        return product;
    case KILN_CPU_FOLD_max:
    case KILN_CPU_FOLD_min:
        return x;
    default:
        return x * (uint64_t)n;
    }
}

/* A number that is folded again and again in the same way. */
typedef struct {
    uint64_t last, before_last;
    int64_t done;
} Repeated;

/* How many of @left further folds change @now. It came to the same number one or two folds ago, or
 * all do. */
static int64_t
folds_left(Repeated *repeated, uint64_t now, int64_t left)
{
    const bool again = repeated->done > 1 && now == repeated->before_last;
    repeated->before_last = repeated->last;
    repeated->last = now;
    repeated->done++;
    return again ? left % 2 : left;
}

/* Folds a row of @n elements, which are those at 0 … COLUMNS - 1, block by block as a run. Takes
 * from *@steps. */
static void
fold_equal_row(const Fold *f, KilnCpuFoldLoop loop, int64_t n, KilnCpuFolded *folded,
               int64_t *steps)
{
    Repeated repeated = { .done = 0 };
    for (int64_t left = n / COLUMNS; left > 0 && *steps > 0; *steps -= 1) {
        fold_some(f, loop, 0, COLUMNS, folded);
        left = folds_left(&repeated, folded->u, left - 1);
    }
    if (n % COLUMNS)
        fold_some(f, loop, 0, n % COLUMNS, folded);
}

/* Folds one group of equal elements. False if that takes too many steps. */
static bool
fold_equal(const Fold *f, KilnCpuFoldLoop loop, KilnCpuFolded *folded)
{
    int64_t steps = MOST_STEPS;
    Repeated repeated = { .done = 0 };
    for (int64_t left = f->cut.reduced.count; left > 0 && steps > 0; steps--) {
        fold_equal_row(f, loop, f->cut.rows ? f->cut.inner : 1, folded, &steps);
        left = folds_left(&repeated, folded->u, left - 1);
    }
    return steps > 0;
}

static void
exponentials_of_equal(const Fold *f, KilnCpuFolded *folded)
{
    KilnCpuFolded most = start_of(f, KILN_CPU_FOLD_max);
    folded->f = 0;
    fold_equal(f, f->largest, &most);
    for (int64_t i = 0; i < f->cut.reduced.count; i++) {
        for (int64_t k = 0; k < (f->cut.rows ? f->cut.inner : 1); k += COLUMNS)
            add_exponentials(f, 0, f->cut.rows ? min_of(COLUMNS, f->cut.inner - k) : 1, &most,
                             folded);
    }
    folded->f = isinf(most.f) ? most.f : most.f + log(folded->f);
}

bool
kiln_cpu_fold_equal(const KilnInstr *instr, const void *element, void *result)
{
    Fold f = fold_for(instr);
    const bool is_float = kiln_dtype_is_float(f.dtype);
    char equal[COLUMNS * sizeof(uint64_t)];
    KilnCpuFolded folded = start_of(&f, f.fold);
    bool good = f.count > 0 && (!f.exp || f.count <= (int64_t)MOST_STEPS * COLUMNS);
    if (!good)
        return false;
    for (size_t i = 0; i < COLUMNS; i++)
        memcpy(equal + i * f.size, element, f.size);
    f.in = equal;
    f.out = result;
    if (f.exp) {
        exponentials_of_equal(&f, &folded);
    } else if (is_float) {
        good = fold_equal(&f, f.loop, &folded);
    } else {
        folded.u = integers_of_equal(f.fold, kiln_dtype_is_signed(f.dtype),
                                     widened(f.dtype, element), f.count);
    }
    store(&f, 0, folded);
    return good;
}

const char *
kiln_cpu_fold(const KilnKernelArgs *args)
{
    Fold f = fold_for(args->instr);
    f.in = args->data[1];
    f.out = args->data[0];
    if (f.kind == KILN_INSTR_reduce_mean && f.count == 0 && !kiln_dtype_is_float(f.dtype))
        return "mean of no integers";
    if (f.cut.rows) {
        f.bundle = units_per_task(TASK_ELEMENTS, f.count);
        kiln_cpu_parallel(ceil_div(f.cut.kept.count, f.bundle), args->threads, run_rows, &f);
        return NULL;
    }
    f.width = piece_width(COLUMNS, MOST_COLUMNS, f.cut.kept.count, f.cut.inner, args->threads);
    f.pieces = ceil_div(f.cut.inner, f.width);
    kiln_cpu_parallel(f.cut.kept.count * f.pieces, args->threads, run_columns, &f);
    return NULL;
}

/* --- elements moved and scaled by what their group comes to --- */

typedef struct {
    Fold f;              /* its loop adds up absolute values, or squares */
    KilnCpuFoldLoop sum; /* NULL: the mean is not taken away */
    void *to;
} Normalize;

/* Of one group, or of one of its columns. */
typedef struct {
    double mean, scale;
} Moved;

static Moved
moved_by(const Normalize *z, double sum, double folded)
{
    const double n = (double)z->f.count;
    if (z->sum) {
        const double mean = sum / n, variance = folded / n - mean * mean;
        return (Moved){ mean, 1 / (sqrt(variance < 0 ? 0 : variance) + 1e-9) };
    }
    const double norm = z->f.kind == KILN_INSTR_reduce_l1 ? folded : sqrt(folded);
    return (Moved){ 0, norm == 0 ? 0 : 1 / norm };
}

/* Writes element @at, and of a row the @n - 1 behind it. */
#define WRITE_ROW(name, T)                                                                         \
    static void name(const Normalize *z, int64_t at, int64_t n, const Moved *by)                   \
    {                                                                                              \
        const T *from = (const T *)(const void *)z->f.in + at;                                     \
        T *to = (T *)z->to + at;                                                                   \
        const int64_t step = !z->f.cut.rows;                                                       \
        for (int64_t i = 0; i < n; i++)                                                            \
            to[i] = (T)(((double)from[i] - by[i * step].mean) * by[i * step].scale);               \
    }
WRITE_ROW(write_f32, float)
WRITE_ROW(write_f64, double)
#undef WRITE_ROW

/* @n columns, or a row of as many elements, from element @at on. */
static void
normalize_group(const Normalize *z, int64_t at, int64_t n)
{
    const Fold *f = &z->f;
    const int64_t results = f->cut.rows ? 1 : n;
    KilnCpuFolded sum[COLUMNS], folded[COLUMNS];
    Moved by[COLUMNS];
    for (int64_t k = 0; k < results; k++)
        sum[k].f = folded[k].f = 0;
    if (z->sum)
        fold_group(f, z->sum, at, n, sum);
    fold_group(f, f->loop, at, n, folded);
    for (int64_t k = 0; k < results; k++)
        by[k] = moved_by(z, sum[k].f, folded[k].f);
    for (int64_t i = 0; i < f->cut.reduced.count; i++) {
        const int64_t row = at + offset_of(&f->cut.reduced, i);
        (f->dtype == KILN_DTYPE_f64 ? write_f64 : write_f32)(z, row, n, by);
    }
}

static void
normalize_task(const void *data, int64_t task, int thread)
{
    (void)thread;
    const Normalize *z = data;
    const Fold *f = &z->f;
    if (!f->cut.rows) {
        const int64_t first = task % f->pieces * COLUMNS;
        normalize_group(z, offset_of(&f->cut.kept, task / f->pieces) + first,
                        min_of(COLUMNS, f->cut.inner - first));
        return;
    }
    const int64_t end = min_of((task + 1) * f->bundle, f->cut.kept.count);
    for (int64_t i = task * f->bundle; i < end; i++)
        normalize_group(z, offset_of(&f->cut.kept, i), f->cut.inner);
}

static void
run_normalize(const KilnKernelArgs *args, KilnInts axes, KilnInstrKind norm, bool moves)
{
    const KilnCpuFoldRows *loops = kiln_cpu_folds();
    const KilnType *type = cpu_type(args->instr, 1);
    Normalize z = { .f = { .kind = norm,
                           .dtype = type->dtype,
                           .size = kiln_dtype_size(type->dtype),
                           .in = args->data[1] },
                    .to = args->data[0] };
    Fold *f = &z.f;
    if (kiln_type_elements(type) == 0)
        return;
    cut(type, bits_of_axes(axes, type->rank), f);
    f->loop = (f->cut.rows ? loops->row : loops->columns)[fold_of(norm)][KILN_DTYPE_f64];
    f->widen = kiln_cpu_typed(KILN_CPU_ISA_AUTO)->cast[type->dtype][KILN_DTYPE_f64];
    if (moves)
        z.sum = (f->cut.rows ? loops->row : loops->columns)[KILN_CPU_FOLD_sum][KILN_DTYPE_f64];
    f->bundle = units_per_task(TASK_ELEMENTS, f->count);
    f->pieces = ceil_div(f->cut.inner, COLUMNS);
    kiln_cpu_parallel(f->cut.rows ? ceil_div(f->cut.kept.count, f->bundle)
                                  : f->cut.kept.count * f->pieces,
                      args->threads, normalize_task, &z);
}

const char *
kiln_cpu_mean_variance_normalization(const KilnKernelArgs *args)
{
    run_normalize(args, kiln_instr_attrs(args->instr, mean_variance_normalization)->axes,
                  KILN_INSTR_reduce_sum_square, true);
    return NULL;
}

bool
kiln_cpu_lp_normalization_supports(const KilnInstr *instr)
{
    const int64_t p = kiln_instr_attrs(instr, lp_normalization)->p;
    return (p == 1 || p == 2) && cpu_all_plain(instr, cpu_type(instr, 1)->dtype);
}

const char *
kiln_cpu_lp_normalization(const KilnKernelArgs *args)
{
    const KilnInstrAttrs_lp_normalization *attrs = kiln_instr_attrs(args->instr, lp_normalization);
    int64_t axis = attrs->axis;
    run_normalize(args, (KilnInts){ .n = 1, .v = &axis },
                  attrs->p == 1 ? KILN_INSTR_reduce_l1 : KILN_INSTR_reduce_l2, false);
    return NULL;
}
