/* SPDX-License-Identifier: Apache-2.0 */
/* Shape functions against tests/cases/infer.cases, one line a case (the format is described
 * there). A line that fails is named with what was expected and found. */
#include "graph/base/number.h"
#include "graph/infer/infer.h"
#include "graph/module.h"
#include "graph/node.h"

#include "tests/test_operators.h"
#include "tests/unit/op_named.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

/* One case while its words are read. */
typedef struct {
    KilnModule *module;
    KilnFunction *function;
    KilnOp op;
    void *attrs;
    GPtrArray *operands;
    uint32_t n_results;
    KilnType stated; /* of the one result */
    bool states;
    uint64_t blur; /* not 0: forget some of what is said of operands, at random from this seed */
    bool named;    /* dims of arguments are names instead of numbers */
    int binding;   /* dims of arguments are other numbers, by this rule; 0: as written */
    bool is_open;  /* an argument is written without a number for each dim */
    char *problem; /* why the line cannot be read */
} Case;

static void
unreadable(Case *c, const char *what, const char *text)
{
    if (!c->problem)
        c->problem = g_strdup_printf("unreadable %s '%s'", what, text);
}

/* --- forgetting --- */

static unsigned
choose(Case *c, unsigned n)
{
    c->blur = c->blur * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(c->blur >> 33) % n;
}

static void
blur_type(Case *c, KilnType *type)
{
    unsigned how = c->blur && !type->contents ? choose(c, 4) : 0;
    for (int d = 0; how && d < type->rank; d++) {
        if (how == 2 || (how == 1 && choose(c, 2))) {
            type->dims[d] = KILN_DIM_UNKNOWN;
            type->open[d] = NULL;
        }
    }
    if (how == 3)
        type->rank = KILN_RANK_UNKNOWN;
}

/* --- names in the place of numbers --- */

enum {
    BINDINGS = 8
};

/* The number that stands for @dim under rule @binding. */
static int64_t
bound_dim(int binding, int64_t dim)
{
    const int64_t by_rule[BINDINGS] = { dim,     dim + 1,  2 * dim, 3 * dim,
                                        dim + 7, 64 * dim, 1,       dim * dim + 1 };
    return by_rule[binding];
}

static bool
look_up(void *data, const char *name, int64_t *out)
{
    *out = bound_dim(*(const int *)data, g_ascii_strtoll(name + 1, NULL, 10));
    return true;
}

enum {
    SMALL = 1 << 16 /* dims of cases about overflow stay numbers */
};

static void
name_dims(Case *c, KilnType *type)
{
    c->is_open |= !kiln_type_is_static(type);
    for (int d = 0; d < type->rank; d++) {
        int64_t dim = type->dims[d];
        bool fixed = type->layout || (type->quant && type->quant->axis == d);
        if (fixed || dim < 1 || dim > SMALL)
            continue;
        g_autofree char *name = g_strdup_printf("d%" G_GINT64_FORMAT, dim);
        type->dims[d] = bound_dim(c->binding, dim);
        if (c->named)
            kiln_type_set_dim(type, d, kiln_dim_name(c->module->dims, name));
    }
}

/* --- types and constants --- */

static bool
read_dtype(const char **at, KilnDType *out)
{
    size_t n = strcspn(*at, "[{=:q(), \t");
    g_autofree char *name = g_strndup(*at, n);
    *at += n;
    return kiln_dtype_from_name(name, out);
}

static int64_t
read_integer(const char *word)
{
    return g_str_equal(word, "max")   ? INT64_MAX
           : g_str_equal(word, "min") ? INT64_MIN
                                      : g_ascii_strtoll(word, NULL, 10);
}

