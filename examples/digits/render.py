# SPDX-License-Identifier: Apache-2.0
"""Pictures of digits: 28x28, 8-bit grey, a white digit on a black ground.

A glyph of a font is drawn large, made thicker or thinner, then scaled, sheared, rotated, shifted
and averaged down in one step; contrast, blur and noise follow. Fonts are split by family: the two
tables below share no design, so that a score on HELD_OUT says something about unseen fonts. Fonts
that descend from one in TRAIN (Carlito from Lato, Hack from DejaVu) are in neither table.
"""

import functools
import math
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFilter, ImageFont

SIDE = 28
DETAIL = 4  # pictures are drawn this many times larger, then averaged down
GLYPH_PX = 128  # font size of the glyph that everything is made from
FONTS = Path("/usr/share/fonts")

# family: (Debian package, pattern below FONTS)
TRAIN = {
    "DejaVu Sans": ("fonts-dejavu", "truetype/dejavu/DejaVuSans*.ttf"),
    "DejaVu Serif": ("fonts-dejavu", "truetype/dejavu/DejaVuSerif*.ttf"),
    "Liberation Sans": ("fonts-liberation", "truetype/liberation/LiberationSans*.ttf"),
    "Liberation Serif": ("fonts-liberation", "truetype/liberation/LiberationSerif*.ttf"),
    "Liberation Mono": ("fonts-liberation", "truetype/liberation/LiberationMono*.ttf"),
    "FreeSans": ("fonts-freefont-ttf", "truetype/freefont/FreeSans*.ttf"),
    "FreeSerif": ("fonts-freefont-ttf", "truetype/freefont/FreeSerif*.ttf"),
    "FreeMono": ("fonts-freefont-ttf", "truetype/freefont/FreeMono*.ttf"),
    "Roboto": ("fonts-roboto-unhinted", "truetype/roboto/unhinted/**/Roboto*.ttf"),
    "C059": ("fonts-urw-base35", "opentype/urw-base35/C059-*.otf"),
    "Nimbus Mono": ("fonts-urw-base35", "opentype/urw-base35/NimbusMonoPS-*.otf"),
    "Nimbus Roman": ("fonts-urw-base35", "opentype/urw-base35/NimbusRoman-*.otf"),
    "Nimbus Sans": ("fonts-urw-base35", "opentype/urw-base35/NimbusSans*.otf"),
    "P052": ("fonts-urw-base35", "opentype/urw-base35/P052-*.otf"),
    "URW Bookman": ("fonts-urw-base35", "opentype/urw-base35/URWBookman-*.otf"),
    "URW Gothic": ("fonts-urw-base35", "opentype/urw-base35/URWGothic-*.otf"),
    "Z003": ("fonts-urw-base35", "opentype/urw-base35/Z003-*.otf"),
    "Lato": ("fonts-lato", "truetype/lato/Lato-[!H]*.ttf"),  # a hairline vanishes at this size
    "Libertine": ("fonts-linuxlibertine", "opentype/linux-libertine/LinLibertine_*.otf"),
    "Biolinum": ("fonts-linuxlibertine", "opentype/linux-libertine/LinBiolinum_R*.otf"),
    "Quicksand": ("fonts-quicksand", "truetype/quicksand/Quicksand-*.ttf"),
    "Comfortaa": ("fonts-comfortaa", "truetype/comfortaa/Comfortaa-*.ttf"),
    "JetBrains Mono": ("fonts-jetbrains-mono", "truetype/jetbrains-mono/JetBrainsMono-*.ttf"),
}
HELD_OUT = {
    "Noto Sans": ("fonts-noto-core", "truetype/noto/NotoSans-*.ttf"),
    "Noto Serif": ("fonts-noto-core", "truetype/noto/NotoSerif-*.ttf"),
    "Open Sans": ("fonts-open-sans", "truetype/open-sans/OpenSans-*.ttf"),
    "Cantarell": ("fonts-cantarell", "opentype/cantarell/Cantarell-*.otf"),
    "Caladea": ("fonts-crosextra-caladea", "truetype/crosextra/Caladea-*.ttf"),
    "Gentium": ("fonts-sil-gentium", "truetype/gentium/Gentium*.ttf"),
    "Comic Neue": ("fonts-comic-neue", "opentype/comic-neue/ComicNeue-*.otf"),
    "PT Sans": ("fonts-paratype", "truetype/paratype/PT[SNC]*.ttf"),
    "PT Serif": ("fonts-paratype", "truetype/paratype/PT[FZ]*.ttf"),
    "PT Mono": ("fonts-paratype", "truetype/paratype/PTM*.ttf"),
}


