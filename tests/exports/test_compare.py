# SPDX-License-Identifier: Apache-2.0
"""check_exports.py finds what differs. It fails if it could not compare anything."""
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import check_exports  # noqa: E402

try:
    import numpy as np
except ImportError:
    print("SKIP: this Python lacks numpy")
    sys.exit(77)

NAMES = ["boxes", "labels", "scores"]


def detections(n, scores=None):
    """@n boxes with scores that fall by 0.01."""
    scores = 0.9 - 0.01 * np.arange(n) if scores is None else scores
    return [np.arange(4 * n, dtype=np.float32).reshape(n, 4), np.ones(n, np.int64), np.asarray(scores, np.float32)]


class Compare(unittest.TestCase):
    def test_equal_boxes(self):
        self.assertEqual(check_exports.compare(NAMES, detections(24), detections(24)), "")

    def test_boxes_in_another_order(self):
        self.assertEqual(check_exports.compare(NAMES, detections(24), [part[::-1] for part in detections(24)]), "")

    def test_another_box(self):
        found = detections(24)
        found[0][3] += 50
        self.assertEqual(check_exports.compare(NAMES, detections(24), found)[:28], "1 boxes of 24 are not there,")

    def test_another_number_of_boxes(self):
        self.assertEqual(check_exports.compare(NAMES, detections(24), detections(23)), "expected 24 boxes, found 23")

    def test_no_boxes(self):
        for n in (0, 7):
            self.assertEqual(check_exports.compare(NAMES, detections(n), detections(n)),
                             f"expected at least 8 boxes to compare, found {n}")
        rows = [np.zeros((1, 0, 6), np.float32)]
        self.assertEqual(check_exports.compare(["output0"], rows, rows), "expected at least 8 boxes to compare, found 0")

    def test_equal_scores(self):
        same = detections(24, [0.5] * 24)
        self.assertEqual(check_exports.compare(NAMES, same, same),
                         "nothing was compared: no score of 24 boxes stands alone above the last one")
        padding = [np.zeros((1, 24, 6), np.float32)]
        self.assertIn("nothing was compared", check_exports.compare(["output0"], padding, padding))

    def test_plain(self):
        self.assertEqual(check_exports.compare(["y"], [np.ones(3)], [np.ones(3)]), "")
        self.assertIn("the largest difference is 1", check_exports.compare(["y"], [np.ones(3)], [np.zeros(3)]))
        self.assertIn("expected float64(3,)", check_exports.compare(["y"], [np.ones(3)], [np.ones(2)]))

    def test_no_elements(self):
        self.assertEqual(check_exports.compare(["y"], [np.ones((0, 4))], [np.ones((0, 4))]),
                         "nothing was compared: there are no elements")

    def test_missing_output(self):
        self.assertEqual(check_exports.compare(["y", "z"], [np.ones(3), np.ones(3)], [np.ones(3)]),
                         "expected 2 outputs, found 1")


if __name__ == "__main__":
    unittest.main()
