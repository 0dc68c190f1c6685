#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One allocation fails, and Kiln ends with an exit status: check_no_memory.py KILN FAILING_MALLOC [SHARED] [--long]

Each command runs on each model once for each number of an allocation of 1 KB or more; with --long for
every one to 2 000 and every 17th from there on, else for a few. Commands that write weights also run
with less and less address space. Two deaths by a signal are allowed, and
counted: where the vendor's library asked for the memory and does not look whether it got it, and where
GLib asked for itself: before main(), for the options of the command line, or for its slices, of which
the heads of GBytes are. libgomp exits with status 1 and a message of its own.
"""
import argparse
import collections
import concurrent.futures
import os
import pathlib
import re
import resource
import shutil
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parents[2]
LEAST = 1024  # bytes of an allocation that is counted
EVERY, THEN_STEP = 2000, 17
SAMPLES = 20  # of each command and model, without --long
COMMANDS = {
    "run": ["run", "{model}", "--random", "1", "--quiet"],
    "run --batch-of": ["run", "{model}", "--batch-of", "{folder}", "-o", "{out}"],
    "opt": ["opt", "{model}"],
    "compile": ["compile", "{model}", "-o", "{out}"],
    "memory": ["memory", "{model}"],
    "verify": ["verify", "{folder}"],
    "run --json": ["run", "{model}", "--random", "1", "--json", "--profile", "--trace", "{out}"],
    "opt --emit json": ["opt", "{model}", "--emit", "json", "--stats", "--json", "-o", "{out}"],
    "memory --json": ["memory", "{model}", "--json"],
}
# What these write has a copy of the weights.
WRITERS = {
    "opt --inline": ["opt", "{model}", "--inline", "-o", "{out}"],
    "opt -o": ["opt", "{model}", "-o", "{out}"],
    "opt --emit onnx": ["opt", "{model}", "--emit", "onnx", "-o", "{out}"],
}
WEIGHT = 24 << 20  # bytes
LARGE_TEXT = f"""graph @large(%x: f32[1,{WEIGHT // 4096}]) {{
  %w = const @w : f32[{WEIGHT // 4096},1024]
  %y = matmul(%x, %w) : f32[1,1024]
  return %y
}}
constants {{ @w = file("w.bin", 0, {WEIGHT}) : f32[{WEIGHT // 4096},1024] }}
"""
LEAST_SPACE, SPACE_STEP = 48 << 20, 4 << 20
NOT_LOADED = 127  # the loader found no room for the libraries
LOST = re.compile(r"cannot allocate \d+ bytes for a(n array| text)")
VENDOR = "libdnnl"
GLIB = re.compile(r"\((g_option_\w+|g_set_prgname|g_slice_alloc)\+")
BETWEEN = ("libfailing_malloc", "libstdc++", "libc.so", "libc-")  # hand on what they were asked for


def models(shared):
    """name → (model, folder that `verify` takes)"""
    found = {"digits": (SOURCE / "examples/digits/digits.onnx", SOURCE / "examples/digits")}
    folder = pathlib.Path(shared, "models") if shared else None
    if not folder or not folder.is_dir():
        print("no shared models: one text in place of four models")
        found["lenet.kiln"] = (SOURCE / "tests/text/lenet.kiln", SOURCE / "examples/digits")
        return found
    found["lenet.kiln"] = (SOURCE / "tests/text/lenet.kiln", folder / "lenet")
    for name in ("bert_small", "lstm2_256", "shufflenet_v2_x1_0"):
        found[name] = (folder / name / "model.onnx", folder / name)
    return found


class Check:
    def __init__(self, kiln, library, scratch):
        self.kiln, self.library, self.scratch = kiln, library, scratch

    def run(self, model, command, number):
        out = pathlib.Path(self.scratch, f"{model[0].parent.name}-{command}-{number}".replace(" ", "-"))
        words = [w.format(model=model[0], folder=model[1], out=out) for w in COMMANDS[command]]
        environment = dict(os.environ, LD_PRELOAD=self.library, FAIL_MIN=str(LEAST), FAIL_AT=str(number), FAIL_COUNT="1",
                           OMP_WAIT_POLICY="passive")
        done = subprocess.run([self.kiln, *words], env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=300, check=False)
        shutil.rmtree(out) if out.is_dir() else out.unlink(missing_ok=True)
        results = done.stdout.decode(errors="replace") if command == "verify" else ""
        return done.returncode, results + done.stderr.decode(errors="replace")

    def count(self, model, command):
        status, text = self.run(model, command, 0)
        found = re.search(r"ALLOCATIONS (\d+)", text)
        if status != 0 or not found:
            sys.exit(f"{command} {model[0]}: with all its memory: status {status}\n{text}")
        count = int(found.group(1))
        if count < SAMPLES:
            sys.exit(f"{command} {model[0]}: expected {SAMPLES} allocations or more, found {count}")
        return count


def check_address_space(kiln, scratch, step):
    """Runs the writers with one step more of address space, until they succeed. Returns the failures."""
    folder = pathlib.Path(scratch, "large")
    folder.mkdir()
    model, out = folder / "large.kiln", pathlib.Path(scratch, "large.out")
    model.write_text(LARGE_TEXT, encoding="utf-8")
    (folder / "w.bin").write_bytes(os.urandom(4096) * (WEIGHT // 4096))
    bad = []
    for name, words in WRITERS.items():
        command = [kiln, *(w.format(model=model, out=out) for w in words)]
        status, space, lost = None, LEAST_SPACE, 0
        while status != 0:
            space += step
            done = subprocess.run(command, capture_output=True, timeout=300, check=False,
                                  preexec_fn=lambda most=space: resource.setrlimit(resource.RLIMIT_AS, (most, most)))
            status, text = done.returncode, done.stderr.decode(errors="replace")
            lost += bool(LOST.search(text))
            if status not in (0, 1, NOT_LOADED):
                bad.append(f"{name}, {space} bytes of address space: status {status}\n{text}")
            if status and space > 40 * WEIGHT:
                sys.exit(f"{name}: expected success with {space} bytes of address space\n{text}")
        print(f"{name}: {lost} runs lost what they wrote")
        if not lost:
            bad.append(f"{name}: expected runs that lose what they write")
    return bad


def asked_by(text):
    """Whose call got no memory: "vendor", "glib" or "kiln"."""
    frames = text.partition("FAILED ALLOCATION\n")[2].splitlines()
    objects = [pathlib.PurePath(frame.partition("(")[0]).name for frame in frames]
    objects = [name for name in objects if not name.startswith(BETWEEN)]
    if objects and objects[0].startswith(VENDOR):
        return "vendor"
    if any(GLIB.search(frame) for frame in frames):
        return "glib"
    return "kiln" if any("kiln" in name for name in objects) else "glib"


def numbers(count, all_of_them):
    if all_of_them:
        return [*range(1, min(count, EVERY) + 1), *range(EVERY + THEN_STEP, count + 1, THEN_STEP)]
    # Other numbers of each command and model: the odd ones spread over what they share.
    step = max(count // SAMPLES, 1)
    return list(range(1 + count % step // 2, count + 1, step))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("kiln")
    parser.add_argument("library")
    parser.add_argument("shared", nargs="?")
    parser.add_argument("--long", action="store_true")
    options = parser.parse_args()
    deaths, statuses, bad = collections.Counter(), collections.Counter(), []
    with tempfile.TemporaryDirectory() as scratch, concurrent.futures.ThreadPoolExecutor(2) as pool:
        bad += check_address_space(options.kiln, scratch, SPACE_STEP // 4 if options.long else SPACE_STEP)
        check = Check(options.kiln, options.library, scratch)
        cases = [(name, model, command, number) for name, model in models(options.shared).items() for command in COMMANDS
                 for number in numbers(check.count(model, command), options.long)]
        for case, (status, text) in zip(cases, pool.map(lambda case: check.run(*case[1:]), cases)):
            name, _, command, number = case
            statuses[status] += 1
            where = f"{command} {name}, allocation {number}: status {status}"
            if status < 0:
                deaths[asked_by(text)] += 1
                if asked_by(text) == "kiln":
                    bad.append(f"{where}\n{text}")
            elif status not in (0, 1, 5) or (status and not re.search(r"^(kiln|FAIL|libgomp: Out of memory)", text, re.M)):
                bad.append(f"{where}\n{text}")
    print(f"{len(cases)} runs; statuses {dict(sorted(statuses.items()))}; deaths where the vendor asked: {deaths['vendor']}, "
          f"where GLib asked for itself: {deaths['glib']}")
    for text in bad[:20]:
        print(text)
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
