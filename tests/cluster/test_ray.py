# SPDX-License-Identifier: Apache-2.0
"""examples/cluster: each input has one result, also if a worker is killed; Ray costs little. test_ray.py --ray|--speed

A Python that has ray, pyarrow and kiln_nn is needed: that of KILN_RAY_PYTHON, that of build/ray-venv, which
`scripts/test --full` makes, or the one that runs this. If none has them, the exit status is 77."""
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
VENV = SOURCE / "build/ray-venv/bin/python"
EXAMPLE = SOURCE / "examples/cluster"
N, FILES, WORKERS, BATCH = 10000, 8, 4, 256
SHAPE = (3, 32, 32)
# About a millisecond for each run.
MODEL = """graph @net(%x: f32[1,3,32,32]) {
  %v = const @v : f32[32,3,3,3]
  %w = const @w : f32[32,32,3,3]
  %a = conv(%x, %v) {pads=[1,1,1,1]} : f32[1,32,32,32]
  %b = relu(%a) : f32[1,32,32,32]
  %c = conv(%b, %w) {pads=[1,1,1,1]} : f32[1,32,32,32]
  %d = relu(%c) : f32[1,32,32,32]
  %y = global_average_pool(%d) : f32[1,32,1,1]
  return %y
}
constants {
  @v = random_normal(seed=1, std=0.2) : f32[32,3,3,3]
  @w = random_normal(seed=2, std=0.1) : f32[32,32,3,3]
}
"""
# What a process does without Ray: the same work on the same batches.
PLAIN = """
import pathlib, sys
import pyarrow.parquet
sys.path.insert(0, {example!r})
from infer import Worker
worker = Worker({model!r}, {results!r})
for path in sys.argv[1:]:
    for batch in pyarrow.parquet.ParquetFile(path).iter_batches({batch}):
        worker({{"id": batch["id"].to_pylist(), "data": batch["data"].to_numpy_ndarray()}})
"""


def has_packages(python):
    code = "import kiln_nn, pyarrow, ray.data"
    return subprocess.run([python, "-B", "-c", code], capture_output=True, check=False).returncode == 0


def descendants(process):
    """The ids of the processes below @process."""
    children = {}
    for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue                            # it has ended
        children.setdefault(int(fields[1]), []).append(int(path.parent.name))
    found = [process]
    for parent in found:
        found += children.get(parent, [])
    return found[1:]


def cpu_seconds(processes):
    """What they have used so far."""
    total = 0
    for process in processes:
        try:
            fields = pathlib.Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        total += int(fields[11]) + int(fields[12])
    return total / os.sysconf("SC_CLK_TCK")


def workers(process):
    """The actors of a run of the example."""
    found = []
    for child in descendants(process):
        try:
            if b"MapWorker" in pathlib.Path(f"/proc/{child}/cmdline").read_bytes():
                found.append(child)
        except OSError:
            pass
    return found


