/* SPDX-License-Identifier: Apache-2.0 */
/* A picture of a memory plan, as SVG by hand: rectangles and titles are all it needs. */
#include "tools/memory_svg.h"

#include "ir/plan.h"
#include "tools/command.h"

enum {
    WIDTH = 1200,
    HEIGHT = 640,
    MARGIN = 50,
};

static void add(GString *out, const char *format, ...) G_GNUC_PRINTF(2, 3);

static void
add(GString *out, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    g_string_append_vprintf(out, format, args);
    va_end(args);
}

/* XML has no way to write most control characters, not even by number. */
static char *
markup(const char *text)
{
    g_autofree char *line = kiln_one_line(text);
    return g_markup_escape_text(line, -1);
}

gboolean
kiln_memory_svg_write(const char *path, const KilnMemoryPlan *plan, const KilnMemoryPeak *peak,
                      GError **error)
{
    double x_unit = (double)(WIDTH - 2 * MARGIN) / (double)MAX(plan->n_steps, (int64_t)1);
    double y_unit = (double)(HEIGHT - 2 * MARGIN) / (double)MAX(plan->arena, (int64_t)1);
    g_autoptr(GString) out = g_string_new(NULL);
    add(out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" "
        "font-family=\"sans-serif\" font-size=\"12\">\n",
        WIDTH, HEIGHT);
    add(out, "<rect width=\"%d\" height=\"%d\" fill=\"white\"/>\n", WIDTH, HEIGHT);
    add(out,
        "<text x=\"%d\" y=\"24\">arena %" G_GINT64_FORMAT " bytes, lb_live %" G_GINT64_FORMAT
        ", sum %" G_GINT64_FORMAT "; steps across, addresses up</text>\n",
        MARGIN, plan->arena, plan->lb_live, plan->sum);
    for (uint32_t i = 0; i < plan->n_lives; i++) {
        const KilnLife *life = &plan->lives[i];
        if (!life->size)
            continue;
        double x = MARGIN + (double)life->first * x_unit,
               w = (double)(life->last - life->first + 1) * x_unit;
        double h = (double)life->size * y_unit,
               y = HEIGHT - MARGIN - (double)life->offset * y_unit - h;
        g_autofree char *label = kiln_life_name(life);
        g_autofree char *name = markup(label);
        /* A golden-angle walk around the colour wheel keeps neighbours apart. */
        add(out,
            "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" fill=\"hsl(%u,55%%,%d%%)\" "
            "stroke=\"#444\" "
            "stroke-width=\"0.5\"><title>%s: %" G_GINT64_FORMAT " bytes at %" G_GINT64_FORMAT
            ", steps %" G_GINT64_FORMAT " to %" G_GINT64_FORMAT "</title></rect>\n",
            x, y, w, h, (i * 137u) % 360u, life->buffer ? 70 : 88, name, life->size, life->offset,
            life->first, life->last);
    }
    g_autofree char *instr = markup(peak->instr ? kiln_instr_label(peak->instr) : "no instruction");
    double peak_x = MARGIN + ((double)peak->step + 0.5) * x_unit;
    add(out,
        "<line x1=\"%.2f\" x2=\"%.2f\" y1=\"%d\" y2=\"%d\" stroke=\"red\" stroke-dasharray=\"4 "
        "3\"/>\n",
        peak_x, peak_x, MARGIN - 10, HEIGHT - MARGIN);
    add(out,
        "<text x=\"%.2f\" y=\"%d\" fill=\"red\">peak: step %" G_GINT64_FORMAT
        ", %s</text>\n</svg>\n",
        peak_x + 4, MARGIN - 2, peak->step, instr);
    return kiln_write_result(path, out->str, out->len, error);
}
