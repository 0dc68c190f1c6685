/* SPDX-License-Identifier: Apache-2.0 */
/* Liveness and the memory plan: bounds by hand on small functions; on random lives, no overlap,
 * never below the bound, and as low as a search of all placements; proofs hold. */
#include "ir/plan.h"
#include "ir/plan/place.h"
#include "ir/plan/place_priv.h"

#include "graph/base/alloc.h"
#include "graph/base/random.h"

#include <criterion/criterion.h>
#include <string.h>

/* --- lives of functions --- */

typedef struct {
    KilnModule *module;
    KilnIRFunction *ir;
    KilnType type; /* f32[32]: 128 bytes */
    KilnBuffer *x, *y;
} Fixture;

static Fixture
fixture(void)
{
    Fixture f = { .module = kiln_module_new() };
    f.ir = kiln_ir_function_new(f.module, "main");
    f.type = kiln_type_make(KILN_DTYPE_f32, 1, (int64_t[]){ 32 });
    f.x = kiln_ir_add_buffer(f.ir, KILN_BUFFER_INPUT, "x", &f.type);
    f.y = kiln_ir_add_buffer(f.ir, KILN_BUFFER_OUTPUT, "y", &f.type);
    return f;
}

static void
fixture_free(Fixture *f)
{
    kiln_ir_function_free(f->ir);
    kiln_module_free(f->module);
}

static void
relu(Fixture *f, KilnBuffer *out, KilnBuffer *in)
{
    cr_assert_not_null(
        kiln_instr_new(f->ir, KILN_INSTR_relu, (KilnBuffer *[]){ out, in }, 2, NULL, NULL, NULL));
}

static const char *
never(const KilnKernelArgs *args)
{
    (void)args;
    return "not meant to run";
}

static size_t
hundred_bytes(const KilnInstr *instr, uint32_t form, int threads)
{
    (void)form;
    (void)instr;
    return 100 * (size_t)threads;
}

static const KilnKernel scratch_kernels[] = {
    { .instr = KILN_INSTR_relu,
      .dtypes = 1u << KILN_DTYPE_f32,
      .name = "test:relu",
      .run = never,
      .scratch_bytes = hundred_bytes },
};
static const KilnTarget scratch_target = { .name = "test",
                                           .kernels = scratch_kernels,
                                           .n_kernels = 1 };

/* x → a → b → c → y: a and c may share. */
static void
build_chain(Fixture *f)
{
    KilnBuffer *a = kiln_ir_alloc(f->ir, "a", &f->type, NULL);
    KilnBuffer *b = kiln_ir_alloc(f->ir, "b", &f->type, NULL);
    KilnBuffer *c = kiln_ir_alloc(f->ir, "c", &f->type, NULL);
    kiln_ir_alloc(f->ir, "idle", &f->type, NULL);
    KilnBuffer *v = kiln_ir_view(f->ir, "v", b, 0, &f->type, NULL);
    relu(f, a, f->x);
    relu(f, b, a);
    relu(f, c, v);
    relu(f, f->y, c);
    for (guint i = 0; i < f->ir->buffers->len; i++) {
        KilnBuffer *buffer = g_ptr_array_index(f->ir->buffers, i);
        if (buffer->kind == KILN_BUFFER_ALLOC)
            kiln_ir_dealloc(buffer, NULL);
    }
}

Test(plan, bounds_of_a_chain)
{
    Fixture f = fixture();
    build_chain(&f);
    g_autoptr(KilnMemoryPlan) plan = kiln_memory_plan(f.ir, NULL, 1, NULL);
    cr_assert_eq(plan->n_steps, 4);
    cr_assert_eq(plan->n_lives, 3); /* what nothing touches does not live */
    cr_assert_eq(plan->sum, 3 * 128);
    cr_assert_eq(plan->lb_node, 2 * 128);
    cr_assert_eq(plan->lb_live, 2 * 128);
    cr_assert_eq(plan->arena, 2 * 128);
    cr_assert(plan->proven_optimal);
    cr_assert_eq(plan->lives[1].first, 1);
    cr_assert_eq(plan->lives[1].last, 2); /* through the view */
    cr_assert_eq(f.ir->arena_bytes, 256);
    cr_assert_eq(kiln_ir_find_buffer(f.ir, "a")->offset, kiln_ir_find_buffer(f.ir, "c")->offset);
    cr_assert_eq(kiln_ir_find_buffer(f.ir, "idle")->offset, 0);
    g_autoptr(GError) error = NULL;
    cr_assert(kiln_ir_verify(f.ir, &error), "%s", error ? error->message : "");
    fixture_free(&f);
}