class Cluster(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        import numpy
        import pyarrow
        import pyarrow.parquet
        folder = tempfile.TemporaryDirectory(prefix="kiln-ray-")
        cls.addClassCleanup(folder.cleanup)
        cls.dir = pathlib.Path(folder.name)
        (cls.dir / "net.kiln").write_text(MODEL, encoding="utf-8")
        (cls.dir / "in").mkdir()
        random = numpy.random.default_rng(1)
        for i in range(FILES):
            values = random.random((N // FILES, *SHAPE), numpy.float32)
            names = [f"i{i * len(values) + k:05}" for k in range(len(values))]
            column = pyarrow.FixedShapeTensorArray.from_numpy_ndarray(values)
            pyarrow.parquet.write_table(pyarrow.table({"id": names, "data": column}), cls.dir / f"in/{i:02}.parquet")

    def setUp(self):
        folder = tempfile.TemporaryDirectory(dir=self.dir)
        self.addCleanup(folder.cleanup)
        self.results = pathlib.Path(folder.name) / "out"

    def begin(self, results):
        log = open(self.dir / "log", "w+", encoding="utf-8")
        self.addCleanup(log.close)
        command = [sys.executable, "-B", str(EXAMPLE / "infer.py"), str(self.dir / "net.kiln"), str(self.dir / "in"), str(results),
                   "--workers", str(WORKERS), "--cpus", "0.5", "--batch", str(BATCH)]
        # Ray's workers would let all others go first, and its start would take minutes on a busy machine.
        environment = {**os.environ, "RAY_USAGE_STATS_ENABLED": "0", "RAY_worker_niceness": "0", "PYTHONPATH": str(EXAMPLE),
                       "PYTHONDONTWRITEBYTECODE": "1"}
        process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, env=environment)
        self.addCleanup(process.wait)
        self.addCleanup(process.terminate)
        return process, log

    def end(self, process, log):
        status = process.wait(timeout=900)
        log.seek(0)
        text = log.read()
        self.assertEqual(status, 0, text)
        self.assertIn(f"{N} inputs are done", text)

    def begin_plain(self, results):
        """As many processes, each with its share of the files."""
        results.mkdir(parents=True)
        code = PLAIN.format(example=str(EXAMPLE), model=str(self.dir / "net.kiln"), results=str(results), batch=BATCH)
        files = sorted(map(str, (self.dir / "in").iterdir()))
        return [subprocess.Popen([sys.executable, "-B", "-c", code, *files[i::WORKERS]]) for i in range(WORKERS)]

    def plain(self, results):
        for process in self.begin_plain(results):
            self.assertEqual(process.wait(timeout=900), 0)

    def check(self, results):
        """One whole result for each input. @return: them, in order."""
        found = sorted(path for path in results.iterdir() if not path.name.startswith("."))
        self.assertEqual([path.name for path in found], [f"i{i:05}.npy" for i in range(N)])
        self.assertEqual({path.stat().st_size for path in found}, {128 + 32 * 4})
        return [path.read_bytes() for path in found]

    def test_a_worker_is_killed(self):
        process, log = self.begin(self.results)
        end = time.monotonic() + 600
        while time.monotonic() < end and process.poll() is None:
            count = len(list(self.results.glob("*.npy"))) if self.results.exists() else 0
            found = workers(process.pid) if count > N // 5 else []
            if len(found) == WORKERS:
                break
            time.sleep(0.05)
        self.assertEqual(len(found), WORKERS, "the workers were not found in the middle")
        self.assertLess(count, N)
        os.kill(found[0], signal.SIGKILL)
        self.end(process, log)
        plain = self.results.with_name("plain")
        self.plain(plain)
        self.assertEqual(self.check(self.results), self.check(plain))


class Speed(Cluster):
    """Both sides do the same work, and their workers run in turns of a second: what else the machine does hits both. Ray's other
    processes go on: they would take a stop for a failure."""
    test_a_worker_is_killed = None
    TURN, LEAST, MOST = 1.0, N // 8, N * 7 // 8     # seconds; the results between which throughput is steady

    def count(self, results):
        return sum(not name.startswith(".") for name in os.listdir(results)) if results.exists() else 0

    def signal(self, processes, number):
        for process in processes:
            try:
                os.kill(process, number)
            except ProcessLookupError:
                pass

    def start_up(self, results, find_workers):
        """Waits until all workers are there and have done something, and stops them. @return: their ids."""
        end = time.monotonic() + 300
        while self.count(results) < self.LEAST or len(find_workers()) < WORKERS:
            self.assertLess(time.monotonic(), end, f"{results.name} did not begin")
            time.sleep(0.05)
        found = find_workers()
        self.signal(found, signal.SIGSTOP)
        return found

    def turn(self, processes, results):
        """@return: how many results a turn gives."""
        before = self.count(results)
        self.signal(processes, signal.SIGCONT)
        time.sleep(self.TURN)
        self.signal(processes, signal.SIGSTOP)
        return self.count(results) - before

    def test_ray_costs_little(self):
        folders = self.results.with_name("ray"), self.results.with_name("plain")
        cluster, _ = self.begin(folders[0])
        sides = [self.start_up(folders[0], lambda: workers(cluster.pid))]
        plain = self.begin_plain(folders[1])
        self.addCleanup(lambda: [process.wait() for process in plain])
        self.addCleanup(lambda: [process.kill() for process in plain])
        sides.append(self.start_up(folders[1], lambda: [process.pid for process in plain]))
        totals, turns = [0, 0], 0
        used = [cpu_seconds(side) for side in sides]
        try:
            while all(self.count(folder) < self.MOST for folder in folders):
                first = turns % 2                   # neither is always the first one
                for i in (first, 1 - first):
                    totals[i] += self.turn(sides[i], folders[i])
                turns += 1
        finally:
            self.signal(sides[0], signal.SIGCONT)
        used = [cpu_seconds(side) - before for side, before in zip(sides, used)]
        seconds, ratio = turns * self.TURN, totals[0] / totals[1]
        print(f"{WORKERS} workers of Ray {totals[0] / seconds:.0f}/s, {WORKERS} plain processes {totals[1] / seconds:.0f}/s, "
              f"ratio {ratio:.3f} ({turns} turns of {self.TURN:g} s each); milliseconds of processor for a result: workers "
              f"of Ray {used[0] / totals[0] * 1000:.2f}, plain ones {used[1] / totals[1] * 1000:.2f}", flush=True)
        self.assertGreaterEqual(ratio, 0.9)


def main():
    for python in filter(None, (os.environ.get("KILN_RAY_PYTHON"), str(VENV) if VENV.exists() else None, sys.executable)):
        if not has_packages(python):
            continue
        if python != sys.executable:
            environment = {**os.environ, "KILN_RAY_PYTHON": ""}
            return subprocess.run([python, "-B", __file__, *sys.argv[1:]], env=environment, check=False).returncode
        case = Speed if "--speed" in sys.argv[1:] else Cluster
        result = unittest.TextTestRunner(verbosity=1).run(unittest.defaultTestLoader.loadTestsFromTestCase(case))
        return 0 if result.wasSuccessful() and result.testsRun else 1
    print("SKIP: no Python has kiln_nn and Ray (python3 -m venv build/ray-venv && "
          "build/ray-venv/bin/pip install 'ray[data]' pillow ./python)")
    return 77


if __name__ == "__main__":
    sys.exit(main())