/* `[2,N,?]` or `[*]`. */
static bool
read_shape(Case *c, const char **at, KilnType *type)
{
    type->rank = 0;
    for ((*at)++; **at != ']'; *at += **at == ',') {
        size_t n = strcspn(*at, ",]");
        if (!(*at)[n] || type->rank == KILN_MAX_RANK)
            return false;
        g_autofree char *word = g_strndup(*at, n);
        *at += n;
        if (g_str_equal(word, "*")) {
            type->rank = KILN_RANK_UNKNOWN;
            break;
        }
        bool number = g_ascii_isdigit(*word) || g_str_equal(word, "max");
        type->dims[type->rank] = number ? read_integer(word) : (int64_t)KILN_DIM_UNKNOWN;
        if (!number && !g_str_equal(word, "?"))
            type->open[type->rank] = kiln_dim_name(c->module->dims, word);
        type->rank++;
    }
    (*at)++;
    return true;
}

static bool
accept(const char **at, const char *text)
{
    bool found = g_str_has_prefix(*at, text);
    *at += found ? strlen(text) : 0;
    return found;
}

/* `sequence(f32[2,?])`, `sequence(f32[-])` of no elements, `optional(…)`, `map(i64,f32)`. */
static bool
read_items(Case *c, const char **at, KilnType *type)
{
    KilnArena *arena = c->module->arena;
    KilnType inner = { .dtype = KILN_DTYPE_f32 };
    if (accept(at, "map(")) {
        KilnDType key;
        bool good = read_dtype(at, &key) && accept(at, ",") && read_dtype(at, &inner.dtype);
        *type = kiln_type_of_map(arena, key, inner.dtype);
        return good && accept(at, ")");
    }
    KilnDType dtype = accept(at, "sequence(") ? KILN_DTYPE_sequence : KILN_DTYPE_optional;
    if (dtype == KILN_DTYPE_optional && !accept(at, "optional("))
        return false;
    if (!read_items(c, at, &inner)) {
        if (!read_dtype(at, &inner.dtype))
            return false;
        if (accept(at, "[-]"))
            inner.rank = KILN_RANK_NONE;
        else if (!read_shape(c, at, &inner))
            return false;
    }
    *type = kiln_type_of_items(arena, dtype, &inner);
    return accept(at, ")");
}

/* `q`: scale 0.5 and zero point 3; `q1`: along axis 1. */
static const KilnQuant *
read_quant(Case *c, const char **at, const KilnType *type)
{
    KilnQuant *quant = kiln_arena_new0(c->module->arena, KilnQuant, 1);
    (*at)++;
    quant->axis = g_ascii_isdigit(**at) ? *(*at)++ - '0' : -1;
    quant->n = quant->axis < 0 ? 1 : (uint32_t)type->dims[quant->axis];
    float *scales = kiln_arena_new0(c->module->arena, float, quant->n);
    int32_t *zero_points = kiln_arena_new0(c->module->arena, int32_t, quant->n);
    for (uint32_t i = 0; i < quant->n; i++) {
        scales[i] = 0.5f;
        zero_points[i] = 3;
    }
    quant->scales = scales;
    quant->zero_points = zero_points;
    return quant;
}

/* `{1,2}` after a type: the constant's elements. */
static KilnTensor *
read_tensor(const char *text, KilnType *type, bool shaped)
{
    g_autofree char *inside = g_strndup(text + 1, strcspn(text + 1, "}"));
    g_auto(GStrv) words = g_strsplit(inside, ",", -1);
    uint32_t n = *inside ? g_strv_length(words) : 0;
    if (!shaped)
        *type = kiln_type_make(type->dtype, 1, (int64_t[]){ n });
    g_autofree uint8_t *bytes = g_malloc0(8 * (n + 1));
    for (uint32_t i = 0; i < n; i++) {
        int64_t integer = read_integer(words[i]);
        size_t size = kiln_dtype_size(type->dtype);
        if (kiln_dtype_is_float(type->dtype))
            kiln_element_store_f64(type->dtype, bytes, i, g_ascii_strtod(words[i], NULL));
        else
            memcpy(bytes + i * size, &integer, size);
    }
    return kiln_type_elements(type) == n ? kiln_tensor_new_copy(type, bytes, NULL) : NULL;
}

