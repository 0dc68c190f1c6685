# SPDX-License-Identifier: Apache-2.0
"""kiln-fit-costs (which KILN names here): the header that is built with is what the measurements that ship give."""

from harness import FAILED, SOURCE, USAGE, CliTest, main

COLUMNS = "in,out,extent,direct_us,winograd_us"


class FitCosts(CliTest):
    def test_shipped(self):
        output = self.kiln("--from", SOURCE / "bench/costs/conv.csv", "--to", "again.csv", "--header", "costs.h")
        self.assertIn("choices are not the faster one", output)
        shipped = (SOURCE / "bench/costs/conv.csv").read_text(encoding="utf-8")
        self.assertEqual((self.dir / "again.csv").read_text(encoding="utf-8").splitlines()[1:], shipped.splitlines()[1:])
        if "AVX-512" not in (self.dir / "again.csv").read_text(encoding="utf-8").splitlines()[0]:
            self.skipTest("terms are counted for the vectors of this CPU, the measurements are of AVX-512")
        self.assertEqual((self.dir / "costs.h").read_text(encoding="utf-8"),
                         (SOURCE / "backends/cpu/conv_costs.h").read_text(encoding="utf-8"))

    def test_what_was_put_in_comes_out(self):
        """Times that are 1000 times as long make every cost 1000 times as high."""
        lines = (SOURCE / "bench/costs/conv.csv").read_text(encoding="utf-8").splitlines()[2:]
        rows = [line.split(",") for line in lines]
        slow = "\n".join(",".join([*row[:3], *(repr(float(x) * 1000) for x in row[3:])]) for row in rows)
        for name, text in (("fast", "\n".join(lines)), ("slow", slow)):
            self.kiln("--from", self.write(f"{name}.csv", f"{COLUMNS}\n{text}\n"), "--header", f"{name}.h")
        costs = []
        for name in ("fast", "slow"):
            text = (self.dir / f"{name}.h").read_text(encoding="utf-8")
            costs.append([float(x) for line in text.splitlines() if "#define" in line
                          for x in line[line.index("{") + 1:line.index("}")].split(",")])
        self.assertEqual(len(costs[0]), 8)
        for fast, slow_cost in zip(*costs):
            self.assertAlmostEqual(slow_cost, 1000 * fast, delta=1e-2 * 1000 * fast)
            self.assertGreaterEqual(fast, 0)

    def refused(self, status, message, *arguments):
        result = self.start(*arguments)
        self.assertEqual(result.returncode, status, result.stderr)
        self.assertIn(message.encode() if isinstance(result.stderr, bytes) else message, result.stderr)
        self.assertNotIn("costs.h", self.files())

    def test_bad_input(self):
        for line in ("1,2,3,4", "1,2,3,4,x", "1,2,3,0,5", "0,2,3,4,5", "1,2,3,4,5,6"):
            path = self.write("bad.csv", f"# one\n{COLUMNS}\n{line}\n")
            self.refused(FAILED, f"bad.csv:3: expected {COLUMNS}, all above zero, found {line}", "--from", path, "--header", "costs.h")
        self.refused(FAILED, "expected 5 shapes or more, found 1", "--from", self.write("one.csv", f"{COLUMNS}\n1,2,3,4,5\n"),
                     "--header", "costs.h")
        self.refused(FAILED, "none.csv", "--from", "none.csv")
        self.refused(USAGE, "expected no operand, found x", "x")


if __name__ == "__main__":
    main()
