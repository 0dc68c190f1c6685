#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Arrays in and out: the buffer protocol, DLPack, ml_dtypes, strides, alignment, strings, tensors."""
import array
import gc
import sys
import unittest

from case import ADD, kiln_nn, main, np, session_of, unary

try:
    import ml_dtypes
except ImportError:
    ml_dtypes = None

NUMPY_TYPES = ["f32", "f64", "f16", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "bool"]
ML_TYPES = {"bf16": "bfloat16", "f8e4m3fn": "float8_e4m3fn", "f8e4m3fnuz": "float8_e4m3fnuz", "f8e5m2": "float8_e5m2",
            "f8e5m2fnuz": "float8_e5m2fnuz", "f8e8m0": "float8_e8m0fnu", "f6e2m3": "float6_e2m3fn",
            "f6e3m2": "float6_e3m2fn", "f4e2m1": "float4_e2m1fn", "i4": "int4", "u4": "uint4", "i2": "int2", "u2": "uint2"}


class Capsule:
    """What only knows DLPack, of version 0 or 1."""

    def __init__(self, tensor, versions):
        self.tensor, self.versions = tensor, versions

    def __dlpack__(self, **options):
        if not self.versions and options:
            raise TypeError("no versions")
        return self.tensor.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.tensor.__dlpack_device__()


class Inputs(unittest.TestCase):
    def setUp(self):
        self.session = session_of(unary("neg"))

    def check(self, x, expected):
        np.testing.assert_array_equal(self.session.run({"x": x})["y"], np.negative(np.asarray(expected, np.float32)))

    def test_read_only(self):
        x = np.arange(4, dtype=np.float32)
        x.setflags(write=False)
        self.check(x, x)
        self.check(memoryview(x), x)

    def test_strided_reversed_and_misaligned(self):
        x = np.arange(20, dtype=np.float32)
        for view in (x[::2], x[::-1], x.reshape(4, 5).T[1], np.broadcast_to(np.float32(3), 7)):
            self.check(view, view.copy())
        raw = np.zeros(41, np.uint8)
        odd = raw[1:].view(np.float32)
        odd[:] = np.arange(10)
        self.check(odd, np.arange(10))
        square = session_of(unary("neg", dims="N,M")).run({"x": x.reshape(4, 5).T})["y"]
        np.testing.assert_array_equal(square, -x.reshape(4, 5).T)

    def test_other_libraries(self):
        self.check(array.array("f", [1, 2, 3]), [1, 2, 3])
        self.check(memoryview(array.array("f", [1, 2])), [1, 2])

    def test_lists_and_numbers(self):
        self.check([1, 2.5], [1, 2.5])
        self.assertEqual(session_of(unary("neg", dims="")).run({"x": 3})["y"], -3)

    def test_empty(self):
        self.check(np.zeros(0, np.float32), [])

    def test_dlpack(self):
        x = np.arange(4, dtype=np.float32)
        for versions in (False, True):
            tensor = kiln_nn.Tensor(x)
            before = sys.getrefcount(tensor)
            self.check(Capsule(tensor, versions), x)
            gc.collect()
            self.assertEqual(sys.getrefcount(tensor), before)

    def test_read_only_dlpack(self):
        x = np.arange(4, dtype=np.float32)
        x.setflags(write=False)
        self.check(Capsule(kiln_nn.Tensor(x), True), x)
        with self.assertRaises(BufferError):
            kiln_nn.Tensor(x).__dlpack__()
        with self.assertRaisesRegex(kiln_nn.UsageError, "expected writable memory, found read-only"):
            self.session.run({"x": x}, out={"y": Capsule(kiln_nn.Tensor(x), True)})

    def test_refused(self):
        for x, kind, words in ((np.zeros(2), kiln_nn.ElementTypeError, "input x: expected f32, found f64"),
                               (np.zeros(2, ">f4"), kiln_nn.ElementTypeError, "found the buffer format"),
                               (np.zeros(2, np.complex64), kiln_nn.ElementTypeError, "found the buffer format"),
                               (np.zeros(2, object), kiln_nn.ElementTypeError, "found the buffer format"),
                               (np.zeros(2, "M8[s]"), kiln_nn.ElementTypeError, "datetime64"),
                               (np.zeros([1] * 9, np.float32), kiln_nn.ShapeError, "rank 0 to 8"),
                               (b"abcd", kiln_nn.ElementTypeError, "expected f32, found u8"),
                               (np.zeros((1, 2), np.float32), kiln_nn.ShapeError, r"expected f32\[N\]"),
                               (object(), kiln_nn.ElementTypeError, "found the buffer format"),
                               (None, kiln_nn.ElementTypeError, "found the buffer format")):
            with self.subTest(x=x), self.assertRaisesRegex(kind, words):
                self.session.run({"x": x})