static void
add_argument(Case *c, KilnType *type)
{
    blur_type(c, type);
    name_dims(c, type);
    g_autofree char *name = g_strdup_printf("a%u", c->operands->len);
    KilnArgument *argument = kiln_function_add_argument(c->function, name, type, NULL);
    g_ptr_array_add(c->operands, &argument->value);
}

static void
add_constant(Case *c, const char *text, KilnType *type, bool shaped)
{
    KilnTensor *tensor = read_tensor(text, type, shaped);
    if (!tensor) {
        unreadable(c, "constant", text);
    } else if (c->blur && choose(c, 2)) {
        kiln_tensor_free(tensor);
        add_argument(c, type);
    } else {
        g_ptr_array_add(c->operands, kiln_build_constant(c->function, NULL, "c", tensor));
    }
}

static void
add_operand(Case *c, const char *word)
{
    KilnType type = { .dtype = KILN_DTYPE_f32 };
    const char *at = word;
    if (g_str_equal(word, "_")) {
        g_ptr_array_add(c->operands, NULL);
        return;
    }
    bool shaped = false;
    if (read_items(c, &at, &type)) {
        add_argument(c, &type);
        return;
    }
    if (!read_dtype(&at, &type.dtype) || (*at == '[' && !read_shape(c, &at, &type))) {
        unreadable(c, "operand", word);
        return;
    }
    shaped = at[-1] == ']';
    if (*at == '{') {
        add_constant(c, at, &type, shaped);
        return;
    }
    if (*at == '=') {
        g_autofree char *braced = g_strdup_printf("{%s}", at + 1);
        add_constant(c, braced, &type, true);
        return;
    }
    if (*at == ':') {
        size_t n = strcspn(at + 1, "q");
        g_autofree char *layout = g_strndup(at + 1, n);
        type.layout = kiln_arena_strdup(c->module->arena, layout);
        at += n + 1;
    }
    if (*at == 'q')
        type.quant = read_quant(c, &at, &type);
    add_argument(c, &type);
}

/* --- attributes --- */

static void
set_constant(Case *c, KilnConstant **field, const char *value)
{
    KilnType type = { .dtype = KILN_DTYPE_f32 };
    const char *at = value;
    KilnTensor *tensor =
        read_dtype(&at, &type.dtype) && *at == '{' ? read_tensor(at, &type, false) : NULL;
    if (tensor)
        *field = kiln_module_add_constant(c->module, "value", tensor, NULL);
    else
        unreadable(c, "constant", value);
}

static void
set_list(Case *c, const KilnAttrInfo *info, void *field, const char *value)
{
    g_autofree char *inside = g_strndup(value + 1, strcspn(value + 1, "]"));
    g_auto(GStrv) words = g_strsplit(inside, ",", -1);
    uint32_t n = *inside ? g_strv_length(words) : 0;
    int64_t *ints = kiln_arena_new0(c->module->arena, int64_t, n);
    const char **strings = kiln_arena_new0(c->module->arena, const char *, n);
    for (uint32_t i = 0; i < n; i++) {
        ints[i] = read_integer(words[i]);
        strings[i] = kiln_arena_strdup(c->module->arena, words[i]);
    }
    if (info->kind == KILN_ATTR_INTS)
        *(KilnInts *)field = (KilnInts){ .n = n, .v = ints };
    else
        *(KilnStrings *)field = (KilnStrings){ n, strings };
}

/* `as=i8q`: the result's element type and quantization, of any shape. */
static void
state_result(Case *c, const char *value)
{
    c->stated = kiln_type_unranked(KILN_DTYPE_f32);
    c->states = true;
    if (!read_dtype(&value, &c->stated.dtype))
        unreadable(c, "type", value);
    if (*value == 'q')
        c->stated.quant = read_quant(c, &value, &c->stated);
}