def font_files(families):
    """{family: [paths]}, sorted; raises SystemExit naming the packages whose fonts are absent."""
    files = {name: sorted(FONTS.glob(pattern)) for name, (_, pattern) in families.items()}
    absent = sorted({families[name][0] for name, found in files.items() if not found})
    if absent:
        raise SystemExit("fonts are missing: apt-get install " + " ".join(absent))
    return files


@functools.lru_cache(maxsize=None)
def glyph(path, digit):
    """The digit as an 'L' image cropped to its ink, with room to grow thicker on each side."""
    font = ImageFont.truetype(str(path), GLYPH_PX, layout_engine=ImageFont.Layout.BASIC)
    canvas = Image.new("L", (3 * GLYPH_PX, 3 * GLYPH_PX), 0)
    ImageDraw.Draw(canvas).text((GLYPH_PX, GLYPH_PX), str(digit), fill=255, font=font)
    box = canvas.getbbox()
    if box is None:
        raise SystemExit(f"{path}: draws nothing for '{digit}'")
    left, top, right, bottom = box
    return canvas.crop((left - 4, top - 4, right + 4, bottom + 4))


def change_thickness(ink, steps):
    """Each step is a pixel on both sides of every stroke; thin strokes are left as they are."""
    if steps > 0:
        return ink.filter(ImageFilter.MaxFilter(2 * steps + 1))
    if steps < 0:
        thinner = ink.filter(ImageFilter.MinFilter(-2 * steps + 1))
        if np.asarray(thinner, dtype=np.int64).sum() > 0.6 * np.asarray(ink, dtype=np.int64).sum():
            return thinner
    return ink


def place(ink, rng):
    """Scales, shears, rotates and shifts the glyph onto the picture; float array in [0, 1]."""
    height = rng.uniform(14.0, 23.0) * DETAIL
    aspect = rng.uniform(0.85, 1.15)
    scale_y = height / ink.height
    scale_x = min(scale_y * aspect, 23.0 * DETAIL / ink.width)
    angle = math.radians(rng.uniform(-12.0, 12.0))
    shear = rng.uniform(-0.15, 0.15)
    slack = np.maximum(SIDE * DETAIL - np.array([scale_x * ink.width, height]), 0.0) / 2.0
    shift = rng.uniform(-1.0, 1.0, 2) * np.minimum(slack, 4.0 * DETAIL)

    rotate = np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])
    forward = rotate @ np.array([[1.0, shear], [0.0, 1.0]]) @ np.diag([scale_x, scale_y])
    back = np.linalg.inv(forward)  # PIL asks where in the source a target pixel comes from
    centre = np.full(2, SIDE * DETAIL / 2.0) + shift
    offset = np.array([ink.width / 2.0, ink.height / 2.0]) - back @ centre
    placed = ink.transform(
        (SIDE * DETAIL, SIDE * DETAIL),
        Image.Transform.AFFINE,
        (back[0, 0], back[0, 1], offset[0], back[1, 0], back[1, 1], offset[1]),
        resample=Image.Resampling.BILINEAR,
    )
    return placed.reduce(DETAIL)


def picture(path, digit, rng):
    """One picture: uint8 array of SIDE x SIDE."""
    ink = change_thickness(glyph(path, digit), int(rng.integers(-2, 4)))
    grey = place(ink, rng)
    if rng.random() < 0.3:
        grey = grey.filter(ImageFilter.GaussianBlur(rng.uniform(0.3, 0.8)))
    values = np.asarray(grey, dtype=np.float64)
    values = values / max(values.max(), 1.0)
    ground = rng.uniform(0.0, 0.1)
    values = ground + (rng.uniform(0.6, 1.0) - ground) * values
    values = values + rng.normal(0.0, rng.uniform(0.0, 0.08), values.shape)
    return np.round(np.clip(values, 0.0, 1.0) * 255.0).astype(np.uint8)


def dataset(families, count, seed):
    """(pictures u8 [count,1,SIDE,SIDE], digits i64 [count], families [count]).

    Digits take turns; the family and then the file are drawn evenly, so that a family of twenty
    weights counts no more than one of four.
    """
    files = font_files(families)
    names = list(files)
    rng = np.random.default_rng(seed)
    pictures = np.empty((count, 1, SIDE, SIDE), np.uint8)
    digits = np.arange(count, dtype=np.int64) % 10
    sources = []
    for i in range(count):
        name = names[rng.integers(len(names))]
        path = files[name][rng.integers(len(files[name]))]
        pictures[i, 0] = picture(path, int(digits[i]), rng)
        sources.append(name)
    return pictures, digits, np.array(sources)
