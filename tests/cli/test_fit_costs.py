# SPDX-License-Identifier: Apache-2.0
"""kiln-fit-costs (which KILN names here): the headers that are built with are what the measurements that ship give."""

from harness import FAILED, SOURCE, USAGE, CliTest, main

COLUMNS = "kind,in,out,kernel,stride,extent,direct_us,winograd_us,last_us,blocked_us"
SHIPPED = SOURCE / "bench/costs/operators.csv"
SHIPPED_AVX2 = SOURCE / "bench/costs/operators-avx2.csv"


def costs_of(text):
    """The numbers of a header, row by row."""
    rows = [line[line.index("= {"):] for line in text.splitlines() if "] = {" in line]
    return [float(x) for row in rows for x in row.replace("{", " ").replace("}", " ").replace("\\", " ").replace("=", " ")
            .replace(",", " ").split()]


class FitCosts(CliTest):
    def test_shipped(self):
        own_kernels = 0
        for isa, shipped, suffix, name in (("avx512", SHIPPED, "", "AVX-512"), ("avx2", SHIPPED_AVX2, "_avx2", "AVX2")):
            output = self.kiln("--isa", isa, "--from", shipped, "--to", "again.csv", "--own-header", "own.h",
                               "--vendor-header", "vendor.h")
            self.assertIn("choices are not the faster one", output)
            measured = shipped.read_text(encoding="utf-8")
            again = (self.dir / "again.csv").read_text(encoding="utf-8")
            self.assertEqual(again.splitlines()[1:], measured.splitlines()[1:])
            self.assertEqual((self.dir / "vendor.h").read_text(encoding="utf-8"),
                             (SOURCE / f"backends/onednn/costs{suffix}.h").read_text(encoding="utf-8"))
            if name in again.splitlines()[0]: # terms are counted for the vectors of this CPU
                self.assertEqual((self.dir / "own.h").read_text(encoding="utf-8"),
                                 (SOURCE / f"backends/cpu/costs{suffix}.h").read_text(encoding="utf-8"))
                own_kernels += 1
        if not own_kernels:
            self.skipTest("terms are counted for the vectors of this CPU, which were not measured")

    def test_what_was_put_in_comes_out(self):
        """Times that are 1000 times as long make every cost 1000 times as high."""
        rows = [line.split(",") for line in SHIPPED.read_text(encoding="utf-8").splitlines()[2:]]
        slow = "\n".join(",".join([*row[:6], *("-" if x == "-" else repr(float(x) * 1000) for x in row[6:])]) for row in rows)
        for name, text in (("fast", "\n".join(",".join(row) for row in rows)), ("slow", slow)):
            self.kiln("--from", self.write(f"{name}.csv", f"{COLUMNS}\n{text}\n"),
                      "--own-header", f"{name}-own.h", "--vendor-header", f"{name}-vendor.h")
        for side, n in (("own", 58), ("vendor", 110)):
            fast, slow = (costs_of((self.dir / f"{name}-{side}.h").read_text(encoding="utf-8")) for name in ("fast", "slow"))
            self.assertEqual(len(fast), n)
            for one, other in zip(fast, slow):
                self.assertAlmostEqual(other, 1000 * one, delta=1e-2 * 1000 * one)
                self.assertGreaterEqual(one, 0)

    def refused(self, status, message, *arguments):
        result = self.start(*arguments)
        self.assertEqual(result.returncode, status, result.stderr)
        self.assertIn(message.encode() if isinstance(result.stderr, bytes) else message, result.stderr)
        self.assertNotIn("costs.h", self.files())

    def test_bad_input(self):
        for line in ("conv,1,2,3,1,4", "conv,1,2,3,1,4,x,-,-,-", "conv,1,2,3,1,4,0,-,-,-", "conv,0,2,3,1,4,5,-,-,-",
                     "pool,1,2,3,1,4,5,-,-,-", "conv,1,2,3,1,4,5,-,-,-,-", "conv,1,2,3,1,4,inf,-,-,-",
                     "conv_transpose,1,1,1,2,32769,5,-,-,-"):
            path = self.write("bad.csv", f"# one\n{COLUMNS}\n{line}\n")
            self.refused(FAILED, f"bad.csv:3: expected {COLUMNS}, all above zero and the numbers up to 32768, found {line}", "--from", path,
                         "--own-header", "costs.h")
        self.refused(FAILED, "direct (direct): expected 3 shapes or more, found 1", "--from",
                     self.write("one.csv", f"{COLUMNS}\nconv,1,2,3,1,4,5,-,-,-\n"), "--own-header", "costs.h")
        self.refused(FAILED, "none.csv", "--from", "none.csv")
        self.refused(USAGE, "expected no operand, found x", "x")
        self.refused(FAILED, "there is no kind 'pools'", "--from", SHIPPED, "--only", "softmax,pools")
        self.refused(USAGE, "--only: expected --from", "--only", "softmax")
        self.refused(USAGE, "--part: expected --from", "--part", "1/2")
        for part in ("0/2", "3/2", "1", "x/2", "1/2x", "1/1001"):
            self.refused(FAILED, f"--part: expected I/N, I of 1 to N, N up to 1000, found {part}", "--from", SHIPPED, "--part", part)
        self.refused(USAGE, "--isa: expected avx2 or avx512, found sse", "--isa", "sse", "--from", SHIPPED)

    def test_one_kind_anew(self):
        """What is measured anew takes the place of what was; the rest stays."""
        self.kiln("--from", SHIPPED, "--only", "reduction", "--min-time", "0", "--to", "again.csv")
        before, after = (path.read_text(encoding="utf-8").splitlines()[2:] for path in (SHIPPED, self.dir / "again.csv"))
        shape = len("kind,in,out,kernel,stride,extent".split(","))
        self.assertEqual([row for row in after if not row.startswith("reduction")],
                         [row for row in before if not row.startswith("reduction")])
        self.assertEqual(sorted(row.split(",")[:shape] for row in after), sorted(row.split(",")[:shape] for row in before))

    def test_a_part_anew(self):
        """A part of the shapes is measured; all others stay, and so does the order."""
        self.kiln("--from", SHIPPED, "--only", "add,tail_add,reduction", "--part", "3/4", "--min-time", "0", "--to", "again.csv")
        before, after = (path.read_text(encoding="utf-8").splitlines()[2:] for path in (SHIPPED, self.dir / "again.csv"))
        self.assertEqual([row.split(",")[:6] for row in after], [row.split(",")[:6] for row in before])
        changed = [before[i].split(",")[0] for i in range(len(before)) if before[i] != after[i]]
        self.assertLessEqual(set(changed), {"add", "tail_add", "reduction"})
        kinds = [row.split(",")[0] for row in before]
        self.assertLessEqual(len(changed), (kinds.count("add") + kinds.count("tail_add") + kinds.count("reduction")) // 4 + 1)
        self.assertGreater(len(changed), 0)


if __name__ == "__main__":
    main()
