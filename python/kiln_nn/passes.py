# SPDX-License-Identifier: Apache-2.0
"""Pipelines: which passes compiling runs, and passes in Python for experiments.

    from kiln_nn import passes

    @passes.graph_pass("neg-to-abs")
    def neg_to_abs(function):
        for node in function.nodes:
            if node.op == "neg":
                new = function.build("abs", node.operands, before=node)
                node.results[0].replace(new.results[0])
                node.remove()

    pipeline = passes.pipeline(neg_to_abs, "dce", "cse")
    program = model.compile(pipeline=pipeline)
"""
from collections.abc import Callable

from ._kiln import Function, Node, Pipeline, Value

__all__ = ["Function", "Node", "Pipeline", "Value", "graph_pass", "pipeline"]


def graph_pass(id: str, summary: str = "a pass in Python") -> Callable:
    """Marks a function as a pass with that id, for pipeline()."""
    def mark(function):
        function.kiln_pass = (id, summary)
        return function
    return mark


def pipeline(*steps: Callable | str) -> Pipeline:
    """A pipeline of these steps in order: functions that graph_pass() marked, and texts such as 'dce' or 'cse,dse'."""
    made = Pipeline()
    registered = set()
    for step in steps:
        if callable(step):
            id, summary = step.kiln_pass
            if id not in registered:
                made.register(step, id, summary)
                registered.add(id)
            step = id
        made.add(step)
    return made
