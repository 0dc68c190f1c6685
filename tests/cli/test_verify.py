# SPDX-License-Identifier: Apache-2.0
"""kiln verify: cases in the layout of ONNX's backend tests."""
import os
import unittest

import onnx_writer as onnx
from harness import DIGITS, FAILED, OK, USAGE, CliTest, main

RELU = onnx.model([onnx.node("Relu", ["x"], ["y"], "r")], [onnx.value("x", onnx.FLOAT, [3])], [onnx.value("y", onnx.FLOAT, [3])])
OPEN = onnx.model([onnx.node("Relu", ["x"], ["y"], "r")], [onnx.value("x", onnx.FLOAT, ["N", 2])], [onnx.value("y", onnx.FLOAT, ["N", 2])])
ODD = onnx.model([onnx.node("Frobnicate", ["x"], ["y"], "f")], [onnx.value("x", onnx.FLOAT, [3])],
                 [onnx.value("y", onnx.FLOAT, [3])])


class Verify(CliTest):
    def case(self, name, model=RELU, sets=(((-1, 2, 3), (0, 2, 3)),)):
        self.write(f"{name}/model.onnx", model)
        for i, (given, wanted) in enumerate(sets):
            self.write(f"{name}/test_data_set_{i}/input_0.pb", onnx.float_tensor("x", (3,), given))
            self.write(f"{name}/test_data_set_{i}/output_0.pb", onnx.float_tensor("y", (3,), wanted))

    def lines(self, *arguments, status=OK):
        return self.kiln("verify", *arguments, status=status).splitlines()

    def test_pass(self):
        self.case("cases/one")
        self.assertEqual(self.lines("cases"), ["PASS one", "1 passed, 0 failed, 0 skipped"])
        self.assertEqual(self.lines("cases/one"), ["PASS one", "1 passed, 0 failed, 0 skipped"])
        self.assertEqual(self.lines("cases", "--quiet"), ["1 passed, 0 failed, 0 skipped"])

    def test_digits(self):
        self.assertEqual(self.lines(DIGITS), ["PASS digits", "1 passed, 0 failed, 0 skipped"])

    def test_one_that_fails(self):
        self.case("cases/good")
        self.case("cases/wrong", sets=[((-1, 2, 3), (-1, 2, 3))])
        lines = self.lines("cases", status=FAILED)
        self.assertEqual(lines[0], "PASS good")
        self.assertRegex(lines[1], r"^FAIL wrong: output y: 1 of 3 elements differ, the first is element 0: expected -1, found 0")
        self.assertEqual(lines[2], "1 passed, 1 failed, 0 skipped")
        self.assertEqual(len(self.lines("cases", "-q", status=FAILED)), 2)

    def test_every_data_set_counts(self):
        self.case("two", sets=[((-1, 2, 3), (0, 2, 3)), ((1, 1, -1), (1, 1, 0))])
        self.assertEqual(self.lines("two")[0], "PASS two")
        self.case("two", sets=[((-1, 2, 3), (0, 2, 3)), ((1, 1, -1), (1, 1, -1))])
        self.assertRegex(self.lines("two", status=FAILED)[0], r"^FAIL two: test_data_set_1: output y: 1 of 3 elements differ")

    def test_data_sets_of_several_shapes(self):
        """One program of a model with open dims runs all of them."""
        self.write("open/model.onnx", OPEN)
        for i, n in enumerate((3, 1, 5, 3)):
            given = [k - 1.5 for k in range(2 * n)]
            self.write(f"open/test_data_set_{i}/input_0.pb", onnx.float_tensor("x", (n, 2), given))
            self.write(f"open/test_data_set_{i}/output_0.pb", onnx.float_tensor("y", (n, 2), [max(x, 0) for x in given]))
        for options in (), ("--poison",), ("--shape", "N=1..5"), ("--shape", "x=?x2"):
            self.assertEqual(self.lines("open", *options), ["PASS open", "1 passed, 0 failed, 0 skipped"])
        for shape, why in (("N=1..4", "test_data_set_2: input x: dim N: expected 1..4, found 5"),
                           ("N=3", r"test_data_set_1: input x: expected f32\[3,2\], found f32\[1,2\]"),
                           ("q=3", "--shape: expected one of the inputs x or of the open dims N, found q"),
                           ("x=3", r".*model.onnx: input x: expected f32\[N,2\], found f32\[3\]")):
            self.assertRegex(self.lines("open", "--shape", shape, status=FAILED)[0], f"^FAIL open: {why}$")

    def test_unsupported_is_skipped(self):
        self.case("odd", model=ODD)
        lines = self.lines("odd")
        self.assertRegex(lines[0], r"^SKIP odd: unsupported Frobnicate\(f32\): .+")
        self.assertEqual(lines[1], "0 passed, 0 failed, 1 skipped")

    def test_suspect_is_skipped_with_its_reason(self):
        self.case("cases/test_bernoulli")
        self.assertRegex(self.lines("cases")[0], r"^SKIP test_bernoulli: suspect: the expected values are one throw")

    def test_broken_cases_fail_and_the_others_go_on(self):
        self.case("c/a_model", model=RELU[:-9])
        self.case("c/b_set", sets=[])
        self.case("c/c_input")
        (self.dir / "c/c_input/test_data_set_0/input_0.pb").unlink()
        self.case("c/d_output")
        (self.dir / "c/d_output/test_data_set_0/output_0.pb").unlink()
        self.case("c/e_tolerance")
        self.write("c/e_tolerance/data.json", "{")
        self.case("c/f_good")
        self.case("c/g_dtype")
        self.write("c/g_dtype/test_data_set_0/input_0.pb", onnx.tensor("x", onnx.DOUBLE, (3,), bytes(24)))
        self.case("c/h_shape")
        self.write("c/h_shape/test_data_set_0/input_0.pb", onnx.float_tensor("x", (4,), (1, 2, 3, 4)))
        for kind in ("input", "output"):
            self.case(f"c/i_more_{kind}s")
            self.write(f"c/i_more_{kind}s/test_data_set_0/{kind}_1.pb", onnx.float_tensor("x", (3,), (0, 0, 0)))
        lines = self.lines("c", status=FAILED)
        for line, pattern in zip(lines, (
                r"FAIL a_model: c/a_model/model\.onnx: ", r"FAIL b_set: c/b_set: expected test_data_set_0, found none",
                r"FAIL c_input: \S+input_0\.pb: cannot be read: No such file", r"FAIL d_output: output y: \S*output_0\.pb: cannot be read",
                r"FAIL e_tolerance: \S+data\.json: ", r"PASS f_good$", r"FAIL g_dtype: input x: expected f32, found f64\[3\]",
                r"FAIL h_shape: input x: expected f32\[3\], found f32\[4\]",
                r"FAIL i_more_inputs: expected 1 input, as the model has, found \S+/input_1\.pb",
                r"FAIL i_more_outputs: expected 1 output, as the model has, found \S+/output_1\.pb", r"1 passed, 9 failed, 0 skipped$")):
            self.assertRegex(line, "^" + pattern)
        self.assertEqual(len(lines), 11)

    def test_names_are_paths_in_order(self):
        for name in ("b/two", "a/z", "b/one", "a/b/c"):
            self.case(f"top/{name}")
        self.assertEqual(self.lines("top")[:-1], ["PASS a/b/c", "PASS a/z", "PASS b/one", "PASS b/two"])
        self.assertEqual(self.lines("top/a", "top/b")[:-1], ["PASS b/c", "PASS z", "PASS one", "PASS two"])

    def test_tolerance(self):
        self.case("near", sets=[((-1, 2, 3), (0, 2, 3.01))])
        self.assertEqual(self.lines("near", status=FAILED)[-1], "0 passed, 1 failed, 0 skipped")
        self.lines("near", "--rtol", "1e-2")
        self.lines("near", "--rtol", "0", "--atol", "0.1")
        self.write("near/data.json", '{"rtol": 0, "atol": 0.1}')
        self.lines("near")
        self.lines("near", "--atol", "0", status=FAILED)
        for option in ("--rtol", "--atol"):
            self.fails(USAGE, f"{option}: expected 0 or more, found -1", "verify", "near", option, "-1")

    def test_tolerances_that_are_none(self):
        self.case("near", sets=[((-1, 2, 3), (0, 2, 3))])
        for text, message in (('{"rtol": "abc"}', 'rtol: expected a number of 0 or more, found "abc"'),
                              ('{"rtol": [1]}', "rtol: expected a number of 0 or more, found [1]"),
                              ('{"atol": -3}', "atol: expected a number of 0 or more, found -3"),
                              ('{"atol": null}', "atol: expected a number of 0 or more, found null"),
                              ("[1]", "expected an object"), ("", "expected an object")):
            self.write("near/data.json", text)
            self.assertEqual(self.lines("near", status=FAILED)[0], f"FAIL near: near/data.json: {message}")

    def test_differences_that_are_not_finite(self):
        self.case("inf", sets=[((-1, float("inf"), 3), (0, 2, 3))])
        self.assertIn("expected 2, found inf (largest difference inf, ", self.lines("inf", status=FAILED)[0])
        self.assertEqual(self.json("verify", "inf", "--json", status=FAILED)["cases"][0]["status"], "fail")

    def test_json(self):
        self.case("cases/good", sets=[((-1, 2, 3), (0, 2, 3.001))])
        self.case("cases/odd", model=ODD)
        self.case("cases/wrong", sets=[((-1, 2, 3), (-1, 2, 3))])
        document = self.json("verify", "cases", "--json", status=FAILED)
        self.assertEqual((document["passed"], document["failed"], document["skipped"]), (1, 1, 1))
        for case in document["cases"]:
            self.keys(case, "name", "status", "reason", "max_abs", "max_rel")
        self.assertEqual([(case["name"], case["status"]) for case in document["cases"]],
                         [("good", "pass"), ("odd", "skip"), ("wrong", "fail")])
        self.assertAlmostEqual(document["cases"][0]["max_abs"], 0.001, places=5)
        self.assertAlmostEqual(document["cases"][0]["max_rel"], 0.001 / 3.001, places=6)
        self.assertEqual(document["cases"][2]["max_abs"], 1)

    def test_no_cases(self):
        self.write("empty/file.txt", "")
        self.fails(FAILED, "empty: expected cases (model.onnx beside test_data_set_0), found none", "verify", "empty")
        self.fails(FAILED, "nowhere: cannot be read: No such file or directory", "verify", "nowhere")
        self.fails(FAILED, "nowhere: cannot be read", "verify", "nowhere", "--json")

    def test_links_that_lead_back(self):
        self.case("top/good")
        os.symlink("..", self.dir / "top/again")
        os.symlink(".", self.dir / "top/self")
        self.assertEqual(self.lines("top"), ["PASS good", "1 passed, 0 failed, 0 skipped"])

    def test_every_way_to_run(self):
        for options in (("--backend", "ref"), ("--pipeline", "none"), ("--passes", "dce,cse"), ("--threads", "1"),
                        ("--threads", "2"), ("--mode", "train"), ("--no-verify",)):
            self.assertEqual(self.lines(DIGITS, *options)[-1], "1 passed, 0 failed, 0 skipped")


if __name__ == "__main__":
    main()
