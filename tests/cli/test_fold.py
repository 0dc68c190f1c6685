# SPDX-License-Identifier: Apache-2.0
"""Small models that ask for much: what folding would make of them is not made, and the report says why."""
import pathlib
import resource
import struct
import subprocess
import tempfile

import onnx_writer as onnx
from harness import KILN, CliTest, main

ROWS, COLUMNS = 512, 147000  # 301 MB of floats
MOST = 48 * 2**20  # bytes of the whole process


def shape(name, *dims):
    return onnx.tensor(name, onnx.INT64, [len(dims)], struct.pack(f"<{len(dims)}q", *dims))


class Fold(CliTest):
    def compile(self, nodes, initializers, dtype=onnx.FLOAT, dims=(ROWS, COLUMNS)):
        """Compiles to instructions and a memory plan; the model's bytes."""
        model = onnx.model(nodes, [], [onnx.value("y", dtype, dims)], initializers)
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "m.onnx"
            path.write_bytes(model)
            done = subprocess.run([KILN, "opt", path, "--stage", "ir", "--stats"], capture_output=True, text=True,
                                  check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return len(model), done.stdout + done.stderr

    def test_ctf_21_constant_of_shape_takes_no_storage(self):
        size, text = self.compile([onnx.node("ConstantOfShape", ["s"], ["y"])], [shape("s", ROWS, COLUMNS)])
        self.assertLess(size, 152)
        self.assertIn("splat(0)", text)

    def test_ctf_21_what_repeats_stays(self):
        half = ROWS * COLUMNS // 2
        for op, by in (("Expand", (half, 2)), ("Tile", (half, 1))):
            literal = onnx.float_tensor("w", [1, 2], [1, 2])
            size, text = self.compile([onnx.node(op, ["w", "s"], ["y"])], [literal, shape("s", *by)], dims=(half, 2))
            self.assertLess(size, 152)
            self.assertIn(f"{op.lower()} @out", text)
            self.assertIn(f"max_expansion: y ({op.lower()}): {ROWS * COLUMNS * 4} bytes", text)

    def test_ctf_21_sums_that_grow_stay(self):
        column = onnx.float_tensor("c", [ROWS, 1], range(ROWS))
        row = onnx.float_tensor("r", [1, COLUMNS], [1, *range(COLUMNS - 1)])
        _, text = self.compile([onnx.node("Add", ["c", "r"], ["y"])], [column, row])
        self.assertIn(f"max_expansion: y (add): {ROWS * COLUMNS * 4} bytes", text)

    @classmethod
    def tearDownClass(cls):
        """Of all commands above: none of them held what it was asked for."""
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
        if peak > MOST:
            raise AssertionError(f"expected at most {MOST} bytes of memory, found {peak}")


if __name__ == "__main__":
    main()