Test(plan, scratch_lives_for_one_step)
{
    Fixture f = fixture();
    build_chain(&f);
    g_autoptr(KilnMemoryPlan) plan = kiln_memory_plan(f.ir, &scratch_target, 2, NULL);
    cr_assert_eq(plan->n_lives, 3 + 4);
    cr_assert_eq(plan->sum, 3 * 128 + 4 * 256); /* 200 bytes, aligned */
    cr_assert_eq(plan->lb_node, 2 * 128 + 256);
    cr_assert_eq(plan->arena, 2 * 128 + 256);
    cr_assert(plan->proven_optimal);
    fixture_free(&f);
}

Test(plan, in_place_chains_are_one_buffer)
{
    Fixture f = fixture();
    KilnBuffer *a = kiln_ir_alloc(f.ir, "a", &f.type, NULL);
    relu(&f, a, f.x);
    relu(&f, a, a);
    relu(&f, f.y, a);
    kiln_ir_dealloc(a, NULL);
    g_autoptr(KilnMemoryPlan) plan = kiln_memory_plan(f.ir, NULL, 1, NULL);
    cr_assert_eq(plan->lb_node, 128);
    cr_assert_eq(plan->arena, 128);
    fixture_free(&f);
}

Test(plan, nothing_to_place)
{
    Fixture f = fixture();
    relu(&f, f.y, f.x);
    g_autoptr(KilnMemoryPlan) plan = kiln_memory_plan(f.ir, NULL, 1, NULL);
    cr_assert_eq(plan->arena, 0);
    cr_assert(plan->proven_optimal);
    cr_assert_eq(f.ir->arena_bytes, 0);
    fixture_free(&f);
}

Test(plan, empty_tensors_need_no_space)
{
    Fixture f = fixture();
    KilnType none = kiln_type_make(KILN_DTYPE_f32, 2, (int64_t[]){ 0, 5 });
    KilnBuffer *a = kiln_ir_alloc(f.ir, "a", &none, NULL);
    KilnBuffer *b = kiln_ir_alloc(f.ir, "b", &none, NULL);
    relu(&f, b, a);
    relu(&f, f.y, f.x);
    kiln_ir_dealloc(a, NULL);
    kiln_ir_dealloc(b, NULL);
    g_autoptr(KilnMemoryPlan) plan = kiln_memory_plan(f.ir, NULL, 1, NULL);
    cr_assert_eq(plan->arena, 0);
    cr_assert_eq(a->offset, 0);
    cr_assert_eq(b->offset, 0);
    cr_assert(kiln_ir_verify(f.ir, NULL));
    fixture_free(&f);
}

Test(plan, sizes_beyond_memory_are_an_error)
{
    Fixture f = fixture();
    KilnType huge = kiln_type_make(KILN_DTYPE_u8, 1, (int64_t[]){ INT64_MAX - 4096 });
    KilnBuffer *a = kiln_ir_alloc(f.ir, "a", &huge, NULL);
    KilnBuffer *b = kiln_ir_alloc(f.ir, "b", &huge, NULL);
    relu(&f, b, a);
    g_autoptr(GError) error = NULL;
    cr_assert_null(kiln_memory_plan(f.ir, NULL, 1, &error));
    cr_assert(g_error_matches(error, KILN_ERROR, KILN_ERROR_MEMORY));
    fixture_free(&f);
}

/* --- the planner on bare lives --- */

static uint64_t
draw(uint64_t seed, uint64_t *counter, uint64_t below)
{
    return kiln_random_bits(seed, (*counter)++) % below;
}

static void
random_lives(KilnLife *lives, uint32_t n, uint64_t seed, uint64_t n_steps, uint64_t units)
{
    uint64_t counter = 0;
    for (uint32_t i = 0; i < n; i++) {
        int64_t a = (int64_t)draw(seed, &counter, n_steps);
        int64_t b = (int64_t)draw(seed, &counter, n_steps);
        lives[i] = (KilnLife){ .first = MIN(a, b),
                               .last = MAX(a, b),
                               .size = 64 * (int64_t)draw(seed, &counter, units) };
    }
}

