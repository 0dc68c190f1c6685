#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Threads: the GIL is released while a run computes, sessions are for one thread, runs are cancelled, and map()."""
import gc
import os
import signal
import threading
import time
import unittest

from case import ADD, DIGITS, OPEN, kiln_nn, main, np, session_of, seven, text_model

# A loop that multiplies for as long as its input says: many instructions.
LONG = """graph @f(%n: i64[], %x: f32[256,256]) {
  %y = loop(%n, _, %x) body(%i: i64[], %go: bool[], %v: f32[256,256]) {
    %m = matmul(%v, %v) : f32[256,256]
    %s = tanh(%m) : f32[256,256]
    return %go, %s
  } : f32[256,256]
  return %y
}
"""
FOREVER = {"n": np.array(10 ** 6), "x": np.full((256, 256), 1e-3, np.float32)}


class Threads(unittest.TestCase):
    def setUp(self):
        self.session = session_of(LONG, threads=1)

    def test_the_gil_is_released(self):
        counted, done = [0], threading.Event()

        def count():
            while not done.is_set():
                counted[0] += 1

        thread = threading.Thread(target=count)
        thread.start()
        before = counted[0]
        self.session.run({"n": np.array(300), "x": FOREVER["x"]})
        during = counted[0] - before
        done.set()
        thread.join()
        self.assertGreater(during, 1000)

    def test_cancel(self):
        failures = []

        def run():
            try:
                self.session.run(FOREVER)
            except kiln_nn.CancelledError as error:
                failures.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        deadline = time.monotonic() + 60
        while thread.is_alive() and time.monotonic() < deadline:
            self.session.cancel()
            time.sleep(0.01)
        thread.join()
        self.assertEqual(len(failures), 1)
        self.session.run({"n": np.array(1), "x": FOREVER["x"]})  # it runs again

    def test_a_session_is_for_one_thread(self):
        thread = threading.Thread(target=lambda: self.assertRaises(kiln_nn.CancelledError, self.session.run, FOREVER))
        thread.start()
        time.sleep(0.2)
        for call in (lambda: self.session.run(FOREVER), self.session.reset, self.session.clone, self.session.profile):
            with self.assertRaisesRegex(kiln_nn.UsageError, "a session of its own for each thread"):
                call()
        while thread.is_alive():
            self.session.cancel()
            time.sleep(0.01)
        thread.join()

    def test_dicts_may_change_while_it_runs(self):
        inputs = {"n": np.array(300), "x": FOREVER["x"].copy()}
        out = {"y": np.zeros((256, 256), np.float32)}

        def change():
            time.sleep(0.05)
            inputs.clear()
            out.clear()
            gc.collect()

        thread = threading.Thread(target=change)
        thread.start()
        result = self.session.run(inputs, out=out)["y"]
        thread.join()
        self.assertEqual(result.shape, (256, 256))

    def test_sessions_run_at_once(self):
        program = kiln_nn.load(DIGITS).compile()
        digits = []

        def work():
            session = program.session()
            for _ in range(20):
                digits.append(int(session.run({"image": seven_})["probabilities"].argmax()))

        seven_ = seven()
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(digits, [7] * 80)


class Interrupts(unittest.TestCase):
    def interrupted(self, call):
        """How long @call takes to end by KeyboardInterrupt after a signal."""
        sent, ended = [], threading.Event()

        def send():
            if not ended.wait(0.3):
                sent.append(time.monotonic())
                os.kill(os.getpid(), signal.SIGINT)

        thread = threading.Thread(target=send)
        thread.start()
        try:
            with self.assertRaises(KeyboardInterrupt):
                call()
            return time.monotonic() - sent[0]
        finally:
            ended.set()
            thread.join()

    def test_a_run(self):
        session = session_of(LONG)
        for make in (lambda: session, session.clone):
            other = make()
            self.assertLess(self.interrupted(lambda: other.run(FOREVER)), 10)
        self.assertEqual(session.run({"n": np.array(0), "x": FOREVER["x"]})["y"].shape, (256, 256))

    def test_compiling(self):
        model = kiln_nn.load(DIGITS)

        def forever():
            while True:
                model.compile()

        self.assertLess(self.interrupted(forever), 10)

    def test_handlers_run(self):
        called = []
        before = signal.signal(signal.SIGALRM, lambda number, frame: called.append(number))
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.05)
            session_of(LONG).run({"n": np.array(2000), "x": FOREVER["x"]})
            self.assertEqual(called, [signal.SIGALRM])
        finally:
            signal.signal(signal.SIGALRM, before)


class Map(unittest.TestCase):
    def test_in_order(self):
        program = text_model(OPEN).compile()
        inputs = ({"x": np.full((n % 5 + 1, 3), n, np.float32), "y": np.zeros((n % 5 + 1, 3), np.float32)}
                  for n in range(50))
        for n, result in enumerate(program.map(inputs, threads=3)):
            self.assertEqual(result["z"].shape, (n % 5 + 1, 3))
            self.assertTrue((result["z"] == n).all())
        self.assertEqual(n, 49)

    def test_bounded(self):
        taken = [0]

        def inputs():
            while True:
                taken[0] += 1
                yield {"x": np.ones((2, 3), np.float32), "y": np.ones((2, 3), np.float32)}

        results = text_model(ADD).compile().map(inputs(), threads=2)
        for n in range(20):
            next(results)
            self.assertLessEqual(taken[0], n + 5)
        results.close()
        self.assertEqual(threading.active_count(), 1)

    def test_map_ends_runs_that_nobody_waits_for(self):
        """They would take minutes: after Ctrl-C, an error, or the end of the generator they are cancelled."""
        program = text_model(LONG).compile(threads=1)
        short = {"n": np.array(1), "x": FOREVER["x"]}

        def interrupted():
            threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
            with self.assertRaises(KeyboardInterrupt):
                list(program.map([FOREVER] * 5, threads=2))

        def failed():
            with self.assertRaises(ValueError):
                list(program.map([{}, FOREVER, FOREVER, FOREVER], threads=2))

        def closed():
            results = program.map([short, FOREVER, FOREVER, FOREVER], threads=2)
            next(results)
            results.close()

        for end in (interrupted, failed, closed):
            with self.subTest(end=end.__name__):
                before = time.monotonic()
                end()
                self.assertLess(time.monotonic() - before, 30)

    def test_errors_come_in_order(self):
        good = {"x": np.ones((2, 3), np.float32), "y": np.ones((2, 3), np.float32)}
        results = text_model(ADD).compile().map([good, good, {}, good], threads=2)
        self.assertTrue((next(results)["z"] == 2).all())
        next(results)
        with self.assertRaises(kiln_nn.UsageError):
            next(results)
        self.assertEqual(threading.active_count(), 1)

    def test_some_outputs_and_wrong_threads(self):
        program = text_model(ADD).compile()
        self.assertEqual(list(program.map([], threads=2)), [])
        with self.assertRaises(ValueError):
            program.map([], threads=0)
        self.assertIn(kiln_nn._kiln.processors(), range(1, len(os.sched_getaffinity(0)) + 1))


if __name__ == "__main__":
    main()
