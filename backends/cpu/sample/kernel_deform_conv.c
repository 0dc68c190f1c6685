/* SPDX-License-Identifier: Apache-2.0 */
/* deform_conv in f32 with two spatial dims: the columns of a block of windows, times the weights.
 *
 * The data are turned first, so that channels lie side by side: a place is then four vectors of
 * channels, where the planes of the instruction would take four loads for each channel. The depth
 * of the product follows: kernel elements outside, channels inside. So the weights are turned, too,
 * and packed, once in a run. Operands: result, data, weights, offsets, bias, mask. */
#include "backends/cpu/extents.h"
#include "backends/cpu/gemm/gemm.h"
#include "backends/cpu/isa.h"
#include "backends/cpu/kernel.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/sample/deform.h"

enum {
    BLOCK = KILN_CPU_DEFORM_BLOCK,
    TURN = 16, /* channels of a task that turns */
};

/* Floats of the parts of the scratch, each in whole lines. */
typedef struct {
    int64_t data, weights, packed, columns, product; /* the last two for each thread */
} Sizes;

typedef struct {
    KilnCpuDeform d; /* of the picture at hand */
    const KilnCpuDeformLoops *loops;
    KilnCpuGemm gemm; /* of a group, on a whole block */
    Sizes sizes;
    const float *from, *weights, *bias;
    float *to; /* the picture's result */
    float *turned, *turned_weights, *packed, *work;
    int64_t out_channels, taps;
} Run;

static KilnCpuDeform
picture_of(const KilnInstr *instr)
{
    const KilnInstrAttrs_deform_conv *attrs = kiln_instr_attrs(instr, deform_conv);
    const KilnType *out = cpu_type(instr, 0), *in = cpu_type(instr, 1), *w = cpu_type(instr, 2);
    KilnCpuDeform d = { .height = in->dims[2],
                        .width = in->dims[3],
                        .channels = in->dims[1],
                        .groups = attrs->group,
                        .offset_groups = attrs->offset_group,
                        .out_width = out->dims[3],
                        .positions = out->dims[2] * out->dims[3] };
    for (uint32_t i = 0; i < 2; i++) {
        d.kernel[i] = w->dims[i + 2];
        d.stride[i] = kiln_ints_at(attrs->strides, i, 1);
        d.pad[i] = kiln_ints_at(attrs->pads, i, 0);
        d.dilation[i] = kiln_ints_at(attrs->dilations, i, 1);
    }
    return d;
}

static KilnCpuGemm
product_of(const KilnCpuDeform *d, int64_t out_channels)
{
    const int64_t depth = d->kernel[0] * d->kernel[1] * (d->channels / d->groups);
    KilnCpuGemm gemm = kiln_cpu_gemm_dense(out_channels / d->groups, BLOCK, depth);
    gemm.b_row = 1;
    gemm.b_col = depth;
    gemm.out_row = d->positions;
    gemm.bias_row = 1;
    gemm.bias_col = 0;
    gemm.a_packed = true;
    gemm.form = kiln_cpu_gemm_best_form(&gemm);
    return gemm;
}

static Sizes
sizes_of(const KilnCpuDeform *d, const KilnCpuGemm *gemm)
{
    const int64_t line = KILN_CPU_LINE_FLOATS, bytes = (int64_t)sizeof(float);
    return (Sizes){
        .data = round_up(d->height * d->width * d->channels, line),
        .weights = round_up(d->groups * gemm->m * gemm->k, line),
        .packed = round_up(ceil_div(kiln_cpu_gemm_pack_a_size(gemm), bytes), line),
        .columns = round_up(d->groups * BLOCK * gemm->k, line),
        .product = round_up(ceil_div(kiln_cpu_gemm_scratch_size(gemm, 1), bytes), line),
    };
}

/* --- turning --- */

static void
turn_data_task(const void *data, int64_t task, int thread)
{
    (void)thread;
    const Run *run = data;
    const int64_t channels = run->d.channels;
    run->loops->turn(run->from, channels, run->d.height * run->d.width, task * TURN,
                     min_of((task + 1) * TURN, channels), run->turned);
}

/* The weights of one channel of the result: [channels][taps] becomes [taps][channels]. */
static void
turn_weights_task(const void *data, int64_t task, int thread)
{
    (void)thread;
    const Run *run = data;
    const int64_t channels = run->d.channels / run->d.groups, n = run->gemm.k;
    run->loops->turn(run->weights + task * n, channels, run->taps, 0, channels,
                     run->turned_weights + task * n);
}

static void
pack_task(const void *data, int64_t task, int thread)
{
    (void)thread;
    const Run *run = data;
    kiln_cpu_gemm_pack_a(&run->gemm, run->turned_weights + task * run->gemm.m * run->gemm.k,
                         run->packed + task * run->sizes.packed, KILN_SLICE_WHOLE);
}

