#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the reference manual of the C interface with Doxygen, and fails where something public is not documented.

    write_reference.py SOURCE FOLDER      FOLDER/html/index.html

Fields, numbers of enums and macros may speak for themselves; functions, types and structs may not."""
import pathlib
import re
import shutil
import subprocess
import sys

SKIPPED = 77
MAY_BE_BARE = re.compile(r"Member .* \((variable|enumvalue|macro definition)\) of .* is not documented\.$")
SETTINGS = """
PROJECT_NAME = Kiln
PROJECT_NUMBER = {version}
PROJECT_BRIEF = "the C interface"
INPUT = {headers}
STRIP_FROM_PATH = {include}
OUTPUT_DIRECTORY = {out}
INPUT_FILTER = "{python} -B {filter}"
PREDEFINED = "G_BEGIN_DECLS=" "G_END_DECLS=" "G_DEFINE_AUTOPTR_CLEANUP_FUNC(a,b)=" "KILN_VERSION=\\"{version}\\""
EXCLUDE_SYMBOLS = X KILN_*_MAP KILN_METADATA_* KILN_API KILN_OBJECT_API
ENABLE_PREPROCESSING = YES
MACRO_EXPANSION = YES
OPTIMIZE_OUTPUT_FOR_C = YES
JAVADOC_AUTOBRIEF = YES
TYPEDEF_HIDES_STRUCT = YES
SORT_MEMBER_DOCS = NO
ALWAYS_DETAILED_SEC = YES
GENERATE_LATEX = NO
HTML_TIMESTAMP = NO
HAVE_DOT = NO
HTML_DYNAMIC_MENUS = NO
HTML_DYNAMIC_SECTIONS = NO
SEARCHENGINE = NO
QUIET = YES
WARN_IF_UNDOCUMENTED = YES
WARN_NO_PARAMDOC = NO
"""


def public_headers(include):
    """kiln.h and the headers that it includes."""
    text = (include / "kiln.h").read_text(encoding="utf-8")
    return [include / "kiln.h", *(include / name for name in re.findall(r'#include "([\w/-]+\.h)"', text))]


def without_scripts(folder):
    """Pages are plain: nothing in them folds or searches."""
    for page in folder.glob("*.html"):
        text = page.read_text(encoding="utf-8")
        page.write_text(re.sub(r"(?s)<script.*?</script>\n?", "", text), encoding="utf-8")
    for script in folder.glob("*.js"):
        script.unlink()


def main(source, out):
    doxygen = shutil.which("doxygen")
    if not doxygen:
        print("skipped: doxygen is missing (apt install doxygen)")
        return SKIPPED
    source, out = pathlib.Path(source).resolve(), pathlib.Path(out)
    include = source / "include/kiln"
    out.mkdir(parents=True, exist_ok=True)
    numbers = re.findall(r"#define KILN_VERSION_(?:MAJOR|MINOR|MICRO) (\d+)", (include / "graph/kiln-version.h").read_text(encoding="utf-8"))
    headers = public_headers(include)
    settings = SETTINGS.format(version=".".join(numbers), headers=" ".join(f'"{path}"' for path in headers), include=include, out=out,
                               python=sys.executable, filter=pathlib.Path(__file__).resolve().parent / "filter.py")
    result = subprocess.run([doxygen, "-"], input=settings, capture_output=True, text=True, check=False)
    warnings = [line for line in result.stderr.split("\n") if line and not MAY_BE_BARE.search(line)]
    for line in warnings:
        print(line)
    without_scripts(out / "html")
    functions = {name for path in headers for name in re.findall(r"^KILN_(?:OBJECT_)?API .*?\b(kiln_\w+)\(", path.read_text(encoding="utf-8"), re.M)}
    pages = "".join(page.read_text(encoding="utf-8") for page in (out / "html").glob("*_8h.html"))
    missing = sorted(name for name in functions if f"</span>{name}()</h2>" not in pages)
    for name in missing:
        print(f"{name}: expected it in the manual")
    return bool(result.returncode or warnings or missing)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
