# SPDX-License-Identifier: Apache-2.0
"""No result takes the place of the model it was made of."""
import os

from harness import RELU, USAGE, CliTest, main
from onnx_writer import FLOAT, chunk, model, node, number, value

BIG = """graph @f(%x: f32[1,256]) {
  %w = const @w : f32[256,256]
  %y = matmul(%x, %w) : f32[1,256]
  return %y
}
constants { @w = file("data.bin", 0, 262144) : f32[256,256] }
"""


def entry(key, text):
    return chunk(13, chunk(1, key) + chunk(2, text))


class Overwrite(CliTest):
    def refused(self, *arguments, expected="another file than"):
        before = self.contents()
        self.fails(USAGE, [f"expected {expected}", "found "], *arguments)
        self.assertEqual(self.contents(), before)

    def share(self, *arguments):
        self.refused(*arguments, expected="a file of its own")

    def contents(self):
        return {name: (self.dir / name).read_bytes() for name in self.files()}

    def ways(self, path):
        """Other names of one file."""
        os.symlink(path, self.dir / "symbolic")
        os.link(path, self.dir / "hard")
        (self.dir / "folder").mkdir()
        os.symlink(self.dir, self.dir / "folder" / "back")
        name = os.path.basename(path)
        return [path, name, f"./folder/../{name}", f"folder/back/{name}", "symbolic", "hard"]

    def test_the_model(self):
        path = self.write("relu.kiln", RELU)
        for way in self.ways(path):
            with self.subTest(way=way):
                self.refused("opt", path, "-o", way)
                self.refused("opt", path, "--emit", "onnx", "-o", way)
                self.refused("compile", path, "-o", way)
                self.refused("memory", path, "--svg", way)
                self.refused("memory", path, "--csv", way)

    def test_traces(self):
        path = self.write("relu.kiln", RELU)
        for command in (["opt"], ["check"], ["info"], ["memory"], ["run", "--random", "1"], ["compile", "-o", "program"]):
            self.refused(*command, path, "--trace", path)

    def test_results_of_a_run(self):
        for name, option in (("output_0", "-o"), ("input_0", "--save-inputs")):
            for ending, more in (("pb", []), ("npy", ["--npy"])):
                path = self.write(f"{name}.{ending}", RELU)
                self.refused("run", path, "--random", "1", option, ".", *more)

    def test_what_else_is_read(self):
        """Tensors, expected outputs, labels and pipelines."""
        path = self.write("relu.kiln", RELU)
        self.kiln("run", path, "--random", "1", "-o", "out", "--save-inputs", "in", "--npy")
        self.write("p.yaml", "version: 1\ngraph: []\nir: []\n")
        self.write("labels", "a\n")
        self.refused("run", path, "--random", "2", "-o", "out", "--expect", "out", "--npy")
        self.refused("run", path, "-i", "x=in/input_0.npy", "--save-inputs", "in", "--npy")
        self.refused("run", path, "-i", "x=in/input_0.npy", "--trace", "in/input_0.npy")
        self.refused("run", path, "--random", "1", "--labels", "labels", "--trace", "labels")
        for command in ("opt", "compile"):
            self.refused(command, path, "--pipeline", "p.yaml", "-o", "p.yaml")
        self.refused("run", path, "--random", "1", "--pipeline", "p.yaml", "--trace", "p.yaml")

    def test_each_other(self):
        path = self.write("relu.kiln", RELU)
        (self.dir / "there").mkdir()
        for there in (".", "there", "new"):
            one = f"{there}/output_0.pb"
            self.share("run", path, "--random", "1", "-o", there, "--trace", f"./{one}")
            self.share("opt", path, "-o", one, "--trace", one)
            self.share("opt", path, "-o", one, "--trace", f"{one}.bin")
            self.share("compile", path, "-o", one, "--trace", one)
            self.share("memory", path, "--svg", one, "--csv", one)
        other = self.write("other", "what was there")
        os.symlink(other, self.dir / "link")
        self.share("memory", path, "--svg", "other", "--csv", "link")
        self.kiln("memory", path, "--svg", "/dev/null", "--csv", "/dev/null")

    def test_objects(self):
        path = self.write("relu.o", RELU)
        self.refused("compile", path, "--format", "object", "-o", path)

    def test_external_data_of_a_text(self):
        data = self.write("data.bin", bytes(262144))
        path = self.write("big.kiln", BIG)
        for way in (data, "./data.bin"):
            self.refused("opt", path, "-o", way)
            self.refused("compile", path, "-o", way)
        # `-o F` writes F.bin too.
        self.refused("opt", path, "-o", "data")

    def test_external_data_of_onnx(self):
        data = self.write("weights", bytes(16))
        weight = number(1, 4) + number(2, FLOAT) + chunk(8, "w") + entry("location", "weights") + number(14, 1)
        path = self.write("external.onnx", model([node("Add", ["x", "w"], ["y"])], [value("x", FLOAT, [4])],
                                                 [value("y", FLOAT, [4])], [weight]))
        self.refused("opt", path, "--emit", "onnx", "-o", data)
        self.refused("compile", path, "-o", data)

    def test_others_are_replaced(self):
        path = self.write("relu.kiln", RELU)
        other = self.write("other.kiln", "what was there")
        self.kiln("opt", path, "-o", other)
        self.assertNotIn("what was there", (self.dir / "other.kiln").read_text(encoding="utf-8"))
        self.kiln("opt", path, "-o", "/dev/null")


if __name__ == "__main__":
    main()