class Outputs(unittest.TestCase):
    def test_refused(self):
        session = session_of(ADD)
        x = np.ones((2, 3), np.float32)
        read_only = np.zeros((2, 3), np.float32)
        read_only.setflags(write=False)
        for out, kind, words in (
                ({"z": np.zeros((2, 3))}, kiln_nn.ElementTypeError, "output z: expected f32, found f64"),
                ({"z": np.zeros((3, 2), np.float32)}, kiln_nn.ShapeError, r"output z: expected \[2,3\], found \[3,2\]"),
                ({"z": np.zeros((3, 2), np.float32).T}, kiln_nn.UsageError, "expected row-major memory"),
                ({"z": read_only}, kiln_nn.UsageError, "expected writable memory, found read-only"),
                ({"z": [1]}, kiln_nn.ElementTypeError, "expected an array"),
                ({"y": x}, kiln_nn.UsageError, "output y: expected one of z"),
                ({"z": x}, kiln_nn.UsageError, "overlap")):
            with self.subTest(out=out), self.assertRaisesRegex(kind, words):
                session.run({"x": x, "y": x}, out=out)
        self.assertTrue((session.run({"x": x, "y": x})["z"] == 2).all())

    def test_a_refused_output_leaves_the_one_before_alone(self):
        session = session_of(unary("neg"))
        out = np.zeros(2, np.float32)
        session.run({"x": np.ones(2, np.float32)}, out={"y": out})
        for wrong in (np.zeros(2), np.zeros(3, np.float32)):
            with self.assertRaises(kiln_nn.Error):
                session.run({"x": np.ones(2, np.float32)}, out={"y": wrong})
        out[:] = 5
        self.assertEqual(session.run({"x": np.ones(2, np.float32)})["y"][0], -1)
        self.assertEqual(out[0], 5)

    def test_memory_is_writable_and_not_copied(self):
        result = session_of(ADD).run({"x": np.ones((2, 3), np.float32), "y": np.ones((2, 3), np.float32)})["z"]
        self.assertTrue(result.flags.writeable and result.flags.c_contiguous)
        self.assertIsInstance(result.base.obj if isinstance(result.base, memoryview) else result.base, kiln_nn.Tensor)
        self.assertEqual(result.ctypes.data % 64, 0)

    def test_dlpack(self):
        x = np.ones((2, 3), np.float32)
        result = session_of(ADD).run({"x": x, "y": x})["z"]
        if hasattr(np, "from_dlpack"):
            np.testing.assert_array_equal(np.from_dlpack(kiln_nn.Tensor(result)), result)
        out = np.zeros((2, 3), np.float32)
        session_of(ADD).run({"x": x, "y": x}, out={"z": Capsule(kiln_nn.Tensor(out), False)})
        self.assertTrue((out == 2).all())

    def test_ranks_up_to_8(self):
        for rank in range(9):
            dims = [2] * rank
            x = np.ones(dims, np.float32)
            y = session_of(unary("neg", dims=",".join(map(str, dims)))).run({"x": x})["y"]
            np.testing.assert_array_equal(y, -x)
            self.assertEqual(y.shape, tuple(dims))


