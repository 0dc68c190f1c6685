#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""References and memory stay as they were: after runs, errors, and objects that come and go."""
import gc
import pickle
import resource
import sys
import tracemalloc
import unittest

from case import ADD, DIGITS, OPEN, kiln_nn, main, np, session_of, seven, text_model, unary
from kiln_nn import passes

X = np.ones((2, 3), np.float32)


def fail(call):
    try:
        call()
    except (kiln_nn.Error, TypeError, BufferError):
        return
    raise AssertionError("expected an error")


class References(unittest.TestCase):
    def growth(self, call, watched):
        """What 300 calls add to the counts of @watched, of None and of types, and to the bytes of Python's memory."""
        counted = [*watched, None, True, kiln_nn.Tensor, kiln_nn.Session, kiln_nn.Program, kiln_nn.Model]
        before = [sys.getrefcount(thing) for thing in counted]
        tracemalloc.start()
        bytes_before = tracemalloc.get_traced_memory()[0]
        for _ in range(300):
            call()
        gc.collect()
        bytes_after = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
        changes = [(abs(sys.getrefcount(thing) - old), repr(thing)[:60]) for thing, old in zip(counted, before)]
        return max(changes), bytes_after - bytes_before

    def check(self, call, *watched, warm=30):
        """@call leaves references and memory as they were. A leak shows each time, a cache of Python that changes does not."""
        for _ in range(warm):
            call()
        gc.collect()
        seen = []
        for _ in range(3):
            change, size = self.growth(call, watched)
            seen.append((change, size))
            if change[0] < 20 and size < 20000:
                return
        self.fail(f"references and bytes change with each 300 calls: {seen}")

    def test_runs(self):
        session, x, out = session_of(ADD), X.copy(), X.copy()
        self.check(lambda: session.run({"x": x, "y": X}), x, X, session)
        self.check(lambda: session.run({"x": x, "y": X}, out={"z": out}), x, out)
        self.check(lambda: session.run({"x": x.T.copy().T, "y": X}, outputs=["z"]), X)
        self.check(lambda: session.run({"x": kiln_nn.Tensor(x), "y": X}), x)

    def test_runs_that_fail(self):
        session, x, wrong = session_of(ADD), X.copy(), np.zeros((2, 3))
        for call in (lambda: session.run({"x": x}), lambda: session.run({"x": x, "y": wrong}),
                     lambda: session.run({"x": x, "y": x[:1]}), lambda: session.run({"x": x, "y": x, "w": x}),
                     lambda: session.run({"x": x, "y": x}, out={"z": wrong}), lambda: session.run({"x": x, "y": x}, out={"z": x}),
                     lambda: session.run({"x": x, "y": x}, outputs=["q"]), lambda: session.run({"x": x, "y": object()})):
            self.check(lambda: fail(call), x, wrong)

    def test_items(self):
        session, x = session_of("graph @f(%x: sequence(f32[2,3])) {\n  %y = identity(%x) : sequence(f32[2,3])\n  return %y\n}\n"), X.copy()
        self.check(lambda: session.run({"x": [x, x]}), x)
        self.check(lambda: fail(lambda: session.run({"x": [x, 3, "a"]})), x, warm=300)     # caches of Python shrink once
        maps = session_of("graph @f(%x: sequence(map(string,f32))) {\n  %y = identity(%x) : sequence(map(string,f32))\n"
                          "  return %y\n}\n")
        self.check(lambda: maps.run({"x": [{"a": 1.0}, {}]}), maps)
        self.check(lambda: fail(lambda: maps.run({"x": [{"a": 1.0}, 5]})), maps, warm=300)

    def test_strings_and_small_types(self):
        session, words = session_of(unary("identity", "string")), np.array(["a", "b" * 50], object)
        self.check(lambda: session.run({"x": words}), words)
        self.check(lambda: fail(lambda: session.run({"x": np.array([1], object)})), words)
        halves = session_of(unary("neg", "bf16"))
        self.check(lambda: halves.run({"x": kiln_nn.Tensor(np.zeros(3, np.uint16), "bf16")}))

    def test_objects(self):
        data = DIGITS.read_bytes()
        self.check(lambda: kiln_nn.load(data).inputs, data)
        self.check(lambda: fail(lambda: kiln_nn.load(b"no")))
        model, w = text_model(ADD), X.copy()
        self.check(lambda: model.compile(constants={"x": w}, shapes={"y": (2, 3)}).session(), model, w)
        free = text_model(OPEN)
        self.check(lambda: free.compile(ranges={"N": (1, 2)}).memory({}), free)
        self.check(lambda: fail(lambda: model.compile(constants={"x": w.astype(int)})), model, w)
        self.check(lambda: pickle.loads(pickle.dumps(model)), model)
        session = model.compile().session()
        self.check(lambda: session.clone(), session)

    def test_callbacks_and_passes(self):
        model, log = text_model(ADD), lambda line: None
        self.check(lambda: model.compile(log=log, progress=lambda *step: True), model, log)

        @passes.graph_pass("look")
        def look(function):
            for node in function.nodes:
                str(node), node.attrs, [value and value.shape for value in node.operands], node.results
        self.check(lambda: model.compile(pipeline=passes.pipeline(look, "dce")), model, look)

    def test_cycles_are_found(self):
        model, alive = text_model(ADD), []

        class Mark:
            def __del__(self):
                alive.pop()

        for _ in range(3):
            mark = Mark()
            alive.append(None)
            holder = {}
            holder["program"] = model.compile(progress=lambda *step, mark=mark, holder=holder: True)
            del mark, holder
        gc.collect()
        self.assertEqual(alive, [])


class Memory(unittest.TestCase):
    def grows(self, call, times):
        for _ in range(3):
            call()
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for _ in range(times):
            call()
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before

    def test_results_are_freed(self):
        session = session_of(unary("neg"))
        x = np.ones(1 << 20, np.float32)
        self.assertLess(self.grows(lambda: session.run({"x": x}), 100), 60 << 10)  # KiB; 400 MiB came and went

    def test_programs_are_freed(self):
        model = kiln_nn.load(DIGITS)
        self.assertLess(self.grows(lambda: model.compile().session().run({"image": seven_}), 60), 30 << 10)


seven_ = seven()

if __name__ == "__main__":
    main()