static void
set_attr(Case *c, const char *name, const char *value)
{
    const KilnOpInfo *op = kiln_op_info(c->op);
    if (g_str_equal(name, "as")) {
        state_result(c, value);
        return;
    }
    const KilnAttrInfo *info = kiln_attr_find(op->attrs, op->n_attrs, name);
    if (g_str_equal(name, "results")) {
        c->n_results = (uint32_t)strtoul(value, NULL, 10);
        return;
    }
    if (!info) {
        unreadable(c, "attribute", name);
        return;
    }
    void *field = (char *)c->attrs + info->offset;
    switch (info->kind) {
    case KILN_ATTR_INT:
        *(int64_t *)field = read_integer(value);
        break;
    case KILN_ATTR_BOOL:
        *(bool *)field = g_str_equal(value, "true");
        break;
    case KILN_ATTR_FLOAT:
        *(float *)field = (float)g_ascii_strtod(value, NULL);
        break;
    case KILN_ATTR_STRING:
        *(const char **)field = kiln_arena_strdup(c->module->arena, value);
        break;
    case KILN_ATTR_INTS:
    case KILN_ATTR_STRINGS:
        set_list(c, info, field, value);
        break;
    case KILN_ATTR_DTYPE:
        if (!kiln_dtype_from_name(value, field))
            unreadable(c, "dtype", value);
        break;
    case KILN_ATTR_CONSTANT:
        set_constant(c, field, value);
        break;
    default:
        unreadable(c, "attribute", name);
        break;
    }
}

/* --- results --- */

static char *
print_results(const KilnNode *node)
{
    GString *out = g_string_new(NULL);
    for (uint32_t r = 0; r < node->n_results; r++) {
        const KilnValue *value = &node->results[r];
        g_autofree char *type = kiln_type_to_string(&value->type);
        g_auto(GStrv) words = g_strsplit(type, " ", -1);
        g_autofree char *joined = g_strjoinv("", words);
        g_string_append_printf(out, "%s%s", r ? " " : "", joined);
        for (int64_t k = 0; value->known && k < value->known->n; k++)
            g_string_append_printf(out, "%s%" G_GINT64_FORMAT, k ? "," : "{", value->known->v[k]);
        if (value->known)
            g_string_append(out, value->known->n ? "}" : "{}");
    }
    return g_string_free(out, FALSE);
}

static const char *
error_name(int code)
{
    static const char *const names[] = {
#define X(id, sentence) #id,
        KILN_ERROR_MAP(X)
#undef X
    };
    return names[code];
}

static KilnNode *
make_node(Case *c, GError **error)
{
    KilnNodeSpec spec = { .op = c->op,
                          .operands = (KilnValue *const *)c->operands->pdata,
                          .n_operands = c->operands->len,
                          .n_results = c->n_results,
                          .attrs = c->attrs,
                          .types = c->states ? &c->stated : NULL };
    return kiln_node_new(c->function, &spec, error);
}

/* What the case gives: its results, or `! CODE message`. */
static char *
run_case(Case *c)
{
    g_autoptr(GError) error = NULL;
    KilnNode *node = make_node(c, &error);
    return node ? print_results(node)
                : g_strdup_printf("! %s %s", error_name(error->code), error->message);
}

static bool
matches(const char *expected, const char *found)
{
    if (*expected != '!')
        return g_str_equal(expected, found);
    size_t code = 2 + strcspn(expected + 2, " ");
    bool more = expected[code] == ' ';
    return strncmp(expected, found, code) == 0 && strstr(found, expected + code + more);
}

/* --- lines --- */

static void
case_init(Case *c, uint64_t blur)
{
    *c = (Case){ .module = kiln_module_new(), .operands = g_ptr_array_new(), .blur = blur };
    c->function = kiln_function_new(c->module, "f");
}

static void
case_clear(Case *c)
{
    g_ptr_array_unref(c->operands);
    kiln_module_free(c->module);
    g_free(c->problem);
}

