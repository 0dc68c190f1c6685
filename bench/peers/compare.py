#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares Kiln with ONNX Runtime and OpenVINO on the same files, inputs, threads and processors.

    python3 -m venv peers && peers/bin/pip install -r bench/peers/requirements.txt
    peers/bin/python bench/peers/compare.py ../shared/models/*/model.onnx bench/zoo/*.kiln

- The engines take turns (A B C, A B C, …). Each turn is a new process, pinned to as many processors as it has threads.
  Other load of the machine therefore meets all engines alike.
- A ratio is the median over the rounds of the peer's figure divided by Kiln's in the same round. Kiln needs less if it is
  above 1.
- Kiln takes two turns in each round: as usual, and with `--prefer memory`, which is the second line of a model.
- The last columns compare the load of a saved program (`kiln compile`) with the time in which a peer makes a session. The
  program loads in a new process, with its file in the page cache.
- First, `kiln verify` compares Kiln's outputs with those of each peer.
- The script exports a `.kiln` model to ONNX, and all engines read that file.
- Inputs are those of `test_data_set_0` beside the model. If there are none, they are random.
"""
import argparse
import json
import math
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import tempfile

import worker

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
FIGURES = {"latency": "latency", "load": "load and compile", "memory": "peak memory",
           "program": "load of a saved program"}
SCALES = {"latency": 1e3, "load": 1e3, "memory": 1e-6, "program": 1e3}
# Lines of a model: the engine, and which of its figures there are.
LINES = {"kiln": tuple(FIGURES), "kiln_memory": ("latency", "load", "memory")}
OPTIONS = {"kiln": [], "kiln_memory": ["--prefer", "memory"]}


def run_pinned(command, threads, allowed=(0,)):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True,
                          preexec_fn=lambda: os.sched_setaffinity(0, range(threads)))
    if done.returncode not in allowed:
        raise RuntimeError(f"{' '.join(map(str, command))}: {done.stderr.strip()[-500:]}")
    return done.stdout


class Case:
    """One model: the ONNX file and the inputs that every engine is given."""

    def __init__(self, model, bin_, folder):
        model = pathlib.Path(model).resolve()
        self.name = model.parent.name if model.name == "model.onnx" else model.stem
        self.bin, self.folder = bin_, folder / self.name
        self.folder.mkdir()
        self.onnx = model
        if model.suffix != ".onnx":
            self.onnx = self.folder / "model.onnx"
            run_pinned([bin_ / "kiln", "opt", model, "--pipeline", "none", "--emit", "onnx", "-o", self.onnx], 1)
        self.inputs = model.parent / "test_data_set_0"
        if not self.inputs.is_dir():
            self.inputs = self.folder / "inputs"
            run_pinned([bin_ / "kiln", "run", self.onnx, "--random", "1", "--save-inputs", self.inputs, "-q"], 1)

    def measure(self, engine, threads, seconds, outputs=None):
        if engine not in LINES:
            command = [sys.executable, HERE / "worker.py", engine, self.onnx, self.inputs, threads, seconds]
            return json.loads(run_pinned(command + ([outputs] if outputs else []), threads))
        bench = self.bench(self.onnx, threads, seconds, OPTIONS[engine])
        return {"latency": bench["real_time"] / 1e3, "load": (bench["load_ms"] + bench["compile_ms"]) / 1e3,
                "memory": bench["peak_rss_bytes"]}

    def bench(self, path, threads, seconds, options=()):
        return json.loads(run_pinned([self.bin / "kiln-bench-model", "--threads", threads, "--min-time", seconds,
                                      "--inputs", self.inputs, "--json", "-", *options, path], threads))["benchmarks"][0]

    def load_program(self, threads):
        """Seconds that a process needs for its first load of the saved program, which is made at the first call."""
        program = self.folder / f"{threads}.kiln-program"
        if not program.exists():
            run_pinned([self.bin / "kiln", "compile", self.onnx, "-o", program, "--threads", threads], threads)
        return self.bench(program, threads, 0)["load_ms"] / 1e3

    def check_outputs(self, engine, threads, tolerance):
        """Raises where Kiln's outputs are not the peer's, within 1e-3 of an element and @tolerance of the largest."""
        case = self.folder / engine
        data = case / "test_data_set_0"
        data.mkdir(parents=True)
        (case / "model.onnx").symlink_to(self.onnx)
        for path in self.inputs.glob("input_*.pb"):
            (data / path.name).symlink_to(path)
        self.measure(engine, threads, 0, data)
        largest = min(float(abs(worker.load_pb(path)).max()) for path in data.glob("output_*.pb"))
        (case / "data.json").write_text(json.dumps({"rtol": 1e-3, "atol": tolerance * largest}))
        report = json.loads(run_pinned([self.bin / "kiln", "verify", case, "--threads", threads, "--json"], threads, (0, 1)))
        if report["passed"] != 1:
            raise RuntimeError(f"{self.name}: Kiln and {engine} differ: {report['cases'][0]['reason']}")


def measure_round(case, options, threads):
    figures = {engine: case.measure(engine, threads, options.seconds) for engine in [*LINES, *options.engines]}
    figures["kiln"]["program"] = case.load_program(threads)
    for engine in options.engines: # they have none: what they do instead
        figures[engine]["program"] = figures[engine]["load"]
    return figures


def ratio_key(figure, line):
    return f"{figure}_ratio" if line == "kiln" else f"{figure}_ratio_{line}"


def summarise(name, threads, rounds, peers):
    """Medians of all engines, and for each line the medians of the peers' figures over its own in the same round."""
    result = {"model": name, "threads": threads, "rounds": rounds}
    for figure in FIGURES:
        result[figure] = {engine: statistics.median(r[engine][figure] for r in rounds)
                          for engine in rounds[0] if figure in rounds[0][engine]}
        for line in (line for line, figures in LINES.items() if figure in figures):
            result[ratio_key(figure, line)] = {
                engine: statistics.median(r[engine][figure] / r[line][figure] for r in rounds) for engine in peers}
    return result


def measure_case(case, options, threads):
    for engine in options.engines:
        case.check_outputs(engine, threads, options.tolerance)
    rounds = [measure_round(case, options, threads) for _ in range(options.rounds)]
    return summarise(case.name, threads, rounds, options.engines)


def geometric_mean(values):
    return math.exp(statistics.fmean(map(math.log, values)))


def print_rows(result, engines):
    for line, figures in LINES.items():
        name = result["model"] if line == "kiln" else "  --prefer memory"
        cells = [f"{name:<20} {result['threads']:>2}"]
        for figure in figures:
            cells.append(f"{result[figure][line] * SCALES[figure]:10.3f}")
            cells += [f"{result[ratio_key(figure, line)][engine]:6.2f}" for engine in engines]
        print("  ".join(cells), flush=True)


def print_head(engines):
    peers = "  ".join(f"{'/' + engine[:5]:>6}" for engine in engines)
    print(f"{'model':<20} {'th':>2}  {'ms':>10}  {peers}  {'load ms':>10}  {peers}  {'MB':>10}  {peers}  {'program ms':>10}  {peers}")


def print_means(results, engines):
    for threads in sorted({r["threads"] for r in results}):
        of_threads = [r for r in results if r["threads"] == threads]
        for line, figures in LINES.items():
            for figure in figures:
                for engine in engines:
                    ratios = [r[ratio_key(figure, line)][engine] for r in of_threads]
                    print(f"{threads} threads, {FIGURES[figure]}{'' if line == 'kiln' else ' with --prefer memory'}: "
                          f"{engine} over Kiln, geometric mean of {len(ratios)} models {geometric_mean(ratios):.3f}, "
                          f"least {min(ratios):.3f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("models", nargs="+", metavar="MODEL", help="an .onnx or .kiln file")
    parser.add_argument("--threads", default="1,2", help="measure with these numbers of threads (default: 1,2)")
    parser.add_argument("--rounds", type=int, default=7, help="give each engine this number of turns (default: 7)")
    parser.add_argument("--seconds", type=float, default=0.5, help="measure for this time in each turn (default: 0.5)")
    parser.add_argument("--tolerance", type=float, default=1e-4, metavar="T",
                        help="allow this difference, relative to the largest element (default: 1e-4; quantized models need more)")
    parser.add_argument("--engines", default="onnxruntime,openvino", help="compare with these engines (default: both)")
    parser.add_argument("--kiln", default=ROOT / "build/release/bin", type=pathlib.Path, help="run the executables of this folder")
    parser.add_argument("--json", type=pathlib.Path, help="write every measurement to this file")
    options = parser.parse_args()
    options.engines = options.engines.split(",")
    results, failed = [], 0
    print_head(options.engines)
    with tempfile.TemporaryDirectory(prefix="kiln-peers-") as folder:
        for model in options.models:
            for threads in map(int, options.threads.split(",")):
                try:
                    case = Case(model, options.kiln, pathlib.Path(tempfile.mkdtemp(dir=folder)))
                    results.append(measure_case(case, options, threads))
                    print_rows(results[-1], options.engines)
                except RuntimeError as error:
                    print(f"{model}: {error}", file=sys.stderr)
                    failed = 1
    print_means(results, options.engines)
    if options.json:
        options.json.write_text(json.dumps({"schema_version": 2, "machine": platform.processor() or platform.machine(),
                                            "results": results}, indent=1))
    return failed


if __name__ == "__main__":
    sys.exit(main())