static bool
overlap(const KilnLife *a, const KilnLife *b)
{
    return a->first <= b->last && b->first <= a->last && a->offset < b->offset + b->size &&
           b->offset < a->offset + a->size;
}

static int64_t
bound_of(const KilnLife *lives, uint32_t n, int64_t n_steps)
{
    int64_t most = 0;
    for (int64_t step = 0; step < n_steps; step++) {
        int64_t alive = 0;
        for (uint32_t i = 0; i < n; i++)
            alive += lives[i].first <= step && step <= lives[i].last ? lives[i].size : 0;
        most = MAX(most, alive);
    }
    return most;
}

static void
check_plan(const KilnLife *lives, uint32_t n, int64_t height)
{
    int64_t top = 0;
    for (uint32_t i = 0; i < n; i++) {
        cr_assert(lives[i].offset >= 0 && lives[i].offset % KILN_ALIGNMENT == 0);
        top = MAX(top, lives[i].size ? lives[i].offset + lives[i].size : 0);
        for (uint32_t k = 0; k < i; k++)
            cr_assert_not(overlap(&lives[i], &lives[k]), "%u and %u", i, k);
    }
    cr_assert_eq(top, height);
}

/* Against a walk over all steps of each life. */
Test(plan, pressure_is_the_most_in_each_life)
{
    enum {
        STEPS = 40
    };
    KilnLife lives[60];
    int64_t pressure[G_N_ELEMENTS(lives)];
    for (uint64_t seed = 0; seed < 2000; seed++) {
        uint32_t n = 1 + (uint32_t)(seed % G_N_ELEMENTS(lives));
        random_lives(lives, n, seed, 2 + seed % (STEPS - 2), 1 + seed % 50);
        int64_t alive[STEPS] = { 0 }, bound = 0;
        for (uint32_t i = 0; i < n; i++) {
            for (int64_t step = lives[i].first; step <= lives[i].last; step++)
                alive[step] += lives[i].size;
        }
        int64_t found = kiln_place_pressure(lives, n, pressure);
        for (uint32_t i = 0; i < n; i++) {
            int64_t most = 0;
            for (int64_t step = lives[i].first; step <= lives[i].last; step++)
                most = MAX(most, alive[step]);
            cr_assert_eq(pressure[i], most, "seed %d, life %u", (int)seed, i);
            bound = MAX(bound, most);
        }
        cr_assert_eq(found, bound);
    }
}

Test(plan, in_order_of_execution)
{
    KilnLife lives[60];
    for (uint64_t seed = 0; seed < 2000; seed++) {
        uint32_t n = 1 + (uint32_t)(seed % G_N_ELEMENTS(lives));
        random_lives(lives, n, seed, 2 + seed % 30, 1 + seed % 50);
        check_plan(lives, n, kiln_place_stream(lives, n));
        for (uint32_t i = 0; i < n; i++)
            lives[i].size = 64;
        int64_t height = kiln_place_stream(lives, n);
        check_plan(lives, n, height);
        cr_assert_eq(height, bound_of(lives, n, 32), "seed %d", (int)seed);
    }
}

Test(plan, random_lives_do_not_overlap)
{
    KilnLife lives[60];
    for (uint64_t seed = 0; seed < 400; seed++) {
        uint32_t n = 1 + (uint32_t)(seed % G_N_ELEMENTS(lives));
        random_lives(lives, n, seed, 2 + seed % 30, 1 + seed % 50);
        int64_t bound, height = kiln_place(lives, n, KILN_PLACE_WORK / 10, &bound);
        check_plan(lives, n, height);
        cr_assert_geq(bound, bound_of(lives, n, 32));
        cr_assert_geq(height, bound);
    }
}