/* Reads a line into @c; returns what it expects. */
static const char *
read_line(Case *c, const char *line)
{
    const char *arrow = strstr(line, " => ");
    g_autofree char *left = arrow ? g_strndup(line, (size_t)(arrow - line)) : g_strdup(line);
    g_auto(GStrv) words = g_strsplit_set(left, " ", -1);
    if (!arrow || !kiln_op_from_name(words[0], &c->op)) {
        unreadable(c, "line", line);
        return "";
    }
    const char *expected = arrow + 4;
    c->attrs = kiln_op_attrs_new(c->op, c->module->arena);
    for (const char *at = *expected == '!' ? "" : expected; *at; at++)
        c->n_results += at == expected || at[-1] == ' ';
    for (char **word = words + 1; *word; word++) {
        const char *equals = strchr(*word, '=');
        KilnDType dtype;
        const char *at = *word;
        if (equals && !read_dtype(&at, &dtype)) {
            g_autofree char *name = g_strndup(*word, (size_t)(equals - *word));
            set_attr(c, name, equals + 1);
        } else if (**word) {
            add_operand(c, *word);
        }
    }
    return expected;
}

/* A visitor of the lines; returns how often it failed. */
typedef int (*LineFn)(const char *line, int number, void *data);

static int
each_line(LineFn fn, void *data)
{
    g_autofree char *text = NULL;
    int failures = 0;
    test_operators_register();
    if (!g_file_get_contents(KILN_SOURCE_DIR "/tests/cases/infer.cases", &text, NULL, NULL))
        return 1;
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    for (int i = 0; lines[i]; i++) {
        if (*lines[i] && *lines[i] != '#')
            failures += fn(g_strstrip(lines[i]), i + 1, data);
    }
    return failures;
}

/* Which shape functions have succeeded and failed; a set of ops whose functions they are. */
typedef struct {
    bool succeeded[KILN_OP_END], failed[KILN_OP_END];
} Coverage;

static int
check_line(const char *line, int number, void *data)
{
    Coverage *coverage = data;
    Case c;
    case_init(&c, 0);
    const char *expected = read_line(&c, line);
    g_autofree char *found = c.problem ? g_strdup(c.problem) : run_case(&c);
    bool fits = matches(expected, found);
    if (!fits)
        cr_log_error("infer.cases:%d: %s\n  found %s", number, line, found);
    kiln_foreach_op (op) {
        bool same = kiln_infer_function(op) == kiln_infer_function(c.op);
        coverage->succeeded[op] |= same && *expected != '!';
        coverage->failed[op] |= same && *expected == '!';
    }
    case_clear(&c);
    return !fits;
}

Test(infer, cases)
{
    Coverage coverage = { .succeeded = { false } };
    cr_expect_eq(each_line(check_line, &coverage), 0);
    kiln_foreach_op (op) {
        const KilnOpInfo *info = kiln_op_info(op);
        KilnInferFn infer = kiln_infer_function(op);
        bool stated = infer == kiln_infer_given || infer == kiln_infer_none;
        bool total = op == op_named("cast") || op == op_named("shape") || op == op_named("size");
        cr_expect(stated || coverage.succeeded[op], "no case infers %s", info->name);
        cr_expect(stated || total || coverage.failed[op], "no case refuses %s", info->name);
    }
}

/* --- what is not known yet --- */

static bool
covers_type(const KilnType *vague, const KilnType *exact)
{
    if (vague->dtype != exact->dtype || !vague->contents != !exact->contents)
        return false;
    if (vague->rank >= 0 && vague->rank != exact->rank)
        return false;
    for (int d = 0; d < vague->rank; d++) {
        if (vague->dims[d] >= 0 && vague->dims[d] != exact->dims[d])
            return false;
    }
    return !vague->contents || covers_type(&vague->contents->type, &exact->contents->type);
}

/* What @vague says of a result is true of what @exact says. */
static bool
covers(const KilnValue *vague, const KilnValue *exact)
{
    if (!covers_type(&vague->type, &exact->type))
        return false;
    if (!vague->known)
        return true;
    return exact->known && vague->known->n == exact->known->n &&
           memcmp(vague->known->v, exact->known->v,
                  (size_t)exact->known->n * sizeof exact->known->v[0]) == 0;
}

