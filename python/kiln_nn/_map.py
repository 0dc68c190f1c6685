# SPDX-License-Identifier: Apache-2.0
"""Program.map(): many runs on several threads, with results in order and bounded memory."""
import collections
import concurrent.futures
import threading

from ._kiln import processors


def map_runs(program, inputs, threads, outputs):
    """Yields program.session().run(feeds) for each feeds of @inputs. At most 2 * @threads of them are held at once."""
    threads = processors() if threads is None else threads
    if threads < 1:
        raise ValueError(f"threads: expected 1 or more, found {threads}")
    return _results(program, iter(inputs), threads, outputs)


def _results(program, inputs, threads, outputs):
    own = threading.local()
    sessions = []                               # that of each thread
    stopped = threading.Event()

    def run(feeds):
        if not hasattr(own, "session"):
            own.session = program.session(threads=1)
            sessions.append(own.session)
        return None if stopped.is_set() else own.session.run(feeds, outputs=outputs)

    waiting = collections.deque()

    def first():
        result = waiting[0].result()            # still in the row where Ctrl-C interrupts this
        waiting.popleft()
        return result

    pool = concurrent.futures.ThreadPoolExecutor(threads, thread_name_prefix="kiln-map")
    try:
        for feeds in inputs:
            waiting.append(pool.submit(run, feeds))
            del feeds
            if len(waiting) >= 2 * threads:
                yield first()
        while waiting:
            yield first()
    finally:
        stopped.set()
        _end(waiting, sessions)
        pool.shutdown()


def _end(futures, sessions):
    """Ends the runs of @futures, whose results nobody will read: after an error, Ctrl-C, or the end of the generator."""
    running = [future for future in futures if not future.cancel()]
    while running:
        for session in list(sessions):
            session.cancel()                    # nothing where it does not run, or not yet
        running = list(concurrent.futures.wait(running, timeout=0.02).not_done)
