# SPDX-License-Identifier: Apache-2.0
"""Small models in the forms that exporters of detectors write. Data decides a shape, and other nodes compute with it.
Each model runs with the default pipeline, without passes, and on the reference kernels."""
import pathlib
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cli"))
from harness import FAILED, CliTest, main  # noqa: E402
from onnx_writer import (FLOAT, INT64, chunk, graph_attribute, int_attribute, ints_attribute, model,  # noqa: E402
                         node, tensor, value)

WAYS = ((), ("--pipeline", "none"), ("--backend", "ref"))
LONG = 40  # elements of an input whose values nobody takes for a shape


class Model:
    """Nodes in order. Constants are written where they are used."""

    def __init__(self):
        self.nodes, self.constants, self.names = [], [], 0

    def name(self):
        self.names += 1
        return f"v{self.names}"

    def ints(self, *numbers, dims=None):
        name = self.name()
        dims = [len(numbers)] if dims is None else dims
        self.constants.append(tensor(name, INT64, dims, struct.pack(f"<{len(numbers)}q", *numbers)))
        return name

    def floats(self, *numbers, dims):
        name = self.name()
        self.constants.append(tensor(name, FLOAT, dims, struct.pack(f"<{len(numbers)}f", *numbers)))
        return name

    def add(self, op, *inputs, attributes=(), out=None):
        out = out or self.name()
        self.nodes.append(node(op, inputs, [out], f"the_{op}_{out}", attributes=attributes))
        return out

    def count(self):
        """A list of one number: how many elements of x are above 0."""
        positive = self.add("Cast", self.add("Greater", "x", self.floats(0, dims=[])), attributes=[
            int_attribute("to", INT64)])
        return self.add("ReduceSum", positive, self.ints(0))

    def rows(self):
        """The rows of x, f32[6,2], that begin with a number above 0."""
        first = self.add("Gather", "x", self.ints(0, dims=[]), attributes=[int_attribute("axis", 1)])
        places = self.add("NonZero", self.add("Greater", first, self.floats(0, dims=[])))
        return self.add("GatherND", "x", self.add("Transpose", places, attributes=[ints_attribute("perm", [1, 0])]))

    def concat(self, *parts, axis=0, out=None):
        return self.add("Concat", *parts, attributes=[int_attribute("axis", axis)], out=out)

    def dim(self, of, d):
        return self.add("Gather", self.add("Shape", of), self.ints(d))

    def encode(self, *inputs, result=FLOAT):
        return model(self.nodes, [value(name, FLOAT, dims) for name, dims in inputs], [chunk(1, "y")], self.constants,
                     opset=17)


def counted(n):
    """An input with @n elements above 0."""
    return [1.0] * n + [-1.0] * (LONG - n)


def chosen(*flags):
    """Six rows. Those with a flag are above 0, the others are not."""
    return [number for i, flag in enumerate(flags) for number in ((i + 1) * (1 if flag else -1), 10 * (i + 1))]


def flat(rows):
    return [number for row in rows for number in row]


def picked(*flags):
    return [[i + 1, 10 * (i + 1)] for i, flag in enumerate(flags) if flag]


FLAGS = ((0, 1, 1, 0, 1, 0), (0,) * 6, (1,) * 6, (0, 0, 0, 0, 0, 1))


