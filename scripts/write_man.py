#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the manual pages that have their text elsewhere, in mdoc:

    write_man.py ROOT DIR     DIR/kiln-pipeline.5 from docs/pipelines.md, DIR/kiln.h.3 from include/kiln/kiln.h

The headers that kiln.h includes follow in the order of their lines. Standard library only."""
import pathlib
import re
import sys
import textwrap

# Sections that manual pages have under another name.
SECTIONS = {"Errors": "Diagnostics"}
MONTHS = ("January February March April May June July August September October November December").split()


def release(root):
    """The date of the newest release: the page of a version is the same whenever it is written."""
    text = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    year, month, day = re.search(r"(?m)^## \[[\d.]+\] - (\d+)-(\d+)-(\d+)", text).groups()
    return f"{MONTHS[int(month) - 1]} {int(day)}, {year}"


def escaped(text):
    """Text of a line that is no request."""
    text = text.replace("\\", "\\e")
    return "\\&" + text if text.startswith((".", "'")) else text


def inline(text):
    """Marks of Markdown and of comments as fonts; links lose their targets."""
    pieces = re.split(r"(``.+?``|`[^`]+`)", text)
    for i, piece in enumerate(pieces):
        if i % 2:
            pieces[i] = f"\\fB{escaped(piece.strip('`').strip())}\\fP"
            continue
        piece = re.sub(r"!?\[([^\[\]]*)\]\([^)]*\)", r"\1", piece).replace("\\", "\\e")
        piece = re.sub(r"\*\*([^*]+)\*\*|(?<![\w*])\*([^*\s][^*]*)\*(?![\w*])", lambda m: f"\\fI{m[1] or m[2]}\\fP", piece)
        piece = re.sub(r"(?<![\w.])\*?@(\w+)", r"\\fI\1\\fP", piece)
        pieces[i] = re.sub(r"(?<!\w)(\w+\(\))", r"\\fB\1\\fP", piece)
    return "".join(pieces)


def prose(text):
    """Each sentence on a line of its own, as mdoc wants it."""
    text = inline(" ".join(text.split()))
    lines = re.split(r"(?<=[.?!])(?<!e\.g\.)(\)?) +(?=[\\A-Z@*`\"])", text)
    for sentence, close in zip(lines[::2], [*lines[1::2], ""]):
        for line in textwrap.wrap(sentence + close, 72, break_long_words=False, break_on_hyphens=False):
            yield "\\&" + line if line.startswith((".", "'")) else line


def literal(lines):
    while lines and not lines[-1].strip():
        lines.pop()
    return [".Bd -literal -offset indent", *(escaped(line) for line in lines), ".Ed"]


def head(root, title, section, name, summary):
    return [f".Dd {release(root)}", f".Dt {title} {section}", ".Os", ".Sh NAME", f".Nm {name}", f".Nd {summary}"]


# --- Markdown ---

def table(rows):
    """A table is a list whose tags are the first column; columns behind the second one get their names."""
    cells = [[cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", row.strip().strip("|"))] for row in rows]
    names, out = cells[0], [".Bl -tag -width Ds"]
    for row in cells[2:]:
        out += [f".It {inline(row[0])}", *prose(row[1])]
        for name, cell in zip(names[2:], row[2:]):
            if cell:
                out += prose(f"({name}: {cell})")
    return [*out, ".El"]


def markdown(text):
    """Requests for a document. Headings of the second level are sections."""
    lines, out, i = text.split("\n"), [], 0

    def block(more):
        nonlocal i
        found = []
        while i < len(lines) and more(lines[i]):
            found.append(lines[i])
            i += 1
        return found

    while i < len(lines):
        line = lines[i]
        item = re.match(r"([-*]|\d+\.) ", line)
        if line.startswith("```"):
            i += 1
            out += literal(block(lambda text: not text.startswith("```")))
            i += 1
        elif line.startswith("    "):
            out += literal([text[4:] for text in block(lambda text: text.startswith("    ") or not text.strip())])
        elif line.startswith("|"):
            out += table(block(lambda text: text.startswith("|")))
        elif item:
            kind = "bullet" if item[1] in "-*" else "enum"
            out.append(f".Bl -{kind} -compact")
            while i < len(lines) and re.match(r"([-*]|\d+\.) ", lines[i]):
                first = lines[i].split(" ", 1)[1]
                i += 1
                out += [".It", *prose(" ".join([first, *block(lambda text: text.startswith(" ") and text.strip())]))]
            out.append(".El")
        elif line.startswith("#"):
            level, title = line.split(" ", 1)
            if level == "##":
                title = SECTIONS.get(title, title)
                out.append(f".Sh {inline(title) if '`' in title else title.upper()}")
            elif level == "###":
                out.append(f".Ss {inline(title)}")
            i += 1
        elif line.strip():
            out += [".Pp", *prose(" ".join(block(lambda text: text.strip() and not re.match(r"([-*] |\d+\. |\||#|```)", text))))]
        else:
            i += 1
    return out


def pipeline_page(root):
    text = (root / "docs/pipelines.md").read_text(encoding="utf-8")
    return [*head(root, "KILN-PIPELINE", 5, "kiln-pipeline", "which passes optimize a model"), ".Sh DESCRIPTION", *markdown(text),
            ".Sh SEE ALSO", ".Xr kiln 1 ,", ".Xr kiln.h 3"]


# --- headers ---

def bare(comment):
    """The text of a comment, without its marks."""
    text = re.sub(r"^/\*\*? ?|\s*\*/$", "", comment.strip())
    return [re.sub(r"^\s*\* ?", "", line) for line in text.split("\n")]


def comment_text(lines):
    """Paragraphs, items and code of a comment of the head of a header."""
    return markdown("\n".join(lines))


def declarations(text):
    """Yields ("section", name), ("text", comment) and ("code", lines) of a header, in order."""
    lines, i = text.split("\n"), 0
    while i < len(lines):
        line = lines[i]
        section = re.match(r"/\* --- (.*) --- \*/", line)
        if section:
            yield "section", section[1]
        elif line.startswith("/*"):
            begin = i
            while "*/" not in lines[i]:
                i += 1
            if line.startswith("/** "):
                yield "text", "\n".join(lines[begin:i + 1])
        elif re.match(r"#define KILN_(\w+_)?H$|#(if|ifdef|ifndef|endif|else|include|undef)|G_DEFINE|G_BEGIN|G_END|extern \"C\"|//|\}?$", line):
            depth = 1 if re.match(r"#ifdef __cplusplus|#if defined\(KILN_BUILDING\)", line) else 0
            while depth:  # how the header is made, not for readers
                i += 1
                depth += lines[i].startswith("#if") - lines[i].startswith("#endif")
        elif line.startswith(("#define", "typedef", "KILN_API", "KILN_OBJECT_API", "struct", "enum")):
            code, depth = [], 0
            while True:
                code.append(lines[i])
                depth += lines[i].count("{") - lines[i].count("}")
                end = not lines[i].endswith("\\") if line.startswith("#") else depth == 0 and lines[i].split("/*")[0].rstrip().endswith(";")
                if end:
                    break
                i += 1
            yield "code", code
        i += 1


def shown(code):
    """A declaration as readers need it."""
    lines = [re.sub(r"^KILN_(OBJECT_)?API ", "", line) for line in code]
    if len(lines) > 1 and "(" in lines[0] and lines != code:  # behind a shorter head
        cut = len(code[0]) - len(lines[0])
        lines[1:] = [line[min(cut, len(line) - len(line.lstrip())):] for line in lines[1:]]
    return [re.sub(r"\s+\\$", " \\\\", line) if line.endswith("\\") else line for line in lines]


def hidden(code):
    """Declarations that only repeat, and how the library is made."""
    first = code[0]
    return bool(re.match(r"#define (KILN_API|KILN_OBJECT_API|KILN_STRUCT_INIT|X\()", first) or
                (re.match(r"typedef struct (\w+) \1;$", first)) or re.match(r"struct \w+;$", first))


def header_body(text):
    out, seen = [], set()
    for kind, value in declarations(text):
        if kind == "section":
            out.append(f".Ss {value.capitalize()}")
        elif kind == "text":
            out += ["\a", *comment_text(bare(value))]  # the bell: its declaration goes in front
        elif not hidden(value) and tuple(value) not in seen:
            seen.add(tuple(value))
            block = [".Pp", *literal(shown(value))]
            at = len(out) - 1 - out[::-1].index("\a") if "\a" in out else None
            if at is None:
                out += block
            else:
                out[at:at + 1] = block
    return [line for line in out if line != "\a"]


def header_page(root):
    include = root / "include/kiln"
    text = (include / "kiln.h").read_text(encoding="utf-8")
    out = [*head(root, "KILN.H", 3, "kiln.h", "load, optimize and run neural networks"), ".Sh LIBRARY", ".Nm libkiln",
           "(\\-lkiln); its flags are those of", ".Ql pkg-config --cflags --libs kiln .", ".Sh SYNOPSIS", ".In kiln.h",
           ".Sh DESCRIPTION"]
    tour = bare(re.search(r"(?s)/\* Kiln:.*?\*/", text)[0])
    out += comment_text(tour)
    out += header_body(text)
    for name in re.findall(r'#include "((?:graph|runtime)/kiln-[\w-]+\.h)"', text):
        part = (include / name).read_text(encoding="utf-8")
        about = re.search(r"(?s)\*/\n(/\*.*?\*/)", part)
        out += [f".Ss {name}", *comment_text(bare(about[1])), *header_body(part)]
    return [*out, ".Sh SEE ALSO", ".Xr kiln 1 ,", ".Xr kiln-pipeline 5"]


def tidy(lines):
    """Without .Pp where mdoc has a gap anyway."""
    out = []
    for i, line in enumerate(lines):
        if line == ".Pp":
            after = lines[i + 1] if i + 1 < len(lines) else ".Sh"
            if not out or out[-1].startswith((".Sh", ".Ss", ".Pp")) or after.startswith((".Sh", ".Ss", ".Bd", ".Bl", ".Pp")):
                continue
        out.append(line)
    return "\n".join(out) + "\n"


def main(root, folder):
    root, folder = pathlib.Path(root), pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for name, page in (("kiln-pipeline.5", pipeline_page), ("kiln.h.3", header_page)):
        (folder / name).write_text(tidy(page(root)), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
