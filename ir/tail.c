/* SPDX-License-Identifier: Apache-2.0 */
/* Tails of convolutions and products: which activations there are, and how attributes name them. */
#include "ir/tail.h"

#include <string.h>

static const struct {
    const char *name;
    KilnInstrKind kind;
    const char *approximate; /* gelu's; else NULL */
} activations[] = {
    { "clip", KILN_INSTR_clip, NULL },
    { "elu", KILN_INSTR_elu, NULL },
    { "gelu", KILN_INSTR_gelu, "none" },
    { "gelu_tanh", KILN_INSTR_gelu, "tanh" },
    { "hard_sigmoid", KILN_INSTR_hard_sigmoid, NULL },
    { "hard_swish", KILN_INSTR_hard_swish, NULL },
    { "leaky_relu", KILN_INSTR_leaky_relu, NULL },
    { "mish", KILN_INSTR_mish, NULL },
    { "relu", KILN_INSTR_relu, NULL },
    { "sigmoid", KILN_INSTR_sigmoid, NULL },
    { "softplus", KILN_INSTR_softplus, NULL },
    { "swish", KILN_INSTR_swish, NULL },
    { "tanh", KILN_INSTR_tanh, NULL },
};

static const char none[] = "none";

uint32_t
kiln_tail_operand(KilnInstrKind kind)
{
    switch (kind) {
    case KILN_INSTR_conv:
    case KILN_INSTR_conv_transpose:
    case KILN_INSTR_gemm:
        return 4;
    case KILN_INSTR_matmul:
        return 3;
    case KILN_INSTR_matmul_nbits:
        return 6;
    default:
        return 0;
    }
}

uint32_t
kiln_residual_operand(KilnInstrKind kind)
{
    switch (kind) {
    case KILN_INSTR_layer_normalization:
        return 6;
    case KILN_INSTR_rms_normalization:
        return 3;
    default:
        return kiln_tail_operand(kind);
    }
}

KilnTailFields
kiln_tail_fields(KilnInstrKind kind, void *attrs)
{
#define FIELDS(id)                                                                                 \
    case KILN_INSTR_##id:                                                                          \
        return (KilnTailFields){ &((KilnInstrAttrs_##id *)attrs)->activation,                      \
                                 &((KilnInstrAttrs_##id *)attrs)->activation_params };
    switch (kind) {
        FIELDS(conv)
        FIELDS(conv_transpose)
        FIELDS(gemm)
        FIELDS(matmul)
        FIELDS(matmul_nbits)
    default:
        return (KilnTailFields){ NULL, NULL };
    }
#undef FIELDS
}

/* The number among the attributes of @kind that is parameter @i; NULL behind the last. */
static const KilnAttrInfo *
param_of(KilnInstrKind kind, uint32_t i)
{
    const KilnInstrInfo *info = kiln_instr_info(kind);
    for (uint32_t k = 0; k < info->n_attrs; k++) {
        if (info->attrs[k].kind == KILN_ATTR_FLOAT && i-- == 0)
            return &info->attrs[k];
    }
    return NULL;
}

static uint32_t
count_params(KilnInstrKind kind)
{
    uint32_t n = 0;
    if (kind == KILN_INSTR_clip)
        return 2;
    while (param_of(kind, n))
        n++;
    return n;
}

/* The row of that name; past the last where there is none. */
static size_t
find(const char *name)
{
    size_t i = 0;
    while (i < G_N_ELEMENTS(activations) && strcmp(activations[i].name, name) != 0)
        i++;
    return i;
}

KilnTail
kiln_instr_tail(const KilnInstr *instr)
{
    KilnTail tail = { .activation = KILN_N_INSTRS };
    uint32_t operand = kiln_tail_operand(instr->kind);
    if (!operand)
        return tail;
    tail.residual = kiln_instr_operand(instr, operand);
    KilnTailFields fields = kiln_tail_fields(instr->kind, instr->attrs);
    if (strcmp(*fields.activation, none) == 0)
        return tail;
    size_t row = find(*fields.activation);
    tail.activation = activations[row].kind;
    for (uint32_t i = 0; i < fields.params->n && i < KILN_TAIL_PARAMS_MAX; i++) {
        const KilnAttrInfo *param = param_of(tail.activation, i);
        tail.params[i] = fields.params->v[i];
        if (param)
            *(float *)((char *)&tail.attrs + param->offset) = tail.params[i];
    }
    if (activations[row].approximate)
        tail.attrs.gelu.approximate = activations[row].approximate;
    return tail;
}

const char *
kiln_tail_activation(const KilnInstr *instr, float params[KILN_TAIL_PARAMS_MAX], uint32_t *n_params)
{
    *n_params = 0;
    for (size_t i = 0; i < G_N_ELEMENTS(activations); i++) {
        const char *approximate = activations[i].approximate;
        if (activations[i].kind != instr->kind ||
            (approximate && strcmp(approximate, kiln_instr_attrs(instr, gelu)->approximate) != 0))
            continue;
        const KilnAttrInfo *param;
        for (; (param = param_of(instr->kind, *n_params)); (*n_params)++)
            params[*n_params] = *(const float *)((const char *)instr->attrs + param->offset);
        return activations[i].name;
    }
    return NULL;
}

/* --- verification --- */

gboolean
kiln_tail_check(const KilnTailFields *fields, GError **error)
{
    if (strcmp(*fields->activation, none) == 0) {
        if (fields->params->n == 0)
            return TRUE;
        return kiln_throw(error, KILN_ERROR_INVALID,
                          "activation_params: expected none without an activation, found %u",
                          fields->params->n);
    }
    size_t row = find(*fields->activation);
    if (row == G_N_ELEMENTS(activations)) {
        g_autoptr(GString) names = g_string_new(none);
        for (size_t i = 0; i < G_N_ELEMENTS(activations); i++)
            g_string_append_printf(names, ", %s", activations[i].name);
        return kiln_throw(error, KILN_ERROR_INVALID, "activation: expected one of %s, found %s",
                          names->str, *fields->activation);
    }
    uint32_t n = count_params(activations[row].kind);
    if (fields->params->n == n)
        return TRUE;
    return kiln_throw(error, KILN_ERROR_INVALID,
                      "activation_params: expected %u numbers for %s, found %u", n,
                      *fields->activation, fields->params->n);
}