static bool
all_static(const Case *c)
{
    for (uint32_t i = 0; i < c->operands->len; i++) {
        const KilnValue *value = g_ptr_array_index(c->operands, i);
        if (value && !kiln_type_is_static(&value->type))
            return false;
    }
    return true;
}

static int
check_blurred(const char *line, int number, const KilnNode *exact, uint64_t seed)
{
    g_autoptr(GError) error = NULL;
    Case c;
    int failures = 0;
    case_init(&c, seed);
    read_line(&c, line);
    KilnNode *node = make_node(&c, &error);
    for (uint32_t r = 0; node && r < node->n_results; r++)
        failures += !covers(&node->results[r], &exact->results[r]);
    if (failures || !node) {
        g_autofree char *found = node ? print_results(node) : g_strdup(error->message);
        cr_log_error("infer.cases:%d: %s\n  with less known (seed %u): %s", number, line,
                     (unsigned)seed, found);
    }
    case_clear(&c);
    return failures || !node;
}

static int
check_less_known(const char *line, int number, void *data)
{
    (void)data;
    Case c;
    int failures = 0;
    case_init(&c, 0);
    const char *expected = read_line(&c, line);
    KilnNode *exact = *expected == '!' ? NULL : make_node(&c, NULL);
    for (uint64_t seed = 1; exact && all_static(&c) && seed <= 40; seed++)
        failures += check_blurred(line, number, exact, seed * 7919);
    case_clear(&c);
    return failures != 0;
}

/* Forgetting dims, ranks and values of operands gives a vaguer result, never an error or another
 * result: what specialisation relies on. */
Test(infer, less_known_is_never_wrong)
{
    cr_expect_eq(each_line(check_less_known, NULL), 0);
}

Test(infer, every_float_op_takes_every_float)
{
    static const KilnDType floats[] = { KILN_DTYPE_f32, KILN_DTYPE_f64, KILN_DTYPE_f16,
                                        KILN_DTYPE_bf16 };
    g_autoptr(KilnModule) module = kiln_module_new();
    KilnFunction *function = kiln_function_new(module, "f");
    KilnValue *arguments[G_N_ELEMENTS(floats)];
    for (size_t i = 0; i < G_N_ELEMENTS(floats); i++) {
        KilnType type = kiln_type_make(floats[i], 2, (int64_t[]){ 2, KILN_DIM_UNKNOWN });
        arguments[i] =
            &kiln_function_add_argument(function, kiln_dtype_name(floats[i]), &type, NULL)->value;
    }
    kiln_foreach_op (op) {
        const KilnOpInfo *info = kiln_op_info(op);
        bool unary = kiln_infer_function(op) == kiln_infer_same && info->max_operands == 1 &&
                     kiln_op_has(op, KILN_TRAIT_ELEMENTWISE);
        bool refuses = op == op_named("not") || op == op_named("bitwise_not");
        for (size_t i = 0; unary && i < G_N_ELEMENTS(floats); i++) {
            KilnValue *result = kiln_build(function, NULL, op, NULL, &arguments[i], 1, NULL);
            cr_expect_eq(result == NULL, refuses, "%s of %s", info->name,
                         kiln_dtype_name(floats[i]));
            cr_expect(!result || kiln_type_equal(&result->type, &arguments[i]->type));
        }
    }
}

/* --- open dims --- */

#define RANK "the length of a list, or a dim that may be 1, decides the rank"
#define KERNEL "the kernel's extents are dims of the weights, and they are names"

/* Why some dim of a case stays unknown where operands have names. */
static const struct {
    const char *op, *reason;
} unknown_reasons[] = {
    { "reduce_sum", RANK },
    { "reshape", RANK },
    { "squeeze", RANK },
    { "unsqueeze", RANK },
    { "expand", RANK },
    { "gather_nd", RANK },
    { "constant_of_shape", RANK },
    { "conv", KERNEL },
    { "conv_transpose", KERNEL },
    { "conv_integer", KERNEL },
    { "qlinear_conv", KERNEL },
    { "slice", "the least number of 64 bits as a step has no opposite" },
    { "resize", "how floats round the size depends on the size" },
};