class Forms(CliTest):
    def run_model(self, path, inputs, *arguments, form="f"):
        """The shape and the elements of the output."""
        files = [f"{name}={self.write(f'{name}.raw', struct.pack(f'<{len(values)}f', *values))}"
                 for name, (values, dims) in inputs.items()]
        shapes = [text for name, (values, dims) in inputs.items()
                  for text in ("--shape", f"{name}={'x'.join(map(str, dims))}")]
        given = [text for file in files for text in ("-i", file)]
        self.kiln("run", path, *given, *shapes, *arguments, "--npy", "-o", "out", "--quiet")
        data = (self.dir / "out" / "output_0.npy").read_bytes()
        length = struct.unpack("<H", data[8:10])[0]
        header = data[10:10 + length].decode()
        dims = [int(dim) for dim in header.split("(")[1].split(")")[0].split(",") if dim.strip()]
        payload = data[10 + length:]
        return dims, list(struct.unpack(f"<{len(payload) // struct.calcsize(form)}{form}", payload))

    def expect(self, path, inputs, dims, elements, form="f"):
        for way in WAYS:
            with self.subTest(way=way, inputs=inputs):
                self.assertEqual(self.run_model(path, inputs, *way, form=form), (dims, elements))

    def write_model(self, encoded):
        return self.write("m.onnx", encoded)

    def test_a_list_without_elements(self):
        """`torch.flatten` of what is selected. The list of the dims in front of the first one is empty."""
        m = Model()
        rows = m.rows()
        none = m.add("Slice", m.add("Shape", rows), m.ints(0), m.ints(0), m.ints(0))
        m.add("Reshape", rows, m.concat(none, m.ints(-1)), out="y")
        path = self.write_model(m.encode(("x", [6, 2])))
        for flags in FLAGS:
            kept = flat(picked(*flags))
            self.expect(path, {"x": (chosen(*flags), [6, 2])}, [len(kept)], kept)

    def test_paddings_that_are_turned_around(self):
        """`torch.nn.functional.pad` up to six rows. Its list of paddings begins with the last dim."""
        m = Model()
        rows = m.rows()
        lack = m.add("Sub", m.ints(6), m.dim(rows, 0))
        pairs = m.add("Reshape", m.concat(m.ints(0, 0, 0), lack), m.ints(-1, 2))
        turned = m.add("Slice", pairs, m.ints(-1), m.ints(-100), m.ints(0), m.ints(-1))
        ends = m.add("Reshape", m.add("Transpose", turned, attributes=[ints_attribute("perm", [1, 0])]), m.ints(-1))
        m.add("Pad", rows, ends, out="y")
        path = self.write_model(m.encode(("x", [6, 2])))
        for flags in FLAGS:
            kept = flat(picked(*flags))
            self.expect(path, {"x": (chosen(*flags), [6, 2])}, [6, 2], kept + [0] * (12 - len(kept)))

    def test_shapes_that_data_computes(self):
        """A dim is known, computed, stated as -1, computed as -1, or computed as 0, which copies a dim."""
        def minus_one(m, n):
            return m.add("Sub", n, m.add("Add", n, m.ints(1)))

        lists = {"n,-1": (lambda m, n: m.concat(n, m.ints(-1)), lambda n: [n, 12 // n]),
                 "-1,n": (lambda m, n: m.concat(m.ints(-1), n), lambda n: [12 // n, n]),
                 "2,n,12/2n": (lambda m, n: m.concat(m.ints(2), n, m.add("Div", m.ints(6), n)), lambda n: [2, n, 6 // n]),
                 "n-n-1,3": (lambda m, n: m.concat(minus_one(m, n), m.ints(3)), lambda n: [4, 3]),
                 "n-n,4": (lambda m, n: m.concat(m.add("Sub", n, n), m.ints(4)), lambda n: [3, 4])}
        for name, (build, expected) in lists.items():
            m = Model()
            m.add("Reshape", "z", build(m, m.count()), out="y")
            path = self.write_model(m.encode(("x", [LONG]), ("z", [3, 4])))
            for n in (1, 3, 6):
                with self.subTest(shape=name):
                    self.expect(path, {"x": (counted(n), [LONG]), "z": (list(range(12)), [3, 4])}, expected(n),
                                list(range(12)))

    def test_shapes_that_do_not_fit(self):
        m = Model()
        m.add("Reshape", "z", m.concat(m.count(), m.ints(-1)), out="y")
        path = self.write_model(m.encode(("x", [LONG]), ("z", [3, 4])))
        x = self.write("x.raw", struct.pack(f"<{LONG}f", *counted(5)))
        for way in WAYS:
            self.assertIn("expected", self.kiln_err("run", path, "-i", f"x={x}", "--random", "1", *way, status=FAILED))

    def test_ranges_of_computed_numbers(self):
        for parts, expected in (((None, 9, 2), lambda n: list(range(n, 9, 2))),
                                ((None, -1, -1), lambda n: list(range(n, -1, -1))),
                                ((7, None, -2), lambda n: list(range(7, n, -2))),
                                ((0, 12, None), lambda n: list(range(0, 12, n)))):
            m = Model()
            n = m.add("Squeeze", m.count())
            m.add("Range", *(n if part is None else m.ints(part, dims=[]) for part in parts), out="y")
            path = self.write_model(m.encode(("x", [LONG])))
            for count in (1, 4, 11):
                numbers = expected(count)
                with self.subTest(parts=parts):
                    self.expect(path, {"x": (counted(count), [LONG])}, [len(numbers)], numbers, form="q")

    def test_a_constant_in_a_roundabout_way(self):
        """Only passes find out that the number is always 3."""
        m = Model()
        n = m.add("Squeeze", m.count())
        m.add("Range", n, m.add("Add", n, m.ints(3, dims=[])), m.ints(1, dims=[]), out="y")
        path = self.write_model(m.encode(("x", [LONG])))
        for count in (0, 4):
            self.expect(path, {"x": (counted(count), [LONG])}, [3], list(range(count, count + 3)), form="q")

    def test_slices_of_two_axes(self):
        """One goes backwards from a computed place, the other forwards in steps of 2."""
        m = Model()
        n = m.count()
        m.add("Slice", "z", m.concat(n, m.ints(1)), m.concat(m.add("Sub", n, m.ints(9)), n), m.ints(1, 0),
              m.ints(-1, 2), out="y")
        path = self.write_model(m.encode(("x", [LONG]), ("z", [6, 8])))
        table = [[10 * i + k for k in range(8)] for i in range(6)]
        for count in (0, 2, 5, 12):
            columns = range(min(count, 7), count - 9 + (8 if count < 9 else 0), -1)
            rows = [[row[k] for k in columns] for row in table[1:count:2]]
            self.expect(path, {"x": (counted(count), [LONG]), "z": (flat(table), [6, 8])}, [len(rows), len(columns)],
                        flat(rows))

    def test_dims_in_ways_that_nobody_follows(self):
        """A running sum over dims: one that data decides, one that is known, and one that is an expression."""
        m = Model()
        rows = m.rows()
        sums = m.add("CumSum", m.add("Shape", rows), m.ints(0, dims=[]))
        m.add("ConstantOfShape", m.concat(m.dim(rows, 0), sums, m.ints(1)), out="y")
        path = self.write_model(m.encode(("x", [6, 2])))
        for flags in FLAGS:
            n = sum(flags)
            self.expect(path, {"x": (chosen(*flags), [6, 2])}, [n, n, n + 2, 1], [0] * (n * n * (n + 2)))

    def test_parts_that_only_data_shows_to_be_equal(self):
        """Selected rows are joined with as many rows as the first column has elements above 0."""
        m = Model()
        rows = m.rows()
        first = m.add("Gather", rows, m.ints(0, dims=[]), attributes=[int_attribute("axis", 1)])
        many = m.add("ReduceSum", m.add("Cast", m.add("Greater", first, m.floats(0, dims=[])), attributes=[
            int_attribute("to", INT64)]), m.ints(0))
        ones = m.add("Expand", m.floats(7, dims=[]), m.concat(many, m.ints(1)))
        m.concat(rows, ones, axis=1, out="y")
        path = self.write_model(m.encode(("x", [6, 2])))
        for flags in FLAGS:
            kept = [row + [7] for row in picked(*flags)]
            self.expect(path, {"x": (chosen(*flags), [6, 2])}, [len(kept), 3], flat(kept))

    def test_parts_that_differ(self):
        m = Model()
        rows = m.rows()
        m.concat(rows, m.add("Expand", m.floats(7, dims=[]), m.concat(m.ints(2), m.ints(1))), axis=1, out="y")
        path = self.write_model(m.encode(("x", [6, 2])))
        self.expect(path, {"x": (chosen(0, 1, 0, 1, 0, 0), [6, 2])}, [2, 3], [2, 20, 7, 4, 40, 7])
        x = self.write("x.raw", struct.pack("<12f", *chosen(0, 1, 0, 0, 0, 0)))
        for way in WAYS:
            self.assertIn("expected", self.kiln_err("run", path, "-i", f"x={x}", *way, status=FAILED))

    def test_boxes_of_no_class_have_a_branch(self):
        """`batched_nms` has a branch for no boxes. Both branches return a list of places."""
        m = Model()
        rows = m.rows()
        empty = m.add("Equal", m.add("ReduceProd", m.add("Shape", rows), attributes=[int_attribute("keepdims", 0)]),
                      m.ints(0, dims=[]))
        first = m.name()
        other = [node("Gather", [rows, "zero"], [first], "the_first", attributes=[int_attribute("axis", 1)]),
                 node("Cast", [first], ["t"], "the_cast", attributes=[int_attribute("to", INT64)])]
        m.constants += [tensor("zero", INT64, [], struct.pack("<q", 0)), tensor("none", INT64, [0], b"")]
        m.nodes.append(node("If", [empty], ["places"], "the_if", attributes=[
            graph_attribute("then_branch", [node("Identity", ["none"], ["t"], "the_none")], [chunk(1, "t")]),
            graph_attribute("else_branch", other, [chunk(1, "t")])]))
        m.add("Slice", "places", m.ints(0), m.ints(2), m.ints(0), out="y")
        path = self.write_model(m.encode(("x", [6, 2])))
        for flags in FLAGS:
            places = [row[0] for row in picked(*flags)][:2]
            self.expect(path, {"x": (chosen(*flags), [6, 2])}, [len(places)], places, form="q")


if __name__ == "__main__":
    main()