/* --- windows --- */

static void
block_task(const void *data, int64_t task, int thread)
{
    const Run *run = data;
    const KilnCpuDeform *d = &run->d;
    const int64_t first = task * BLOCK, n = min_of(BLOCK, d->positions - first);
    float *columns = run->work + thread * (run->sizes.columns + run->sizes.product);
    KilnCpuGemm gemm = run->gemm;
    gemm.n = n;
    run->loops->columns(d, first, n, columns);
    for (int64_t group = 0; group < d->groups; group++) {
        const KilnCpuGemmArgs args = {
            .a = run->packed + group * run->sizes.packed,
            .b = columns + group * BLOCK * gemm.k,
            .out = run->to + group * gemm.m * d->positions + first,
            .bias = run->bias ? run->bias + group * gemm.m : NULL,
            .scratch = columns + run->sizes.columns,
            .threads = 1,
        };
        kiln_cpu_gemm_run(&gemm, &args);
    }
}

static const KilnCpuDeformLoops *
loops(void)
{
    return KILN_CPU_OF_ISA(KILN_CPU_ISA_AUTO, &kiln_cpu_deform);
}

/* Kernel elements of one dim are before KILN_CPU_DEFORM_FAR. */
static bool
is_near(const KilnInstr *instr, uint32_t dim)
{
    const int64_t dilation =
        kiln_ints_at(kiln_instr_attrs(instr, deform_conv)->dilations, dim - 2, 1);
    const int64_t kernel = cpu_type(instr, 2)->dims[dim];
    return cpu_type(instr, 1)->dims[dim] < KILN_CPU_DEFORM_FAR &&
           kernel <= KILN_CPU_DEFORM_FAR / dilation;
}

/* Places are counted in 32 bits. */
bool
kiln_cpu_deform_conv_supports(const KilnInstr *instr)
{
    const KilnType *out = cpu_type(instr, 0), *in = cpu_type(instr, 1);
    return cpu_all_plain(instr, KILN_DTYPE_f32) && in->rank == 4 && is_near(instr, 2) &&
           is_near(instr, 3) && in->dims[2] * in->dims[3] <= INT32_MAX / 2 &&
           kiln_type_elements(in) > 0 && kiln_type_elements(out) > 0;
}

size_t
kiln_cpu_deform_conv_scratch(const KilnInstr *instr, uint32_t form, int threads)
{
    (void)form;
    const KilnCpuDeform d = picture_of(instr);
    const KilnCpuGemm gemm = product_of(&d, cpu_type(instr, 0)->dims[1]);
    const Sizes sizes = sizes_of(&d, &gemm);
    return (size_t)(sizes.data + sizes.weights + d.groups * sizes.packed +
                    threads * (sizes.columns + sizes.product)) *
           sizeof(float);
}

const char *
kiln_cpu_deform_conv(const KilnKernelArgs *args)
{
    const KilnInstr *instr = args->instr;
    const KilnType *in = cpu_type(instr, 1);
    Run run = { .d = picture_of(instr),
                .loops = loops(),
                .weights = args->data[2],
                .bias = cpu_type(instr, 4) ? args->data[4] : NULL,
                .turned = args->scratch,
                .out_channels = cpu_type(instr, 0)->dims[1] };
    KilnCpuDeform *d = &run.d;
    run.taps = d->kernel[0] * d->kernel[1];
    run.gemm = product_of(d, run.out_channels);
    run.sizes = sizes_of(d, &run.gemm);
    run.turned_weights = run.turned + run.sizes.data;
    run.packed = run.turned_weights + run.sizes.weights;
    run.work = run.packed + d->groups * run.sizes.packed;
    kiln_cpu_parallel(run.out_channels, args->threads, turn_weights_task, &run);
    kiln_cpu_parallel(d->groups, args->threads, pack_task, &run);
    for (int64_t i = 0; i < in->dims[0]; i++) {
        const int64_t places = d->offset_groups * run.taps * d->positions;
        run.from = (const float *)args->data[1] + i * d->channels * d->height * d->width;
        run.to = (float *)args->data[0] + i * run.out_channels * d->positions;
        d->data = run.turned;
        d->offsets = (const float *)args->data[3] + i * 2 * places;
        d->mask = cpu_type(instr, 5) ? (const float *)args->data[5] + i * places : NULL;
        kiln_cpu_parallel(ceil_div(d->channels, TURN), args->threads, turn_data_task, &run);
        kiln_cpu_parallel(ceil_div(d->positions, BLOCK), args->threads, block_task, &run);
    }
    return NULL;
}