/* The least height below @best, by trying every buffer at every offset where another one ends. */
static void
search(KilnLife *lives, uint32_t n, uint32_t placed, int64_t height, int64_t *best)
{
    if (height >= *best)
        return;
    if (placed == (1u << n) - 1) {
        *best = height;
        return;
    }
    for (uint32_t i = 0; i < n; i++) {
        if (placed >> i & 1)
            continue;
        for (int32_t k = -1; k < (int32_t)n; k++) {
            if (k >= 0 && !(placed >> k & 1))
                continue;
            lives[i].offset = k < 0 ? 0 : lives[k].offset + lives[k].size;
            bool free = true;
            for (uint32_t j = 0; j < n && free; j++)
                free = !(placed >> j & 1) || !overlap(&lives[i], &lives[j]);
            if (free)
                search(lives, n, placed | 1u << i, MAX(height, lives[i].offset + lives[i].size),
                       best);
        }
    }
}

Test(plan, few_lives_are_placed_as_low_as_can_be)
{
    KilnLife lives[7], other[7];
    for (uint64_t seed = 1000; seed < 1300; seed++) {
        uint32_t n = 2 + (uint32_t)(seed % 6);
        random_lives(lives, n, seed, 8, 9);
        memcpy(other, lives, sizeof lives);
        int64_t bound, height = kiln_place(lives, n, KILN_PLACE_WORK, &bound), best = height;
        check_plan(lives, n, height);
        cr_assert_eq(bound, height, "seed %lu: not proved", (unsigned long)seed);
        search(other, n, 0, 0, &best);
        cr_assert_eq(height, best, "seed %lu: %ld, could be %ld", (unsigned long)seed, (long)height,
                     (long)best);
    }
}

/* The least height by brute force, from a plan that stacks all. */
static int64_t
least_height(const KilnLife *lives, uint32_t n)
{
    KilnLife copy[7];
    int64_t best = 1;
    memcpy(copy, lives, n * sizeof *copy);
    for (uint32_t i = 0; i < n; i++)
        best += lives[i].size;
    search(copy, n, 0, 0, &best);
    return best;
}

/* At every capacity: placed at the least height and above, impossible below. */
Test(plan, exact_search_is_right_at_every_capacity)
{
    KilnLife lives[7];
    for (uint64_t seed = 2000; seed < 2150; seed++) {
        uint32_t n = 1 + (uint32_t)(seed % 7);
        random_lives(lives, n, seed, 8, 6);
        int64_t best = least_height(lives, n);
        for (int64_t capacity = MAX(best - 192, (int64_t)0); capacity <= best + 128;
             capacity += 32) {
            int64_t work = KILN_PLACE_WORK;
            KilnPlacement found = kiln_place_within(lives, n, capacity, &work);
            cr_assert_eq(found, capacity < best ? KILN_PLACEMENT_IMPOSSIBLE : KILN_PLACED,
                         "seed %lu, capacity %ld, least %ld", (unsigned long)seed, (long)capacity,
                         (long)best);
            /* What was found by hashes is no proof, but it must not be wrong. */
            work = KILN_PLACE_WORK / 10;
            KilnPlacement filled = kiln_place_by_filling(lives, n, capacity, &work);
            cr_assert(filled == found || (filled == KILN_PLACEMENT_UNDECIDED && capacity < best),
                      "seed %lu, capacity %ld, least %ld", (unsigned long)seed, (long)capacity,
                      (long)best);
            if (found == KILN_PLACEMENT_IMPOSSIBLE)
                continue;
            int64_t top = 0;
            for (uint32_t i = 0; i < n; i++)
                top = MAX(top, lives[i].offset + lives[i].size);
            check_plan(lives, n, top);
            cr_assert_leq(top, capacity);
        }
    }
}

/* Adds lives that begin at @step and fill @units. */
static uint32_t
fill(KilnLife *lives, uint32_t n, int64_t step, uint64_t units, uint64_t seed, uint64_t *counter)
{
    while (units) {
        uint64_t size = 1 + draw(seed, counter, units);
        lives[n++] = (KilnLife){ .first = step, .last = step, .size = 64 * (int64_t)size };
        units -= size;
    }
    return n;
}

/* At each step as much lives as at all others: what ends is replaced. Returns how many there are,
 * which is at most @most where it stopped there. */
static uint32_t
full_lives(KilnLife *lives, uint32_t most, uint64_t units, uint64_t seed)
{
    uint64_t counter = 0;
    uint32_t n = fill(lives, 0, 0, units, seed, &counter);
    for (int64_t step = 1; step < 12 && n < most; step++) {
        uint64_t freed = 0;
        for (uint32_t i = 0; i < n; i++) {
            if (lives[i].last < step - 1)
                continue;
            if (draw(seed, &counter, 2))
                lives[i].last = step;
            else
                freed += (uint64_t)lives[i].size / 64;
        }
        n = fill(lives, n, step, freed, seed, &counter);
    }
    return n;
}

