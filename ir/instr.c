/* SPDX-License-Identifier: Apache-2.0 */
/* The instruction table, generated from instrs.def. */
#include "ir/instr.h"

#include "graph/base/names.h"

#include <string.h>

/* Short spellings of the table. */
#define PAR KILN_INSTR_DATA_PARALLEL
#define BOOK KILN_INSTR_BOOKKEEPING
#define MOVE KILN_INSTR_MOVEMENT
#define RED KILN_INSTR_REDUCTION
#define ANCHOR KILN_INSTR_ANCHOR
#define TRANS KILN_INSTR_TRANSCENDENTAL
#define AT(i) (1u << (i))

#define ATTR(instr, kind, field, d)                                                                \
    { #field, KILN_ATTR_##kind, offsetof(KilnInstrAttrs_##instr, field), KILN_OTHERWISE_##kind(d) },
#define INSTR(id, signature, aliases, flags, list)                                                 \
    static const KilnAttrInfo attrs_##id[] = { list{ NULL, KILN_ATTR_INT, 0, { .i = 0 } } };
#include "ir/instrs.def"

static const KilnInstrInfo instrs[KILN_N_INSTRS] = {
#define ATTR(...)
#define INSTR(id, operands, alias_set, flag_set, list)                                             \
    [KILN_INSTR_##id] = { .name = #id,                                                             \
                          .signature = operands,                                                   \
                          .aliases = alias_set,                                                    \
                          .flags = flag_set,                                                       \
                          .attrs = attrs_##id,                                                     \
                          .n_attrs = G_N_ELEMENTS(attrs_##id) - 1,                                 \
                          .attrs_size = sizeof(KilnInstrAttrs_##id) },
#include "ir/instrs.def"
};

const KilnInstrInfo *
kiln_instr_info(KilnInstrKind kind)
{
    return &instrs[kind];
}

bool
kiln_instr_from_name(const char *name, KilnInstrKind *out)
{
    for (int i = 0; i < KILN_N_INSTRS; i++) {
        if (kiln_name_equal(instrs[i].name, name)) {
            *out = (KilnInstrKind)i;
            return true;
        }
    }
    return false;
}

void *
kiln_instr_attrs_new(KilnInstrKind kind, KilnArena *arena)
{
    const KilnInstrInfo *info = &instrs[kind];
    if (!info->n_attrs)
        return NULL;
    void *attrs = kiln_arena_alloc(arena, info->attrs_size);
    kiln_attrs_init(info->attrs, info->n_attrs, attrs);
    return attrs;
}

/* Walks the signature: each letter is an operand, '*' repeats the letter before it for all that
 * follow. */
static char
signature_letter(const char *signature, uint32_t i, bool *optional)
{
    char letter = 0;
    for (const char *at = signature; *at; at++) {
        if (*at == '*')
            break;
        if (*at == '?')
            continue;
        letter = *at;
        *optional = at[1] == '?' || at[1] == '*';
        if (i-- == 0)
            return letter;
    }
    size_t length = strlen(signature);
    *optional = true;
    return length > 1 && signature[length - 1] == '*' ? letter : 0;
}

bool
kiln_instr_access(KilnInstrKind kind, uint32_t i, KilnAccess *out_access, bool *out_optional)
{
    char letter = signature_letter(instrs[kind].signature, i, out_optional);
    *out_access = letter == 'o'   ? KILN_ACCESS_OUT
                  : letter == 'b' ? KILN_ACCESS_INOUT
                                  : KILN_ACCESS_IN;
    return letter != 0;
}

bool
kiln_instr_states_access(KilnInstrKind kind)
{
    return strcmp(instrs[kind].signature, "*") == 0;
}

bool
kiln_instr_is_flow(KilnInstrKind kind)
{
    return kind == KILN_INSTR_branch || kind == KILN_INSTR_loop;
}