typedef struct {
    int unknown[KILN_OP_END]; /* the last line that leaves a dim unknown; 0: none */
    int compared;
} OpenCoverage;

/* What is known of @open holds for @bound; false where a claim is wrong. */
static bool
holds(const KilnValue *open, const KilnValue *bound, int binding, bool *unknown)
{
    int64_t found;
    *unknown |= open->type.rank < 0 && bound->type.rank >= 0;
    if (open->type.rank >= 0 && open->type.rank != bound->type.rank)
        return false;
    for (int d = 0; d < open->type.rank; d++) {
        const KilnDim *dim = open->type.open[d];
        found = open->type.dims[d];
        *unknown |= found < 0 && !dim && bound->type.dims[d] >= 0;
        if (dim && !kiln_dim_evaluate(dim, look_up, &binding, &found, NULL))
            return false;
        if (found >= 0 && bound->type.dims[d] >= 0 && found != bound->type.dims[d])
            return false;
    }
    for (uint32_t k = 0; open->extents && bound->known && k < open->extents->n; k++) {
        const KilnDim *dim = open->extents->v[k];
        if (dim && (!kiln_dim_evaluate(dim, look_up, &binding, &found, NULL) ||
                    found != bound->known->v[k]))
            return false;
    }
    return true;
}

/* The node of @line with dims that are names, or numbers by rule @binding; NULL: an error. */
static KilnNode *
node_of_line(Case *c, const char *line, bool named, int binding)
{
    case_init(c, 0);
    c->named = named;
    c->binding = binding;
    read_line(c, line);
    return c->problem ? NULL : make_node(c, NULL);
}

static int
compare_line(const char *line, int number, void *data)
{
    OpenCoverage *coverage = data;
    Case open, bound;
    const KilnNode *with_names = node_of_line(&open, line, true, 0);
    int failures = 0;
    for (int binding = 0; !open.is_open && binding < BINDINGS; binding++) {
        const KilnNode *with_numbers = node_of_line(&bound, line, false, binding);
        bool good = !with_numbers || binding || with_names, unknown = false;
        for (uint32_t r = 0; with_names && with_numbers && r < with_names->n_results; r++)
            good &= holds(&with_names->results[r], &with_numbers->results[r], binding, &unknown);
        coverage->compared += with_names && with_numbers;
        if (with_numbers && unknown)
            coverage->unknown[open.op] = number;
        if (!good) {
            g_autofree char *found = with_names ? print_results(with_names) : g_strdup("an error");
            cr_log_error("infer.cases:%d: rule %d: %s\n  found %s with names", number, binding,
                         line, found);
            failures++;
        }
        case_clear(&bound);
    }
    case_clear(&open);
    return failures;
}

/* Each case with names for its dims: the expressions, evaluated, are the dims that inference finds
 * for numbers. */
Test(infer, open_dims_are_those_of_numbers)
{
    OpenCoverage coverage = { .compared = 0 };
    cr_expect_eq(each_line(compare_line, &coverage), 0);
    cr_expect_gt(coverage.compared, 2000);
    kiln_foreach_op (op) {
        const char *reason = NULL;
        for (uint32_t i = 0; i < G_N_ELEMENTS(unknown_reasons); i++) {
            if (g_str_equal(unknown_reasons[i].op, kiln_op_info(op)->name))
                reason = unknown_reasons[i].reason;
        }
        cr_expect(!coverage.unknown[op] || reason, "%s: infer.cases:%d leaves a dim unknown",
                  kiln_op_info(op)->name, coverage.unknown[op]);
        cr_expect(coverage.unknown[op] || !reason, "%s: no dim is unknown", kiln_op_info(op)->name);
    }
}
