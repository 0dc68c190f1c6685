# SPDX-License-Identifier: Apache-2.0
"""What the tests of the kiln command share: running it, asserting exit status and message, tiny models.

The environment names what is tested: KILN (the executable), KILN_SOURCE_DIR, and KILN_SHARED_DIR (models beside the
source tree; may be absent). Standard library only.
"""
import json
import os
import pathlib
import re
import struct
import subprocess
import sys
import tempfile
import unittest

KILN = os.environ.get("KILN", "kiln")
SOURCE = pathlib.Path(os.environ.get("KILN_SOURCE_DIR", pathlib.Path(__file__).resolve().parents[2]))
SHARED = pathlib.Path(os.environ.get("KILN_SHARED_DIR") or "/nonexistent")
DIGITS = SOURCE / "examples/digits"
MODEL = DIGITS / "digits.onnx"

OK, FAILED, USAGE, UNSUPPORTED, MISMATCH, PARTIAL = range(6)

SANITIZERS = re.compile(r"AddressSanitizer|LeakSanitizer|ThreadSanitizer|runtime error:|CRITICAL|GLib-WARNING")

# A weight is given with the first run, and what hangs on it is computed then.
FOLDS_AT_FIRST_RUN = """graph @f(%x: f32[1,64], %w: f32[32,64] constant=run) {
  %t = transpose(%w) {perm=[1,0]} : f32[64,32]
  %c = const @c : f32[64,32]
  %s = add(%t, %c) : f32[64,32]
  %y = matmul(%x, %s) : f32[1,32]
  return %y
}
constants { @c = random_normal(seed=7, std=0.2) : f32[64,32] }
"""
ADD = """graph @add(%x: f32[2,3], %y: f32[2,3]) {
  %z = add(%x, %y) : f32[2,3]
  return %z
}
"""
RELU = """graph @relu(%x: f32[2,3]) {
  %y = relu(%x) : f32[2,3]
  return %y
}
"""
# A mean of an open dim.
MEAN = """graph @mean(%x: f32[N,3]) {
  %axes = const @axes : i64[1]
  %t = tanh(%x) : f32[N,3]
  %m = reduce_mean(%t, %axes) {keepdims=false} : f32[3]
  %e = exp(%m) : f32[3]
  return %e
}

constants {
  @axes = [0] : i64[1]
}
"""
OPEN = """graph @open(%x: f32[N,3], %y: f32[N,3]) {
  %z = add(%x, %y) : f32[N,3]
  return %z
}
"""
# What it computes can be told from its output: one element of the input each.
PICTURE = """graph @picture(%image: f32[{}]) {{
  %out = relu(%image) : f32[{}]
  return %out
}}
"""


def picture_model(shape):
    return PICTURE.format(shape, shape)


class CliTest(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="kiln-cli-")
        self.addCleanup(folder.cleanup)
        self.dir = pathlib.Path(folder.name)

    # --- files ---

    def write(self, name, content):
        path = self.dir / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, str):
            path.write_text(content, encoding="utf-8")
        else:
            path.write_bytes(content)
        return str(path)

    def files(self):
        """What lies in the test's folder: for asserting that nothing was left behind."""
        return sorted(str(path.relative_to(self.dir)) for path in self.dir.rglob("*") if not path.is_dir())

    # --- running ---

    def start(self, *arguments, **options):
        command = [KILN, *map(str, arguments)]
        options.setdefault("stdout", subprocess.PIPE)
        options.setdefault("cwd", self.dir)
        options.setdefault("timeout", 300)
        result = subprocess.run(command, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, check=False, **options)
        result.stderr = result.stderr.decode("utf-8", "replace")
        self.assertNotRegex(result.stderr, SANITIZERS)
        self.assertGreaterEqual(result.returncode, 0, f"{command}: killed by a signal: {result.stderr}")
        return result

    def kiln(self, *arguments, status=OK):
        """Runs and asserts the exit status; returns standard output."""
        result = self.start(*arguments)
        self.assertEqual(result.returncode, status, f"kiln {' '.join(map(str, arguments))}: {result.stderr}")
        return result.stdout.decode("utf-8")

    def kiln_err(self, *arguments, status=OK):
        """The same; returns standard error, where reports and dumps go."""
        result = self.start(*arguments)
        self.assertEqual(result.returncode, status, result.stderr)
        return result.stderr

    def fails(self, status, message, *arguments):
        """Asserts the exit status, one message that contains each of `message`'s texts, and no output."""
        result = self.start(*arguments)
        shown = f"kiln {' '.join(map(str, arguments))}: {result.stderr}"
        self.assertEqual(result.returncode, status, shown)
        self.assertEqual(result.stdout, b"", shown)
        self.assertTrue(result.stderr.startswith(f"kiln {arguments[0]}: "), shown)
        self.assertTrue(result.stderr.endswith("\n"), shown)
        for text in [message] if isinstance(message, str) else message:
            self.assertIn(text, result.stderr)

    def json(self, *arguments, status=OK):
        document = json.loads(self.kiln(*arguments, status=status))
        self.assertEqual(document["schema_version"], 1)
        return document

    def keys(self, mapping, *names):
        self.assertEqual([name for name in names if name not in mapping], [])


# --- tensors ---

def npy(descr, shape, payload, fortran=False, version=1):
    header = f"{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': {tuple(shape)!r}, }}"
    length = struct.pack("<H" if version == 1 else "<I", len(header))
    return b"\x93NUMPY" + bytes([version, 0]) + length + header.encode() + payload


def floats(*values):
    return struct.pack(f"<{len(values)}f", *values)


def main():
    """Runs the tests of the script; exit status 77 where all of them had to be skipped."""
    program = unittest.main(exit=False, verbosity=1, buffer=False)
    result = program.result
    if not result.wasSuccessful():
        sys.exit(1)
    if result.testsRun == 0:
        print("expected tests, found none")
        sys.exit(1)
    if len(result.skipped) == result.testsRun:
        print(f"SKIP: {result.skipped[0][1]}")
        sys.exit(77)