class Types(unittest.TestCase):
    def identity(self, dtype):
        return session_of(unary("identity", dtype, "3"))

    def test_of_numpy(self):
        for dtype in NUMPY_TYPES:
            with self.subTest(dtype=dtype):
                x = np.array([0, 1, 1]).astype(kiln_nn.numpy_dtype(dtype))
                y = self.identity(dtype).run({"x": x})["y"]
                self.assertEqual(y.dtype, x.dtype)
                np.testing.assert_array_equal(y, x)
                out = np.empty_like(x)
                self.identity(dtype).run({"x": x}, out={"y": out})
                np.testing.assert_array_equal(out, x)

    @unittest.skipIf(ml_dtypes is None, "ml_dtypes is absent")
    def test_of_ml_dtypes(self):
        for dtype, name in ML_TYPES.items():
            if not hasattr(ml_dtypes, name):
                continue
            with self.subTest(dtype=dtype):
                x = np.array([1, 1, 1]).astype(getattr(ml_dtypes, name))
                y = self.identity(dtype).run({"x": x})["y"]
                self.assertEqual(y.dtype, x.dtype)
                np.testing.assert_array_equal(y, x)
                np.testing.assert_array_equal(self.identity(dtype).run({"x": x[::-1]})["y"], x)
                out = np.zeros_like(x)
                self.identity(dtype).run({"x": x}, out={"y": out})
                np.testing.assert_array_equal(out, x)

    def test_without_ml_dtypes_a_tensor_has_them(self):
        hidden = sys.modules.get("ml_dtypes")
        sys.modules["ml_dtypes"] = None
        try:
            x = kiln_nn.Tensor(np.array([0x3f80, 0x4000, 0], np.uint16), "bf16")
            y = session_of(unary("neg", "bf16", "3")).run({"x": x})["y"]
            self.assertIsInstance(y, kiln_nn.Tensor)
            self.assertEqual((y.dtype, y.shape, y.nbytes), ("bf16", (3,), 6))
            np.testing.assert_array_equal(np.frombuffer(y, np.uint16), [0xbf80, 0xc000, 0x8000])
            with self.assertRaisesRegex(ImportError, "ml_dtypes"):
                y.numpy()
        finally:
            del sys.modules["ml_dtypes"]
            if hidden:
                sys.modules["ml_dtypes"] = hidden

    def test_tensors(self):
        x = np.arange(6, dtype=np.float32).reshape(2, 3)
        tensor = kiln_nn.Tensor(x)
        self.assertEqual(repr(tensor), "kiln_nn.Tensor(dtype='f32', shape=(2, 3))")
        self.assertEqual(tensor.numpy().ctypes.data, x.ctypes.data)
        np.testing.assert_array_equal(np.asarray(tensor, dtype=np.float64), x)
        with self.assertRaises(kiln_nn.ElementTypeError):
            kiln_nn.Tensor(x, "bf16")
        with self.assertRaises(BufferError):
            tensor.__dlpack__(dl_device=(2, 0))


class Strings(unittest.TestCase):
    def test_all_kinds_of_strings(self):
        session = session_of("graph @f(%x: string[N], %z: string[N]) {\n  %y = string_concat(%x, %z) : string[N]\n"
                             "  return %y\n}\n")
        words = ["", "a", "größer", "\0mid\0"]
        for x in (np.array(words, object), words, np.array([word.encode() for word in words], object)):
            y = session.run({"x": x, "z": np.array(["!"] * 4)})["y"]
            self.assertEqual(y.dtype, object)
            self.assertEqual(y.tolist(), [word + "!" for word in words])

    def test_refused(self):
        session = session_of(unary("identity", "string"))
        with self.assertRaisesRegex(kiln_nn.ElementTypeError, "expected strings"):
            session.run({"x": np.array([1, 2])})
        with self.assertRaises(kiln_nn.FormatError):
            session.run({"x": np.array([b"\xff"], object)})
        with self.assertRaises(kiln_nn.UsageError):
            session.run({"x": np.array(["a"])}, out={"y": np.array(["b"], object)})


if __name__ == "__main__":
    main()
