#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""No C file over 800 lines, no header over 400, no function over 100 lines or 5 parameters; no file over 512 KB."""
import pathlib
import re
import subprocess
import sys

FILE_LINES, HEADER_LINES, FUNCTION_LINES, PARAMETERS = 800, 400, 100, 5
FILE_BYTES = 512 * 1024


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


def main(root):
    failed = check_bytes(root)
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
