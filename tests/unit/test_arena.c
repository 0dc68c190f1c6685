/* SPDX-License-Identifier: Apache-2.0 */
/* The bump allocator. */
#include "graph/arena.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdint.h>
#include <string.h>

enum {
    LINE = 64,
    PIECES = 40000, /* more than fit into one big page */
};

/* Every piece is zeroed and apart from the others, in chunks of any size. */
static void
expect_pieces(KilnArena *arena, size_t alignment)
{
    static unsigned char *pieces[PIECES];
    for (size_t i = 0; i < PIECES; i++) {
        size_t size = 1 + i * 37 % 150;
        pieces[i] = kiln_arena_alloc(arena, size);
        cr_assert(eq(sz, (uintptr_t)pieces[i] % alignment, 0));
        size_t n_zeros = 0;
        for (size_t k = 0; k < size; k++)
            n_zeros += pieces[i][k] == 0;
        cr_assert(eq(sz, n_zeros, size));
        memset(pieces[i], (int)(i % 255) + 1, size);
    }
    for (size_t i = 0; i < PIECES; i++)
        cr_assert(eq(int, pieces[i][i * 37 % 150], (int)(i % 255) + 1));
    size_t used = kiln_arena_used(arena);
    unsigned char *big = kiln_arena_alloc(arena, 5 << 20);
    cr_assert(eq(sz, (uintptr_t)big % alignment, 0));
    memset(big, 1, 5 << 20);
    cr_assert(ge(sz, kiln_arena_used(arena) - used, 5 << 20));
}

Test(arena, pieces_are_zeroed_and_apart)
{
    g_autoptr(KilnArena) arena = kiln_arena_new();
    expect_pieces(arena, 16);
}

Test(arena, pieces_begin_with_a_line_where_asked_for)
{
    g_autoptr(KilnArena) arena = kiln_arena_new_by_lines();
    expect_pieces(arena, LINE);
}

/* Big chunks go from one arena to the next and are as good as new there: pieces are zeroed that lie
 * where others were written. */
Test(arena, pieces_are_zeroed_in_chunks_of_another)
{
    KilnArena *arena = kiln_arena_new_by_lines();
    for (int life = 0; life < 3; life++) {
        expect_pieces(arena, LINE);
        KilnArena *next = kiln_arena_new_by_lines();
        kiln_arena_take_spare(next, arena);
        cr_assert(eq(sz, kiln_arena_used(next), 0));
        kiln_arena_replace(next, arena);
        arena = next;
    }
    kiln_arena_trim(arena);
    expect_pieces(arena, LINE);
    kiln_arena_free(arena);
}
