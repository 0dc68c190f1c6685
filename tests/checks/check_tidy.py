#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""clang-tidy's checks of .clang-tidy find nothing in any source of this build. A file that was
clean is looked at again when it, a header, its command or the list of checks has changed. A process
looks at several files, because a process for each file would spend a fourth of its time on its start."""
import concurrent.futures
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys

FILES_PER_PROCESS = 16


def chosen(entries, build):
    """One command for each source and set of macros: several programs compile the same source."""
    found = {}
    for entry in entries:
        path = pathlib.Path(entry["file"])
        if path.suffix == ".c" and not path.is_relative_to(build):
            macros = tuple(word for word in entry["command"].split() if word.startswith("-D"))
            found.setdefault((entry["file"], macros), entry)
    return list(found.values())


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
    entries = chosen(json.loads(commands.read_text()), build)
    (stamps / "compile_commands.json").write_text(json.dumps(entries))
    todo = {}
    by_path = {}
    for entry in entries:
        by_path.setdefault(entry["file"], []).append(entry["command"])
    for path, lines in by_path.items():
        key = hashlib.sha256(pathlib.Path(path).read_bytes() + "\n".join(lines).encode())
        key.update(shared.digest())
        todo[path] = stamps / key.hexdigest()

    def look(items):
        run = subprocess.run([tidy, "-p", stamps, "--quiet", "--warnings-as-errors=*", *(path for path, _ in items)],
                             capture_output=True, text=True)
        if run.returncode == 0:
            for _, stamp in items:
                stamp.touch()
            return ""
        return run.stdout + run.stderr

    jobs = int(os.environ.get("KILN_TIDY_JOBS", os.cpu_count()))
    new = [item for item in todo.items() if not item[1].exists()]
    parts = [new[i:i + FILES_PER_PROCESS] for i in range(0, len(new), FILES_PER_PROCESS)]
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        complaints = [text for text in pool.map(look, parts) if text]
    print("\n".join(complaints) or f"{len(todo)} files without a warning")
    return 1 if complaints or not todo else 0


sys.exit(main())