/* Some optima lie above the most that lives at once, from nine buffers on. */
Test(plan, optimum_above_the_bound_is_proved)
{
    enum {
        MOST = 9,
        UNITS = 5
    };
    KilnLife lives[MOST + UNITS];
    unsigned above = 0;
    for (uint64_t seed = 0; seed < 8000; seed++) {
        uint32_t n = full_lives(lives, MOST, UNITS, seed);
        if (n > MOST)
            continue;
        int64_t bound, height = kiln_place(lives, n, KILN_PLACE_WORK, &bound), best = height;
        check_plan(lives, n, height);
        cr_assert_eq(height, bound);
        if (height == 64 * UNITS)
            continue;
        above++;
        search(lives, n, 0, 0, &best);
        cr_assert_eq(height, best);
    }
    cr_assert_gt(above, 0u);
}

/* Whether the lives that @excess names, without number @without of them, fit into @limit. */
static bool
core_fits(const KilnMemoryPlan *plan, const KilnMemoryExcess *excess, uint32_t without,
          int64_t limit)
{
    KilnLife lives[64];
    uint32_t n = 0;
    for (uint32_t i = 0; i < excess->n_lives; i++) {
        if (i != without)
            lives[n++] = plan->lives[excess->lives[i]];
    }
    int64_t work = KILN_PLACE_WORK;
    return kiln_place_within(lives, n, limit, &work) == KILN_PLACED;
}

/* The buffers that are named do not fit, and any one less does: where the bound exceeds the limit,
 * and where only the search knows. */
Test(plan, what_does_not_fit_is_minimal)
{
    enum {
        MOST = 9,
        UNITS = 5
    };
    Fixture f = fixture();
    KilnLife lives[MOST + UNITS];
    unsigned n_bound = 0, n_searched = 0;
    for (uint64_t seed = 0; seed < 8000; seed++) {
        uint32_t n = full_lives(lives, MOST, UNITS, seed);
        if (n > MOST)
            continue;
        KilnMemoryPlan plan = {
            .lives = lives, .n_lives = n, .n_steps = 12, .lb_live = 64 * UNITS
        };
        plan.arena = kiln_place(lives, n, KILN_PLACE_WORK, NULL);
        if (plan.arena == plan.lb_live && n_bound > 50)
            continue;
        for (int64_t limit = 64; limit < plan.arena; limit += 64) {
            g_autoptr(KilnMemoryExcess) excess = kiln_memory_excess(f.ir, &plan, limit);
            cr_assert(excess && excess->proven && excess->n_lives > 0);
            cr_expect_not(core_fits(&plan, excess, UINT32_MAX, limit));
            for (uint32_t i = 0; i < excess->n_lives; i++)
                cr_expect(core_fits(&plan, excess, i, limit), "seed %lu: number %u is not needed",
                          (unsigned long)seed, i);
            *(limit < plan.lb_live ? &n_bound : &n_searched) += 1;
        }
        cr_expect_null(kiln_memory_excess(f.ir, &plan, plan.arena));
    }
    cr_expect_gt(n_bound, 50);
    cr_expect_gt(n_searched, 0);
    fixture_free(&f);
}

/* Inputs live from the start, outputs to the end; their offsets are the plan's alone. */
Test(plan, inputs_and_outputs)
{
    Fixture f = fixture();
    build_chain(&f);
    g_autoptr(KilnMemoryPlan) plan = kiln_memory_plan_with(f.ir, NULL, 1, KILN_PLAN_IO, NULL);
    cr_assert_eq(plan->n_lives, 5);
    const KilnLife *x = &plan->lives[0], *y = &plan->lives[4];
    cr_assert(x->buffer == f.x && x->first == 0 && x->last == 0);
    cr_assert(y->buffer == f.y && y->first == 3 && y->last == 3);
    cr_assert_eq(plan->lb_node, 2 * 128);
    cr_assert_eq(plan->arena, 2 * 128);
    cr_assert_eq(f.x->offset, -1);
    KilnMemoryPeak peak = kiln_memory_peak(f.ir, plan);
    cr_assert(peak.step == 0 && peak.bytes == 256 && peak.instr->kind == KILN_INSTR_relu);
    cr_assert(kiln_ir_verify(f.ir, NULL));
    fixture_free(&f);
}

