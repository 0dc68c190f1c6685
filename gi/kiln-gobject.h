/* SPDX-License-Identifier: Apache-2.0 */
/* Kiln for languages that call it by GObject introspection, such as Python: boxed types of its
 * objects, and functions that need no pointer of the caller. C programs use kiln.h. */
#ifndef KILN_GOBJECT_H
#define KILN_GOBJECT_H

#ifdef __GI_SCANNER__
typedef struct KilnModel KilnModel;
typedef struct KilnPipeline KilnPipeline;
typedef struct KilnProgram KilnProgram;
typedef struct KilnItem KilnItem;
#else
#include "kiln.h"
#endif

#include <glib-object.h>

G_BEGIN_DECLS

/**
 * KilnRunner:
 *
 * A program with a session of its own. One thread at a time may call it.
 */
typedef struct KilnRunner KilnRunner;

#ifndef KILN_GOBJECT_API
#define KILN_GOBJECT_API __attribute__((visibility("default"))) extern
#endif

KILN_GOBJECT_API GType kiln_model_get_type(void) G_GNUC_CONST;
KILN_GOBJECT_API GType kiln_pipeline_get_type(void) G_GNUC_CONST;
KILN_GOBJECT_API GType kiln_program_get_type(void) G_GNUC_CONST;
KILN_GOBJECT_API GType kiln_runner_get_type(void) G_GNUC_CONST;
KILN_GOBJECT_API GType kiln_item_get_type(void) G_GNUC_CONST;

KILN_GOBJECT_API KilnModel *kiln_model_new_from_path(const char *path, GError **error);
KILN_GOBJECT_API char **kiln_model_get_input_names(const KilnModel *model);
KILN_GOBJECT_API char **kiln_model_get_output_names(const KilnModel *model);

KILN_GOBJECT_API KilnPipeline *kiln_pipeline_new_from_name(const char *name, GError **error);
KILN_GOBJECT_API KilnPipeline *kiln_pipeline_new_from_text(const char *text, GError **error);

KILN_GOBJECT_API KilnProgram *kiln_program_new_for_model(KilnModel *model, KilnPipeline *pipeline,
                                                         int threads, GError **error);
KILN_GOBJECT_API KilnProgram *kiln_program_new_from_path(const char *path, GError **error);
KILN_GOBJECT_API gboolean kiln_program_write(KilnProgram *program, const char *path,
                                             GError **error);

KILN_GOBJECT_API KilnRunner *kiln_runner_new(KilnProgram *program, GError **error);
KILN_GOBJECT_API KilnRunner *kiln_runner_ref(KilnRunner *runner);
KILN_GOBJECT_API void kiln_runner_unref(KilnRunner *runner);
KILN_GOBJECT_API GPtrArray *kiln_runner_call(KilnRunner *runner, GPtrArray *inputs, GError **error);

KILN_GOBJECT_API KilnItem *kiln_item_new_from_bytes(const char *dtype, const gint64 *dims,
                                                    gsize n_dims, GBytes *bytes, GError **error);
KILN_GOBJECT_API KilnItem *kiln_item_new_from_items(GPtrArray *items, GError **error);
KILN_GOBJECT_API const char *kiln_item_get_dtype(const KilnItem *item);
KILN_GOBJECT_API gint64 *kiln_item_get_dims(const KilnItem *item, gsize *n_dims);
KILN_GOBJECT_API GBytes *kiln_item_get_bytes(KilnItem *item);
KILN_GOBJECT_API GPtrArray *kiln_item_get_items(const KilnItem *item);

G_END_DECLS

#endif
