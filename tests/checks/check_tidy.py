#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""clang-tidy's checks of .clang-tidy find nothing in any source of this build. A file that was
clean is looked at again when it, a header, its command or the list of checks has changed."""
import concurrent.futures
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys


def main():
    source, build = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    tidy = shutil.which("clang-tidy-14")
    commands = build / "compile_commands.json"
    if not tidy or not commands.exists():
        print("skipped: expected clang-tidy-14 and", commands)
        return 77
    shared = hashlib.sha256((source / ".clang-tidy").read_bytes())
    for path in sorted([*source.rglob("*.h"), *source.rglob("*.def")]):
        if not path.is_relative_to(source / "build"):
            shared.update(path.read_bytes())
    stamps = build / "tidy"
    stamps.mkdir(exist_ok=True)
    todo = {}
    for entry in json.loads(commands.read_text()):
        path = pathlib.Path(entry["file"])
        if path.suffix != ".c" or path.is_relative_to(build) or str(path) in todo:
            continue
        key = hashlib.sha256(entry["command"].encode() + path.read_bytes())
        key.update(shared.digest())
        todo[str(path)] = stamps / key.hexdigest()

    def look(item):
        path, stamp = item
        if stamp.exists():
            return ""
        run = subprocess.run([tidy, "-p", build, "--quiet", "--warnings-as-errors=*", path],
                             capture_output=True, text=True)
        if run.returncode == 0:
            stamp.touch()
            return ""
        return run.stdout + run.stderr

    jobs = int(os.environ.get("KILN_TIDY_JOBS", os.cpu_count()))
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        complaints = [text for text in pool.map(look, todo.items()) if text]
    print("\n".join(complaints) or f"{len(todo)} files without a warning")
    return 1 if complaints or not todo else 0


sys.exit(main())