Test(plan, without_work_nothing_is_claimed)
{
    KilnLife lives[40];
    for (uint64_t seed = 5000; seed < 5050; seed++) {
        random_lives(lives, 40, seed, 20, 30);
        int64_t bound, height = kiln_place(lives, 40, 0, &bound);
        check_plan(lives, 40, height);
        cr_assert_eq(bound, bound_of(lives, 40, 20));
        int64_t work = 0;
        cr_assert_eq(kiln_place_within(lives, 40, height, &work), KILN_PLACEMENT_UNDECIDED);
        check_plan(lives, 40, height); /* the offsets are as they were */
    }
}

/* Sizes near the limit: nothing overflows. */
Test(plan, huge_sizes)
{
    KilnLife lives[] = { { .first = 0, .last = 1, .size = INT64_C(1) << 61 },
                         { .first = 1, .last = 2, .size = (INT64_C(1) << 61) + 64 },
                         { .first = 2, .last = 3, .size = INT64_C(1) << 61 },
                         { .first = 3, .last = 3, .size = (INT64_C(1) << 61) - 128 } };
    int64_t bound, height = kiln_place(lives, 4, KILN_PLACE_WORK, &bound);
    check_plan(lives, 4, height);
    cr_assert_eq(height, (INT64_C(1) << 62) + 64);
    cr_assert_eq(bound, height);
    int64_t work = KILN_PLACE_WORK;
    cr_assert_eq(kiln_place_within(lives, 4, height - 1, &work), KILN_PLACEMENT_IMPOSSIBLE);
}

Test(plan, plans_repeat)
{
    KilnLife a[50], b[50];
    random_lives(a, 50, 7, 40, 30);
    memcpy(b, a, sizeof a);
    kiln_place(a, 50, KILN_PLACE_WORK, NULL);
    kiln_place(b, 50, KILN_PLACE_WORK, NULL);
    for (int i = 0; i < 50; i++)
        cr_assert_eq(a[i].offset, b[i].offset);
}

/* A long chain with skips: the index keeps this far from quadratic. */
Test(plan, many_buffers)
{
    uint32_t n = 100 * 1000;
    g_autofree KilnLife *lives = g_new0(KilnLife, n);
    uint64_t counter = 0;
    int64_t bound = 0;
    for (uint32_t i = 0; i < n; i++)
        lives[i] = (KilnLife){ .first = i,
                               .last = i + 1 + (int64_t)draw(3, &counter, 4),
                               .size = 64 * (1 + (int64_t)draw(3, &counter, 100)) };
    for (uint32_t i = 0; i < n; i++) {
        int64_t alive = 0;
        for (uint32_t k = i > 5 ? i - 5 : 0; k <= i; k++)
            alive += lives[k].last >= lives[i].first ? lives[k].size : 0;
        bound = MAX(bound, alive);
    }
    gint64 begin = g_get_monotonic_time();
    int64_t height = kiln_place(lives, n, KILN_PLACE_WORK, NULL);
    double seconds = (double)(g_get_monotonic_time() - begin) / 1e6;
    cr_assert_geq(height, bound);
    cr_assert_leq(height, bound + bound / 4);
    cr_assert_lt(seconds, 20);
}

/* All of many live at once, which is quadratic where each is compared with all others. */
Test(plan, many_buffers_at_once)
{
    uint32_t n = 100 * 1000;
    g_autofree KilnLife *lives = g_new0(KilnLife, n);
    uint64_t counter = 0;
    int64_t sum = 0;
    for (uint32_t i = 0; i < n; i++) {
        lives[i] = (KilnLife){ .first = i,
                               .last = 2 * (int64_t)n - i,
                               .size = 64 * (1 + (int64_t)draw(5, &counter, 100)) };
        sum += lives[i].size;
    }
    int64_t bound;
    gint64 begin = g_get_monotonic_time();
    cr_assert_eq(kiln_place(lives, n, KILN_PLACE_WORK, &bound), sum);
    cr_assert_eq(bound, sum);
    cr_assert_lt((double)(g_get_monotonic_time() - begin) / 1e6, 5);
}
