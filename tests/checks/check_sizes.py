#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""No C file over 800 lines, no header over 400, no function over 100 lines or 5 parameters; no file over 512 KB.

Folders, too: one of more than five files has a README.md of at most twenty lines, which names only files that exist; and none
has more than 48 sources, but for passes/graph, which has one file for each pass, and folders of tests. The folders below
tests/golden, tests/onnx/flow and tests/exports/small need no README.md of their own: that of a folder above explains them."""
import collections
import pathlib
import re
import subprocess
import sys

FILE_LINES, HEADER_LINES, FUNCTION_LINES, PARAMETERS = 800, 400, 100, 5
FILE_BYTES = 512 * 1024
FILES_WITHOUT_README, README_LINES, FOLDER_SOURCES = 5, 20, 48
SOURCES = (".c", ".cc", ".h", ".def", ".py")
MANY_SOURCES = re.compile(r"passes/graph|tests/.+")
EXPLAINED_ABOVE = re.compile(r"tests/(golden|onnx/flow|exports/small)/.+")


def functions(lines):
    """Yields (name, first line, last line, parameters) of definitions: clang-format puts the name at
    the start of a line and both braces at column 0."""
    for i, line in enumerate(lines):
        if line != "{":
            continue
        start = i - 1
        while start > 0 and not re.match(r"^[A-Za-z_]\w*\(", lines[start]):
            start -= 1
        end = i
        while end < len(lines) and lines[end] != "}":
            end += 1
        signature = " ".join(lines[start:i])
        name = signature.split("(")[0]
        inner = signature[len(name) + 1:signature.rfind(")")]
        depth, count = 0, 0 if inner.strip() in ("", "void") else 1
        for char in inner:
            depth += char == "("
            depth -= char == ")"
            count += char == "," and depth == 0
        yield name, start, end, count


def check_bytes(root):
    """Weights and outputs of tools are committed by mistake."""
    names = subprocess.run(["git", "ls-files", "-z"], cwd=root, capture_output=True, text=True, check=True)
    failed = False
    for name in filter(None, names.stdout.split("\0")):
        path = pathlib.Path(root, name)
        size = path.stat().st_size if path.is_file() else 0
        if size > FILE_BYTES:
            print(f"{name}: expected at most {FILE_BYTES} bytes, found {size}")
            failed = True
    return failed


def named_files(text):
    """Files that a README.md names in backquotes; NAME or ISA in one stands for any."""
    for word in re.findall(r"`([\w./-]+)`", text):
        if re.search(r"\w\.(c|cc|h|def|py|md|yaml|sh|cmake|txt)$", word) and not re.search(r"[A-Z]{2}(?!akeLists)", word):
            yield word


def check_readme(root, folder, names):
    path = root / folder / "README.md"
    others = len([name for name in names if name != "README.md"])
    if "README.md" not in names:
        if others > FILES_WITHOUT_README and not EXPLAINED_ABOVE.fullmatch(folder):
            yield f"{folder}: expected a README.md, because it has {others} files"
        return
    text = path.read_text(encoding="utf-8")
    if len(text.splitlines()) > README_LINES:
        yield f"{folder}/README.md: expected at most {README_LINES} lines, found {len(text.splitlines())}"
    for name in named_files(text):
        if not any((place / name).exists() for place in (path.parent, root, root / "include/kiln")):
            yield f"{folder}/README.md: names {name}, which does not exist"


def check_folders(root):
    names = subprocess.run(["git", "ls-files", "-z"], cwd=root, capture_output=True, text=True, check=True)
    folders = collections.defaultdict(list)
    for name in filter(None, names.stdout.split("\0")):
        folder, _, file = name.rpartition("/")
        if folder and pathlib.Path(root, name).is_file():
            folders[folder].append(file)
    problems = []
    for folder, files in sorted(folders.items()):
        problems += check_readme(pathlib.Path(root), folder, files)
        sources = sum(file.endswith(SOURCES) for file in files)
        if sources > FOLDER_SOURCES and not MANY_SOURCES.fullmatch(folder):
            problems.append(f"{folder}: expected at most {FOLDER_SOURCES} sources, found {sources}")
    for problem in problems:
        print(problem)
    return bool(problems)


def main(root):
    failed = check_bytes(root) | check_folders(root)
    names = subprocess.run(["git", "ls-files", "*.c", "*.h"], cwd=root, capture_output=True, text=True, check=True)
    for name in names.stdout.split():
        path = pathlib.Path(root, name)
        if not path.exists():
            continue
        lines = path.read_text(encoding="utf-8").split("\n")
        cap = HEADER_LINES if name.endswith(".h") else FILE_LINES
        if len(lines) > cap:
            print(f"{name}: expected at most {cap} lines, found {len(lines)}")
            failed = True
        for function, start, end, parameters in functions(lines):
            if end - start + 1 > FUNCTION_LINES:
                print(f"{name}:{start + 1}: {function}: expected at most {FUNCTION_LINES} lines, found {end - start + 1}")
                failed = True
            if parameters > PARAMETERS + 2:
                print(f"{name}:{start + 1}: {function}: expected at most {PARAMETERS + 2} parameters, found {parameters}")
                failed = True
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
