# SPDX-License-Identifier: Apache-2.0
"""Program.map(): many runs on several threads, with results in order and bounded memory."""
import collections
import concurrent.futures
import os
import threading


def processors():
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def map_runs(program, inputs, threads, outputs):
    """Yields program.session().run(feeds) for each feeds of @inputs. At most 2 * @threads of them are held at once."""
    threads = processors() if threads is None else threads
    if threads < 1:
        raise ValueError(f"threads: expected 1 or more, found {threads}")
    return _results(program, iter(inputs), threads, outputs)


def _results(program, inputs, threads, outputs):
    own = threading.local()

    def run(feeds):
        if not hasattr(own, "session"):
            own.session = program.session(threads=1)
        return own.session.run(feeds, outputs=outputs)

    waiting = collections.deque()
    pool = concurrent.futures.ThreadPoolExecutor(threads, thread_name_prefix="kiln-map")
    try:
        for feeds in inputs:
            waiting.append(pool.submit(run, feeds))
            del feeds
            if len(waiting) >= 2 * threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        for future in waiting:
            future.cancel()
        pool.shutdown()
